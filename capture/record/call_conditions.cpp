// Call conditions: what a recording relies on beside the types of its inputs. Three parts:
//     Surroundings   the modes of the thread: gradients, autocast, training, hooks, the random state
//     Draws          how often each random stream was read, because the bits of a draw depend on its number
//     Watchlist      signs that a constant was written, or that a handle to a constant or to state was let go
#include <tapedeck/capture/record/call_conditions.h>

#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/nn/hooks.h>
#include <tapedeck/engine/nn/module.h>
#include <tapedeck/engine/ops/random.h>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace tapedeck {

Surroundings Surroundings::now() {
  const ThreadState& state = thread_state();
  Surroundings s;
  s.grad_enabled = state.grad_enabled;
  s.autocast = state.autocast;
  s.autocast_dtype = state.autocast_dtype;
  s.path = state.path;
  s.training = training_modes();
  s.hooks = module_hooks();
  s.rng = rng_state().impl();
  return s;
}

std::string Surroundings::difference(const Surroundings& then, bool draws) const {
  if (grad_enabled != then.grad_enabled)
    return grad_enabled ? "gradients are wanted now, they were not" : "no gradients are wanted now (NoGrad), they were";
  if (autocast != then.autocast || (autocast && autocast_dtype != then.autocast_dtype))
    return "autocast is another than it was";
  if (training != then.training) return "modules were switched between training and not";
  if (hooks != then.hooks) return "modules have other hooks than they had";
  if (path != then.path)
    return fmt::format("it is called under the path '{}', it was under '{}'", path.view(), then.path.view());
  if (draws && rng != then.rng) return "the random state is another thread's";
  return {};
}

bool draws(const Captured& captured) {
  return std::any_of(captured.state.begin(), captured.state.end(), [](const Tensor& t) { return t.role() == Role::rng; });
}

namespace {

// Reads the path attribute of a drawing op, "fc.drop#1", as path and number.
bool draw_of(const Graph& g, const Node& node, Name* path, std::int32_t* number) {
  if ((!node.op->is(kRandom) && node.op != &ops::fold_in) || !node.op->attrs) return false;
  for (int i = 0; i < node.op->attrs->n_fields; ++i) {
    const Field& field = node.op->attrs->fields[i];
    if (field.kind != FieldKind::string || std::string_view(field.name) != "path") continue;
    const std::string_view text =
        reinterpret_cast<const Name*>(static_cast<const char*>(g.attributes(node)) + field.offset)->view();
    const std::size_t hash = text.rfind('#');
    if (hash == text.npos) return false;
    *path = Name(text.substr(0, hash));
    *number = std::stoi(std::string(text.substr(hash + 1)));
    return true;
  }
  return false;
}

// The number that a loop or branch has in its stream. The random states of its regions are derived from this number.
bool loop_number(const Graph& g, const Node& node, Name stream, std::int32_t* number) {
  for (const Region& region : g.regions_of(node))
    for (const Node& inner : region->nodes) {
      Name path;
      if (inner.op == &ops::fold_in && draw_of(*region, inner, &path, number) && path == stream) return true;
    }
  return false;
}

std::int32_t* find(std::vector<std::pair<Name, std::int32_t>>& counts, Name path) {
  for (auto& [name, count] : counts)
    if (name == path) return &count;
  return nullptr;
}

}  // namespace

Draws::Draws(const Graph& captured) { count(captured); }

void Draws::count(const Graph& g) {
  std::unordered_map<const void*, std::int32_t> loops;  // by stream: the loops that have taken a number from it
  for (const Node& node : g.nodes) {
    Name path;
    std::int32_t number = 0;
    if (node.op == &ops::rng_next) {
      steps_ = true;
      after_.clear();
      loops.clear();
    } else if (node.op->is(kRandom) && draw_of(g, node, &path, &number)) {
      drawn(path, number, number + 1);
    }
    if (node.n_regions == 0 || node.origin.phase != Phase::forward) continue;
    // Draws inside a loop or branch are counted inside it. The loop itself takes one number of its stream, which shows where a
    // pass draws.
    const Name stream = node.origin.path.empty() ? Name(node.op->name) : Name(node.origin.path.str() + "." + node.op->name);
    const std::int32_t before = loops[stream.id()]++;
    if (loop_number(g, node, stream, &number)) drawn(stream, number - before, number + 1);
  }
}

void Draws::drawn(Name path, std::int32_t first, std::int32_t after) {
  if (!steps_ && !find(before_, path)) before_.emplace_back(path, first);
  if (std::int32_t* count = find(after_, path))
    *count = std::max(*count, after);
  else
    after_.emplace_back(path, after);
}

std::string Draws::misfit() const {
  const auto& counts = thread_state().draws;
  for (const auto& [path, count] : before_) {
    const auto it = counts.find(path.id());
    const std::int32_t now = it == counts.end() ? 0 : it->second;
    if (now != count)
      return fmt::format(
          "{} draws were made under the path '{}' in this random step, {} when it was recorded; next_step() begins a new one",
          now, path.view(), count);
  }
  return {};
}

void Draws::advance() const {
  auto& counts = thread_state().draws;
  if (steps_) counts.clear();
  for (const auto& [path, count] : after_) counts[path.id()] = count;
}

EagerDevice* first_device(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors)
    if (const detail::Storage* const storage = t.impl()->storage; storage && storage->device) return storage->device;
  return nullptr;
}

namespace {

// Module::to() gives state another dtype.
std::string dtype_misfit(const Captured& captured) {
  const Graph& g = captured.graph;
  const auto difference = [&](const Tensor& t, ValueId v) -> std::string {
    const DType was = g.values[static_cast<std::size_t>(v)].type.dtype;
    if (t.impl()->dtype == was) return {};
    return fmt::format("'{}' is {} now, it was {}", t.name().view(), dtype_name(t.impl()->dtype), dtype_name(was));
  };
  for (std::size_t i = static_cast<std::size_t>(captured.declared_inputs); i < captured.inputs.size(); ++i)
    if (std::string text = difference(captured.inputs[i], static_cast<ValueId>(i)); !text.empty()) return text;
  for (std::size_t i = 0; i < captured.state.size(); ++i)
    if (std::string text = difference(captured.state[i], g.n_inputs + static_cast<ValueId>(i)); !text.empty()) return text;
  return {};
}

// Module::to() moves state to another device.
std::string device_misfit(const Captured& captured, const std::vector<Tensor>& inputs) {
  const EagerDevice* device = first_device(inputs);
  if (!device) device = first_device(captured.state);
  const std::string_view now = device ? std::string_view(device->name()) : "cpu";
  if (now == captured.operands_device) return {};
  return fmt::format("its tensors are on {} now, they were on {}", now, captured.operands_device);
}

}  // namespace

std::string misfit(const Captured& captured, const std::vector<Tensor>& inputs) {
  if (std::string text = dtype_misfit(captured); !text.empty()) return text;
  if (std::string text = device_misfit(captured, inputs); !text.empty()) return text;
  for (const TensorUse& use : captured.uses) {
    const bool is_input = use.input != kNone;
    const Tensor& t = is_input ? inputs[use.input] : use.tensor;
    const auto name = [&] { return is_input ? captured.graph.value_name(use.input) : t.name().str(); };
    const bool needs = t.impl()->requires_grad || (is_input && thread_state().grad_enabled && t.requires_grad());
    if (needs != use.requires_grad)
      return fmt::format("'{}' {}", name(), needs ? "needs a gradient now, it did not" : "needs no gradient now, it did");
    if (t.grad_request() != use.request) return fmt::format("the grad_request of '{}' is another than it was", name());
    if ((t.impl()->extra ? t.impl()->extra->hooks.size() : 0) != use.hooks)
      return fmt::format("'{}' has other gradient hooks than it had", name());
    if (use.grad == TensorUse::Grad::absent && t.grad().defined())
      return fmt::format("'{}' has a gradient already, it had none", name());
    if (use.grad == TensorUse::Grad::present && !t.grad().defined())
      return fmt::format("'{}' has no gradient, it had one", name());
  }
  return {};
}

void Watchlist::note_handles(const Captured& captured) {
  handles_.clear();
  for (const Tensor& t : captured.state) handles_.push_back(t.impl()->refs.load());
  constant_handles_.clear();
  for (const Tensor& t : captured.constants) constant_handles_.push_back(t.impl()->refs.load());
}

void Watchlist::note(const Captured& captured) {
  kept_.clear();
  note_handles(captured);
  versions_.clear();
  for (const Tensor& t : captured.constants) versions_.push_back(t.impl()->storage ? t.impl()->storage->version : 0);
}

void Watchlist::keep_suspicion(const Captured& captured) { kept_ = suspicion(captured); }

std::string Watchlist::suspicion(const Captured& captured) {
  if (!kept_.empty()) return kept_;
  for (std::size_t i = 0; i < captured.constants.size(); ++i) {
    const Tensor& t = captured.constants[i];
    if (t.impl()->storage && t.impl()->storage->version != versions_[i])
      return fmt::format("the constant '{}' {} was modified", t.name().view(), to_string(t.type()));
    const std::int32_t handles = t.impl()->refs.load();
    if (handles < constant_handles_[i])
      return fmt::format("a handle to the constant '{}' {} was let go: it may have been replaced", t.name().view(),
                         to_string(t.type()));
    constant_handles_[i] = handles;
  }
  for (std::size_t i = 0; i < captured.state.size(); ++i)
    if (captured.state[i].impl()->refs.load() < handles_[i])
      return fmt::format("a handle to the state '{}' was let go: it may have been replaced", captured.state[i].name().view());
  return {};
}

}  // namespace tapedeck
