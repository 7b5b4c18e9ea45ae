// The data behind a Tensor. It is internal to the engine and the executor of replays; user code must not rely on it.
#pragma once

#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/op.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace tapedeck {
class EagerDevice;
}

namespace tapedeck::detail {

// Bytes that views share. `version` counts writes in place, and `written_at` is the place of the last write.
struct Storage {
  std::atomic<std::int32_t> refs{1};
  std::uint32_t version = 0;
  void* data = nullptr;
  std::int64_t bytes = 0;
  EagerDevice* device = nullptr;  // has the bytes; null: they are in the memory of the host
  Site written_at;
  bool handed_out = false;                 // mutable_data() gave its address to the user, who may keep it and write at any time
  std::atomic<std::int32_t> replays{0};    // replays that are bound to it; they write it without a call of an op
  std::atomic<std::int32_t> block{kNone};  // its number in the log of the session (eviction.h); with one, null data is evicted
  std::uint32_t zeros_version = kNoVersion;  // the version at which full() filled all of it with zeros

  static constexpr std::uint32_t kNoVersion = ~0u;
  bool known_zeros() const { return zeros_version == version && !handed_out; }
};

// The address of the storage's bytes, for code of the host that may keep the address: evicted bytes are computed again, and
// stay. Throws DeviceError if the bytes are on another device.
void* exposed_bytes(Storage& s);

// The data that only a few tensors have.
struct Extra {
  Name name;
  Tensor grad;
  std::vector<GradHook> hooks;  // of a leaf; the hooks of other tensors are on the tape
};

// How a view was made from its parent. With this data the view can be recorded again after a write to the parent or to the
// view.
struct ViewLink {
  static constexpr int kMaxDepth = 64;  // views in longer chains of unrecorded views get no link
  static constexpr std::size_t kAttrBytes = 256;
  struct TensorImpl* parent = nullptr;  // the link holds one reference
  const Op* op = nullptr;
  int depth = 0;
  bool tracked = false;  // gradients were enabled when the view was made
  alignas(8) unsigned char attrs[kAttrBytes];
};

struct TensorImpl {
  std::atomic<std::int32_t> refs{1};
  DType dtype = DType::f32;
  Role role = Role::none;
  bool requires_grad = false;  // the user marked this leaf; the tape tells whether results of ops need a gradient
  GradRequest request = GradRequest::add;
  Storage* storage = nullptr;  // null for an abstract tensor
  std::int64_t offset = 0;     // in elements
  std::uint64_t tape = 0;      // serial number of the tape that has the value of this tensor; 0: none
  std::int32_t slot = kNone;   // the number of this tensor among the bound tensors of that tape
  Extra* extra = nullptr;
  ViewLink* link = nullptr;
  Shape shape;
  std::int64_t strides[kMaxRank];

  void* data() const {
    if (!storage) return nullptr;
    return place_in(storage->block == kNone && !storage->device ? storage->data : exposed_bytes(*storage));
  }
  // For a moment in which the bytes are known to be resident (ResidentTensors in eviction.h).
  void* resident_data() const { return storage ? place_in(storage->data) : nullptr; }
  void* place_in(void* bytes) const {
    return static_cast<char*>(bytes) + offset * static_cast<std::int64_t>(dtype_size(dtype));
  }
  Type type() const { return {dtype, shape}; }
};

Storage* new_storage(std::int64_t bytes, EagerDevice* device = nullptr);  // with one reference
void retain(Storage* s) noexcept;
void release(Storage* s) noexcept;

TensorImpl* new_impl(const Type& type, Storage* storage);  // dense; takes over one reference; null storage: abstract
TensorImpl* new_view(const TensorImpl& base, const Shape& shape, std::int64_t offset, const std::int64_t* strides);
TensorImpl* new_dense(const Type& type);  // with new memory; abstract in abstract mode
// Notes that `view` is `op` applied to `parent`. Does nothing if the chain of views would become too long.
void link_view(TensorImpl* view, TensorImpl* parent, const Op& op, const void* attrs, bool tracked);
void unlink_view(TensorImpl* view) noexcept;  // REQUIRES: it has a link

inline void fill_view(const TensorImpl& t, View* view) {
  view->data = t.resident_data();
  view->dtype = t.dtype;
  view->rank = t.shape.rank;
  for (int i = 0; i < t.shape.rank; ++i) {
    view->sizes[i] = t.shape.sizes[i];
    view->strides[i] = t.strides[i];
  }
}
// Fills in the kernel's view of the operand, broadcast to `shape`: added dimensions and expanded dimensions of size 1 get
// stride 0. REQUIRES: the tensor broadcasts to `shape`.
void fill_view_expanded(const TensorImpl& t, const Shape& shape, View* view);
bool is_dense(const Shape& shape, const std::int64_t* strides);

}  // namespace tapedeck::detail
