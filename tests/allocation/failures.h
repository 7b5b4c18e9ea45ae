// Allocations that fail on purpose. This executable replaces operator new, the allocator of tensors (Allocator::allocate, by
// the linker's option --wrap) and the allocator of TBB's tasks, and tells any of them to fail.
//
// Third-party libraries are excepted: the memory that TBB takes for its own structures, and whatever calls malloc itself.
#pragma once

#include <cstdint>
#include <vector>

namespace tapedeck::test {

// While an object of this class lives, the k-th allocation of its thread fails, counted from 1, and no other. With k = 0 none
// fails: the allocations are counted only. Objects of this class do not nest.
class FailAllocation {
 public:
  explicit FailAllocation(long k = 0);
  ~FailAllocation();
  FailAllocation(const FailAllocation&) = delete;
  long counted() const;  // so many allocations so far
  bool failed() const;   // whether one of them failed
};

// While an object of this class lives, the call stacks of its thread's allocations are compared. It is made before a
// FailAllocation that counts the same allocations.
class DistinctStacks {
 public:
  DistinctStacks();
  ~DistinctStacks();
  DistinctStacks(const DistinctStacks&) = delete;
  std::vector<long> first() const;  // for each call stack: the number of its first allocation
};

// While an object of this class lives, no thread gets memory for a task of TBB.
class NoTasks {
 public:
  NoTasks();
  ~NoTasks();
  NoTasks(const NoTasks&) = delete;
  long refused() const;  // so many tasks got none
};

// While an object of this class lives, live_bytes() counts what its thread takes from operator new. The threads of TBB start
// and end when they like, so what they take is not counted.
class CountBytes {
 public:
  CountBytes();
  ~CountBytes();
  CountBytes(const CountBytes&) = delete;
};

// The counted bytes that operator new has handed out and not got back, and the bytes of tensors.
std::int64_t live_bytes();

}  // namespace tapedeck::test
