// The nodes that have used some bytes in the step so far. From these follows which inputs the caller may still set, and which
// values can still be read.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/memory/step_progress.h>
#include <tapedeck/capture/replay/program/program.h>

#include <cstdint>
#include <vector>

namespace tapedeck::replay {

class ByteUses {
 public:
  // REQUIRES: all three outlive this.
  ByteUses(const Plan& plan, const Program& program, const StepProgress& progress)
      : plan_(plan), program_(program), progress_(progress) {}

  void prepare();  // before the first question; harmless later

  // REQUIRES of all below: prepare() was called, and StepProgress::prepare().
  ValueId owner(ValueId v) const { return owner_[v]; }  // the value whose bytes this one lies in
  bool called(NodeId n) const { return called_[n]; }    // the node has a kernel call; views and constants have none

  // Each of these gives kNone if there is no such node.
  NodeId reader_of_input(std::int32_t input) const;  // a node that has run and read the input
  // A node to come that reads bytes of the state, if nodes that have run read or wrote bytes of it.
  NodeId reader_of_used_state(std::int32_t slot) const;
  // A node that has run after the maker of the value, and has written to its bytes.
  NodeId overwriter(ValueId v) const;
  bool has_used_state(std::int32_t slot) const;  // a node that has run has read or written bytes of the state
  // By value, of values that are their own owners: whether overwriter() gives kNone. O(values log values) for all of them.
  std::vector<bool> intact() const;

 private:
  bool uses_state(NodeId n, std::int32_t slot, bool only_reads) const;

  const Plan& plan_;
  const Program& program_;
  const StepProgress& progress_;
  std::vector<ValueId> owner_;  // by value
  std::vector<bool> called_;    // by node
};

}  // namespace tapedeck::replay
