// Scopes, randomness, and backward.
#include <tapedeck/engine/ops.h>
#include <tapedeck/engine/recorder.h>
#include <tapedeck/engine/tape.h>
#include <tapedeck/engine/vjp.h>

#include <fmt/format.h>

#include <unordered_map>

namespace tapedeck {

using detail::TensorImpl;

NoGrad::NoGrad() : before_(std::exchange(thread_state().grad_enabled, false)) {}
NoGrad::~NoGrad() { thread_state().grad_enabled = before_; }

AbstractMode::AbstractMode(bool on) : before_(std::exchange(thread_state().abstract, on)) {}
AbstractMode::~AbstractMode() { thread_state().abstract = before_; }
bool abstract_mode() { return thread_state().abstract; }

PathScope::PathScope(const std::string& name) : before_(thread_state().path) {
  thread_state().path = before_.empty() ? Name(name) : Name(before_.str() + "." + name);
}
PathScope::~PathScope() { thread_state().path = before_; }

// ---- randomness ----

namespace {
Tensor make_rng(std::uint64_t seed) {
  const std::int64_t raw[2] = {static_cast<std::int64_t>(seed), 0};
  Tensor rng = from_bytes({DType::i64, {2}}, raw);
  rng.name("rng").role(Role::rng);
  return rng;
}
constexpr std::uint64_t kDefaultSeed = 42;
}  // namespace

const Tensor& rng_state() {
  ThreadState& state = thread_state();
  if (!state.rng.defined()) state.rng = make_rng(kDefaultSeed);
  return state.rng;
}

void manual_seed(std::uint64_t seed) {
  ThreadState& state = thread_state();
  if (state.tape->capturing) throw CaptureError("[manual_seed] re-seeds inside a capture, which a replay could not repeat");
  state.draws.clear();
  if (!state.rng.defined()) {
    state.rng = make_rng(seed);
    return;
  }
  // Written in place: a captured step that holds this tensor as its state draws from the new seed too.
  auto* raw = static_cast<std::int64_t*>(state.rng.mutable_data());
  raw[0] = static_cast<std::int64_t>(seed);
  raw[1] = 0;
}

void next_step(Site site) {
  ThreadState& state = thread_state();
  const NoGrad no_grad;
  Scoped<Phase> phase(state.phase, Phase::update);
  Scoped<Name> path(state.path, Name());
  const Tensor rng[1] = {rng_state()};
  apply_in_place(ops::rng_next, rng, nullptr, site);
  state.draws.clear();
}

TapeStats tape_stats() {
  const Recorder& tape = *thread_state().tape;
  TapeStats stats;
  stats.nodes = tape.graph.node_count();
  std::unordered_map<const detail::Storage*, bool> seen;
  for (const TapeValue& v : tape.info)
    if (v.saved && !std::exchange(seen[v.saved], true)) stats.saved_bytes += v.saved->bytes;
  return stats;
}

// ---- checkpoint regions ----

Tensor checkpoint(const std::function<Tensor()>& fn) {
  ThreadState& state = thread_state();
  if (state.region != kNone) return fn();  // joins the region around it
  Recorder& tape = *state.tape;
  const auto region = static_cast<std::int32_t>(tape.regions.size());
  tape.regions.push_back({tape.graph.node_count(), tape.graph.node_count(), false});
  ++tape.busy;  // no emptying half way
  struct Done {
    Recorder& tape;
    ~Done() {
      if (--tape.busy == 0 && tape.live == 0 && !tape.capturing) tape.clear();  // every value with history is gone already
    }
  } done{tape};
  Scoped<std::int32_t> scope(state.region, region);
  return fn();
}

// ---- vjp ----

Tensor sum_to(const Tensor& t, const Shape& shape, Site site) {
  if (t.shape() == shape) return t;
  ReduceAttrs attrs;
  attrs.keepdims = false;
  const int lead = t.rank() - shape.rank;
  for (int i = 0; i < t.rank(); ++i)
    if (i < lead || (shape[i - lead] == 1 && t.shape()[i] != 1)) attrs.axes.push_back(i);
  Tensor s = attrs.axes.size ? apply(ops::sum, {&t}, &attrs, site) : t;
  return s.shape() == shape ? s : reshape(s, shape);
}

void Vjp::dx(int i, const Tensor& piece) {
  if (!needs(i)) return;
  const auto k = static_cast<std::size_t>(i);
  const Tensor fitted = sum_to(piece, xs[k].shape(), where);
  dxs[k] = dxs[k].defined() ? add(dxs[k], fitted) : fitted;
}

// ---- backward ----

namespace {

class Backward {
 public:
  Backward(Recorder& tape, const BackwardOptions& options, Site site) : tape_(tape), options_(options), site_(site) { ++tape_.busy; }
  ~Backward() { --tape_.busy; }

  void run(const Tensor& loss);

 private:
  void visit(NodeId n);
  bool has_gradient(const Node& node) const;
  Tensor value(ValueId v, NodeId reader);
  Tensor saved(ValueId v, NodeId reader) const;
  void recompute(std::int32_t region, NodeId reader);
  void add_piece(ValueId v, const Tensor& piece);
  void release(NodeId n);
  void release_region(std::int32_t region);
  void write_leaf(ValueId v);
  std::string describe(NodeId n) const;

  Recorder& tape_;
  const BackwardOptions& options_;
  Site site_;
  std::vector<Tensor> grads_;                           // by value
  std::unordered_map<ValueId, Tensor> recomputed_;      // of the region being walked
  std::int32_t open_region_ = kNone;
};

std::string Backward::describe(NodeId n) const {
  const Site s = tape_.sites[static_cast<std::size_t>(n)];
  return fmt::format("'{}' at {}:{}", tape_.graph.nodes[static_cast<std::size_t>(n)].op->name, s.file, s.line);
}

bool Backward::has_gradient(const Node& node) const {
  for (std::int32_t k = 0; k < node.n_outputs; ++k)
    if (grads_[static_cast<std::size_t>(node.first_output + k)].defined()) return true;
  return false;
}

// The saved value as a tensor, checked against writes since.
Tensor Backward::saved(ValueId v, NodeId reader) const {
  const TapeValue& value = tape_.info[static_cast<std::size_t>(v)];
  const Type& type = tape_.graph.values[static_cast<std::size_t>(v)].type;
  if (value.saved->version != value.version) {
    const Site at = value.saved->written_at;
    throw GradientError(error_text("backward", fmt::format("{} saved for {} was modified in place at {}:{} since", to_string(type), describe(reader), at.file, at.line), site_));
  }
  detail::retain(value.saved);
  TensorImpl* t = detail::new_impl(type, value.saved);
  t->offset = value.offset;
  if (value.strides != kNone) std::copy_n(tape_.strides.data() + value.strides, type.shape.rank, t->strides);
  return Tensor(t);
}

// A value that backward reads. In a capture the tensor must be known as that value, so that the recorded node reads it.
Tensor Backward::value(ValueId v, NodeId reader) {
  const TapeValue& value = tape_.info[static_cast<std::size_t>(v)];
  Tensor t;
  if (value.saved) {
    t = saved(v, reader);
  } else {
    const Value& known = tape_.graph.values[static_cast<std::size_t>(v)];
    const std::int32_t region = known.node == kNone ? kNone : tape_.graph.nodes[static_cast<std::size_t>(known.node)].origin.region;
    if (thread_state().abstract || value.saves > 0) {
      t = abstract_tensor(known.type);  // abstract execution saves nothing but the name
    } else if (region != kNone) {
      if (open_region_ != region) recompute(region, reader);
      auto it = recomputed_.find(v);
      // Absent only where the region read something abstract.
      t = it == recomputed_.end() ? abstract_tensor(known.type) : Tensor(detail::new_view(*it->second.impl(), it->second.shape(), 0, it->second.strides()));
    } else {
      throw GradientError(error_text("backward", fmt::format("what {} saved was freed by an earlier backward; call that with retain", describe(reader)), site_));
    }
  }
  if (tape_.capturing) {
    t.impl()->tape = tape_.serial;
    t.impl()->value = v;
    ++tape_.live;
  }
  return t;
}

// Runs the region's nodes again, unrecorded, from what the region read.
void Backward::recompute(std::int32_t region, NodeId reader) {
  recomputed_.clear();
  open_region_ = region;
  const Region range = tape_.regions[static_cast<std::size_t>(region)];
  for (NodeId n = range.first; n < range.last; ++n) {
    const Node& node = tape_.graph.nodes[static_cast<std::size_t>(n)];
    if (node.origin.region != region) continue;
    std::vector<Tensor> inputs;
    bool available = true;
    for (ValueId v : tape_.graph.inputs(node)) {
      auto it = recomputed_.find(v);
      if (it != recomputed_.end()) inputs.push_back(it->second);
      else if (tape_.info[static_cast<std::size_t>(v)].saved) inputs.push_back(saved(v, reader));
      else available = false;
    }
    if (!available) continue;  // a branch that needs no gradient, and so was not kept
    const std::vector<Tensor> outputs = execute(*node.op, inputs, tape_.graph.attributes(node), tape_.graph.output_types(node), tape_.sites[static_cast<std::size_t>(n)]);
    for (std::size_t k = 0; k < outputs.size(); ++k) recomputed_[node.first_output + static_cast<ValueId>(k)] = outputs[k];
  }
}

void Backward::add_piece(ValueId v, const Tensor& piece) {
  Tensor& g = grads_[static_cast<std::size_t>(v)];
  g = g.defined() ? add(g, piece) : piece;
}

void Backward::visit(NodeId n) {
  const Node node = tape_.graph.nodes[static_cast<std::size_t>(n)];  // a copy: recording moves the pool
  if (!has_gradient(node)) return;
  if (tape_.released[static_cast<std::size_t>(n)])
    throw GradientError(error_text("backward", fmt::format("what {} saved was freed by an earlier backward; call that with retain", describe(n)), site_));
  if (!node.op->vjp) throw GradientError(error_text("backward", fmt::format("{} has no gradient", describe(n)), site_));
  const std::vector<ValueId> inputs(tape_.graph.inputs(node).begin(), tape_.graph.inputs(node).end());
  const SaveMask saves = tape_.masks[static_cast<std::size_t>(n)];
  Vjp vjp;
  std::vector<unsigned char> attrs;
  if (node.op->attrs) {
    const auto* from = static_cast<const unsigned char*>(tape_.graph.attributes(node));
    attrs.assign(from, from + node.op->attrs->size);
    vjp.attrs = attrs.data();
  }
  vjp.where = tape_.sites[static_cast<std::size_t>(n)];
  auto operand = [&](ValueId v, bool read) { return read ? value(v, n) : abstract_tensor(tape_.graph.values[static_cast<std::size_t>(v)].type); };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    vjp.xs.push_back(operand(inputs[i], i < 32 && ((saves >> i) & 1)));
    vjp.need.push_back(tape_.info[static_cast<std::size_t>(inputs[i])].needs_grad);
  }
  for (std::int32_t k = 0; k < node.n_outputs; ++k) {
    const ValueId v = node.first_output + k;
    vjp.ys.push_back(operand(v, k < 32 && ((saves >> (32 + k)) & 1)));
    Tensor& dy = grads_[static_cast<std::size_t>(v)];
    if (!dy.defined()) dy = full(tape_.graph.values[static_cast<std::size_t>(v)].type.shape, 0, tape_.graph.values[static_cast<std::size_t>(v)].type.dtype, vjp.where);
    vjp.dys.push_back(std::move(dy));
    dy = Tensor();
  }
  vjp.dxs.resize(inputs.size());
  {
    ThreadState& state = thread_state();
    Scoped<NodeId> twin(state.twin, n);
    Scoped<Name> path(state.path, node.origin.path);
    node.op->vjp(vjp);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (vjp.dxs[i].defined()) add_piece(inputs[i], vjp.dxs[i]);
  }
  if (!options_.retain) release(n);
}

void Backward::release(NodeId n) {
  const Node node = tape_.graph.nodes[static_cast<std::size_t>(n)];
  const SaveMask saves = tape_.masks[static_cast<std::size_t>(n)];
  tape_.released[static_cast<std::size_t>(n)] = true;
  if (node.origin.region != kNone) return;  // a region's operands go when its first node has been passed
  const auto inputs = tape_.graph.inputs(node);
  for (std::size_t i = 0; i < inputs.size() && i < 32; ++i)
    if ((saves >> i) & 1) tape_.release_one(inputs[i]);
  for (std::int32_t k = 0; k < node.n_outputs && k < 32; ++k)
    if ((saves >> (32 + k)) & 1) tape_.release_one(node.first_output + k);
}

// Frees what the region read from outside, once backward has been through all of it: another loss may still want the rest.
void Backward::release_region(std::int32_t region) {
  Region& range = tape_.regions[static_cast<std::size_t>(region)];
  auto inside = [&](NodeId n) { return n != kNone && tape_.graph.nodes[static_cast<std::size_t>(n)].origin.region == region; };
  auto needed = [&](NodeId n) {
    const Node& node = tape_.graph.nodes[static_cast<std::size_t>(n)];
    for (std::int32_t k = 0; k < node.n_outputs; ++k)
      if (tape_.info[static_cast<std::size_t>(node.first_output + k)].needs_grad) return true;
    return false;
  };
  if (range.released) return;
  for (NodeId n = range.first; n < range.last; ++n)
    if (inside(n) && needed(n) && !tape_.released[static_cast<std::size_t>(n)]) return;
  range.released = true;
  for (NodeId n = range.first; n < range.last; ++n)
    if (inside(n) && (needed(n) || tape_.capturing))
      for (ValueId v : tape_.graph.inputs(tape_.graph.nodes[static_cast<std::size_t>(n)]))
        if (!inside(tape_.graph.values[static_cast<std::size_t>(v)].node)) tape_.release_one(v);
}

void Backward::write_leaf(ValueId v) {
  const TapeValue& value = tape_.info[static_cast<std::size_t>(v)];
  Tensor& g = grads_[static_cast<std::size_t>(v)];
  if (!g.defined() || value.outside == kNone) return;
  Tensor leaf = tape_.outside[static_cast<std::size_t>(value.outside)].tensor;
  const Tensor old = leaf.grad();
  if (old.defined() && tape_.capturing && !tape_.owns(*old.impl()))
    throw CaptureError(error_text("backward", fmt::format("the gradient of '{}' was begun before the capture; call zero_grad() first", leaf.name().view()), site_));
  leaf.set_grad(old.defined() ? add(old, g) : g);
}

void Backward::run(const Tensor& loss) {
  const ValueId last = loss.impl()->value;
  grads_.resize(tape_.graph.values.size());
  ThreadState& state = thread_state();
  Scoped<bool> no_grad(state.grad_enabled, false);
  Scoped<Phase> phase(state.phase, Phase::backward);
  Scoped<std::int32_t> region(state.region, kNone);
  grads_[static_cast<std::size_t>(last)] = options_.head.defined() ? options_.head : full(loss.shape(), 1, loss.dtype(), site_);
  const ValueId n_values = static_cast<ValueId>(grads_.size());
  for (NodeId n = tape_.graph.values[static_cast<std::size_t>(last)].node; n >= 0; --n) {
    visit(n);
    const std::int32_t r = tape_.graph.nodes[static_cast<std::size_t>(n)].origin.region;
    if (r != kNone && tape_.regions[static_cast<std::size_t>(r)].first == n) {
      if (open_region_ == r) {
        recomputed_.clear();
        open_region_ = kNone;
      }
      if (!options_.retain) release_region(r);
    }
  }
  for (ValueId v = 0; v < n_values; ++v)
    if (tape_.graph.values[static_cast<std::size_t>(v)].node == kNone) write_leaf(v);
}

}  // namespace

void backward(const Tensor& loss, const BackwardOptions& options, Site site) {
  if (!loss.defined()) throw GradientError(error_text("backward", "the loss is undefined", site));
  Recorder& tape = *thread_state().tape;
  if (!tape.owns(*loss.impl()) || !tape.needs_grad(*loss.impl()))
    throw GradientError(error_text("backward", fmt::format("{} has no gradient history on this thread's tape", to_string(loss.type())), site));
  if (options.head.defined() && options.head.type() != loss.type())
    throw TypeError(error_text("backward", fmt::format("the head gradient {} does not fit {}", to_string(options.head.type()), to_string(loss.type())), site));
  if (!options.head.defined() && loss.numel() != 1)
    throw GradientError(error_text("backward", fmt::format("{} is not a scalar; give a head gradient", to_string(loss.type())), site));
  Backward(tape, options, site).run(loss);
}

}  // namespace tapedeck
