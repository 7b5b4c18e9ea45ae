// Computation graphs in node-link JSON, as networkx writes it and as planners of recomputation are published with.
//
// Two spellings are read; keys that do not stand here are ignored:
//     of a node      id, name, cost_ram, cost_cpu, backward           or      name, out_cost, duration
//     of a link      source, target                                   or      "0", "1"
//     top level      nodes, links (or edges), directed, multigraph, graph {name, order}
//
// A node becomes an `opaque` node with one result of cost_ram bytes that takes cost_cpu microseconds. Its operands are the
// sources of its links. `backward` is its phase. The values that nobody reads are the results of the graph. The nodes run in
// the order of graph.order (a list of ids, or a string that holds such a list); without one, in the order of their ids if all
// are integers under the key `id`, else as they are listed.
#pragma once

#include <tapedeck/capture/import/imported_results.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <string_view>

namespace tapedeck TAPEDECK_API {

// The text may be anything. Throws ParseError, "FILE:LINE: error: REASON", for text that is not JSON, and for a graph with an
// unknown or repeated id, a link that appears twice or goes against the order (so cycles too), or a number that is not finite,
// negative, or too large. Time is that of sorting the links, memory about twenty times the text.
Graph import_graph_json(std::string_view text, const std::string& file = "<json>",
                        ImportedResults results = ImportedResults::held);

}  // namespace TAPEDECK_API
