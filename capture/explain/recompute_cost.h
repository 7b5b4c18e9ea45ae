// The price of making a value of a plan again for a later reader instead of keeping its bytes until then: the nodes that would
// have to run, and the most bytes that would be alive. The advice of `plan --explain peak` rests on it.
#pragma once

#include <tapedeck/capture/analysis/liveness.h>
#include <tapedeck/capture/plan/plan.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck {

struct Rerun {
  NodeId before = kNone;        // where: just before this node
  std::vector<NodeId> nodes;    // to run once more there, in the plan's order; empty: it cannot be done
  std::string obstacle;         // the reason, if it cannot be done
  std::int64_t peak_bytes = 0;  // most bytes alive in the plan's order with them in it
};

// Results of what runs again have bytes of their own but for windows, and for what took over an operand that is made again,
// too: it does so once more. What is alive at the reader anyway is read where it is. REQUIRES: check_plan(plan) finds nothing;
// `plan` outlives this. Thread safe.
class Reruns {
 public:
  explicit Reruns(const Plan& plan);

  // By value with bytes of its own: the nodes that read them, through windows and as parts too, ascending.
  const std::vector<NodeId>& readers(ValueId owner) const { return readers_[owner]; }
  ValueId owner(ValueId v) const { return owner_[v]; }  // as byte_owners()
  const std::vector<std::int64_t>& live() const { return live_; }

  // Made just before the node `before`, for the next reader and all after it. REQUIRES: v has bytes of its own in the arena;
  // `kept_until` makes or reads it, nobody between that and `before` does. O(values + nodes).
  Rerun find(ValueId v, NodeId kept_until, NodeId before) const;

  // Where that may be done, behind `after`: just before `reader`, and, the latest first, just before what is needed for it is
  // gone. A few at most.
  std::vector<NodeId> places(ValueId v, NodeId after, NodeId reader) const;

 private:
  bool collect(NodeId n, NodeId before, Rerun* rerun) const;
  bool is_there(ValueId owner, NodeId before) const { return before <= there_until(owner); }
  NodeId there_until(ValueId owner) const;
  bool joins_parts(NodeId n) const;
  ValueId seen_by(ValueId window) const;
  std::int64_t held_across(NodeId before) const;
  std::int64_t most_while_running(const std::vector<NodeId>& nodes, ValueId wanted) const;

  const Plan& plan_;
  const Graph& g_;
  const std::vector<ValueId> owner_;
  const std::vector<std::int64_t> live_;
  const std::vector<Interval> held_;
  std::vector<std::vector<NodeId>> readers_;  // by owner
  std::vector<NodeId> taken_over_;            // by owner: the node that computes another value in its bytes; kNone: none
};

}  // namespace tapedeck
