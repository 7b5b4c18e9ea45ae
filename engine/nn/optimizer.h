// Optimizers: state beside the parameters, updated in place.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/engine/tensor.h>

#include <vector>

namespace tapedeck TAPEDECK_API {

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
