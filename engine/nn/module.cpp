#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/nn/module.h>
#include <tapedeck/engine/ops/random.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace tapedeck {

Module::Module(Module& parent, const std::string& name)
    : path_(parent.path_.empty() ? name : parent.path_ + "." + name), parent_(&parent) {
  parent.children_.push_back(this);
}

// Removes a child that is being destroyed. A later child of the same name replaces it, and moves to its place.
void Module::forget(const Module& child) {
  const auto place = std::find(children_.begin(), children_.end(), &child);
  const auto heir =
      std::find_if(std::next(place), children_.end(), [&](const Module* other) { return other->path_ == child.path_; });
  if (heir != children_.end()) {
    *place = *heir;
    children_.erase(heir);
  } else {
    children_.erase(place);
  }
}

void Module::require_distinct_children() const {
  std::unordered_set<std::string_view> seen;
  for (const Module* child : children_)
    if (!seen.insert(child->path_).second)
      throw UsageError(fmt::format("two modules are named '{}'; each module inside {} needs a name of its own", child->path_,
                                   path_.empty() ? "the net" : fmt::format("'{}'", path_)));
}

void Module::require_new_name(const std::string& name) const {
  const std::string path = path_.empty() ? name : path_ + "." + name;
  for (const auto* list : {&parameters_, &buffers_})
    for (const Tensor& t : *list)
      if (t.name() == path) throw UsageError(fmt::format("two tensors of a module are named '{}'", path));
}

std::vector<Tensor> Module::parameters() const {
  require_distinct_children();
  std::vector<Tensor> all = parameters_;
  for (const Module* child : children_)
    for (const Tensor& p : child->parameters()) all.push_back(p);
  return all;
}

namespace {

// The exclusive or of one number for each module that does not train. So the order in which modules were switched does not
// matter.
std::atomic<std::uint64_t> resting{0};

std::uint64_t mixed(const Module* m) {
  std::uint64_t x = reinterpret_cast<std::uintptr_t>(m) * 0x9E3779B97F4A7C15u;
  return x ^ (x >> 29);
}

}  // namespace

std::uint64_t training_modes() { return resting.load(std::memory_order_relaxed); }

Module::~Module() {
  if (parent_) parent_->forget(*this);
  for (Module* child : children_) child->parent_ = nullptr;
  if (!training_) resting.fetch_xor(mixed(this), std::memory_order_relaxed);
}

void Module::train(bool on) {
  if (on != training_) resting.fetch_xor(mixed(this), std::memory_order_relaxed);
  training_ = on;
  for (Module* child : children_) child->train(on);
}

std::vector<Tensor> Module::trainable_parameters() const {
  std::vector<Tensor> all = parameters();
  std::erase_if(all, [](const Tensor& p) { return !p.requires_grad(); });
  return all;
}

namespace {

void refuse_inside_capture(const char* what, Site site) {
  const Recorder& tape = *thread_state().tape;
  if (tape.capturing)
    refuse_in_capture(tape, error_text(what, "changes parameters inside a capture, which a replay could not repeat", site));
}

}  // namespace

void Module::freeze(Site site) {
  refuse_inside_capture("freeze", site);
  for (Tensor p : parameters()) {
    p.requires_grad(false);
    if (p.grad().defined()) p.set_grad(Tensor());
  }
}

void Module::unfreeze(Site site) {
  refuse_inside_capture("unfreeze", site);
  for (Tensor p : parameters()) p.requires_grad(true);
}

Module& Module::operator[](const std::string& child) {
  require_distinct_children();
  const std::string wanted = path_.empty() ? child : path_ + "." + child;
  for (Module* c : children_)
    if (c->path_ == wanted) return *c;
  throw UsageError(fmt::format("module '{}' has no child '{}'", path_, child));
}

Tensor Module::parameter(const std::string& name, Tensor initial) {
  require_new_name(name);
  initial.name(path_.empty() ? name : path_ + "." + name).role(Role::parameter).requires_grad(true);
  parameters_.push_back(initial);
  return initial;
}

std::vector<Tensor> Module::buffers() const {
  require_distinct_children();
  std::vector<Tensor> all = buffers_;
  for (const Module* child : children_)
    for (const Tensor& b : child->buffers()) all.push_back(b);
  return all;
}

Tensor Module::buffer(const std::string& name, Tensor initial, Role role) {
  require_new_name(name);
  initial.name(path_.empty() ? name : path_ + "." + name).role(role);
  buffers_.push_back(initial);
  return initial;
}

ModuleScope::ModuleScope(const Module& m, Site site)
    : path_before_(std::exchange(thread_state().path, Name(m.path()))),
      site_before_(std::exchange(thread_state().site, std::move(site))) {}

ModuleScope::~ModuleScope() {
  thread_state().path = path_before_;
  thread_state().site = site_before_;
}

Tensor initial_uniform(const Module& m, const std::string& name, const Shape& shape, std::int64_t fan_in, double gain) {
  const double bound = gain / std::sqrt(static_cast<double>(std::max<std::int64_t>(fan_in, 1)));
  const Scoped<Name> path(thread_state().path, Name(m.path() + "." + name));
  return uniform(shape, -bound, bound);
}

Tensor initial_normal(const Module& m, const std::string& name, const Shape& shape, double deviation) {
  const Scoped<Name> path(thread_state().path, Name(m.path() + "." + name));
  return normal(shape, 0, deviation);
}

}  // namespace tapedeck
