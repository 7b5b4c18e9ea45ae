// The list of a module's hooks. A call runs a copy of the list, so that hooks may add and remove hooks, themselves too. A hook
// is marked when it is removed, because such a copy may still hold it.
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/nn/hooks.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace tapedeck {
namespace {

// The exclusive or of one number for each hook. So the order of adding and removing does not matter.
std::atomic<std::uint64_t> present{0};

void toggle(std::uint64_t id) {
  std::uint64_t x = id * 0x9E3779B97F4A7C15u;  // the finalizer of splitmix64: ids 1, 2 and 3 must not cancel
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  present.fetch_xor(x ^ (x >> 31), std::memory_order_relaxed);
}

// As long as a HookScope lives, recorded nodes get the path of the hooks of the module, and sites in the hook itself.
class HookScope {
 public:
  HookScope(const Module& m, const char* when)
      : path_(thread_state().path, Name(m.path().empty() ? std::string(when) : m.path() + "." + when)),
        site_(thread_state().site, Site()) {}

 private:
  Scoped<Name> path_;
  Scoped<Site> site_;
};

std::ptrdiff_t count_defined(std::span<const Tensor> tensors) {
  return std::count_if(tensors.begin(), tensors.end(), [](const Tensor& t) { return t.defined(); });
}

}  // namespace

std::uint64_t module_hooks() { return present.load(std::memory_order_relaxed); }

namespace detail {

CallHooks::~CallHooks() {
  for (const auto& hook : hooks_) toggle(hook->id);
}

const std::shared_ptr<CallHooks>& CallHooks::of(Module& m) {
  if (!m.call_hooks_) m.call_hooks_ = std::make_shared<CallHooks>();
  return m.call_hooks_;
}

std::uint64_t CallHooks::add(BeforeCall before, AfterCall after) {
  static std::atomic<std::uint64_t> made{0};
  const std::uint64_t id = made.fetch_add(1, std::memory_order_relaxed) + 1;
  hooks_.push_back(std::make_shared<Hook>(Hook{id, std::move(before), std::move(after)}));
  toggle(id);
  return id;
}

void CallHooks::remove(std::uint64_t id) noexcept {
  const auto place = std::find_if(hooks_.begin(), hooks_.end(), [&](const auto& hook) { return hook->id == id; });
  if (place == hooks_.end()) return;
  const std::shared_ptr<Hook> removed = std::move(*place);  // destroyed last: what the function holds may remove hooks too
  hooks_.erase(place);
  removed->removed = true;
  toggle(id);
}

void CallHooks::run_before(Module& m, std::span<Tensor> inputs) {
  const std::vector<std::shared_ptr<Hook>> hooks = m.call_hooks_->hooks_;
  for (const auto& hook : hooks) {
    if (!hook->before || hook->removed) continue;
    const HookScope scope(m, "before_call");
    hook->before(m, inputs);
  }
}

void CallHooks::run_after(Module& m, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const std::vector<std::shared_ptr<Hook>> hooks = m.call_hooks_->hooks_;
  const std::ptrdiff_t wanted = count_defined(outputs);
  for (const auto& hook : hooks) {
    if (!hook->after || hook->removed) continue;
    {
      const HookScope scope(m, "after_call");
      hook->after(m, inputs, outputs);
    }
    if (count_defined(outputs) < wanted)
      throw UsageError(error_text("after_call", fmt::format("a hook of module '{}' left an output undefined", m.path()),
                                  thread_state().site));
  }
}

}  // namespace detail

ModuleHook& ModuleHook::operator=(ModuleHook&& o) noexcept {
  if (this != &o) {
    remove();
    hooks_ = std::move(o.hooks_);
    id_ = std::exchange(o.id_, 0);
  }
  return *this;
}

void ModuleHook::remove() noexcept {
  const std::shared_ptr<detail::CallHooks> hooks = hooks_.lock();
  const std::uint64_t id = id_;
  keep();  // first, because the function may own this object
  if (hooks) hooks->remove(id);
}

void ModuleHook::keep() noexcept {
  hooks_.reset();
  id_ = 0;
}

ModuleHook before_call(Module& m, BeforeCall fn, Site site) {
  if (!fn) throw UsageError(error_text("before_call", "the function is empty", site));
  const std::shared_ptr<detail::CallHooks>& hooks = detail::CallHooks::of(m);
  return {hooks, hooks->add(std::move(fn), nullptr)};
}

ModuleHook after_call(Module& m, AfterCall fn, Site site) {
  if (!fn) throw UsageError(error_text("after_call", "the function is empty", site));
  const std::shared_ptr<detail::CallHooks>& hooks = detail::CallHooks::of(m);
  return {hooks, hooks->add(nullptr, std::move(fn))};
}

}  // namespace tapedeck
