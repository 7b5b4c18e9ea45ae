// Where calls of ops and storages meet the log of a session (session.h): which storages are blocks of the log, and what must
// happen before their bytes are read, written or let go.
//
//     a storage whose `block` is kNone     is unknown to the log, and nothing here costs more than the test for that
//     an evicted storage                   has a block, and `data` is null
//
// Thread safe.
#pragma once

#include <tapedeck/engine/eager/tensor_impl.h>

#include <atomic>
#include <memory>
#include <span>

namespace tapedeck::detail {

// Whether a session is open, so that calls are logged.
bool calls_are_logged() noexcept;

// Whether a storage of the process has a block. A thread that reads a storage knows of its block.
extern std::atomic<bool> log_has_blocks;

// As long as it lives, the bytes of these tensors are resident. The constructor computes evicted ones again. Null pointers and
// abstract tensors are passed over. `reader` and `site` are named by an error of the memory limit, unless it names an op.
class ResidentTensors {
 public:
  explicit ResidentTensors(std::span<TensorImpl* const> tensors, const char* reader = nullptr) {
    if (log_has_blocks.load(std::memory_order_relaxed)) lock(tensors, reader, {});
  }
  explicit ResidentTensors(const TensorImpl& t, const char* reader = nullptr, Site site = {}) {
    TensorImpl* const one = const_cast<TensorImpl*>(&t);
    if (log_has_blocks.load(std::memory_order_relaxed)) lock({&one, 1}, reader, site);
  }
  ~ResidentTensors() {
    if (locked_) unlock();
  }
  ResidentTensors(const ResidentTensors&) = delete;

 private:
  void lock(std::span<TensorImpl* const> tensors, const char* reader, Site site);
  void unlock() noexcept;
  std::unique_ptr<std::vector<std::int32_t>> locked_;  // blocks
};

// Adds the call to the log, if it can be repeated: the op has no effect and runs no function of the user, no operand's address
// was handed out for writing, and a session is open. REQUIRES: the results have just been computed into storages of their own.
void log_call(const Op& op, std::span<TensorImpl* const> in, const void* attrs, std::span<TensorImpl* const> out, Site site);

// Called by release() for the last reference to a storage with a block. Frees what the log does not need.
void let_go(Storage* s) noexcept;
// The address of the bytes, for someone who may keep it: they stay from now on. `for_writing`: and may change at any time.
void* expose(Storage& s, bool for_writing, const char* reader, Site site);

// Called before bytes of the storage change.
void before_write_logged(Storage& s);
inline void before_write(Storage& s) {
  if (s.block != kNone) before_write_logged(s);
}

// The address of the tensor's bytes for a write that ends before the next op. Raises the version.
void* bytes_to_write(TensorImpl& t, Site site);

}  // namespace tapedeck::detail
