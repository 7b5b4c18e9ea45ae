// Facts about a value or a node of a plan, in words. The tooltip, the details panel and the tests use the same facts.
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>

#include <string>
#include <vector>

namespace tapedeck::viewer {

// The facts about one value, as text to show.
struct ValueFacts {
  std::string name;      // "%h"; of a later copy "%h, run 2 of 3"
  std::string op;        // the op of the producer, or "input", "parameter", ... for a value without a producer
  std::string type;      // "f32[64,10]"
  std::string module;    // of the producer: "stage1.0.conv1"; may be empty
  std::string place;     // "arena, offset 12,288"
  std::string lifetime;  // "nodes 3 to 41 of 80"
  std::string reason;    // why the bytes lie there: one sentence
  std::string decision;  // why the value is kept or made again, by the value log: one sentence
  RoleClass role = RoleClass::temporary;
  std::int64_t bytes = 0;
  std::vector<NodeId> readers;
  std::vector<ValueId> copies;  // all runs that compute this value, itself among them
};

// Collects the facts about value v of a plan.
ValueFacts explain_value(const PlanModel& model, ValueId v);
std::string node_title(const Graph& graph, NodeId n);  // "node 12 (conv2d)"
// "estimated", "by the rates of this machine" or "measured": where the microseconds of a plan come from.
std::string source_of_costs(const Plan& plan);
// "takes 12.5 us, estimated"; of a node that takes no time, how it is drawn on an axis of microseconds.
std::string node_time_text(const PlanModel& model, NodeId n);
// The node as one line of the text form, in which later runs have their names: "%h (run 2 of 3): f32[8] = relu(%x)".
std::string node_line(const PlanModel& model, NodeId n);
// One sentence that says why the plan keeps the bytes of v where it does.
std::string reason_sentence(const PlanModel& model, ValueId v);

}  // namespace tapedeck::viewer
