// Runs a graph without regions node by node through eager dispatch, and asks for gradients by name.
#pragma once

#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/engine/value_named.h>

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace tapedeck::testing {

inline std::vector<ValueId> values_named(const Graph& g, const std::vector<std::string>& names) {
  std::vector<ValueId> all;
  for (const std::string& name : names) all.push_back(value_named(g, name));
  return all;
}

// All values of the graph. `given` holds its inputs and then its state.
inline std::vector<Tensor> run_graph(const Graph& g, const std::vector<Tensor>& given) {
  const NoGrad no_grad;
  std::vector<Tensor> values = given;
  EXPECT_EQ(static_cast<std::int32_t>(given.size()), g.n_inputs + g.n_state);
  values.resize(g.values.size());
  for (const Node& node : g.nodes) {
    if (const Literal* literal = g.literal(node)) {
      values[node.first_output] = from_bytes(literal->type, literal->data.get());
      continue;
    }
    std::vector<Tensor> operands;
    for (ValueId v : g.inputs(node)) operands.push_back(values[v]);
    const std::vector<Tensor> results = apply_all(*node.op, operands, g.attributes(node), {__FILE__, __LINE__});
    std::copy(results.begin(), results.end(), values.begin() + node.first_output);
  }
  return values;
}

inline std::vector<Tensor> run_gradients(const GraphGradient& g, const std::vector<Tensor>& given) {
  const std::vector<Tensor> values = run_graph(g.graph, given);
  std::vector<Tensor> gradients;
  for (ValueId v : g.gradients) gradients.push_back(v == kNone ? Tensor() : values[v]);
  return gradients;
}

inline GraphGradient gradient_by_name(const Graph& g, const std::vector<std::string>& targets,
                                      const std::vector<std::string>& wrt, const GraphGradientOptions& options = {}) {
  return gradient(g, values_named(g, targets), values_named(g, wrt), options);
}

// The same gradients by eager backward: the graph's nodes run with the wrts as leaves. `heads` may be empty.
inline std::vector<Tensor> eager_gradients(const Graph& g, const std::vector<std::string>& targets,
                                           const std::vector<std::string>& wrt, std::vector<Tensor> given,
                                           const std::vector<Tensor>& heads = {}) {
  for (Tensor& t : given) t = t.detach();
  for (const std::string& name : wrt) given[value_named(g, name)].requires_grad(true);
  std::vector<Tensor> values = given, wanted, asked;
  values.resize(g.values.size());
  for (const Node& node : g.nodes) {
    std::vector<Tensor> operands;
    for (ValueId v : g.inputs(node)) operands.push_back(values[v]);
    const std::vector<Tensor> results = apply_all(*node.op, operands, g.attributes(node), {__FILE__, __LINE__});
    std::copy(results.begin(), results.end(), values.begin() + node.first_output);
  }
  for (const std::string& name : targets) wanted.push_back(values[value_named(g, name)]);
  for (const std::string& name : wrt) asked.push_back(values[value_named(g, name)]);
  GradientOptions options;
  options.heads = heads;
  return gradients(wanted, asked, options);
}

// How often each op occurs among the nodes of a phase.
inline std::map<std::string, int> op_counts(const Graph& g, Phase phase) {
  std::map<std::string, int> counts;
  for (const Node& node : g.nodes)
    if (node.origin.phase == phase) ++counts[node.op->name];
  return counts;
}

}  // namespace tapedeck::testing
