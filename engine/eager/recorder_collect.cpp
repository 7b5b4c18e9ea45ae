// Drops values that no tensor and no node needs, then the nodes that made them, then the operands of those nodes, and so on.
//
//       nodes   A B C D     C and D die: they are cut off the end     A dies: it leaves a hole
//
// Dead nodes at the end of the tape are removed at once. If holes inside outnumber the live nodes by far, compact() closes
// them.
//
// Destructors of tensors collect, so collecting throws nothing. Where there is no memory for its lists, it ends early: what it
// leaves stays on the tape until the tape is cleared.
#include <tapedeck/engine/eager/recorder.h>

#include <algorithm>
#include <new>
#include <utility>

namespace tapedeck {

using detail::TensorImpl;

// Things that a collection drops. The tensors are destroyed last, because their destruction may call the tape again.
struct Recorder::Dropped {
  std::vector<ValueId> unread;
  std::vector<Tensor> tensors;
  std::vector<std::unique_ptr<NodeExtra>> extras;
};

namespace {

// A flag that is set for as long as this object lives.
class Flag {
 public:
  explicit Flag(bool* flag) : flag_(flag) { *flag_ = true; }
  ~Flag() { *flag_ = false; }
  Flag(const Flag&) = delete;

 private:
  bool* flag_;
};

}  // namespace

void Recorder::unbind(TensorImpl* t) noexcept {
  --info[bound_value(*t)].handles;
  free_slots_.push_back(t->slot);
  t->tape = 0;
  --live;
}

void Recorder::dropped(TensorImpl& t) noexcept {
  const ValueId v = bound_value(t);
  unbind(&t);
  if (live == 0 && busy_ == 0 && !capturing) return clear();
  collect(v);
}

bool Recorder::reachable(NodeId n) const {
  const Node& node = graph.nodes[n];
  for (std::int32_t k = 0; k < node.n_outputs; ++k) {
    const TapeValue& v = info[node.first_output + k];
    if (v.handles > 0 || v.readers > 0) return true;
  }
  return false;
}

void Recorder::release_saved(NodeId n) {
  NodeInfo& note = notes[n];
  if (std::exchange(note.released, true)) return;
  const Node& node = graph.nodes[n];
  if (note.extra) note.extra->kept.clear();
  const SaveMask saves = note.saves();
  if (node.origin.region != kNone) return;  // release_region() frees the operands of a whole region
  const auto in = graph.inputs(node);
  for (std::size_t i = 0; i < in.size(); ++i)
    if (saves & operand_bit(i)) release_one(in[i]);
  for (std::int32_t k = 0; k < node.n_outputs; ++k)
    if (saves & result_bit(static_cast<std::size_t>(k))) release_one(node.first_output + k);
}

// A node of a region has kept the values that it reads from outside of the region; release_region() does not visit dead nodes.
void Recorder::release_from_outside(NodeId n) {
  const Node& node = graph.nodes[n];
  const std::int32_t region = node.origin.region;
  if (region == kNone || regions[region].released || !carries_gradient(n)) return;
  for (ValueId v : graph.inputs(node))
    if (!made_inside(region, v)) release_one(v);
}

void Recorder::drop_outside(ValueId v, Dropped* out) {
  TapeValue& value = info[v];
  if (value.outside != kNone) make_room(out->tensors, 1);
  value.dead = true;
  ++dead_values;
  if (value.saved) detail::release(std::exchange(value.saved, nullptr));
  if (value.outside == kNone) return;
  const std::int32_t index = std::exchange(value.outside, kNone);
  Outside& o = outside[index];
  const auto known = outside_of_.find(o.tensor.impl());
  if (known != outside_of_.end() && known->second == index) outside_of_.erase(known);  // a later entry of the leaf stays
  out->tensors.push_back(std::move(o.tensor));
}

void Recorder::drop_node(NodeId n, Dropped* out) {
  const Node& node = graph.nodes[n];
  NodeInfo& note = notes[n];
  make_room(out->extras, 1);
  make_room(out->unread, static_cast<std::size_t>(node.n_inputs));
  release_saved(n);
  release_from_outside(n);
  note.dead = true;
  ++dead_nodes;
  if (note.extra) out->extras.push_back(std::move(note.extra));
  for (std::int32_t k = 0; k < node.n_outputs; ++k) {
    const ValueId v = node.first_output + k;
    TapeValue& value = info[v];
    value.dead = true;
    ++dead_values;
    if (value.saved) detail::release(std::exchange(value.saved, nullptr));
    if (value.has_hooks) hooks.erase(v);
  }
  for (ValueId v : graph.inputs(node)) {
    --info[v].readers;
    out->unread.push_back(v);
  }
}

// An author's gradient function may hold tensors, so that one dropped node drops others, and so on: they wait in a list,
// because the stack has no room for a long chain of them.
void Recorder::collect(ValueId first) noexcept {
  try {
    if (capturing) return;
    if (busy_ > 0 || collecting_) return pending_.push_back(first);
    const Flag collecting(&collecting_);
    drop_from(first);
    while (!pending_.empty()) {
      const ValueId v = pending_.back();
      pending_.pop_back();
      drop_from(v);
    }
    trim();
  } catch (const std::bad_alloc&) {
  }
}

void Recorder::drop_from(ValueId first) {
  const TapeValue& value = info[first];
  if (value.handles > 0 || value.readers > 0) return;
  Dropped out;
  out.unread.push_back(first);
  while (!out.unread.empty()) {
    const ValueId v = out.unread.back();
    out.unread.pop_back();
    const TapeValue& at = info[v];
    if (at.dead || at.handles > 0 || at.readers > 0) continue;
    const NodeId n = graph.values[v].node;
    if (n == kNone)
      drop_outside(v, &out);
    else if (!reachable(n))
      drop_node(n, &out);
  }
}

void Recorder::cut(ValueId v) {
  info[v].cut = true;
  const NodeId n = graph.values[v].node;
  if (capturing || busy_ > 0 || n == kNone) return;
  const Node& node = graph.nodes[n];
  for (ValueId k = node.first_output; k < node.first_output + node.n_outputs; ++k)
    if (!info[k].cut) return;
  const std::vector<ValueId> operands(graph.inputs(node).begin(), graph.inputs(node).end());
  release_saved(n);
  release_from_outside(n);
  notes[n].dead = true;
  ++dead_nodes;
  const std::unique_ptr<NodeExtra> extra = std::move(notes[n].extra);
  for (ValueId k = node.first_output; k < node.first_output + node.n_outputs; ++k) graph.values[k].node = kNone;
  for (ValueId operand : operands) --info[operand].readers;
  for (std::size_t i = operands.size(); i-- > 0;)
    if (operands[i] < graph.value_count()) collect(operands[i]);
}

void Recorder::trim() {
  while (!notes.empty() && notes.back().dead) {
    for (std::int32_t k = 0; k < graph.nodes.back().n_outputs; ++k)
      graph.values[graph.nodes.back().first_output + k].node = kNone;
    graph.pop_node();
    notes.pop_back();
    --dead_nodes;
  }
  while (!info.empty() && info.back().dead && graph.values.back().node == kNone) {
    info.pop_back();
    graph.values.pop_back();
    --dead_values;
  }
  while (!outside.empty() && !outside.back().tensor.defined()) outside.pop_back();
  mapped_ = std::min(mapped_, outside.size());
  while (!regions.empty() && regions.back().first >= graph.node_count()) regions.pop_back();
  constexpr std::int64_t kFew = 1024;
  const bool nodes = dead_nodes > kFew && dead_nodes > 3 * (graph.node_count() - dead_nodes);
  const bool values = dead_values > kFew && dead_values > 3 * (graph.value_count() - dead_values);
  if (nodes || values) compact();
}

// Renumbers values, nodes and checkpoint regions, so that only live ones remain. Bound tensors refer to slots, which keep their
// numbers. All memory is taken before the first entry moves, so without memory the tape stays as it is. REQUIRES: no region is
// open.
void Recorder::compact() {
  std::vector<ValueId> moved(info.size(), kNone);
  std::vector<NodeId> moved_nodes(notes.size(), kNone);
  Graph packed;
  std::vector<TapeValue> packed_info;
  std::vector<NodeInfo> packed_notes;
  std::vector<Outside> packed_outside;
  packed_notes.reserve(notes.size());
  packed_outside.reserve(outside.size());
  std::int32_t n_outside = 0;
  std::vector<std::int64_t> packed_strides;
  std::vector<std::int32_t> moved_regions(regions.size(), kNone);
  std::vector<CheckpointRegion> packed_regions;
  auto take_value = [&](ValueId v) {
    moved[v] = static_cast<ValueId>(packed_info.size());
    packed_info.push_back(info[v]);
    TapeValue& value = packed_info.back();
    auto follow = [&](ValueId& id) { id = id == kNone ? kNone : moved[id]; };
    follow(value.parent);
    follow(value.through);
    if (value.strides != kNone) {
      const auto first = strides.begin() + value.strides;
      value.strides = value.saved ? static_cast<std::int32_t>(packed_strides.size()) : kNone;
      if (value.saved) packed_strides.insert(packed_strides.end(), first, first + graph.values[v].type.shape.rank);
    }
    if (value.outside != kNone) value.outside = n_outside++;
  };
  ValueId next = 0;
  auto take_outside_before = [&](ValueId end) {
    for (; next < end; ++next)
      if (!info[next].dead && graph.values[next].node == kNone) {
        packed.values.push_back(graph.values[next]);
        take_value(next);
      }
  };
  // Regions keep their order. A region begins at its first live node.
  auto take_region = [&](std::int32_t region, NodeId n) {
    if (region == kNone) return kNone;
    std::int32_t& number = moved_regions[region];
    if (number == kNone) {
      number = static_cast<std::int32_t>(packed_regions.size());
      packed_regions.push_back({n, n, regions[region].released});
    }
    packed_regions[number].last = n + 1;
    return number;
  };
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[n];
    take_outside_before(node.first_output);
    if (notes[n].dead) continue;
    std::vector<ValueId> in;
    for (ValueId v : graph.inputs(node)) in.push_back(moved[v]);
    Origin origin = node.origin;
    origin.region = take_region(origin.region, packed.node_count());
    moved_nodes[n] =
        packed.add_node(*node.op, in, graph.attributes(node), graph.output_types(node), origin, {}, graph.regions_of(node));
    for (std::int32_t k = 0; k < node.n_outputs; ++k) take_value(node.first_output + k);
  }
  take_outside_before(static_cast<ValueId>(info.size()));
  std::unordered_map<ValueId, std::vector<GradHook>> packed_hooks;
  for (auto& [v, list] : hooks) packed_hooks[moved[v]];

  for (std::size_t v = 0; v < moved.size(); ++v) {
    if (moved[v] == kNone || info[v].outside == kNone) continue;
    packed_outside.push_back(std::move(outside[info[v].outside]));
    packed_outside.back().first = packed_outside.back().last = moved[v];
  }
  for (std::size_t n = 0; n < notes.size(); ++n) {
    if (moved_nodes[n] == kNone) continue;
    packed_notes.push_back(std::move(notes[n]));
    NodeId& twin = packed_notes.back().twin;
    if (twin != kNone) twin = moved_nodes[twin];
  }
  for (ValueId& v : slots_)
    if (v != kNone && static_cast<std::size_t>(v) < moved.size()) v = moved[v];
  for (auto& [v, list] : hooks) packed_hooks.find(moved[v])->second = std::move(list);
  graph = std::move(packed);
  info = std::move(packed_info);
  notes = std::move(packed_notes);
  outside = std::move(packed_outside);
  hooks = std::move(packed_hooks);
  regions = std::move(packed_regions);
  strides = std::move(packed_strides);
  outside_of_.clear();
  mapped_ = 0;
  dead_nodes = dead_values = 0;
}

// Called at the end of the last hold. Collects the values that lost a tensor or a reader during the hold.
void Recorder::settle() noexcept {
  if (capturing) return;
  if (live == 0) return clear();
  // Collecting a value may remove later values from the tape, so later values come first.
  std::sort(pending_.begin(), pending_.end());
  const std::vector<ValueId> pending = std::move(pending_);
  pending_.clear();
  for (std::size_t i = pending.size(); i-- > 0;)
    if (pending[i] < graph.value_count()) collect(pending[i]);
}

}  // namespace tapedeck
