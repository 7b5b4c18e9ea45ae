// Runs the nodes of a captured graph one by one through eager dispatch (engine/control/interpret.h): no plan, no passes, no
// arena. Tests and `replay --check-eager` compare replays with it.
#include <tapedeck/capture/replay/executor.h>

#include <tapedeck/engine/control/interpret.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

namespace tapedeck {

namespace {

void check_given(const Graph& g, ValueId first, std::int32_t count, const std::vector<Tensor>& given, const char* kind) {
  if (given.size() != static_cast<std::size_t>(count))
    throw UsageError(fmt::format("{} {} given, the graph has {}", given.size(), kind, count));
  for (std::int32_t i = 0; i < count; ++i) {
    const Type& wanted = g.values[first + i].type;
    if (!given[i].defined() || given[i].abstract())
      throw ExecutionError(fmt::format("{} '{}' has no data", kind, g.value_name(first + i)));
    if (given[i].type() != wanted)
      throw TypeError(fmt::format("{} '{}' is {}, the graph wants {}", kind, g.value_name(first + i),
                                  to_string(given[i].type()), to_string(wanted)));
  }
}

// The tensor itself, or a copy if it is a view of a tensor that the caller gave and may overwrite.
Tensor released(const Tensor& t, const std::vector<Tensor>& given) {
  const auto inside = [&](const Tensor& other) {
    const auto* first = static_cast<const char*>(other.data());
    const auto* at = static_cast<const char*>(t.data());
    std::int64_t extent = 1;
    for (int i = 0; i < other.rank(); ++i) extent += (other.shape()[i] - 1) * other.strides()[i];
    return at >= first && at < first + extent * static_cast<std::int64_t>(dtype_size(other.dtype()));
  };
  bool shared = false;
  for (const Tensor& other : given) shared |= t.numel() > 0 && other.numel() > 0 && inside(other);
  if (!shared) return t;
  Tensor copy = empty(t.type());
  t.copy_to(copy.impl()->data(), static_cast<std::size_t>(copy.bytes()), dtype_size(copy.dtype()));
  return copy;
}

}  // namespace

EagerResult run_eagerly(const Graph& g, const std::vector<Tensor>& inputs, const std::vector<Tensor>& state) {
  check_given(g, 0, g.n_inputs, inputs, "inputs");
  check_given(g, g.n_inputs, g.n_state, state, "state");
  std::vector<Tensor> given = inputs;
  given.insert(given.end(), state.begin(), state.end());
  const Interpreted run = interpret(g, given);
  EagerResult result;
  for (const Tensor& t : run.outputs) result.outputs.push_back(released(t, given));
  result.state = state;
  for (std::size_t i = 0; i < g.updates.size(); ++i)
    result.state[g.updates[i].state - g.n_inputs] = released(run.updates[i], given);
  return result;
}

}  // namespace tapedeck
