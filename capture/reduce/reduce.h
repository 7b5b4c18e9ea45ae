// Shrinks a graph that shows something - a crash, a difference, a wrong plan - while it still shows it: delta debugging (Zeller
// and Hildebrandt 2002), over outputs, updates, nodes, regions, operands and sizes instead of over lines.
//
//     Graph small = reduce(graph, [](const Graph& g) { return !agrees(g); });
//
// A removed node's results become an operand of the same type, a new input, or zeros; so every candidate is a graph that
// verifies, and `interesting` is asked of no other. Candidates get smaller in a fixed measure (nodes, those in regions
// included; then outputs and updates; inputs and state; elements; how far back operands lie), so it ends. Deterministic if
// `interesting` is.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <cstdint>
#include <functional>

namespace tapedeck TAPEDECK_API {

struct ReduceProgress {
  std::int64_t checks = 0;    // how often `interesting` was asked
  std::int64_t nodes = 0;     // of the best so far, those in regions included
  std::int64_t elements = 0;  // of all its values
};

struct ReduceOptions {
  std::int64_t max_checks = 20000;                           // then the best so far is returned
  bool sizes = true;                                         // shrink dimensions too
  const std::atomic<bool>* cancel = nullptr;                 // once set, the best so far is returned
  std::function<void(const ReduceProgress&)> progress = {};  // after every check, from the calling thread
};

using Interesting = std::function<bool(const Graph&)>;

// Throws UsageError if `graph` itself is not interesting, InvalidGraphError if it does not verify; what `interesting` throws
// passes through. Time: O(nodes) per check; about nodes * log(nodes) checks where little can go, far fewer where much can.
Graph reduce(const Graph& graph, const Interesting& interesting, const ReduceOptions& options = {});

}  // namespace TAPEDECK_API
