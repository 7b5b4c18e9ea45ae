// The functions by which the engine tells the log of a session (session.h) about calls of ops and about storages. The engine
// calls them when an op has run, and before the bytes of a storage are read, written or released.
//
//     a storage whose `block` is kNone     the log does not know it; the functions only test for that
//     an evicted storage                   has a block, and its `data` is null
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

// Whether some storage of the process has a block.
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
// The address of the bytes, for code that may keep the address: evicted bytes are computed again, and stay. An error of the
// memory limit names `reader` and `site`, here and below.
void* exposed_bytes(Storage& s, const char* reader, Site site);

// Called before bytes of the storage change. Makes resident what was computed from them and is evicted.
void before_write_logged(Storage& s, const char* writer, Site site);
inline void before_write(Storage& s, const char* writer, Site site) {
  if (s.block != kNone) before_write_logged(s, writer, site);
}

// The address of the tensor's bytes for a write that ends before the next op. Raises the version.
void* bytes_to_write(TensorImpl& t, Site site);

}  // namespace tapedeck::detail
