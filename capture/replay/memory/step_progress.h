// How far the step of an executor is: none of it has run, or a cut, or all of it.
//
// A cut is a number of nodes for every segment: the nodes of the segment that have run.
//
//     segment 0: a b c      cut 3
//     segment 1: d e        cut 1     d has run, e has not
//     segment 2: f          cut 0
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/memory/shared_memory.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::replay {

class StepProgress {
 public:
  using Cut = std::vector<std::int32_t>;  // by segment

  // REQUIRES: `plan` and `member` outlive this.
  StepProgress(const Plan& plan, const Member& member) : plan_(plan), member_(member) {}

  bool under_way() const { return member_.memory->step_of == &member_; }  // a step in parts has begun and not ended
  bool complete() const { return complete_; }  // the last step has come to its end, and no other has begun
  void set_complete(bool complete) { complete_ = complete; }

  // Called before the first step in parts, and harmless later. Whole steps do not need these tables. If no step is under way,
  // the cut is empty from here on.
  void prepare();
  bool prepared() const { return !segment_of_.empty(); }

  // REQUIRES of all below: prepare() was called.
  const Cut& cut() const { return cut_; }
  void advance(const Cut& cut, std::int32_t left);
  std::int32_t left() const { return left_; }  // nodes of the step that have not run
  bool reached(const Cut& cut) const;
  bool has_run(NodeId node) const;  // also true for kNone
  std::int32_t segment_of(NodeId node) const { return segment_of_[node]; }
  std::int32_t place(NodeId node) const { return place_[node]; }  // in its segment
  // Its number, from 1, in the order in which one thread runs the plan.
  std::int32_t number(NodeId node) const { return first_[segment_of_[node]] + place_[node] + 1; }
  std::string due() const;  // "12 of 30 nodes have run, next is `...`"

 private:
  const Plan& plan_;
  const Member& member_;
  bool complete_ = false;
  Cut cut_;
  std::int32_t left_ = 0;
  std::vector<std::int32_t> segment_of_, place_;  // by node
  std::vector<std::int32_t> first_;               // by segment: how many nodes are in the segments before it
};

}  // namespace tapedeck::replay
