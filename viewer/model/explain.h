// What the plan says about a value or a node, in words. The tooltip, the details panel and the tests read the same facts.
#pragma once

#include <tapedeck/viewer/model/plan_model.h>

#include <string>
#include <vector>

namespace tapedeck::viewer {

struct ValueFacts {
  std::string name;      // "%h"
  std::string op;        // of the producer; "input", "parameter", ... where there is none
  std::string type;      // "f32[64,10]"
  std::string place;     // "arena, offset 12,288"
  std::string lifetime;  // "nodes 3 to 41 of 80"
  std::string reason;    // one sentence
  RoleClass role = RoleClass::temporary;
  std::int64_t bytes = 0;
  std::vector<NodeId> readers;
  std::vector<ValueId> clones;  // values that repeat this one
  ValueId clone_of = kNone;
};

ValueFacts explain_value(const Plan& plan, ValueId v);
std::string node_title(const Graph& graph, NodeId n);  // "node 12 (conv2d)"
// "%h"; an unnamed clone is called after what it repeats: "%h again".
std::string shown_name(const Graph& graph, ValueId v);
std::string reason_sentence(const Plan& plan, ValueId v);

// What can be found in a plan's table of nodes: words are looked for in names, op and type; `op:conv`, `phase:backward`,
// `reason:saved`, `type:f32` in that column; `bytes>16MiB`, `bytes<4KiB`; `is:clone`; a leading '-' turns a term round. All
// terms must hold.
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
