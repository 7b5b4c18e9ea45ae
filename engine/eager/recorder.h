// The tape itself: nodes in execution order, and what backward needs beside them.
//
// An eager tape records only what a gradient can flow through. A node stays as long as a tensor that was computed from it
// exists; what nobody can reach any more is dropped at once, with everything it kept. A capture's tape records and keeps
// everything; capture turns it into a Graph. Belongs to one thread.
//
// Recording is in SSA: a write in place makes a new value of the tensor written and, through views, of its base; views of the
// base are taken again when they are next read.
#pragma once

#include <tapedeck/engine/eager/derive_saved.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/ir/graph.h>

#include <memory>
#include <unordered_map>
#include <vector>

namespace tapedeck {

// What the tape knows about a value beside its type.
struct TapeValue {
  detail::Storage* saved = nullptr;  // one reference while kept for backward
  std::int64_t offset = 0;           // elements, of the saved window
  std::uint32_t version = 0;         // of the storage when the value was made or first read
  std::int32_t saves = 0;            // nodes that still want it
  std::int32_t handles = 0;          // tensors bound to it
  std::int32_t readers = 0;          // live nodes that read it
  std::int32_t strides = kNone;      // into Recorder::strides if not dense
  std::int32_t outside = kNone;      // index into Recorder::outside: made before the tape began
  ValueId parent = kNone;            // of a view's value: its base's value that it shows
  ValueId through = kNone;           // written under NoGrad: gradients go on to this value, which it replaced
  bool needs_grad = false;
  bool has_hooks = false;
  bool cut = false;   // detached: no gradient goes further back
  bool dead = false;  // nobody can reach it
};

// A tensor made before the tape began.
struct Outside {
  Tensor tensor;
  ValueId first = kNone;  // the value as first read
  ValueId last = kNone;   // the value now: differs if it was mutated in place
  Site read_at;
  NodeId before_node = 0;  // the node that first read it
};

// A checkpoint region: nodes [first, last) of the tape that carry its number.
struct CheckpointRegion {
  NodeId first = 0;
  NodeId last = 0;
  bool released = false;  // backward has passed it and freed what it kept
};

using CustomBackward = std::function<std::vector<Tensor>(const std::vector<Tensor>& xs, const std::vector<Tensor>& ys,
                                                         const std::vector<Tensor>& dys)>;

// What few nodes have.
struct NodeExtra {
  std::vector<Tensor> kept;  // by the forward part of its vjp
  CustomBackward custom;     // of a custom gradient
};

struct NodeInfo {
  Site site;
  const Derived* derived = nullptr;  // null: nothing is kept for backward
  std::unique_ptr<NodeExtra> extra;
  NodeId twin = kNone;
  bool released = false;  // backward has run and freed what it kept
  bool dead = false;      // nobody can reach it
  SaveMask saves() const { return derived ? derived->saves : 0; }
};

class Recorder;

// Sees every node of a capture as it is recorded. What it throws comes out of the user's call; an in-place op has not written
// yet.
class RecordWatch {
 public:
  virtual ~RecordWatch() = default;
  virtual void recorded(const Recorder& tape, NodeId n) = 0;
};
// Watches the captures opened on this thread from now on; null: nobody.
RecordWatch*& watch_of_captures();

// The first time a capture sets grad() of a tensor from outside.
struct GradEvent {
  Tensor leaf;
  Tensor before;         // the gradient it had when the capture began
  bool cleared = false;  // set to none: what was there does not matter
};

class Recorder {
 public:
  explicit Recorder(bool capturing);
  ~Recorder();
  Recorder(const Recorder&) = delete;

  const bool capturing;
  bool nested = false;   // records a region: every floating value may need a gradient outside, and leaves are not written
  std::uint64_t serial;  // unique; tensors name their tape by it
  Graph graph;
  std::vector<TapeValue> info;  // by value
  std::vector<NodeInfo> notes;  // by node
  std::vector<Outside> outside;
  std::vector<std::int64_t> strides;
  std::vector<CheckpointRegion> regions;
  std::unordered_map<ValueId, std::vector<GradHook>> hooks;
  std::int64_t live = 0;  // tensors bound to values of this tape
  // Of a capture: who watches, gradients set, host functions its nodes call (on_host), the token of the last of these calls.
  RecordWatch* watch = nullptr;
  std::vector<GradEvent> grad_events;
  std::vector<std::shared_ptr<const void>> held;
  ValueId last_effect = kNone;
  std::int64_t dead_nodes = 0, dead_values = 0;

  bool owns(const detail::TensorImpl& t) const { return t.tape == serial; }
  bool needs_grad(const detail::TensorImpl& t) const;
  // The value a tensor has here; makes an outside value of a tensor not yet seen, and takes a view again whose base was written
  // since.
  ValueId value_of(detail::TensorImpl* t, Site site);
  // Appends a node. `in` and `out` hold the tensors; outputs are bound to their new values.
  NodeId record(const Op& op, std::span<detail::TensorImpl* const> in, const void* attrs,
                std::span<detail::TensorImpl* const> out, bool needs_grad, const Derived* derived, Site site,
                std::span<const Region> node_regions = {});
  // The value of a tensor that this tape owns.
  ValueId bound_value(const detail::TensorImpl& t) const { return slots_[t.slot]; }
  // `t` is from now on value v: whatever it was bound to before, or, for a tensor made outside, as its latest value.
  void bind(detail::TensorImpl* t, ValueId v);
  void rebind(detail::TensorImpl* t, ValueId v);
  // A tensor made outside and declared so: never taken as a view of something known.
  ValueId declare(detail::TensorImpl* t, Site site);
  void keep(ValueId v, const detail::TensorImpl& t);             // one more node wants the value
  void keep_instead(ValueId v, const detail::TensorImpl& copy);  // what is kept of v is about to be overwritten
  void release_one(ValueId v);
  void cut(ValueId v);                                     // no gradient goes further back; what only made v is dropped
  void release_saved(NodeId n);                            // what a node keeps
  void dropped(detail::TensorImpl& t) noexcept;            // a bound tensor is gone
  void note_grad(detail::TensorImpl* leaf, bool cleared);  // grad() of a tensor is about to be set
  void clear();                                            // forgets everything; a new serial

  // While one lives nothing is dropped: backward walks the tape, or a region is open.
  class Hold {
   public:
    explicit Hold(Recorder& tape) : tape_(tape) { ++tape_.busy_; }
    ~Hold() {
      if (--tape_.busy_ == 0) tape_.settle();
    }
    Hold(const Hold&) = delete;

   private:
    Recorder& tape_;
  };

 private:
  ValueId add_outside_value(const detail::TensorImpl& t);
  void add_info(const detail::TensorImpl& t);
  bool made_in_open_region(ValueId v) const;
  const Outside* find_outside(const detail::TensorImpl* t) const;
  bool linked_into_tape(const detail::TensorImpl& t) const;
  bool current(const detail::TensorImpl& t, ValueId v, Site site);
  ValueId take_again(detail::TensorImpl* t, Site site);
  void unbind(detail::TensorImpl* t) noexcept;
  bool reachable(NodeId n) const;
  void collect(ValueId v) noexcept;
  struct Dropped;
  void drop_node(NodeId n, Dropped* out);
  void drop_outside(ValueId v, Dropped* out);
  void trim() noexcept;
  void compact();
  void settle() noexcept;

  mutable std::unordered_map<const detail::TensorImpl*, std::int32_t> outside_of_;  // filled once there are many
  mutable std::size_t mapped_ = 0;
  std::unordered_map<const detail::TensorImpl*, std::int32_t> grad_event_of_;
  std::vector<Outside> gone_;
  std::vector<NodeInfo> gone_notes_;
  std::vector<ValueId> slots_;  // by slot of a bound tensor: its value. Compacting the tape renumbers values, not slots
  std::vector<std::int32_t> free_slots_;
  std::vector<ValueId> pending_;  // let go of during a hold
  int busy_ = 0;
};

// Runs an op without recording it: same kernels, same bits.
std::vector<Tensor> execute(const Op& op, std::span<const Tensor> inputs, const void* attrs, std::span<const Type> outputs,
                            Site site);

}  // namespace tapedeck
