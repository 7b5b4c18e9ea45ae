// A memory budget for eager code: values go when memory is short, and are computed again when they are read.
//
//     Session session{.memory_budget = 2_GiB};
//     for (...) step();                          // as without; the same bits
//     std::cout << session.stats().recomputed;
//
// As long as a session lives, the tensors of the process never take more than the budget from the system: bytes in use, rounded
// up by the allocator, workspaces of kernels, and the unused blocks that the allocator keeps, which go first. When an op needs
// memory, results of earlier ops go whose computation costs least for the bytes they free and for the time since they were
// last used (EvictionLog says how, and names the paper). A value that is read again is computed again from what its op read.
//
// Every op that runs is logged, on any thread: of a forward pass, of backward, under NoGrad and inside captures. The results of
// an op may go, whether the program, the tape or nobody holds them. They are not evicted if
//   - the op has an effect or calls a function of the user, or is a loop or a branch;
//   - an operand or the result was written in place, or its address was taken: mutable_data() lets it be written at any time,
//     and data() must stay valid;
//   - they are pinned.
// Parameters, inputs and whatever no op made are never evicted. Before a write in place, evicted values that are computed from
// the old bytes and are held are made resident. Random results may go: they depend on the state that the op read, and on its
// path. One session may be open in a process.
//
// A budget that cannot be met is a MemoryLimitError, an ExecutionError, of the first call that shows it: it names the op, the
// place of the call, and what cannot go. The program can go on after it, with what it held before the call.
//
// At the end of the session the budget ends. Evicted values stay evicted until they are read. The memory of replays is not
// counted here (Executor::observed_peak_bytes).
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>

namespace tapedeck TAPEDECK_API {

// 3_MiB is 3145728, 3_MB is 3000000.
inline namespace byte_literals {
constexpr std::int64_t operator""_KB(unsigned long long n) { return static_cast<std::int64_t>(n) * 1000; }
constexpr std::int64_t operator""_MB(unsigned long long n) { return static_cast<std::int64_t>(n) * 1000'000; }
constexpr std::int64_t operator""_GB(unsigned long long n) { return static_cast<std::int64_t>(n) * 1000'000'000; }
constexpr std::int64_t operator""_KiB(unsigned long long n) { return static_cast<std::int64_t>(n) << 10; }
constexpr std::int64_t operator""_MiB(unsigned long long n) { return static_cast<std::int64_t>(n) << 20; }
constexpr std::int64_t operator""_GiB(unsigned long long n) { return static_cast<std::int64_t>(n) << 30; }
}  // namespace byte_literals

// Since the session began. `cost` is in the microseconds of the cost model (cost_us() in engine/ir/op.h).
struct SessionStats {
  std::int64_t budget = 0;      // bytes
  std::int64_t peak_bytes = 0;  // the most that was taken from the system
  std::int64_t calls = 0;       // of ops, logged
  std::int64_t evictions = 0;   // of values that were held
  std::int64_t recomputed = 0;  // calls that ran again
  double cost = 0, recomputed_cost = 0;
  double choosing_us = 0;  // the time, on the clock, of choosing what goes
};

// The budget of a session, in bytes, at least 1. Throws UsageError for another number and while another session is open, and
// MemoryLimitError if tensors hold more already.
class MemoryBudget {
 public:
  MemoryBudget(std::int64_t bytes, Site site = {__builtin_FILE(), __builtin_LINE()});  // NOLINT: a number of bytes is one
  ~MemoryBudget();
  MemoryBudget(const MemoryBudget&) = delete;

  SessionStats stats() const;
};

struct Session {
  MemoryBudget memory_budget;

  SessionStats stats() const { return memory_budget.stats(); }
};

// Pins nest. A pinned tensor is resident and never evicted, and neither are tensors that share its bytes. What no session
// logged is never evicted anyway. Throw TypeError for an undefined or abstract tensor, and MemoryLimitError if an evicted one
// does not fit.
const Tensor& pin(const Tensor& x, Site site = {__builtin_FILE(), __builtin_LINE()});
const Tensor& unpin(const Tensor& x, Site site = {__builtin_FILE(), __builtin_LINE()});
// Evicts the tensor now; it comes back when it is read. Returns whether it went: see above for what never does.
bool drop(const Tensor& x, Site site = {__builtin_FILE(), __builtin_LINE()});
bool is_resident(const Tensor& x, Site site = {__builtin_FILE(), __builtin_LINE()});

}  // namespace TAPEDECK_API
