// The oracle of replay: the nodes of a captured graph, one by one, through eager dispatch. No plan, no passes, no arena.
//
// Phases, segments and order edges mean nothing here; every value has memory of its own (or is a view, as in eager code), dropped
// after its last reader so that a large step does not need the sum of everything it ever made.
#include <tapedeck/capture/executor.h>

#include <tapedeck/engine/dispatch.h>
#include <tapedeck/engine/error.h>
#include <tapedeck/engine/tape.h>

#include <charconv>
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
      throw TypeError(fmt::format("{} '{}' is {}, the graph wants {}", kind, g.value_name(first + i), to_string(given[i].type()),
                                  to_string(wanted)));
  }
}

// By value: the last node that reads it; node_count() if it is returned or becomes state.
std::vector<NodeId> last_readers(const Graph& g) {
  std::vector<NodeId> last(g.values.size(), kNone);
  for (NodeId n = 0; n < g.node_count(); ++n)
    for (ValueId v : g.inputs(g.nodes[n])) last[v] = n;
  for (ValueId v : g.outputs) last[v] = g.node_count();
  for (const Update& u : g.updates) last[u.value] = g.node_count();
  return last;
}

// "train.cpp:12" as a place; the text of a Name lives for the whole process.
Site site_of(const Origin& origin) {
  const std::string_view text = origin.site.view();
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  int line = 0;
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), line);
  return {Name(text.substr(0, colon)).view().data(), line};
}

Tensor constant(const Graph& g, const Node& node) {
  const Literal& literal = *g.literal(node);
  if (!literal.data && literal.type.bytes() > 0)
    throw ExecutionError(fmt::format("[constant] %{}: {} is abstract: its data was not recorded", g.value_name(node.first_output),
                                     to_string(literal.type)));
  return literal.type.bytes() > 0 ? from_bytes(literal.type, literal.data.get()) : empty(literal.type);
}

// The tensor itself, or a copy if it is a window on something the caller gave and may overwrite.
Tensor released(const Tensor& t, const std::vector<Tensor>& inputs, const std::vector<Tensor>& state) {
  const auto inside = [&](const Tensor& other) {
    const auto* first = static_cast<const char*>(other.data());
    const auto* at = static_cast<const char*>(t.data());
    std::int64_t extent = 1;
    for (int i = 0; i < other.rank(); ++i) extent += (other.shape()[i] - 1) * other.strides()[i];
    return at >= first && at < first + extent * static_cast<std::int64_t>(dtype_size(other.dtype()));
  };
  bool shared = false;
  for (const auto* given : {&inputs, &state})
    for (const Tensor& other : *given) shared |= t.numel() > 0 && other.numel() > 0 && inside(other);
  if (!shared) return t;
  Tensor copy = empty(t.type());
  t.copy_to(copy.mutable_data(), static_cast<std::size_t>(copy.bytes()), dtype_size(copy.dtype()));
  return copy;
}

void run_node(const Graph& g, NodeId n, std::vector<Tensor>& values) {
  const Node& node = g.nodes[n];
  if (g.literal(node)) {
    values[node.first_output] = constant(g, node);
    return;
  }
  std::vector<Tensor> operands;
  for (ValueId v : g.inputs(node)) operands.push_back(values[v]);
  const std::vector<Type> declared = node.op->is(kDeclaredTypes) ? g.output_types(node) : std::vector<Type>{};
  std::vector<Tensor> results = apply_all(*node.op, operands, g.attributes(node), site_of(node.origin), declared);
  for (std::int32_t i = 0; i < node.n_outputs; ++i) values[node.first_output + i] = std::move(results[i]);
}

}  // namespace

EagerResult run_eagerly(const Graph& g, const std::vector<Tensor>& inputs, const std::vector<Tensor>& state) {
  check_given(g, 0, g.n_inputs, inputs, "inputs");
  check_given(g, g.n_inputs, g.n_state, state, "state");
  const NoGrad no_grad;
  const AbstractMode concrete(false);
  const std::vector<NodeId> last = last_readers(g);
  std::vector<Tensor> values(g.values.size());
  std::copy(inputs.begin(), inputs.end(), values.begin());
  std::copy(state.begin(), state.end(), values.begin() + g.n_inputs);

  for (NodeId n = 0; n < g.node_count(); ++n) {
    run_node(g, n, values);
    for (ValueId v : g.inputs(g.nodes[n]))
      if (last[v] == n) values[v] = Tensor();
    for (ValueId v = g.nodes[n].first_output; v < g.nodes[n].first_output + g.nodes[n].n_outputs; ++v)
      if (last[v] == kNone) values[v] = Tensor();
  }

  EagerResult result;
  for (ValueId v : g.outputs) result.outputs.push_back(released(values[v], inputs, state));
  result.state = state;
  for (const Update& u : g.updates) result.state[u.state - g.n_inputs] = released(values[u.value], inputs, state);
  return result;
}

}  // namespace tapedeck
