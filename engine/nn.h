// Modules and optimizers: thin holders of named parameters. A module is any struct that derives from Module and has members that
// register themselves by name.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/engine/ops.h>
#include <tapedeck/engine/tape.h>
#include <tapedeck/engine/tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace tapedeck TAPEDECK_API {

class Module {
 public:
  Module() = default;
  Module(Module& parent, const std::string& name);
  Module(const Module&) = delete;
  virtual ~Module() = default;

  // All parameters below this module, in registration order, named "fc1.weight". The tensors are the module's own handles.
  std::vector<Tensor> parameters() const;
  const std::string& path() const { return path_; }
  bool training() const { return training_; }
  void train(bool on = true);               // dropout and its like act only while training
  Module& operator[](const std::string& child);

 protected:
  Tensor parameter(const std::string& name, Tensor initial);

 private:
  std::string path_;
  std::vector<Module*> children_;
  std::vector<Tensor> parameters_;
  bool training_ = true;
};

// y = x W + b, x: [..., in], W: [in, out]. Initialised uniform in +-1/sqrt(in).
struct Linear : Module {
  Linear(Module& parent, const std::string& name, std::int64_t in, std::int64_t out);
  Tensor operator()(const Arg& x);
  Tensor weight, bias;
};

// NCHW convolution with bias, OIHW weights; `padding` on every side. Weights are drawn for relu: uniform in +-sqrt(6/fan_in) (He et
// al., 2015), so that deep stacks keep their scale.
struct Conv2d : Module {
  Conv2d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t padding = 0,
         std::int64_t stride = 1);
  Tensor operator()(const Arg& x);
  Tensor weight, bias;
  ConvAttrs attrs;
};

struct Dropout : Module {
  Dropout(Module& parent, const std::string& name, double p);
  Tensor operator()(const Arg& x);
  double p;
};

// Learning rates are 0-d tensors, so that a captured step takes them as inputs. step() updates every parameter that has a gradient
// in place, advances the random step, and is recorded as update phase.
class Optimizer {
 public:
  explicit Optimizer(std::vector<Tensor> parameters, double lr);
  virtual ~Optimizer() = default;
  void step(Site site = {__builtin_FILE(), __builtin_LINE()});
  void zero_grad();                       // drops the gradients
  const Tensor& lr() const { return lr_; }
  void set_lr(double lr);
  void set_lr(const Tensor& lr);          // 0-d f32, e.g. an input of a capture
  const std::vector<Tensor>& parameters() const { return parameters_; }

 protected:
  virtual void update(std::size_t index, const Tensor& parameter, const Tensor& grad, Site site) = 0;
  virtual void before_update(Site) {}
  std::vector<Tensor> parameters_;
  Tensor lr_;
};

struct SgdOptions {
  double lr = 0.01;
  double momentum = 0;
  double weight_decay = 0;
};
class Sgd : public Optimizer {
 public:
  Sgd(std::vector<Tensor> parameters, SgdOptions options = {});

 protected:
  void update(std::size_t index, const Tensor& parameter, const Tensor& grad, Site site) override;
  SgdOptions options_;
  std::vector<Tensor> velocity_;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};
class AdamW : public Optimizer {
 public:
  AdamW(std::vector<Tensor> parameters, AdamWOptions options = {});

 protected:
  void update(std::size_t index, const Tensor& parameter, const Tensor& grad, Site site) override;
  void before_update(Site site) override;
  AdamWOptions options_;
  std::vector<Tensor> m_, v_;
  Tensor count_;                          // i64[]: steps taken
};

}  // namespace tapedeck
