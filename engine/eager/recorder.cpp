// Records nodes, the values of tensors, and the bytes that backward keeps. recorder_collect.cpp drops nodes that are no
// longer needed.
//
//       value_of(t)    bound to this tape and not written since   ->  its value
//                      bound, but its base was written since      ->  the view is recorded again
//                      made outside                               ->  a new value without a node
#include <tapedeck/engine/eager/draw_path.h>
#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/ir/core_ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace tapedeck {

using detail::TensorImpl;

namespace {
// Returns a serial number that is unique in the process. Each thread takes numbers in blocks.
std::uint64_t next_serial() {
  constexpr std::uint64_t kBlock = 1 << 20;
  static std::atomic<std::uint64_t> blocks{0};
  constinit thread_local static std::uint64_t next = 0, end = 0;
  if (next == end) {
    next = blocks.fetch_add(1) * kBlock + 1;
    end = next + kBlock;
  }
  return next++;
}
}  // namespace

namespace {

// Apart from their callers, which run for every op.
[[gnu::cold, gnu::noinline]] void refuse_unknown_write(const Recorder& tape, const TensorImpl& t, Site site) {
  refuse_in_capture(tape,
                    error_text("capture",
                               fmt::format("reads {} after its bytes were written at {}:{} without the capture's knowledge",
                                           to_string(t.type()), t.storage->written_at.file, t.storage->written_at.line),
                               site));
}

[[gnu::cold, gnu::noinline]] void refuse_modified(const Recorder& tape, const TensorImpl& t, Site site) {
  refuse_in_capture(
      tape, error_text("capture", fmt::format("reads {} after it was modified behind the capture's back", to_string(t.type())),
                       site));
}

}  // namespace

RecordWatch*& watch_of_captures() {
  static thread_local RecordWatch* watch = nullptr;
  return watch;
}

Recorder::Recorder(bool for_capture) : capturing(for_capture), serial(next_serial()) {}

Recorder::~Recorder() { clear(); }

void Recorder::clear() {
  for (TapeValue& v : info)
    if (v.saved) detail::release(std::exchange(v.saved, nullptr));
  gone_.swap(outside);  // dropped at the end: that may call this recorder, which must be empty by then
  if (!outside_of_.empty()) outside_of_.clear();
  std::vector<Tensor>().swap(spare_gradients);
  mapped_ = 0;
  serial = next_serial();
  live = dead_nodes = dead_values = 0;
  graph.clear_body();
  info.clear();
  gone_notes_.swap(notes);
  strides.clear();
  regions.clear();
  slots_.clear();
  free_slots_.clear();
  pending_.clear();
  if (!hooks.empty()) hooks.clear();
  gone_.clear();
  gone_notes_.clear();
}

// Finds the latest entry of a tensor in `outside`, or null. An eager tape adds another entry for a leaf when it reads the leaf
// again after a write in place. A capture has one entry for each tensor. A few entries are searched one by one; many are found
// by a map.
const Outside* Recorder::find_outside(const TensorImpl* t) const {
  constexpr std::size_t kFew = 8;
  if (outside.size() <= kFew) {
    for (std::size_t k = outside.size(); k-- > 0;)
      if (outside[k].tensor.impl() == t) return &outside[k];
    return nullptr;
  }
  for (; mapped_ < outside.size(); ++mapped_) outside_of_[outside[mapped_].tensor.impl()] = static_cast<std::int32_t>(mapped_);
  auto it = outside_of_.find(t);
  return it == outside_of_.end() ? nullptr : &outside[it->second];
}

// Whether a tensor that is not bound to this tape is a view of a tensor that this tape tracks.
bool Recorder::linked_into_tape(const TensorImpl& t) const {
  if (!t.link) return false;
  const TensorImpl& parent = *t.link->parent;
  if (capturing) return owns(parent) || find_outside(&parent) || linked_into_tape(parent);
  return t.link->tracked && ((owns(parent) && needs_grad(parent)) || linked_into_tape(parent));
}

bool Recorder::needs_grad(const TensorImpl& t) const {
  if (owns(t)) {
    const TapeValue& value = info[bound_value(t)];
    if (value.cut) return false;
    if (value.needs_grad) return true;
    // The base may have been written since the view was made.
    return t.link && t.link->tracked && owns(*t.link->parent) && needs_grad(*t.link->parent);
  }
  if (nested) return is_floating(t.dtype);
  if (t.requires_grad) return t.request != GradRequest::none;
  return t.link && t.link->tracked && linked_into_tape(t) && needs_grad(*t.link->parent);
}

// The tape has several lists of the same length. An allocation that fails must not leave one longer than the others, so all
// make room before the first of them grows.
void Recorder::make_entries_fit(std::size_t nodes, std::size_t values) {
  make_room(graph.values, values);
  make_room(info, values);
  make_room(notes, nodes);
  make_room(slots_, values);
  make_room(free_slots_, slots_.size() + values - free_slots_.size());
}

ValueId Recorder::add_outside_value(const TensorImpl& t) {
  make_entries_fit(0, 1);
  Value value;
  value.type = t.type();
  graph.values.push_back(value);
  add_info(t);
  return graph.value_count() - 1;
}

void Recorder::add_info(const TensorImpl& t) {
  TapeValue& v = info.emplace_back();
  v.version = t.storage ? t.storage->version : 0;
}

// Whether a bound tensor's memory still holds value v, that is, whether its bytes were not written through another tensor.
bool Recorder::current(const TensorImpl& t, ValueId v, Site site) {
  const TapeValue& value = info[v];
  if (t.storage) return t.storage->version == value.version;
  return !t.link || value.parent == kNone || value_of(t.link->parent, site) == value.parent;
}

// Makes a new value for a bound tensor whose bytes were written through another tensor. If the tensor is a view, the view of
// its base is recorded again.
ValueId Recorder::take_again(TensorImpl* t, Site site) {
  if (t->link && (owns(*t->link->parent) || find_outside(t->link->parent) || t->link->parent->requires_grad ||
                  linked_into_tape(*t->link->parent))) {
    const detail::ViewLink& link = *t->link;
    const ValueId parent = value_of(link.parent, site);
    const Type type = t->type();
    const bool needs = link.tracked && info[parent].needs_grad && !link.op->is(kNoGradient);
    make_entries_fit(1, 1);
    Origin origin;
    origin.phase = thread_state().phase;
    origin.path = thread_state().path;
    const NodeId n = graph.add_node(*link.op, {&parent, 1}, link.op->attrs ? link.attrs : nullptr, {&type, 1}, origin);
    ++info[parent].readers;
    notes.emplace_back().site = site;
    add_info(*t);
    info.back().needs_grad = needs;
    info.back().parent = parent;
    const ValueId v = graph.nodes[n].first_output;
    rebind(t, v);
    return v;
  }
  if (capturing) [[unlikely]]
    refuse_unknown_write(*this, *t, site);
  const ValueId old = bound_value(*t);
  const Type type = t->type();
  make_entries_fit(1, 1);
  graph.add_node(ops::alias, {&old, 1}, nullptr, {&type, 1});
  ++info[old].readers;
  notes.emplace_back().site = site;
  add_info(*t);
  info.back().needs_grad = info[old].needs_grad;
  const ValueId v = graph.value_count() - 1;
  rebind(t, v);
  return v;
}

ValueId Recorder::value_of(TensorImpl* t, Site site) {
  if (owns(*t)) {
    const ValueId v = bound_value(*t);
    return current(*t, v, site) ? v : take_again(t, site);
  }
  const ThreadState& state = thread_state();
  if (capturing && !nested && state.own && state.own->owns(*t) && state.own->needs_grad(*t) && state.grad_enabled &&
      !passes_everything(*this))
    throw CaptureError(
        error_text("capture",
                   fmt::format("reads {}, whose gradient history began before the capture; detach() it or make it inside",
                               to_string(t->type())),
                   site));
  // In a region, a tensor that is bound to the tape around the region is an operand of the region. So no view of its base is
  // recorded.
  const bool of_another = nested && t->tape != 0;
  if (!of_another && !(capturing && find_outside(t)) && linked_into_tape(*t)) return take_again(t, site);
  return declare(t, site);
}

ValueId Recorder::declare(TensorImpl* t, Site site) {
  // The tensor may already have a value: a leaf must have one place for its gradient, and a capture must know its inputs and
  // state.
  if (capturing || t->requires_grad) {
    if (const Outside* known = find_outside(t)) {
      const Outside& o = *known;
      const TapeValue& v = info[o.last];
      if (t->storage && t->storage->version != v.version) {
        if (capturing) [[unlikely]]
          refuse_modified(*this, *t, site);
      } else if (capturing || v.needs_grad == t->requires_grad) {  // otherwise the user has switched requires_grad since
        return o.last;
      }
    }
  }
  make_room(outside, 1);
  const ValueId v = add_outside_value(*t);
  info.back().needs_grad = nested ? is_floating(t->dtype) : t->requires_grad && t->request != GradRequest::none;
  if (capturing || t->requires_grad) {
    info.back().outside = static_cast<std::int32_t>(outside.size());
    detail::retain(t);
    outside.push_back({Tensor(t), v, v, site, graph.node_count()});
  }
  return v;
}

void Recorder::keep(ValueId v, const TensorImpl& t) {
  TapeValue& value = info[v];
  ++value.saves;
  if (value.saved || !t.storage) return;
  detail::retain(t.storage);
  value.saved = t.storage;
  value.offset = t.offset;
  if (!detail::is_dense(t.shape, t.strides)) {
    value.strides = static_cast<std::int32_t>(strides.size());
    strides.insert(strides.end(), t.strides, t.strides + t.shape.rank);
  }
}

void Recorder::keep_instead(ValueId v, const TensorImpl& copy) {
  TapeValue& value = info[v];
  if (!value.saved) return;
  detail::retain(copy.storage);
  detail::release(std::exchange(value.saved, copy.storage));
  value.offset = 0;
  value.strides = kNone;
  value.version = copy.storage->version;
}

void Recorder::release_one(ValueId v) {
  TapeValue& value = info[v];
  if (value.saves == 0 || --value.saves > 0) return;
  if (!value.saved) return;
  detail::release(std::exchange(value.saved, nullptr));
}

bool Recorder::carries_gradient(NodeId n) const {
  const Node& node = graph.nodes[n];
  for (ValueId y = node.first_output; y < node.first_output + node.n_outputs; ++y)
    if (info[y].needs_grad) return true;
  return false;
}

// Whether a node of the checkpoint region made the value, and gradients flow through that node.
bool Recorder::made_inside(std::int32_t region, ValueId v) const {
  const NodeId maker = graph.values[v].node;
  return maker != kNone && graph.nodes[maker].origin.region == region && carries_gradient(maker);
}

// The attributes of a draw with a path of their own (draw_path.h). The tape of a capture becomes a graph, so its paths are
// interned. On an eager tape the path lives as long as the node.
class Recorder::OwnedPath {
 public:
  OwnedPath(const Op& op, const void* attrs, bool interned) : attrs_(attrs) {
    const Field* field = draw_path_field(op);
    if (!field) return;
    bytes_.assign(static_cast<const unsigned char*>(attrs), static_cast<const unsigned char*>(attrs) + op.attrs->size);
    attrs_ = bytes_.data();
    const Name given = draw_path(*field, bytes_.data());
    if (!interned) {
      extra_ = std::make_unique<NodeExtra>();
      extra_->path = given.str();
    }
    set_draw_path(*field, bytes_.data(), interned ? Name(given.view()) : borrowed_name(extra_->path));
  }
  const void* attrs() const { return attrs_; }
  std::unique_ptr<NodeExtra> take_text() { return std::move(extra_); }

 private:
  const void* attrs_;
  std::vector<unsigned char> bytes_;
  std::unique_ptr<NodeExtra> extra_;
};

NodeId Recorder::record(const Op& op, std::span<TensorImpl* const> in, const void* attrs, std::span<TensorImpl* const> out,
                        bool needs, const Derived* derived, Site site, std::span<const Region> node_regions) {
  const ThreadState& state = thread_state();
  constexpr std::size_t kFew = 8;
  ValueId few[kFew];
  std::vector<ValueId> many(in.size() > kFew ? in.size() : 0);
  ValueId* ids = in.size() > kFew ? many.data() : few;
  for (std::size_t i = 0; i < in.size(); ++i) ids[i] = value_of(in[i], site);

  Type few_types[kFew];
  std::vector<Type> many_types(out.size() > kFew ? out.size() : 0);
  Type* types = out.size() > kFew ? many_types.data() : few_types;
  for (std::size_t i = 0; i < out.size(); ++i) types[i] = out[i]->type();
  Origin origin;
  origin.phase = state.phase;
  origin.path = state.path;
  origin.region = state.region;
  OwnedPath path(op, attrs, capturing);
  make_entries_fit(1, out.size());
  make_room(strides, (in.size() + out.size()) * kMaxRank);
  const NodeId n = graph.add_node(op, {ids, in.size()}, path.attrs(), {types, out.size()}, origin, {}, node_regions);
  for (std::size_t i = 0; i < in.size(); ++i) ++info[ids[i]].readers;
  // Inside a vjp, the site is the user's call in the forward pass. Inside a module, the site is the call of the module.
  NodeInfo& note = notes.emplace_back();
  note.site = state.twin != kNone ? notes[state.twin].site : state.site.line ? state.site : site;
  note.twin = state.twin;
  note.derived = derived;
  note.extra = path.take_text();

  const SaveMask saves = note.saves();
  const bool in_region = state.region != kNone;
  for (std::size_t i = 0; i < in.size(); ++i) {
    // A checkpoint region keeps every value that it reads from outside, and no value that it makes. Nodes that need no
    // gradient count as outside: eager code does not record them, and a capture records them but keeps their results like
    // values from outside.
    const bool wanted = saves & operand_bit(i);
    if (in_region ? (needs && !made_inside(state.region, ids[i])) : wanted) keep(ids[i], *in[i]);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    TensorImpl* t = out[i];
    const ValueId v = graph.nodes.back().first_output + static_cast<ValueId>(i);
    add_info(*t);
    TapeValue& value = info.back();
    value.needs_grad = needs && is_floating(t->dtype);
    if (op.view) value.parent = ids[0];
    bind(t, v);
    if ((saves & result_bit(i)) && !in_region) keep(v, *t);
  }
  if (in_region) regions[state.region].last = n + 1;
  if (watch) watch->recorded(*this, n);
  return n;
}

void Recorder::note_grad(TensorImpl* leaf, bool cleared) {
  if (owns(*leaf)) return;
  make_room(grad_events, 1);
  if (!grad_event_of_.emplace(leaf, static_cast<std::int32_t>(grad_events.size())).second) return;
  detail::retain(leaf);
  grad_events.push_back({Tensor(leaf), leaf->extra ? leaf->extra->grad : Tensor(), cleared});
}

void Recorder::bind(TensorImpl* t, ValueId v) {
  if (free_slots_.empty()) {
    t->slot = static_cast<std::int32_t>(slots_.size());
    slots_.push_back(v);
  } else {
    t->slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[t->slot] = v;
  }
  t->tape = serial;
  ++info[v].handles;
  ++live;
}

void Recorder::rebind(TensorImpl* t, ValueId v) {
  TapeValue& value = info[v];
  if (t->storage) value.version = t->storage->version;
  if (!owns(*t)) {
    if (const Outside* known = capturing ? find_outside(t) : nullptr) {
      const auto k = static_cast<std::size_t>(known - outside.data());
      value.outside = static_cast<std::int32_t>(k);
      outside[k].last = v;
      return;
    }
    return bind(t, v);
  }
  const ValueId old = bound_value(*t);
  slots_[t->slot] = v;
  ++value.handles;
  --info[old].handles;
  collect(old);
}

}  // namespace tapedeck
