#include <tapedeck/engine/control/interpret.h>

#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/control/dispatch_regions.h>
#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/interruption.h>

#include <tapedeck/engine/ir/site_note.h>

#include <fmt/format.h>

namespace tapedeck {

Unrecorded::Unrecorded()
    : tape_(thread_state().tape, thread_state().own.get()),
      grad_(thread_state().grad_enabled, false),
      abstract_(thread_state().abstract, false),
      autocast_(thread_state().autocast, false),
      region_(thread_state().region, kNone),
      twin_(thread_state().twin, kNone),
      calls_(thread_state().calls, nullptr) {}

namespace {

// For each value: the last node that reads it, or node_count() if the value is an output or an update.
std::vector<NodeId> last_readers(const Graph& g) {
  std::vector<NodeId> last(g.values.size(), kNone);
  for (NodeId n = 0; n < g.node_count(); ++n)
    for (ValueId v : g.inputs(g.nodes[n])) last[v] = n;
  for (ValueId v : g.outputs) last[v] = g.node_count();
  for (const Update& u : g.updates) last[u.value] = g.node_count();
  return last;
}

// REQUIRES: the thread does not record.
std::vector<Tensor> results_of(const Graph& g, const Node& node, std::span<const Tensor> operands) {
  if (g.literal(node)) return {constant_tensor(g, node)};
  if (node.n_regions > 0)
    return apply_regions(*node.op, g.regions_of(node), operands, g.attributes(node), site_of(node.origin));
  const std::vector<Type> declared = node.op->is(kDeclaredTypes) ? g.output_types(node) : std::vector<Type>{};
  return apply_all(*node.op, operands, g.attributes(node), site_of(node.origin), declared);
}

void run_node(const Graph& g, const Node& node, std::vector<Tensor>& values, std::vector<Tensor>& operands) {
  operands.clear();
  for (ValueId v : g.inputs(node)) operands.push_back(values[v]);
  std::vector<Tensor> results = results_of(g, node, operands);
  for (std::int32_t i = 0; i < node.n_outputs; ++i) values[node.first_output + i] = std::move(results[i]);
}

}  // namespace

void require_data(const Graph& g, const Node& node) {
  const Literal& literal = *g.literal(node);
  if (literal.data || literal.type.bytes() == 0) return;
  throw ExecutionError(error_text(
      node.op->name,
      fmt::format("its data is not known: %{}: {} is abstract", g.value_name(node.first_output), to_string(literal.type)),
      site_of(node.origin)));
}

Tensor constant_tensor(const Graph& g, const Node& node) {
  require_data(g, node);
  const Literal& literal = *g.literal(node);
  return literal.type.bytes() > 0 ? from_bytes(literal.type, literal.data.get()) : empty(literal.type);
}

std::vector<Tensor> interpret_node(const Graph& g, const Node& node, std::span<const Tensor> operands) {
  const Unrecorded unrecorded;
  return results_of(g, node, operands);
}

Interpreted interpret(const Graph& g, std::span<const Tensor> given) {
  if (given.size() != static_cast<std::size_t>(g.n_inputs + g.n_state))
    throw UsageError(fmt::format("{} values given, the graph {} has {} inputs and {} state values", given.size(), g.name.view(),
                                 g.n_inputs, g.n_state));
  const Unrecorded unrecorded;
  const std::vector<NodeId> last = last_readers(g);
  std::vector<Tensor> values(g.values.size()), operands;
  std::copy(given.begin(), given.end(), values.begin());
  stop_if_interrupted();  // a region may be empty
  for (NodeId n = 0; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    run_node(g, node, values, operands);
    operands.clear();
    for (ValueId v : g.inputs(node))
      if (last[v] == n) values[v] = Tensor();
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      if (last[v] == kNone) values[v] = Tensor();
  }
  Interpreted result;
  for (ValueId v : g.outputs) result.outputs.push_back(values[v]);
  for (const Update& u : g.updates) result.updates.push_back(values[u.value]);
  return result;
}

}  // namespace tapedeck
