// A memory budget for eager code: values go when memory is short, and are computed again when they are read.
//
//     Session session{.memory_budget = 2_GiB};
//     for (...) step();                          // as without; the same bits
//     std::cout << session.stats().recomputed;
//
// As long as a session lives, the tensors of the process never take more memory from the system than the budget. The budget
// counts the bytes in use, rounded up by the allocator, the workspaces of kernels, and the unused blocks that the allocator
// keeps. The memory of replays is not counted (Executor::observed_peak_bytes). When an op needs memory, the allocator first
// gives its unused blocks back. Then the session evicts results of earlier ops: it frees their bytes. EvictionLog says which
// results it evicts first, and names the paper. When an evicted value is read, its op runs again.
//
// The session logs every op that runs, on any thread: ops of a forward pass, of backward, under NoGrad and inside captures. It
// may evict a result whether the program holds it or only the tape does. It does not evict a result if
//   - the op has an effect, calls a function of the user, or is a loop or a branch;
//   - the result was written in place, or an operand of the op was written since, or was handed out by mutable_data(), or is
//     bound to a replay: then the op would compute another value;
//   - data() returned its address;
//   - it is pinned.
// Parameters, inputs and other tensors that no op made are never evicted. Before a tensor is written in place, the session
// makes those evicted values resident that are computed from the old bytes. Random results may be evicted: an op draws the same
// numbers again from the random state that it read and its path. Only one session may be open in a process.
//
// If the budget cannot be met, the first call that shows it throws MemoryLimitError, an ExecutionError. The error names the op
// and the place of the call, and says which bytes cannot be evicted. The program can go on after it, with the tensors that it
// held before the call.
//
// The budget ends with the session. Values that are evicted then stay evicted until they are read.
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
  double choosing_us = 0;  // measured microseconds in which the session chose the values to evict
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

// pin() makes the tensor resident. It is not evicted, and neither are tensors that share its bytes, until unpin() was called as
// often as pin(). Both throw TypeError for an undefined or abstract tensor. pin() throws MemoryLimitError if the tensor is
// evicted and does not fit into the budget.
const Tensor& pin(const Tensor& x, Site site = {__builtin_FILE(), __builtin_LINE()});
const Tensor& unpin(const Tensor& x, Site site = {__builtin_FILE(), __builtin_LINE()});
// Evicts the tensor now. It is computed again when it is read. Returns false if the tensor cannot be evicted, for the reasons
// above.
bool drop(const Tensor& x, Site site = {__builtin_FILE(), __builtin_LINE()});
bool is_resident(const Tensor& x, Site site = {__builtin_FILE(), __builtin_LINE()});

}  // namespace TAPEDECK_API
