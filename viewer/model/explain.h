// Facts about a value or a node of a plan, in words. The tooltip, the details panel and the tests use the same facts.
#pragma once

#include <tapedeck/viewer/model/plan_model.h>

#include <tapedeck/engine/text/shown_name.h>

#include <string>
#include <vector>

namespace tapedeck::viewer {

// The facts about one value, as text to show.
struct ValueFacts {
  std::string name;      // "%h"
  std::string op;        // the op of the producer, or "input", "parameter", ... for a value without a producer
  std::string type;      // "f32[64,10]"
  std::string place;     // "arena, offset 12,288"
  std::string lifetime;  // "nodes 3 to 41 of 80"
  std::string reason;    // why the bytes are kept: one sentence
  RoleClass role = RoleClass::temporary;
  std::int64_t bytes = 0;
  std::vector<NodeId> readers;
  std::vector<ValueId> clones;  // the values that compute this one again
  ValueId clone_of = kNone;
};

// Collects the facts about value v of a plan.
ValueFacts explain_value(const Plan& plan, ValueId v);
std::string node_title(const Graph& graph, NodeId n);  // "node 12 (conv2d)"
// One sentence that says why the plan keeps the bytes of v where it does.
std::string reason_sentence(const Plan& plan, ValueId v);

// The filter of the table of nodes. A node passes if all terms of the text hold. The terms are:
//   word                                         the word occurs in names, op or type
//   op:conv phase:backward reason:saved type:f32 the word occurs in this column
//   bytes>16MiB bytes<4KiB                       the size of the result
//   is:clone                                     the node is a clone
//   -term                                        the term does not hold
class NodeFilter {
 public:
  explicit NodeFilter(const std::string& text);
  bool accepts(const Plan& plan, NodeId n) const;
  bool empty() const { return terms_.empty(); }

 private:
  struct Term {
    std::string key, word;
    std::int64_t bytes = 0;
    bool negated = false;
  };
  static bool holds(const Term& term, const Plan& plan, NodeId n);
  std::vector<Term> terms_;
};

}  // namespace tapedeck::viewer
