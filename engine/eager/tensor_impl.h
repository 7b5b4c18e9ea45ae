// Inside a Tensor. Internal to the engine and to the replay oracle; not installed for users to rely on.
#pragma once

#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/op.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace tapedeck::detail {

// Bytes shared by views. `version` counts in-place writes; `written_at` is the last of them.
struct Storage {
  std::atomic<std::int32_t> refs{1};
  std::uint32_t version = 0;
  void* data = nullptr;
  std::int64_t bytes = 0;
  Site written_at;
};

// What few tensors have.
struct Extra {
  Name name;
  Tensor grad;
  std::vector<GradHook> hooks;  // of a leaf; other tensors keep theirs on the tape, by value
};

// How a view came from the tensor it shows a window of, so that it can be taken again after a write to either.
struct ViewLink {
  static constexpr int kMaxDepth = 64;  // longer chains of unrecorded views are not followed
  static constexpr std::size_t kAttrBytes = 256;
  struct TensorImpl* parent = nullptr;  // one reference
  const Op* op = nullptr;
  int depth = 0;
  bool tracked = false;  // taken while gradients were enabled
  alignas(8) unsigned char attrs[kAttrBytes];
};

struct TensorImpl {
  std::atomic<std::int32_t> refs{1};
  DType dtype = DType::f32;
  Role role = Role::none;
  bool requires_grad = false;  // a leaf the user marked; results of ops carry their need on the tape
  GradRequest request = GradRequest::add;
  Storage* storage = nullptr;  // null: abstract
  std::int64_t offset = 0;     // elements
  std::uint64_t tape = 0;      // serial of the tape that recorded this value, 0 = none
  std::int32_t slot = kNone;   // there: which of its bound tensors this is
  Extra* extra = nullptr;
  ViewLink* link = nullptr;
  Shape shape;
  std::int64_t strides[kMaxRank];

  void* data() const {
    return storage ? static_cast<char*>(storage->data) + offset * static_cast<std::int64_t>(dtype_size(dtype)) : nullptr;
  }
  Type type() const { return {dtype, shape}; }
};

Storage* new_storage(std::int64_t bytes);  // one reference
void retain(Storage* s) noexcept;
void release(Storage* s) noexcept;

TensorImpl* new_impl(const Type& type, Storage* storage);  // dense; takes over the storage reference; null storage = abstract
TensorImpl* new_view(const TensorImpl& base, const Shape& shape, std::int64_t offset, const std::int64_t* strides);
TensorImpl* new_dense(const Type& type);  // fresh memory, or abstract in abstract mode
// Notes that `view` is `op` of `parent`. Does nothing where the chain would become too long.
void link_view(TensorImpl* view, TensorImpl* parent, const Op& op, const void* attrs, bool tracked);
void unlink_view(TensorImpl* view) noexcept;  // REQUIRES: it has a link

void fill_view(const TensorImpl& t, View* view);
// The operand's view broadcast to `shape`: missing leading and size-1 dimensions get stride 0. REQUIRES: it broadcasts.
void fill_view_expanded(const TensorImpl& t, const Shape& shape, View* view);
bool is_dense(const Shape& shape, const std::int64_t* strides);

}  // namespace tapedeck::detail
