// Every pass, one line each. A pass is a plain function from graph to graph. Only fast_math lets a pass change bits of a
// result. registry.h has the passes by name, with their documentation.
#pragma once

#include <tapedeck/capture/passes/pass_options.h>
#include <tapedeck/engine/ir/graph.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

Graph dead_code(Graph graph);  // drops nodes whose results nobody needs
Graph cse(Graph graph);        // computes equal things once
Graph constant_folding(Graph graph,
                       const PassOptions& options = {});      // computes now what does not depend on any input or state
Graph algebra(Graph graph, const PassOptions& options = {});  // identities such as x * 1 = x
Graph fold_views(Graph graph);                                // a view of a view becomes one view, or none
Graph drop_copies(Graph graph);                               // copies, casts and broadcasts that change nothing
Graph hoist_invariants(Graph graph, const PassOptions& options = {});  // computes before a loop what does not change in it
Graph loop_results(Graph graph);                                       // leaves out stacked results of loops that nobody reads
Graph chain_joins(Graph graph);                            // lets a join begin with the result of a join of its first operands
Graph fuse(Graph graph, const PassOptions& options = {});  // elementwise nodes that hand values to each other become one
// Copies values that cross from device to device. A program that has several devices calls it between the capture and the plan,
// with options.devices. These are functions, so no option of the tool can state them.
Graph place_devices(Graph graph, const PassOptions& options = {});
// If `chosen` is given, it gets the form of every sum of gradient pieces, with the reason.
struct GradientSum {
  std::string value;  // the sum, by the name it prints under
  std::string form;   // "add-to", "add_n", "chain"
  int pieces = 0;
  std::string reason;
};
Graph gradient_sums(Graph graph, std::vector<GradientSum>* chosen = nullptr);
// Gives every output and every updated state bytes that the plan can write. Without `straight`, every update is a copy at the
// end.
Graph insert_copies(Graph graph, bool straight = true);

}  // namespace TAPEDECK_API
