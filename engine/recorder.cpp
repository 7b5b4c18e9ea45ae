#include <tapedeck/engine/recorder.h>
#include <tapedeck/engine/tape.h>
#include <tapedeck/engine/vjp.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>

namespace tapedeck {

using detail::TensorImpl;

namespace {
// Unique in the process: each thread takes them in blocks.
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

Recorder::Recorder(bool for_capture) : capturing(for_capture), serial(next_serial()) {}

Recorder::~Recorder() { clear(); }

void Recorder::clear() {
  for (TapeValue& v : info)
    if (v.saved) detail::release(std::exchange(v.saved, nullptr));
  gone_.swap(outside);  // dropping these may come back to us: be empty first
  if (!outside_of_.empty()) outside_of_.clear();
  mapped_ = 0;
  serial = next_serial();
  live = 0;
  graph.clear_body();
  info.clear();
  sites.clear();
  twins.clear();
  masks.clear();
  released.clear();
  strides.clear();
  regions.clear();
  gone_.clear();
}

// A few outside tensors are found by looking at each, more through a map. A leaf that was updated in place since it was read stands
// here again; the latest counts.
const Outside* Recorder::find_outside(const TensorImpl* t) const {
  constexpr std::size_t kFew = 8;
  if (outside.size() <= kFew) {
    for (std::size_t k = outside.size(); k-- > 0;)
      if (outside[k].tensor.impl() == t) return &outside[k];
    return nullptr;
  }
  for (; mapped_ < outside.size(); ++mapped_) outside_of_[outside[mapped_].tensor.impl()] = static_cast<std::int32_t>(mapped_);
  auto it = outside_of_.find(t);
  return it == outside_of_.end() ? nullptr : &outside[static_cast<std::size_t>(it->second)];
}

bool Recorder::needs_grad(const TensorImpl& t) const {
  return owns(t) ? info[static_cast<std::size_t>(t.value)].needs_grad : t.requires_grad;
}

ValueId Recorder::add_outside_value(const TensorImpl& t) {
  Value value;
  value.type = t.type();
  graph.values.push_back(value);
  add_info(t);
  return graph.value_count() - 1;
}

void Recorder::add_info(const TensorImpl& t) {
  TapeValue v;
  v.version = t.storage ? t.storage->version : 0;
  info.push_back(v);
}

ValueId Recorder::value_of(TensorImpl* t, Site site) {
  if (owns(*t)) {
    const TapeValue& v = info[static_cast<std::size_t>(t->value)];
    if (capturing && t->storage && t->storage->version != v.version)
      throw CaptureError(error_text("capture", fmt::format("reads a view of {} whose base was modified in place at {}:{}; take the view again",
                                                           to_string(t->type()), t->storage->written_at.file, t->storage->written_at.line), site));
    return t->value;
  }
  if (capturing && thread_state().own && thread_state().own->owns(*t) && thread_state().own->needs_grad(*t) && thread_state().grad_enabled)
    throw CaptureError(error_text("capture", fmt::format("reads {}, whose gradient history began before the capture; detach() it or make it inside",
                                                         to_string(t->type())), site));
  // Seen before? Leaves collect their gradient in one place, and a capture must know its inputs and state.
  if (capturing || t->requires_grad) {
    if (const Outside* known = find_outside(t)) {
      const Outside& o = *known;
      const TapeValue& v = info[static_cast<std::size_t>(o.last)];
      if (t->storage && t->storage->version != v.version) {
        if (capturing)
          throw CaptureError(error_text("capture", fmt::format("reads {} after it was modified behind the capture's back", to_string(t->type())), site));
      } else if (capturing || v.needs_grad == t->requires_grad) {  // else the user has switched it since
        return o.last;
      }
    }
  }
  const ValueId v = add_outside_value(*t);
  info.back().needs_grad = t->requires_grad;
  if (capturing || t->requires_grad) {
    info.back().outside = static_cast<std::int32_t>(outside.size());
    detail::retain(t);
    outside.push_back({Tensor(t), v, v, site, graph.node_count()});
  }
  return v;
}

void Recorder::keep(ValueId v, const TensorImpl& t) {
  TapeValue& value = info[static_cast<std::size_t>(v)];
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

void Recorder::release_one(ValueId v) {
  TapeValue& value = info[static_cast<std::size_t>(v)];
  if (value.saves == 0 || --value.saves > 0) return;
  if (!value.saved) return;
  detail::release(std::exchange(value.saved, nullptr));
}

bool Recorder::made_in_open_region(ValueId v) const {
  const NodeId node = graph.values[static_cast<std::size_t>(v)].node;
  return node != kNone && graph.nodes[static_cast<std::size_t>(node)].origin.region == thread_state().region;
}

NodeId Recorder::record(const Op& op, std::span<TensorImpl* const> in, const void* attrs, std::span<TensorImpl* const> out,
                        bool needs, SaveMask saves, Site site) {
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
  const NodeId n = graph.add_node(op, {ids, in.size()}, attrs, {types, out.size()}, origin);
  // Inside a vjp the user's call is the forward one, inside a module the call of the module.
  sites.push_back(state.twin != kNone ? sites[static_cast<std::size_t>(state.twin)] : state.site.line ? state.site : site);
  twins.push_back(state.twin);
  masks.push_back(saves);
  released.push_back(false);

  const bool in_region = state.region != kNone;
  for (std::size_t i = 0; i < in.size(); ++i) {
    // A region keeps everything it reads from outside, and nothing that it makes itself. A capture records also nodes that need no
    // gradient; what those read is kept too, because recomputing the others needs their results.
    const bool wanted = i < 32 && ((saves >> i) & 1);
    if (in_region ? ((needs || capturing) && !made_in_open_region(ids[i])) : wanted) keep(ids[i], *in[i]);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    TensorImpl* t = out[i];
    const ValueId v = graph.nodes.back().first_output + static_cast<ValueId>(i);
    add_info(*t);
    info.back().needs_grad = needs && is_floating(t->dtype);
    t->tape = serial;
    t->value = v;
    ++live;
    if (i < 32 && ((saves >> (32 + i)) & 1) && !in_region) keep(v, *t);
  }
  if (in_region) {
    Region& region = regions[static_cast<std::size_t>(state.region)];
    region.last = n + 1;
  }
  return n;
}

void Recorder::rebind(TensorImpl* t, ValueId v) {
  if (t->storage) info[static_cast<std::size_t>(v)].version = t->storage->version;
  if (const Outside* known = find_outside(t)) {
    const auto k = static_cast<std::size_t>(known - outside.data());
    info[static_cast<std::size_t>(v)].outside = static_cast<std::int32_t>(k);
    outside[k].last = v;
    return;
  }
  t->value = v;
}

void Recorder::dropped(TensorImpl&) noexcept {
  if (--live == 0 && busy == 0 && !capturing) clear();
}

// ---- thread state ----

namespace {
thread_local ThreadState* current_state = nullptr;
thread_local bool state_gone = false;
struct StateOwner {
  ~StateOwner() {
    ThreadState* state = current_state;
    if (state) {
      state->rng = Tensor();
      if (state->own) state->own->busy = 1;
    }
    current_state = nullptr;
    state_gone = true;
    delete state;
  }
};
}  // namespace

ThreadState::ThreadState() : own(std::make_unique<Recorder>(false)) { tape = own.get(); }
ThreadState::~ThreadState() = default;

ThreadState& thread_state() {
  if (!current_state) {
    static thread_local StateOwner owner;
    (void)owner;
    current_state = new ThreadState;
  }
  return *current_state;
}

ThreadState* thread_state_if_any() noexcept { return current_state; }

Name next_draw_path() {
  ThreadState& state = thread_state();
  const std::int32_t k = state.draws[state.path.id()]++;
  return Name(fmt::format("{}#{}", state.path.view(), k));
}

// ---- the save set ----

namespace {

// Runs the vjp on abstract tensors, on a tape of its own, and sees which operands and results its pieces depend on.
SaveMask trace_saves(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs, std::uint32_t need) {
  ThreadState& state = thread_state();
  Recorder scratch(true);
  Scoped<Recorder*> tape(state.tape, &scratch);
  Scoped<bool> abstract(state.abstract, true), no_grad(state.grad_enabled, false);
  Scoped<std::int32_t> region(state.region, kNone);
  Vjp vjp;
  vjp.attrs = attrs;
  for (const Type& t : inputs) vjp.xs.push_back(abstract_tensor(t));
  for (const Type& t : outputs) vjp.ys.push_back(abstract_tensor(t));
  for (const Type& t : outputs) vjp.dys.push_back(abstract_tensor(t));
  vjp.dxs.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) vjp.need.push_back((need >> std::min<std::size_t>(i, 31)) & 1);
  std::vector<ValueId> xs, ys;
  for (const Tensor& x : vjp.xs) xs.push_back(scratch.value_of(x.impl(), {}));
  for (const Tensor& y : vjp.ys) ys.push_back(scratch.value_of(y.impl(), {}));
  op.vjp(vjp);
  std::vector<bool> read(scratch.graph.values.size());
  for (const Tensor& piece : vjp.dxs)
    if (piece.defined()) read[static_cast<std::size_t>(scratch.value_of(piece.impl(), {}))] = true;
  for (NodeId n = scratch.graph.node_count() - 1; n >= 0; --n) {
    const Node& node = scratch.graph.nodes[static_cast<std::size_t>(n)];
    bool wanted = false;
    for (std::int32_t k = 0; k < node.n_outputs; ++k) wanted = wanted || read[static_cast<std::size_t>(node.first_output + k)];
    if (wanted)
      for (ValueId v : scratch.graph.inputs(node)) read[static_cast<std::size_t>(v)] = true;
  }
  SaveMask saves = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (!read[static_cast<std::size_t>(xs[i])]) continue;
    if (i >= 32) throw GradientError(error_text(op.name, "the gradient reads more than 32 operands", {}));
    saves |= SaveMask{1} << i;
  }
  for (std::size_t i = 0; i < ys.size() && i < 32; ++i)
    if (read[static_cast<std::size_t>(ys[i])]) saves |= SaveMask{1} << (32 + i);
  return saves;
}

void append(std::string& key, const void* data, std::size_t bytes) { key.append(static_cast<const char*>(data), bytes); }

void append(std::string& key, const Type& t) {
  key.push_back(static_cast<char>(t.dtype));
  key.push_back(static_cast<char>(t.shape.rank));
  append(key, t.shape.sizes, static_cast<std::size_t>(t.shape.rank) * sizeof(std::int64_t));
}

}  // namespace

SaveMask derived_saves(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs, std::uint32_t need) {
  static std::mutex mutex;
  static std::unordered_map<std::string, SaveMask>* cache = new std::unordered_map<std::string, SaveMask>;
  std::string key;
  append(key, &op.id, sizeof op.id);
  append(key, &need, sizeof need);
  for (const Type& t : inputs) append(key, t);
  if (op.attrs) append(key, attrs, op.attrs->size);
  {
    std::lock_guard lock(mutex);
    auto it = cache->find(key);
    if (it != cache->end()) return it->second;
  }
  const SaveMask saves = trace_saves(op, inputs, outputs, attrs, need);
  std::lock_guard lock(mutex);
  if (cache->size() > 100000) cache->clear();
  return cache->emplace(std::move(key), saves).first->second;
}

}  // namespace tapedeck
