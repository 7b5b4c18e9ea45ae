// Hooks of modules: functions that run before or after every call of a module. They see the tensors of the call, and may
// replace them:
//     std::map<std::string, Tensor> means;
//     const ModuleHook hook = after_call(net.fc1, [&](Module& m, std::span<const Tensor>, std::span<Tensor> outputs) {
//       means[m.path()] = mean(outputs[0]);
//     });
//
// Every layer of engine/nn runs its hooks, and so does a module whose author wrote its call with hooked() (below). The hooks
// of other modules never run, because modules have no common call. A ModuleList has no call, and a function inside a
// Sequential is no module.
//
// Hooks run in the order in which they were added, and each sees what the hooks before it have replaced.
// - A hook may add and remove hooks. Hooks before the call are those that the module has when it is called; hooks after the
//   call are those that it has when the call is done. A hook that was removed before its turn does not run.
// - An exception of a hook reaches the caller of the module. The hooks after it do not run, and all hooks stay. If the call
//   itself throws, no hook runs after it.
// - Ops of a hook are ordinary code: they are recorded for backward (unless the hook opens a NoGrad), with the path
//   "fc1.before_call" or "fc1.after_call". So a draw in a hook does not change the draws of the module.
// - Inside a capture the ops of a hook are recorded, and a hook may not read values, as all code there. A replay runs these
//   ops and does not call the function. A captured step is recorded again when modules have other hooks than they had.
// - A hook that calls its own module runs again in that call. A hook must not destroy its module.
// - A module is neither copied nor moved, so its hooks are not.
//
// To add and to remove a hook are changes of the module: no other thread may call it meanwhile. Calls in several threads may
// run one hook at the same time. A module that never had a hook pays for the test of one pointer in a call.
#pragma once

#include <tapedeck/engine/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace tapedeck TAPEDECK_API {

// The inputs are the tensors that the module was called with, in the order of its parameters; one that was left out is
// undefined. The outputs are its results. A hook replaces a tensor by assigning to it, and may give it another type.
//     MultiheadAttention                     x, mask -> y, or x, memory, mask -> y
//     TransformerBlock                       x, mask -> y
//     LstmCell, GruCell, RnnCell             x, h, c -> h, c, or x, h -> h
//     Lstm, Gru, Rnn                         x, h, c -> y, h, c, or x, h -> y, h
//     all other layers, and Sequential       x -> y
using BeforeCall = std::function<void(Module& m, std::span<Tensor> inputs)>;
using AfterCall = std::function<void(Module& m, std::span<const Tensor> inputs, std::span<Tensor> outputs)>;

namespace detail {

// The hooks of one module.
class CallHooks {
 public:
  CallHooks() = default;
  CallHooks(const CallHooks&) = delete;
  ~CallHooks();

  static bool any(const Module& m) { return m.call_hooks_ != nullptr; }
  static const std::shared_ptr<CallHooks>& of(Module& m);  // makes the list if there is none
  std::uint64_t add(BeforeCall before, AfterCall after);   // one of the two is empty; returns the number of the hook
  void remove(std::uint64_t id) noexcept;                  // nothing happens if there is no such hook

  // REQUIRES: any(m).
  static void run_before(Module& m, std::span<Tensor> inputs);
  static void run_after(Module& m, std::span<const Tensor> inputs, std::span<Tensor> outputs);

 private:
  struct Hook {
    std::uint64_t id;
    BeforeCall before;
    AfterCall after;
    bool removed = false;
  };
  std::vector<std::shared_ptr<Hook>> hooks_;
};

inline std::span<Tensor> outputs_of(Tensor& result) { return {&result, 1}; }
template <class List>
std::span<Tensor> outputs_of(List& results) {
  return results;
}

// Calls a function that takes an Arg or a Tensor.
template <class Function>
Tensor call_with(Function& f, const Arg& x) {
  if constexpr (std::is_invocable_v<Function&, const Arg&>)
    return f(x);
  else
    return f(x.tensor());
}

}  // namespace detail

// Removes its hook when it is destroyed. The module may be destroyed before.
class [[nodiscard]] ModuleHook {
 public:
  ModuleHook() = default;  // of no hook
  ModuleHook(ModuleHook&& o) noexcept : hooks_(std::move(o.hooks_)), id_(std::exchange(o.id_, 0)) {}
  ModuleHook& operator=(ModuleHook&& o) noexcept;
  ~ModuleHook() { remove(); }

  void remove() noexcept;  // a second call does nothing
  void keep() noexcept;    // from now on this object has no hook: the hook stays until the module is destroyed

 private:
  friend ModuleHook before_call(Module& m, BeforeCall fn, Site site);
  friend ModuleHook after_call(Module& m, AfterCall fn, Site site);
  ModuleHook(std::weak_ptr<detail::CallHooks> hooks, std::uint64_t id) : hooks_(std::move(hooks)), id_(id) {}

  std::weak_ptr<detail::CallHooks> hooks_;
  std::uint64_t id_ = 0;
};

// Add a hook, which stays as long as the result lives. UsageError if the function is empty. A call of the module throws
// UsageError if a hook after it leaves an output undefined that was not.
ModuleHook before_call(Module& m, BeforeCall fn, Site site = {__builtin_FILE(), __builtin_LINE()});
ModuleHook after_call(Module& m, AfterCall fn, Site site = {__builtin_FILE(), __builtin_LINE()});

// A number that tells which hooks the modules of the process have. When a hook has been added and removed again, the number is
// the same again. A replay compares it with the number at its recording. Thread safe. O(1).
std::uint64_t module_hooks();

// The call of a module with hooks: runs f, which takes one tensor (as Tensor or Arg) and returns one, between the hooks of m.
// f must compute from its own parameter, which a hook may have replaced. It runs inside a ModuleScope.
//     Tensor operator()(const Arg& x) {
//       return hooked(*this, x, [&](const Tensor& x) { return out(relu(in(x))); });
//     }
template <class Function>
Tensor hooked(Module& m, const Arg& x, Function&& f) {
  const ModuleScope scope(m, x.site());
  if (!detail::CallHooks::any(m)) return detail::call_with(f, x);
  Tensor input = x.tensor();
  detail::CallHooks::run_before(m, {&input, 1});
  Tensor result = detail::call_with(f, Arg(input, x.site().file, x.site().line));
  detail::CallHooks::run_after(m, {&input, 1}, {&result, 1});
  return result;
}

// The same for several tensors. The inputs are a std::array or a std::vector of tensors, which f takes. f returns a Tensor, or
// an array or vector of tensors, by value. `site` is the place of the user's call.
//     const auto [y, gate] = hooked(*this, x.site(), std::array{x.tensor(), mask}, [&](const std::array<Tensor, 2>& in) {
//       return std::array{mix(in[0], in[1]), sigmoid(in[0])};
//     });
template <class Inputs, class Function>
auto hooked(Module& m, Site site, Inputs inputs, Function&& f) {
  const ModuleScope scope(m, site);
  if (!detail::CallHooks::any(m)) return f(std::as_const(inputs));
  detail::CallHooks::run_before(m, inputs);
  auto result = f(std::as_const(inputs));
  detail::CallHooks::run_after(m, inputs, detail::outputs_of(result));
  return result;
}

}  // namespace TAPEDECK_API
