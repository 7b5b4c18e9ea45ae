// A program to be run in many ways: what it owns - parameters, buffers, modules, optimizers - and one step of it, from inputs
// to outputs.
//
// A builder makes the program anew, from the same seed, for every way of running it, so that all ways start alike. Inputs have
// other elements at every step; state is carried from step to step.
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

// Half open; integers and booleans are rounded down.
struct Range {
  double low = -1, high = 1;
};

// Elements are a function of the type, the range and the key alone.
Tensor drawn(const Type& type, Range range, std::uint64_t key);
// A dense tensor of its own with the same elements.
Tensor copied(const Tensor& t);
Tensors copied(const Tensors& tensors);

class Program {
 public:
  using Step = std::function<Tensors(const Tensors& in)>;

  // Seeds the thread's random state too.
  explicit Program(std::uint64_t seed);

  // ---- making it ----
  void input(const Shape& shape, Range range = {}, DType dtype = DType::f32);  // the next operand of the step
  Tensor parameter(const std::string& name, const Shape& shape, Range range = {}, DType dtype = DType::f32);
  Tensor buffer(const std::string& name, const Shape& shape, Range range = {},
                DType dtype = DType::f32);                                          // state that is no parameter
  Tensor constant(const Shape& shape, Range range = {}, DType dtype = DType::f32);  // read only
  // A module or an optimizer that lives as long as the program.
  template <class T, class... Args>
  T& own(Args&&... args) {
    auto owned = std::make_shared<T>(std::forward<Args>(args)...);
    owned_.push_back(owned);
    return *owned;
  }
  // Compared after every step, beside what parameter() and buffer() made.
  void watch(const Tensors& tensors) { state_.insert(state_.end(), tensors.begin(), tensors.end()); }
  void watch(const Module& module);
  // Runs before every step, outside of any capture: a new learning rate.
  void before(std::function<void(int step)> fn) { before_ = std::move(fn); }
  void step(Step fn) { step_ = std::move(fn); }
  // A step of training. The first result of `forward` is the loss; the step returns all of them, then the gradients of `wrt`
  // (zeros where there is none), and updates. Without an optimizer it begins a new random step.
  void train(Step forward, Tensors wrt, Optimizer* optimizer = nullptr);
  // It has branches or loops. What only a branch not taken reads has no gradient in eager code, and in a graph one of zeros, of
  // either sign: train() makes them the same before the optimizer sees them.
  void branches() { branches_ = true; }
  // Its gradients are not those of its ops: a capture of the forward pass alone does not hold them.
  void own_gradients() { own_gradients_ = true; }

  // ---- running it ----
  Tensors inputs(int step) const;
  void prepare(int step) const {
    if (before_) before_(step);
  }
  const Step& step() const { return step_; }
  const Tensors& state() const { return state_; }
  const Step& forward() const { return forward_; }  // of train(); else empty
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
