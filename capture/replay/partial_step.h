// How far a step is that runs in parts, and what is looked up on the way.
#pragma once

#include <tapedeck/capture/replay/program.h>

#include <cstdint>
#include <vector>

namespace tapedeck::replay {

struct Parts {
  Parts(const Plan& plan, const Program& program);

  // How many steps of a segment belong to its first `nodes` nodes, counted from the first step of all.
  std::int32_t step_at(std::int32_t segment, std::int32_t nodes) const;

  std::vector<std::int32_t> reached;    // by segment: how many of its nodes have run
  std::int32_t left = 0;                // nodes that have not
  std::int32_t run_phase = kNone;       // the last one that was run apart
  std::vector<std::int32_t> until;      // by segment: how many are to have run after this part
  std::vector<StepRange> nodes, steps;  // by segment: the part that runs now

  std::vector<ValueId> owner;            // by value: whose bytes it looks at
  std::vector<std::int32_t> segment_of;  // by node
  std::vector<std::int32_t> place;       // by node: in its segment
  std::vector<bool> called;              // by node: it has a kernel call (windows and constants have none)
  std::vector<Phase> phases;             // by node: in which it runs
  std::vector<std::int32_t> cuts[3];     // by phase, by segment: nodes to run by its end; empty until asked for

 private:
  const Plan& plan_;
  const Program& program_;
};

}  // namespace tapedeck::replay
