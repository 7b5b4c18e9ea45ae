// Optimizers. Their state stands beside the parameters, and both are updated in place.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/export.h>

#include <vector>

namespace tapedeck TAPEDECK_API {

// The base of all optimizers. Learning rates are 0-d tensors, one for each group of parameters, so that a captured step has
// them as inputs. The rate of a group with an f64 parameter is f64; every other rate is f32. step() updates every parameter
// that has a gradient, in place, and advances the random step. Its nodes are recorded in the update phase.
//
// A parameter that is frozen (Module::freeze, requires_grad(false)) is skipped, even if it has a gradient. An optimizer may be
// made with frozen parameters. It has moments for them too, so that they can be unfrozen later; Module::trainable_parameters()
// leaves them out. Constructors throw UsageError for integer parameters and for a parameter that is listed twice.
class Optimizer {
 public:
  explicit Optimizer(std::vector<Tensor> parameters, double lr);  // makes one group
  virtual ~Optimizer() = default;
  void step(Site site = {__builtin_FILE(), __builtin_LINE()});
  // Does the same as step(), but if `when` (a bool[]) is false, only the random step changes. `when` is not read on the host,
  // so this works in a capture.
  void step_if(const Tensor& when, Site site = {__builtin_FILE(), __builtin_LINE()});
  void zero_grad();  // drops the gradients
  const Tensor& lr(std::size_t group = 0) const;
  void set_lr(double lr);         // sets the rate of all groups
  void set_lr(const Tensor& lr);  // 0-d f32 or f64, for example an input of a capture
  void set_lr(double lr, std::size_t group);
  void set_lr(const Tensor& lr, std::size_t group);
  std::size_t groups() const { return lrs_.size(); }
  const std::vector<Tensor>& parameters() const { return parameters_; }  // the parameters of all groups, in order
  // All state to save and restore beside the parameters: the moments ("fc1.weight.m"), parameter by parameter, and then the
  // step counter.
  std::vector<Tensor> state() const;

 protected:
  Optimizer() = default;
  virtual void update(std::size_t index, const Tensor& parameter, const Tensor& grad, Site site) = 0;
  virtual void before_update(Site) {}

  void add_group(std::vector<Tensor> parameters, double lr);
  std::size_t group_of(std::size_t index) const { return groups_[index]; }
  const Tensor& moment(std::size_t index, const char* suffix);  // adds zeros like the parameter to the parameter's moments
  void count_steps(const char* name);  // makes an i64[] counter, which step() advances before the updates
  // Runs an op in place. Its operands are the parameter, its gradient, its moments, the counter if `counted`, and the
  // learning rate.
  void run(const Op& op, std::size_t index, const Tensor& grad, const void* attrs, bool counted, Site site);

  std::vector<Tensor> parameters_;
  std::vector<std::vector<Tensor>> moments_;  // for each parameter, in the order of the op's operands
  Tensor count_;                              // i64[]: the number of steps; undefined if the optimizer does not count

 private:
  void advance_count(Site site);
  void check_moments(std::size_t index, Site site) const;
  std::vector<std::size_t> groups_;  // the group of each parameter
  std::vector<Tensor> lrs_;          // the learning rate of each group
  Tensor when_;                      // the condition of the running step; undefined: none
};

// Parameters with their own options: Sgd({{biases, {.lr = 0.1}}, {weights, {.lr = 0.1, .weight_decay = 1e-4}}}).
template <class Options>
struct ParameterGroup {
  std::vector<Tensor> parameters;
  Options options = {};
};

template <class Options>
class GroupedOptimizer : public Optimizer {
 public:
  using Group = ParameterGroup<Options>;

 protected:
  explicit GroupedOptimizer(std::vector<Group> groups) {
    for (Group& g : groups) {
      add_group(std::move(g.parameters), g.options.lr);
      options_.push_back(g.options);
    }
  }
  const Options& options(std::size_t index) const { return options_[group_of(index)]; }

 private:
  std::vector<Options> options_;
};

#define TAPEDECK_OPTIMIZER(Name)                                                                                          \
  class Name : public GroupedOptimizer<Name##Options> {                                                                   \
   public:                                                                                                                \
    Name(std::vector<Tensor> parameters, Name##Options options = {}) : Name(one_group(std::move(parameters), options)) {} \
    explicit Name(std::vector<Group> groups);                                                                             \
                                                                                                                          \
   protected:                                                                                                             \
    void update(std::size_t index, const Tensor& parameter, const Tensor& grad, Site site) override;                      \
                                                                                                                          \
   private:                                                                                                               \
    static std::vector<Group> one_group(std::vector<Tensor> parameters, const Name##Options& options) {                   \
      std::vector<Group> groups;                                                                                          \
      groups.push_back({std::move(parameters), options});                                                                 \
      return groups;                                                                                                      \
    }                                                                                                                     \
  };

struct SgdOptions {
  double lr = 0.01;
  double momentum = 0;
  double weight_decay = 0;
  double dampening = 0;   // of every step except the first
  bool nesterov = false;  // needs momentum and no dampening
};
TAPEDECK_OPTIMIZER(Sgd)

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // this times the parameter is added to the gradient
  bool amsgrad = false;     // divides by the largest second moment so far
};
TAPEDECK_OPTIMIZER(Adam)

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;  // shrinks the parameter itself, not through the gradient
  bool amsgrad = false;
};
TAPEDECK_OPTIMIZER(AdamW)

struct RmspropOptions {
  double lr = 0.01;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
};
TAPEDECK_OPTIMIZER(Rmsprop)

struct AdagradOptions {
  double lr = 0.01;
  double lr_decay = 0;
  double weight_decay = 0;
  double eps = 1e-10;
};
TAPEDECK_OPTIMIZER(Adagrad)

struct AdadeltaOptions {
  double lr = 1.0;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
};
TAPEDECK_OPTIMIZER(Adadelta)

struct LionOptions {
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
};
TAPEDECK_OPTIMIZER(Lion)

#undef TAPEDECK_OPTIMIZER

}  // namespace TAPEDECK_API
