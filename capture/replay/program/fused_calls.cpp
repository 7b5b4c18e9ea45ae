// Slots as the tiles of the CPU have them (kernels/cpu/elementwise/tiles.cpp), each as large as the widest value inside:
//
//     add   reads x b       writes slot 0
//     tanh  reads slot 0    writes slot 1      slot 0 is free
//     mul   reads slot 1 x  writes slot 0
#include <tapedeck/capture/replay/program/fused_calls.h>

#include <algorithm>

namespace tapedeck::replay {

namespace {

constexpr std::int64_t kSlotAlignment = 256;

// The bytes behind the offset of a view that the view may touch.
std::int64_t reach(const BufferView& w) {
  std::int64_t last = 0;
  for (int d = 0; d < w.view.rank; ++d) {
    if (w.view.sizes[d] == 0) return 0;
    last += (w.view.sizes[d] - 1) * w.view.strides[d];
  }
  return (last + 1) * static_cast<std::int64_t>(dtype_size(w.view.dtype));
}

bool overlap(const BufferView& a, const BufferView& b) {
  return a.buffer == b.buffer && a.offset < b.offset + reach(b) && b.offset < a.offset + reach(a);
}

class Splitter {
 public:
  Splitter(const Graph& g, std::span<const BufferView> inputs, std::span<const BufferView> outputs, BufferId scratch)
      : g_(g),
        inputs_(inputs),
        outputs_(outputs),
        scratch_(scratch),
        views_(g.values.size()),
        slot_of_(g.values.size(), kNone) {}

  FusedCalls split() {
    note_last_readers();
    note_slot_size();
    std::copy(inputs_.begin(), inputs_.end(), views_.begin());
    place_results();
    for (NodeId n = 0; n < g_.node_count(); ++n) add_call(n);
    made_.scratch_bytes = n_slots_ * slot_bytes_;
    return std::move(made_);
  }

 private:
  void note_last_readers() {
    last_reader_.assign(g_.values.size(), kNone);
    for (NodeId n = 0; n < g_.node_count(); ++n)
      for (ValueId v : g_.inputs(g_.nodes[n])) last_reader_[v] = n;
  }

  void note_slot_size() {
    std::size_t widest = 1;
    for (const Node& node : g_.nodes) widest = std::max(widest, dtype_size(g_.values[node.first_output].type.dtype));
    const std::int64_t bytes = outputs_[0].view.numel() * static_cast<std::int64_t>(widest);
    slot_bytes_ = (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  }

  // Results that are copied at the end keep their slots until then.
  void place_results() {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      const ValueId v = g_.outputs[k];
      const bool late =
          std::any_of(inputs_.begin(), inputs_.end(), [&](const BufferView& w) { return overlap(outputs_[k], w); });
      if (!late) {
        views_[v] = outputs_[k];
        continue;
      }
      last_reader_[v] = g_.node_count();
      use_slot(v);
      made_.copies.push_back({views_[v], outputs_[k]});
    }
  }

  void use_slot(ValueId v) {
    if (free_.empty()) free_.push_back(n_slots_++);
    const std::int64_t slot = free_.back();
    free_.pop_back();
    slot_of_[v] = slot;
    BufferView w = outputs_[0];
    w.buffer = scratch_;
    w.offset = slot * slot_bytes_;
    w.view.dtype = g_.values[v].type.dtype;
    std::int64_t step = 1;
    for (int d = w.view.rank - 1; d >= 0; --d) {
      w.view.strides[d] = step;
      step *= w.view.sizes[d];
    }
    views_[v] = w;
  }

  void add_call(NodeId n) {
    const Node& node = g_.nodes[n];
    const ValueId made = node.first_output;
    if (views_[made].buffer == kNone) use_slot(made);
    FusedCalls::Call call{n, {}, views_[made]};
    for (ValueId v : g_.inputs(node)) call.inputs.push_back(views_[v]);
    made_.calls.push_back(std::move(call));
    for (ValueId v : g_.inputs(node))
      if (last_reader_[v] == n) release(v);
    if (last_reader_[made] == kNone) release(made);
  }

  // Once: a node may read a value twice.
  void release(ValueId v) {
    if (slot_of_[v] != kNone) free_.push_back(slot_of_[v]);
    slot_of_[v] = kNone;
  }

  const Graph& g_;
  const std::span<const BufferView> inputs_, outputs_;
  const BufferId scratch_;
  FusedCalls made_;
  std::vector<BufferView> views_;      // by value
  std::vector<std::int64_t> slot_of_;  // by value; kNone: it has none
  std::vector<NodeId> last_reader_;    // by value
  std::vector<std::int64_t> free_;
  std::int64_t n_slots_ = 0, slot_bytes_ = 0;
};

}  // namespace

FusedCalls fused_calls(const Graph& region, std::span<const BufferView> inputs, std::span<const BufferView> outputs,
                       BufferId scratch) {
  return Splitter(region, inputs, outputs, scratch).split();
}

}  // namespace tapedeck::replay
