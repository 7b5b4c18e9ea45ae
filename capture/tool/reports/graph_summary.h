// The figures of a graph at a glance: parameters, floating-point operations, phases, and ops by count.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::tool {

struct PhaseCount {
  Phase phase = Phase::forward;
  std::int64_t nodes = 0;
  double flops = 0;
};
struct OpCount {
  std::string name;
  int version = 1;
  std::int64_t nodes = 0;
  double flops = 0;
};

// FLOPs are what the ops declare; an op that declares none has none. Those inside of loops and branches count for the
// loop or the branch; see graph_flops.h. The nodes inside are not counted.
struct GraphSummary {
  std::int64_t parameters = 0;  // elements that training updates
  std::int64_t parameter_tensors = 0, parameter_bytes = 0;
  double flops = 0;
  double flops_per_pass = 0;       // of one pass of each loop whose number of passes is known only in the run; not in `flops`
  std::vector<PhaseCount> phases;  // that have nodes
  std::vector<OpCount> ops;        // most frequent first, then by name

  double flops_of(Phase phase) const;
};

GraphSummary summarize(const Graph& graph);

// "1.23 GFLOP"
std::string flops_text(double flops);
// "33,178"
std::string grouped(std::int64_t number);

}  // namespace tapedeck::tool
