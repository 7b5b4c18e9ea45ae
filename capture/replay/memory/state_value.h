// A state value and its bytes: its own bytes, or the bytes of a tensor of the caller that it is bound to. It has no bytes
// before it is first set.
#pragma once

#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/tensor.h>

#include <cstdint>

namespace tapedeck {
class EagerDevice;
namespace detail {
struct Storage;
}
}  // namespace tapedeck

namespace tapedeck::replay {

// The device that has the bytes of the tensor; null: they are in the memory of the host.
EagerDevice* device_of(const Tensor& tensor);
// Their address there. A tensor that was evicted comes back.
void* bytes_of(const Tensor& tensor);

struct StateValue {
  StateValue(Allocator& count, Name name, const Type& type, Name graph) : name(name), type(type), graph(graph), count_(count) {}
  ~StateValue() { release(); }
  StateValue(const StateValue&) = delete;

  void own();                // has bytes of its own from now on, unless it is bound
  void bind(Tensor tensor);  // binding does not write the tensor: its version stays
  bool is_bound_to(const Tensor& tensor) const;
  EagerDevice* device() const { return bound.defined() ? device_of(bound) : nullptr; }  // has the bytes; null: the host
  bool overlaps(const void* at, std::int64_t bytes) const;                              // is bound to some of these bytes
  bool overlaps(const StateValue& other) const { return other.bound.defined() && overlaps(other.base, other.type.bytes()); }
  std::uint32_t version() const;  // of the bound tensor: counts writes. REQUIRES: bound
  void note_write();              // its bytes have been written. REQUIRES: bound
  void tear(Name by) { set = false, torn = true, torn_by = by; }

  const Name name;
  const Type type;
  const Name graph;      // of the member that had it first
  bool named = false;    // found by its name, never by its tensor
  Tensor bound;          // undefined: the bytes are its own
  void* base = nullptr;  // where the bytes are now, on the host or on device()
  bool set = false;
  std::uint64_t written = 0;  // a number that no other write has (Memory::before_write)
  bool torn = false;          // a run that updates it failed after it had begun to write state
  Name torn_by;

 private:
  void release();

  Allocator& count_;
  detail::Storage* bound_storage_ = nullptr;  // of `bound` when it was bound
  bool counted_ = false;                      // the bytes of `bound` are in the count
  Buffer bytes_;
};

}  // namespace tapedeck::replay
