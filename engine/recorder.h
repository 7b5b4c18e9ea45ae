// The tape itself: nodes in execution order, and what backward needs beside them.
//
// An eager tape records only what a gradient can flow through, and empties itself when the last tensor with history is gone. A
// capture's tape records everything; capture turns it into a Graph. Belongs to one thread.
#pragma once

#include <tapedeck/engine/graph.h>
#include <tapedeck/engine/tensor_impl.h>
#include <tapedeck/engine/thread_state.h>

#include <unordered_map>
#include <vector>

namespace tapedeck {

// What the tape knows about a value beside its type.
struct TapeValue {
  detail::Storage* saved = nullptr;   // one reference while kept for backward
  std::int64_t offset = 0;            // elements, of the saved window
  std::uint32_t version = 0;          // of the storage when the value was made or first read
  std::int32_t saves = 0;             // nodes that still want it
  std::int32_t strides = kNone;       // into Recorder::strides if not dense
  std::int32_t outside = kNone;       // index into Recorder::outside: made before the tape began
  bool needs_grad = false;
};

// A tensor made before the tape began.
struct Outside {
  Tensor tensor;
  ValueId first = kNone;     // the value as first read
  ValueId last = kNone;      // the value now: differs if it was mutated in place
  Site read_at;
  NodeId before_node = 0;    // the node that first read it
};

// A checkpoint region: nodes [first, last) of the tape that carry its number.
struct Region {
  NodeId first = 0;
  NodeId last = 0;
  bool released = false;   // backward has passed it and freed what it kept
};

// What a node keeps for backward: bit i = operand i, bit 32 + i = result i.
using SaveMask = std::uint64_t;

class Recorder {
 public:
  explicit Recorder(bool capturing);
  ~Recorder();
  Recorder(const Recorder&) = delete;

  const bool capturing;
  std::uint64_t serial;                 // unique; tensors name their tape by it
  Graph graph;
  std::vector<TapeValue> info;          // by value
  std::vector<Site> sites;              // by node
  std::vector<NodeId> twins;            // by node
  std::vector<SaveMask> masks;          // by node
  std::vector<bool> released;           // by node: backward has run and freed what it kept
  std::vector<Outside> outside;
  std::vector<std::int64_t> strides;
  std::vector<Region> regions;
  std::int64_t live = 0;                // handles whose history is on this tape
  int busy = 0;                         // backward or a capture is using the tape: do not empty it

  bool owns(const detail::TensorImpl& t) const { return t.tape == serial; }
  bool needs_grad(const detail::TensorImpl& t) const;
  // The value a tensor has here; makes an outside value of a tensor not yet seen.
  ValueId value_of(detail::TensorImpl* t, Site site);
  // Appends a node. `in` and `out` hold the tensors; outputs are linked to their new values.
  NodeId record(const Op& op, std::span<detail::TensorImpl* const> in, const void* attrs, std::span<detail::TensorImpl* const> out,
                bool needs_grad, SaveMask saves, Site site);
  // In-place results: `t` is from now on value v.
  void rebind(detail::TensorImpl* t, ValueId v);
  void keep(ValueId v, const detail::TensorImpl& t);   // one more node wants the value
  void release_one(ValueId v);
  void dropped(detail::TensorImpl& t) noexcept;        // a handle with history is gone
  void clear();                                        // forgets everything; a new serial

 private:
  ValueId add_outside_value(const detail::TensorImpl& t);
  void add_info(const detail::TensorImpl& t);
  bool made_in_open_region(ValueId v) const;
  const Outside* find_outside(const detail::TensorImpl* t) const;
  mutable std::unordered_map<const detail::TensorImpl*, std::int32_t> outside_of_;  // filled once there are many
  mutable std::size_t mapped_ = 0;
  std::vector<Outside> gone_;
};

// The save set of a node, derived from the op's vjp and cached per signature. `need` marks operands that need a
// gradient; its last bit stands for operand 31 and all after it.
SaveMask derived_saves(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs, std::uint32_t need);

// Runs an op without recording it: same kernels, same bits.
std::vector<Tensor> execute(const Op& op, std::span<const Tensor> inputs, const void* attrs, std::span<const Type> outputs, Site site);

}  // namespace tapedeck
