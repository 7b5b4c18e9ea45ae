// Drops values that no tensor and no node needs, then the nodes that made them, then the operands of those nodes, and so on.
//
//       nodes   A B C D     C and D die: they are cut off the end     A dies: it leaves a hole
//
// Dead nodes at the end of the tape are removed at once. If holes inside outnumber the live nodes by far, compact() closes
// them.
#include <tapedeck/engine/eager/recorder.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

using detail::TensorImpl;

// Things that a collection drops. The tensors are destroyed last, because their destruction may call the tape again.
struct Recorder::Dropped {
  std::vector<ValueId> unread;
  std::vector<Tensor> tensors;
  std::vector<std::unique_ptr<NodeExtra>> extras;
};

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

void Recorder::drop_outside(ValueId v, Dropped* out) {
  TapeValue& value = info[v];
  value.dead = true;
  ++dead_values;
  if (value.saved) detail::release(std::exchange(value.saved, nullptr));
  if (value.outside == kNone) return;
  Outside& o = outside[std::exchange(value.outside, kNone)];
  outside_of_.erase(o.tensor.impl());
  out->tensors.push_back(std::move(o.tensor));
}

void Recorder::drop_node(NodeId n, Dropped* out) {
  const Node& node = graph.nodes[n];
  NodeInfo& note = notes[n];
  release_saved(n);
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

void Recorder::collect(ValueId first) noexcept {
  if (capturing) return;
  if (busy_ > 0) return pending_.push_back(first);
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
  trim();
}

void Recorder::cut(ValueId v) {
  info[v].cut = true;
  const NodeId n = graph.values[v].node;
  if (capturing || busy_ > 0 || n == kNone) return;
  const Node& node = graph.nodes[n];
  for (ValueId k = node.first_output; k < node.first_output + node.n_outputs; ++k)
    if (!info[k].cut) return;
  release_saved(n);
  notes[n].dead = true;
  ++dead_nodes;
  const std::unique_ptr<NodeExtra> extra = std::move(notes[n].extra);
  for (ValueId k = node.first_output; k < node.first_output + node.n_outputs; ++k) graph.values[k].node = kNone;
  const std::vector<ValueId> operands(graph.inputs(node).begin(), graph.inputs(node).end());
  for (ValueId operand : operands) --info[operand].readers;
  for (std::size_t i = operands.size(); i-- > 0;)
    if (operands[i] < graph.value_count()) collect(operands[i]);
}

void Recorder::trim() noexcept {
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
  constexpr std::int64_t kFew = 1024;
  const bool nodes = dead_nodes > kFew && dead_nodes > 3 * (graph.node_count() - dead_nodes);
  const bool values = dead_values > kFew && dead_values > 3 * (graph.value_count() - dead_values);
  if ((nodes || values) && regions.empty()) compact();
}

// Renumbers values and nodes, so that only live ones remain. Bound tensors refer to slots, which keep their numbers.
void Recorder::compact() {
  std::vector<ValueId> moved(info.size(), kNone);
  std::vector<NodeId> moved_nodes(notes.size(), kNone);
  Graph packed;
  std::vector<TapeValue> packed_info;
  std::vector<NodeInfo> packed_notes;
  std::vector<Outside> packed_outside;
  auto take_value = [&](ValueId v) {
    moved[v] = static_cast<ValueId>(packed_info.size());
    packed_info.push_back(info[v]);
    TapeValue& value = packed_info.back();
    auto follow = [&](ValueId& id) { id = id == kNone ? kNone : moved[id]; };
    follow(value.parent);
    follow(value.through);
    if (value.outside == kNone) return;
    Outside& o = outside[value.outside];
    value.outside = static_cast<std::int32_t>(packed_outside.size());
    packed_outside.push_back(std::move(o));
    packed_outside.back().first = packed_outside.back().last = moved[v];
  };
  ValueId next = 0;
  auto take_outside_before = [&](ValueId end) {
    for (; next < end; ++next)
      if (!info[next].dead && graph.values[next].node == kNone) {
        packed.values.push_back(graph.values[next]);
        take_value(next);
      }
  };
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[n];
    take_outside_before(node.first_output);
    if (notes[n].dead) continue;
    std::vector<ValueId> in;
    for (ValueId v : graph.inputs(node)) in.push_back(moved[v]);
    moved_nodes[n] = packed.add_node(*node.op, in, graph.attributes(node), graph.output_types(node), node.origin, {},
                                     graph.regions_of(node));
    for (std::int32_t k = 0; k < node.n_outputs; ++k) take_value(node.first_output + k);
    packed_notes.push_back(std::move(notes[n]));
    NodeId& twin = packed_notes.back().twin;
    if (twin != kNone) twin = moved_nodes[twin];
  }
  take_outside_before(static_cast<ValueId>(info.size()));
  for (ValueId& v : slots_)
    if (v != kNone && static_cast<std::size_t>(v) < moved.size()) v = moved[v];
  std::unordered_map<ValueId, std::vector<GradHook>> packed_hooks;
  for (auto& [v, list] : hooks) packed_hooks[moved[v]] = std::move(list);
  graph = std::move(packed);
  info = std::move(packed_info);
  notes = std::move(packed_notes);
  outside = std::move(packed_outside);
  hooks = std::move(packed_hooks);
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
