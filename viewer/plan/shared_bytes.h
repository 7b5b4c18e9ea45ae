// Which values lie in the bytes of which others, as an index of a plan: with it the values that share bytes with one value are
// found without a look at all values (byte_chains.h).
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck::viewer {

// The value in whose bytes v lies: as a result computed in place, a window, a part of a join, or a new value of state. kNone if
// it has bytes of its own.
ValueId source_of_bytes(const Plan& plan, ValueId v);

// Immutable, so any thread may read it. It takes 8 bytes for each value of the plan.
class SharedBytes {
 public:
  explicit SharedBytes(const Plan& plan);
  std::span<const ValueId> inside(ValueId v) const;  // the values whose source is v, in the order of their numbers

 private:
  std::vector<std::int32_t> first_;  // by value: the place in values_ where those inside of it begin
  std::vector<ValueId> values_;
};

}  // namespace tapedeck::viewer
