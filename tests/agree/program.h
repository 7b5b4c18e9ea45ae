// A program that the tests run in many ways. It owns parameters, buffers, modules and optimizers, and it has one step, a
// function from inputs to outputs.
//
// For every way of running the program, a builder makes it anew from the same seed, so that all ways start alike. Inputs
// have other elements at every step; each step starts from the state that the step before left.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/nn/nn.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::agree {

using Tensors = std::vector<Tensor>;

// The range of random elements, without `high` itself. Integers and booleans are rounded down.
struct Range {
  double low = -1, high = 1;
};

// A tensor of random elements, which depend on the type, the range and the key alone.
Tensor drawn(const Type& type, Range range, std::uint64_t key);
// A dense tensor with storage of its own and the same elements.
Tensor copied(const Tensor& t);
Tensors copied(const Tensors& tensors);

class Program {
 public:
  using Step = std::function<Tensors(const Tensors& in)>;

  // Also seeds the random state of the thread.
  explicit Program(std::uint64_t seed);

  // ---- making the program ----
  void input(const Shape& shape, Range range = {}, DType dtype = DType::f32);  // adds an operand of the step
  Tensor parameter(const std::string& name, const Shape& shape, Range range = {}, DType dtype = DType::f32);
  Tensor buffer(const std::string& name, const Shape& shape, Range range = {},
                DType dtype = DType::f32);                                          // state that is not a parameter
  Tensor constant(const Shape& shape, Range range = {}, DType dtype = DType::f32);  // a tensor that the step only reads
  // Makes a module or an optimizer that lives as long as the program.
  template <class T, class... Args>
  T& own(Args&&... args) {
    auto owned = std::make_shared<T>(std::forward<Args>(args)...);
    owned_.push_back(owned);
    return *owned;
  }
  // Adds state tensors that are compared after every step, like the tensors of parameter() and buffer().
  void watch(const Tensors& tensors) { state_.insert(state_.end(), tensors.begin(), tensors.end()); }
  void watch(const Module& module);
  // `fn` runs before every step and outside of the capture. It may set a new learning rate, for instance.
  void before(std::function<void(int step)> fn) { before_ = std::move(fn); }
  void step(Step fn) { step_ = std::move(fn); }
  // Sets a training step. It runs `forward`, whose first result is the loss, then backward, then the optimizer. The step
  // returns all results of `forward` and then the gradients of `wrt` (zeros where a tensor has no gradient). Without an
  // optimizer the step moves the random state on by itself.
  void train(Step forward, Tensors wrt, Optimizer* optimizer = nullptr);
  // Says that the program has branches or loops. A tensor that only an untaken branch reads has no gradient in eager code,
  // but a gradient of zeros, of either sign, in a graph. train() makes both equal before the optimizer reads them.
  void branches() { branches_ = true; }
  // Says that the program defines its own gradients. A graph captured from the forward pass alone does not contain them.
  void own_gradients() { own_gradients_ = true; }

  // ---- running the program ----
  Tensors inputs(int step) const;
  void prepare(int step) const {
    if (before_) before_(step);
  }
  const Step& step() const { return step_; }
  const Tensors& state() const { return state_; }
  const Step& forward() const { return forward_; }  // the forward function of train(); empty for other programs
  const Tensors& wrt() const { return wrt_; }
  bool has_own_gradients() const { return own_gradients_; }
  bool has_branches() const { return branches_; }

 private:
  struct Input {
    Type type;
    Range range;
  };
  Tensor leaf(const std::string& name, const Type& type, Range range, Role role);

  std::uint64_t seed_;
  std::vector<Input> inputs_;
  Tensors state_, wrt_;
  std::uint64_t leaves_ = 0;
  std::vector<std::shared_ptr<void>> owned_;
  std::function<void(int)> before_;
  Step step_, forward_;
  bool own_gradients_ = false, branches_ = false;
};

using Builder = std::function<void(Program&)>;

}  // namespace tapedeck::agree
