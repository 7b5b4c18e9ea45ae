// The decision log: what a plan decided about every value, a line for each. It is read off the plan alone: clones name the node
// that they repeat, and placements say where bytes lie and who reads them.
//
//     %h: f32[64,10]  recomputed, 2 runs: nodes 3, 41   2560 bytes   12.0 us   made again just before node 42, which reads it
//     %w2: f32[64]    elsewhere, 1 run: node 57          256 bytes    0.5 us   becomes a state's new value, and lies in its
//     bytes
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/wishes.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

enum class ValueChoice : std::uint8_t {
  kept,        // its bytes stay in the arena from its maker to its last reader
  recomputed,  // its maker runs more than once, and its bytes are free between these runs
  elsewhere,   // it has no bytes of its own in the arena, so there is nothing to choose
};
const char* value_choice_name(ValueChoice choice);  // "kept" "recomputed" "elsewhere"

struct ValueEntry {
  std::string name;  // of the first copy; clones count as copies of the value that they repeat
  std::string type;
  ValueChoice choice = ValueChoice::kept;
  Reason reason = Reason::temporary;  // of the first copy
  std::int64_t bytes = 0;             // of one copy
  std::int32_t result = 0;            // which result of its maker it is: runs and microseconds of a node are those of result 0
  double us = 0;                      // of one run of its maker
  std::vector<ValueId> copies;        // in the plan's graph, in the order in which they are made; an input or state is one copy
  std::vector<NodeId> runs;           // the nodes that make them, ascending; empty for inputs and state
  std::vector<NodeId> readers;        // the nodes that read any copy, through views too unless it is a view, ascending
  std::string rule;                   // why, in one sentence

  NodeId first_maker() const { return runs.empty() ? kNone : runs.front(); }
  NodeId last_reader() const { return readers.empty() ? kNone : readers.back(); }
  // What the runs behind the first one cost.
  double again_us() const { return runs.empty() ? 0 : us * static_cast<double>(runs.size() - 1); }
};

// An entry for every value of the plan's graph that is no copy of another, in the order of their first copies. `node_us`:
// microseconds by node of the plan's graph (cost_nodes() in capture/cost/cost_model.h), without what the plan saves: views and
// joined parts are taken off here, and a clone costs what the node costs that it repeats. Then the microseconds of all runs of
// the entries with result == 0 are plan.cost_us, but for nodes without a result. `wishes`: those that the plan was made with;
// they appear in the rules. O(nodes + values + operands). REQUIRES: check_plan(plan) finds nothing.
std::vector<ValueEntry> value_log(const Plan& plan, std::span<const double> node_us, const std::vector<Wish>& wishes = {});

// The entry whose name is, or one of whose copies has the name `name`. Throws UsageError that names a near name.
const ValueEntry& find_entry(const std::vector<ValueEntry>& log, const Plan& plan, const std::string& name);

// A table of the entries with the most bytes, and a line that says how many more there are. `most` < 0: all of them.
std::string value_log_text(const std::vector<ValueEntry>& log, int most);

}  // namespace TAPEDECK_API
