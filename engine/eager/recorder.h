// The tape itself: nodes in execution order, with the data that backward needs about them.
//
// An eager tape records only nodes that a gradient can flow through. It drops a node, and all values kept for the node, as
// soon as no tensor and no later node needs the node's results. The tape of a capture records and keeps every node; the
// capture then makes a Graph of it. A tape belongs to one thread.
//
// Recording is in SSA form. A write in place makes a new value of the written tensor, and of its base if the tensor is a
// view. Other views of the base are recorded again when they are next read.
#pragma once

#include <tapedeck/engine/eager/derive_saved.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/ir/make_room.h>

#include <memory>
#include <unordered_map>
#include <vector>

namespace tapedeck {

// The tape's data about a value, beside its type and name.
struct TapeValue {
  detail::Storage* saved = nullptr;  // the bytes kept for backward (one reference), or null
  std::int64_t offset = 0;           // in elements: where the value begins in `saved`
  std::uint32_t version = 0;         // the version of the storage when the value was made or first read
  std::int32_t saves = 0;            // the number of nodes whose backward still needs the saved bytes
  std::int32_t handles = 0;          // the number of tensors bound to the value
  std::int32_t readers = 0;          // the number of live nodes that read the value
  std::int32_t strides = kNone;      // position in Recorder::strides; kNone if dense
  std::int32_t outside = kNone;      // position in Recorder::outside; kNone if a node of the tape made it
  ValueId parent = kNone;            // for a view: the value of its base that it shows
  ValueId through = kNone;           // for a value written under NoGrad: the value it replaced, to which gradients pass on
  bool needs_grad = false;
  bool has_hooks = false;
  bool cut = false;   // detached: no gradient passes to earlier values
  bool dead = false;  // no tensor and no live node needs it
};

// A tensor that was made before the tape began.
struct Outside {
  Tensor tensor;
  ValueId first = kNone;  // the value of the tensor when it was first read
  ValueId last = kNone;   // the value of the tensor now; it differs from `first` if the tensor was written in place
  Site read_at;
  NodeId before_node = 0;  // the node that first read it
};

// A checkpoint region. It consists of the nodes from `first` to last - 1 whose `region` note has its number.
struct CheckpointRegion {
  NodeId first = 0;
  NodeId last = 0;
  bool released = false;  // backward has visited all nodes of the region and freed their values
};

using CustomBackward = std::function<std::vector<Tensor>(const std::vector<Tensor>& xs, const std::vector<Tensor>& ys,
                                                         const std::vector<Tensor>& dys)>;

// The data that only a few nodes have.
struct NodeExtra {
  std::vector<Tensor> kept;  // the values that the forward part of the vjp keeps
  CustomBackward custom;     // for a custom gradient: the author's backward function
  std::string path;          // for a draw on an eager tape: the text of its attribute `path`
};

struct NodeInfo {
  Site site;
  const Derived* derived = nullptr;  // what backward keeps; null: nothing
  std::unique_ptr<NodeExtra> extra;
  NodeId twin = kNone;
  bool released = false;  // backward has run and freed the saved values
  bool dead = false;      // no tensor and no live node needs it
  SaveMask saves() const { return derived ? derived->saves : 0; }
  NodeExtra& more() {
    if (!extra) extra = std::make_unique<NodeExtra>();
    return *extra;
  }
};

class Recorder;

// Gets every node of a capture as it is recorded. An exception that recorded() throws comes out of the user's call; an
// in-place op has not yet written then.
class RecordWatch {
 public:
  virtual ~RecordWatch() = default;
  virtual void recorded(const Recorder& tape, NodeId n) = 0;
};
// The watch for captures that open on this thread from now on; null: none.
RecordWatch*& watch_of_captures();

// Notes the first time that a capture sets grad() of a tensor from outside.
struct GradEvent {
  Tensor leaf;
  Tensor before;         // the gradient of the leaf when the capture began
  bool cleared = false;  // grad() was set to none, so `before` is not needed
};

class Recorder {
 public:
  explicit Recorder(bool capturing);
  ~Recorder();
  Recorder(const Recorder&) = delete;

  const bool capturing;
  bool nested = false;   // records a region: any floating value may need a gradient outside of it, and leaves are not written
  std::uint64_t serial;  // unique in the process; a tensor names its tape by this number
  Graph graph;
  std::vector<TapeValue> info;  // for each value
  std::vector<NodeInfo> notes;  // for each node
  std::vector<Outside> outside;
  std::vector<std::int64_t> strides;
  std::vector<CheckpointRegion> regions;
  std::unordered_map<ValueId, std::vector<GradHook>> hooks;
  std::int64_t live = 0;  // the number of tensors bound to values of this tape
  // Undefined tensors, at most as many as the tape has had values since it was last empty. Backward uses them as its list of
  // gradients, so that the list costs no time for values that no gradient reaches.
  std::vector<Tensor> spare_gradients;
  // For a capture: its watch, the gradients that were set, the host functions that its nodes call (on_host), and the token of
  // the last such call.
  RecordWatch* watch = nullptr;
  std::vector<GradEvent> grad_events;
  std::vector<std::shared_ptr<const void>> held;
  ValueId last_effect = kNone;
  std::int64_t dead_nodes = 0, dead_values = 0;

  bool owns(const detail::TensorImpl& t) const { return t.tape == serial; }
  bool needs_grad(const detail::TensorImpl& t) const;
  // The value of tensor `t` on this tape. A tensor that the tape does not know gets an outside value. A view whose base was
  // written since is recorded again.
  ValueId value_of(detail::TensorImpl* t, Site site);
  // Appends a node with the operands `in` and the results `out`, and binds each result to its new value.
  NodeId record(const Op& op, std::span<detail::TensorImpl* const> in, const void* attrs,
                std::span<detail::TensorImpl* const> out, bool needs_grad, const Derived* derived, Site site,
                std::span<const Region> node_regions = {});
  // The value of a tensor. REQUIRES: owns(t).
  ValueId bound_value(const detail::TensorImpl& t) const { return slots_[t.slot]; }
  // bind() makes `t` stand for value v. rebind() does the same for a tensor that already stands for another value, or that
  // was made outside.
  void bind(detail::TensorImpl* t, ValueId v);
  void rebind(detail::TensorImpl* t, ValueId v);
  // Makes an outside value for a tensor that was made outside, even if the tensor is a view of a known tensor.
  ValueId declare(detail::TensorImpl* t, Site site);
  void keep(ValueId v, const detail::TensorImpl& t);             // one more node needs the saved bytes of v
  void keep_instead(ValueId v, const detail::TensorImpl& copy);  // v's bytes will change; keeps `copy` instead
  void release_one(ValueId v);
  bool carries_gradient(NodeId n) const;                   // whether a result of the node needs a gradient
  bool made_inside(std::int32_t region, ValueId v) const;  // whether the region computes v again for backward
  void cut(ValueId v);                           // no gradient passes to values before v; nodes that only v needs are dropped
  void release_saved(NodeId n);                  // frees the values that backward kept for node n
  void dropped(detail::TensorImpl& t) noexcept;  // a bound tensor is destroyed
  void note_grad(detail::TensorImpl* leaf, bool cleared);  // grad() of a tensor will be set
  void clear();                                            // drops everything and takes a new serial number

  // As long as a Hold lives, the tape drops nothing. Backward needs this while it walks the tape, and a region while it is
  // open.
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
  class OwnedPath;
  ValueId add_outside_value(const detail::TensorImpl& t);
  void add_info(const detail::TensorImpl& t);
  void release_from_outside(NodeId n);
  const Outside* find_outside(const detail::TensorImpl* t) const;
  bool linked_into_tape(const detail::TensorImpl& t) const;
  bool current(const detail::TensorImpl& t, ValueId v, Site site);
  ValueId take_again(detail::TensorImpl* t, Site site);
  // Makes room for so many more nodes and values, and for their bindings to tensors: adding them then takes no memory.
  void make_entries_fit(std::size_t nodes, std::size_t values);
  void unbind(detail::TensorImpl* t) noexcept;
  bool reachable(NodeId n) const;
  void collect(ValueId v) noexcept;
  struct Dropped;
  void drop_node(NodeId n, Dropped* out);
  void drop_outside(ValueId v, Dropped* out);
  void drop_from(ValueId v);
  void trim();
  void compact();
  void settle() noexcept;

  mutable std::unordered_map<const detail::TensorImpl*, std::int32_t> outside_of_;  // index of `outside`, if it is long
  mutable std::size_t mapped_ = 0;
  std::unordered_map<const detail::TensorImpl*, std::int32_t> grad_event_of_;
  std::vector<Outside> gone_;
  std::vector<NodeInfo> gone_notes_;
  std::vector<ValueId> slots_;  // the value of the tensor in each slot. compact() renumbers values, but not slots
  std::vector<std::int32_t> free_slots_;
  std::vector<ValueId> pending_;  // values that lost a tensor or a reader during a hold, or while others are collected
  int busy_ = 0;
  bool collecting_ = false;
};

// Runs an op without recording it. The kernels and the bits are the same as in apply().
std::vector<Tensor> execute(const Op& op, std::span<const Tensor> inputs, const void* attrs, std::span<const Type> outputs,
                            Site site);

}  // namespace tapedeck
