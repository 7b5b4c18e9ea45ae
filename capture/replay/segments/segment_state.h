// The state of one segment in a run.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/kernel.h>

#include <atomic>
#include <cstdint>
#include <exception>

namespace tapedeck::replay {

// Each stands on a cache line of its own, because neighbours run on different threads. The thread that runs the segment writes
// it. There are two exceptions: any thread lowers `waiting`, and the loops inside a kernel may report a fault from any thread.
struct alignas(64) SegmentRun {
  std::atomic<std::int32_t> waiting{0};  // predecessors that have not finished; all of them, between runs
  std::int32_t waits_for = 0;            // predecessors
  const std::int32_t* successors = nullptr;
  std::int32_t n_successors = 0;
  NodeId faulty = kNone;       // the node at fault
  KernelFault fault;           // a segment stops at its first
  std::exception_ptr thrown;   // the exception of a kernel or a monitor
  std::int32_t stopped = 0;    // the first instruction that has not run
  std::int32_t later = kNone;  // the next in the list of segments that one thread keeps for itself (run_segments.cpp)

  // One predecessor less. True for the last of them, which also makes the segment ready to wait again.
  bool free() noexcept {
    if (waiting.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
    waiting.store(waits_for, std::memory_order_relaxed);
    return true;
  }
};

}  // namespace tapedeck::replay
