// Backward walks over the tape in reverse, calls the vjp of each node, and adds up the gradients (backward_walk.h):
//
//       tape        %h = matmul(%x, %w)     %y = relu(%h)     %l = sum(%y)
//       the walk    dl = 1  ->  vjp of sum gives dy  ->  vjp of relu gives dh  ->  vjp of matmul gives dx and dw
//
// A vjp reads values that the tape has saved, or values that a checkpoint region recomputes.
#include <tapedeck/engine/eager/core_calls.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/gradient/backward_walk.h>
#include <tapedeck/engine/gradient/fresh_gradient.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/interruption.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

using detail::TensorImpl;

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

void Vjp::dx_window(int i, const Tensor& piece, const SliceAttrs& window) {
  if (needs(i)) windows.push_back({i, piece, window});
}

Tensor Vjp::take(int i) {
  const auto k = static_cast<std::size_t>(i);
  if (k >= so_far.size() || !so_far[k].defined()) return {};
  taken[k] = true;
  return std::move(so_far[k]);
}

// ---- the walk ----

BackwardWalk::BackwardWalk(Recorder& tape, bool retain, bool create_graph, Site site)
    : tape_(tape), hold_(tape), retain_(retain || create_graph), create_graph_(create_graph), site_(site) {}

BackwardWalk::BackwardWalk(Recorder& graph, std::vector<ForwardPart>* forward_parts, Site site)
    : BackwardWalk(graph, true, false, site) {
  forward_parts_ = forward_parts;
}

std::string BackwardWalk::describe(NodeId n) const {
  const Site s = tape_.notes[n].site;
  return fmt::format("'{}' at {}:{}", node(n).op->name, s.file, s.line);
}

[[noreturn]] void BackwardWalk::fail_freed(NodeId n) const {
  throw GradientError(error_text(
      "backward", fmt::format("what {} saved was freed by an earlier backward; call that with retain", describe(n)), site_));
}

[[noreturn]] void BackwardWalk::fail_without_gradient(NodeId n) const {
  if (!forward_parts_) throw GradientError(error_text("backward", fmt::format("{} has no gradient", describe(n)), site_));
  throw GradientError(
      error_text("gradient", fmt::format("{} has no gradient, in: {}", describe(n), tape_.graph.node_text(n)), site_));
}

bool BackwardWalk::has_gradient(const Node& node) const {
  for (std::int32_t k = 0; k < node.n_outputs; ++k)
    if (grads_[node.first_output + k].defined()) return true;
  return false;
}

// Whether `full` has made g with value 0. In a capture only a node of the graph counts: a tensor from outside may hold other
// bytes in a replay.
bool BackwardWalk::is_known_zeros(const Tensor& g) const {
  if (!tape_.capturing) return g.impl()->storage && g.impl()->storage->known_zeros();
  if (!tape_.owns(*g.impl())) return false;
  NodeId maker = tape_.graph.values[tape_.bound_value(*g.impl())].node;
  while (maker != kNone && node(maker).op->is(kView)) maker = tape_.graph.values[tape_.graph.inputs(node(maker))[0]].node;
  return maker != kNone && node(maker).op == &ops::full &&
         static_cast<const FullAttrs*>(tape_.graph.attributes(node(maker)))->value == 0;
}

// Whether the gradients of all results of the node are known to be zeros. Then the node needs no gradient.
bool BackwardWalk::has_only_zeros(const Node& at) const {
  for (std::int32_t k = 0; k < at.n_outputs; ++k) {
    const Tensor& g = grads_[at.first_output + k];
    if (g.defined() && !is_known_zeros(g)) return false;
  }
  return true;
}

// The saved value as a tensor. Throws if it was written after it was saved.
Tensor BackwardWalk::saved(ValueId v, NodeId reader) const {
  const TapeValue& value = info(v);
  const Type& type = type_of(v);
  if (value.saved->version != value.version) {
    const Site at = value.saved->written_at;
    throw GradientError(error_text("backward",
                                   fmt::format("{} saved for {} was modified in place at {}:{} since", to_string(type),
                                               describe(reader), at.file, at.line),
                                   site_));
  }
  detail::retain(value.saved);
  TensorImpl* t = detail::new_impl(type, value.saved);
  t->offset = value.offset;
  if (value.strides != kNone) std::copy_n(tape_.strides.data() + value.strides, type.shape.rank, t->strides);
  return Tensor(t);
}

// A value that backward reads. If backward itself is recorded, the tensor is bound to the value, so that recorded nodes read
// the value.
Tensor BackwardWalk::value(ValueId v, NodeId reader) {
  Tensor t;
  if (info(v).saved) {
    t = saved(v, reader);
  } else {
    const NodeId maker = tape_.graph.values[v].node;
    const std::int32_t region = maker == kNone ? kNone : node(maker).origin.region;
    if (thread_state().abstract || info(v).saves > 0) {
      t = abstract_tensor(type_of(v));  // abstract execution saves no data
    } else if (region != kNone) {
      const auto open = recomputed_.find(region);
      const Recomputed& again = open == recomputed_.end() ? recompute(region, reader) : open->second;
      const auto it = again.values.find(v);
      if (auto lost = again.lost.find(v); lost != again.lost.end()) saved(lost->second, reader);  // throws: overwritten
      // The value is absent only if the region read an abstract tensor.
      t = it == again.values.end() ? abstract_tensor(type_of(v))
                                   : Tensor(detail::new_view(*it->second.impl(), it->second.shape(), 0, it->second.strides()));
    } else {
      fail_freed(reader);
    }
  }
  if (tape_.capturing || create_graph_) {
    if (t.impl()->storage) tape_.info[v].version = t.impl()->storage->version;
    tape_.bind(t.impl(), v);
  }
  return t;
}

// Runs the nodes of the region again, without recording them. Only nodes that carry a gradient run. They read values from
// outside the region and results of each other. A capture also records other nodes in the region, such as the node that makes
// the new running statistics of a batch norm. Those do not run again, since their old operands have been overwritten.
const BackwardWalk::Recomputed& BackwardWalk::recompute(std::int32_t region, NodeId reader) {
  auto& [values, lost] = recomputed_[region];
  const CheckpointRegion range = tape_.regions[region];
  for (NodeId n = range.first; n < range.last; ++n) {
    const Node& at = node(n);
    if (at.origin.region != region || tape_.notes[n].dead || !tape_.carries_gradient(n) || at.op->is(kEffect))
      continue;  // an effect happens once only
    std::vector<Tensor> inputs;
    bool available = true;
    for (ValueId v : tape_.graph.inputs(at)) {
      auto it = values.find(v);
      // The region itself may have overwritten this operand (running statistics). That is an error only if backward reads a
      // value that is computed from the operand.
      const auto overwritten = info(v).saved && info(v).saved->version != info(v).version ? v : lost.count(v) ? lost[v] : kNone;
      if (it != values.end())
        inputs.push_back(it->second);
      else if (info(v).saved && overwritten == kNone)
        inputs.push_back(saved(v, reader));
      else
        available = false;
      for (std::int32_t k = 0; k < at.n_outputs && overwritten != kNone && it == values.end(); ++k)
        lost[at.first_output + k] = overwritten;
    }
    if (!available) continue;  // the operand was not kept, because no gradient needs it
    const std::vector<Tensor> outputs =
        execute(*at.op, inputs, tape_.graph.attributes(at), tape_.graph.output_types(at), tape_.notes[n].site);
    for (std::size_t k = 0; k < outputs.size(); ++k) values[at.first_output + static_cast<ValueId>(k)] = outputs[k];
  }
  return recomputed_[region];
}

// A gradient has come to v for the first time.
void BackwardWalk::reach(ValueId v) {
  reached_.push_back(v);
  const NodeId maker = tape_.graph.values[v].node;
  if (maker != kNone) to_visit_.push(maker);
}

void BackwardWalk::add_piece(ValueId v, const Tensor& piece) {
  if (!wanted(v)) return;
  settle_windows(v);
  Tensor& g = grads_[v];
  if (!g.defined()) reach(v);
  g = g.defined() ? add(g, piece) : piece;
}

// Adds the gradient of a window of v. While all pieces are windows, their sum is kept as windows. If a gradient of the whole
// value exists, the window is added to it in place.
void BackwardWalk::add_window(ValueId v, const Vjp::Window& window) {
  if (!wanted(v)) return;
  Tensor& g = grads_[v];
  if (!g.defined()) {
    auto [it, fresh] = windows_.try_emplace(v, type_of(v), site_);
    if (fresh) reach(v);
    if (it->second.add(window.piece, window.at)) return;
    settle_windows(v);
  }
  add_in_place(&g, window);
}

// Adds a window to a gradient of the whole value. It writes the bytes in place, because only the walk holds them. A gradient
// that is abstract or recorded gets a new value instead.
void BackwardWalk::add_in_place(Tensor* whole, const Vjp::Window& window) const {
  const bool pure = whole->abstract() || create_graph_;
  if (!pure) *whole = own_bytes(std::move(*whole));
  const Tensor sum = add(apply(ops::slice, {whole}, &window.at, site_), window.piece);
  const Tensor both[2] = {*whole, sum};
  if (pure)
    *whole = apply(ops::slice_assign, {&both[0], &both[1]}, &window.at, site_);
  else
    apply_in_place(ops::slice_assign, both, &window.at, site_);
}

void BackwardWalk::settle_windows(ValueId v) {
  const auto it = windows_.find(v);
  if (it == windows_.end()) return;
  ThreadState& state = thread_state();
  const NodeId maker = tape_.graph.values[v].node;
  Scoped<NodeId> twin(state.twin, maker);
  Scoped<Name> path(state.path, maker == kNone ? Name() : node(maker).origin.path);
  grads_[v] = it->second.assemble();
  windows_.erase(it);
}

// Called when the gradient of v is complete. Runs the hooks of v, and stores the gradient as the result of each request for v.
void BackwardWalk::complete(ValueId v) {
  settle_windows(v);
  Tensor& g = grads_[v];
  if (!g.defined()) return;
  if (info(v).has_hooks) {
    const std::vector<GradHook> hooks = tape_.hooks[v];
    for (const GradHook& hook : hooks) run_hook(hook, &g);
  }
  for (auto [it, end] = asked_.equal_range(v); it != end; ++it) {
    Tensor& result = results_[it->second];
    result = result.defined() ? add(result, g) : g;
  }
  if (const ValueId through = info(v).through; through != kNone) {
    add_piece(through, g);
    g = Tensor();
  }
}

void BackwardWalk::run_hook(const GradHook& hook, Tensor* g) const {
  const Tensor replaced = hook(*g);
  if (!replaced.defined()) return;
  if (replaced.type() != g->type())
    throw GradientError(error_text(
        "backward", fmt::format("a hook returned {} for a gradient of {}", to_string(replaced.type()), to_string(g->type())),
        site_));
  *g = replaced;
}

// Makes the Vjp of a node: its operands, results and gradients. If backward does not read a value, an abstract tensor takes
// the place of the value.
Vjp BackwardWalk::open(NodeId n, const std::vector<ValueId>& inputs) {
  const Node at = node(n);
  const SaveMask saves = tape_.notes[n].saves();
  Vjp vjp = std::move(spare_);
  vjp.where = tape_.notes[n].site;
  auto operand = [&](ValueId v, bool read) { return read ? value(v, n) : abstract_tensor(type_of(v)); };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    vjp.xs.push_back(operand(inputs[i], forward_parts_ || (saves & operand_bit(i))));
    vjp.need.push_back(info(inputs[i]).needs_grad);
  }
  for (std::int32_t k = 0; k < at.n_outputs; ++k) {
    const ValueId v = at.first_output + k;
    vjp.ys.push_back(operand(v, forward_parts_ || (saves & result_bit(static_cast<std::size_t>(k)))));
    Tensor& dy = grads_[v];
    const Type type = type_of(v);
    if (!dy.defined()) dy = is_floating(type.dtype) ? full(type.shape, 0, type.dtype, vjp.where) : abstract_tensor(type);
    vjp.dys.push_back(std::move(dy));
    dy = Tensor();
  }
  vjp.dxs.resize(inputs.size());
  return vjp;
}

void BackwardWalk::run_custom(const CustomBackward& backward, Vjp* vjp, NodeId n) {
  const std::size_t n_xs = vjp->xs.size() - vjp->ys.size();  // the results of the forward function follow the operands
  const std::vector<Tensor> xs(vjp->xs.begin(), vjp->xs.begin() + static_cast<std::ptrdiff_t>(n_xs));
  const std::vector<Tensor> dxs = backward(xs, vjp->ys, vjp->dys);
  if (dxs.size() != n_xs)
    throw GradientError(error_text(
        "backward",
        fmt::format("the custom gradient of {} returned {} gradients for {} operands", describe(n), dxs.size(), n_xs), site_));
  for (std::size_t i = 0; i < n_xs; ++i) {
    if (!dxs[i].defined()) continue;
    if (dxs[i].type() != xs[i].type())
      throw GradientError(error_text("backward",
                                     fmt::format("the custom gradient of {} returned {} for operand {}, which is {}",
                                                 describe(n), to_string(dxs[i].type()), i, to_string(xs[i].type())),
                                     site_));
    vjp->dx(static_cast<int>(i), dxs[i]);
  }
}

// For the gradient of a graph: runs the forward part of the node's vjp, so that its calls are recorded as nodes of the forward
// pass. Returns the values that backward keeps.
std::vector<Tensor> BackwardWalk::run_forward(NodeId n, const Vjp& vjp, const Derived& derived) {
  ThreadState& state = thread_state();
  Scoped<Phase> phase(state.phase, node(n).origin.phase);
  Scoped<NodeId> twin(state.twin, kNone);
  std::vector<TensorImpl*> in, out;
  std::uint32_t need = 0;
  for (std::size_t i = 0; i < vjp.xs.size(); ++i) {
    in.push_back(vjp.xs[i].impl());
    if (vjp.need[i]) need |= 1u << i;
  }
  for (const Tensor& y : vjp.ys) out.push_back(y.impl());
  const NodeId first = tape_.graph.node_count();
  std::vector<Tensor> kept = run_forward_part(*node(n).op, derived, in, out, vjp.attrs, need, vjp.where);
  forward_parts_->push_back({n, first, tape_.graph.node_count()});
  return kept;
}

// Runs the vjp. If it has two parts, the calls of the forward pass have run already, and the vjp takes the values that they
// kept.
void BackwardWalk::run_vjp(NodeId n, Vjp* vjp) {
  constexpr std::size_t kMask = 32;  // `need` is a mask of 32 bits, so this path is for nodes with fewer operands
  const Op& op = *node(n).op;
  const Derived* derived = tape_.notes[n].derived;
  if (forward_parts_ && vjp->xs.size() < kMask && op.n_regions == 0) {
    std::uint32_t need = 0;
    for (std::size_t i = 0; i < vjp->xs.size(); ++i)
      if (vjp->need[i]) need |= 1u << i;
    derived = &derive(op, tape_.graph.input_types(node(n)), tape_.graph.output_types(node(n)), vjp->attrs, need);
  }
  if (!derived || !derived->two_parts()) return op.vjp(*vjp);
  std::vector<Tensor> kept = forward_parts_ ? run_forward(n, *vjp, *derived) : tape_.notes[n].extra->kept;
  VjpCalls calls{*derived, kept};
  Scoped<VjpCalls*> two_parts(thread_state().calls, &calls);
  op.vjp(*vjp);
}

void BackwardWalk::offer_gradients(const std::vector<ValueId>& inputs, Vjp* vjp) {
  vjp->so_far.resize(inputs.size());
  vjp->taken.assign(inputs.size(), false);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!info(inputs[i]).needs_grad || !wanted(inputs[i]) ||
        std::count(inputs.begin() + static_cast<std::ptrdiff_t>(i), inputs.end(), inputs[i]) > 1)
      continue;
    settle_windows(inputs[i]);
    vjp->so_far[i] = grads_[inputs[i]];
  }
}

namespace {

// The device that has the bytes of a tensor; null: the host, or an abstract tensor.
EagerDevice* device_of(const Tensor& t) { return t.impl()->storage ? t.impl()->storage->device : nullptr; }

}  // namespace

// The device on which the vjp of a node makes its tensors: that of the gradients which reach it.
EagerDevice* BackwardWalk::device_of_gradients(const Node& at) const {
  for (std::int32_t k = 0; k < at.n_outputs; ++k)
    if (const Tensor& g = grads_[at.first_output + k]; g.defined() && device_of(g)) return device_of(g);
  return nullptr;
}

void BackwardWalk::visit(NodeId n) {
  const Node at = node(n);  // a copy, because recording moves the pool
  for (std::int32_t k = 0; k < at.n_outputs; ++k) complete(at.first_output + k);
  if (!has_gradient(at)) return;
  const std::vector<ValueId> inputs(tape_.graph.inputs(at).begin(), tape_.graph.inputs(at).end());
  if (std::none_of(inputs.begin(), inputs.end(), [&](ValueId v) { return info(v).needs_grad && wanted(v); })) return;
  NodeExtra* extra = tape_.notes[n].extra.get();
  const bool custom = extra && extra->custom;
  if (tape_.notes[n].released) fail_freed(n);
  if (!at.op->vjp && !custom) {
    if (!has_only_zeros(at)) fail_without_gradient(n);
    for (std::int32_t k = 0; k < at.n_outputs; ++k) grads_[at.first_output + k] = Tensor();
    return;
  }
  std::vector<unsigned char> attrs;
  const std::vector<Region> regions(tape_.graph.regions_of(at).begin(), tape_.graph.regions_of(at).end());
  const Scoped<EagerDevice*> on(thread_state().device, device_of_gradients(at));  // open() takes the gradients
  Vjp vjp = open(n, inputs);
  if (at.op->attrs) {
    const auto* from = static_cast<const unsigned char*>(tape_.graph.attributes(node(n)));
    attrs.assign(from, from + at.op->attrs->size);
    vjp.attrs = attrs.data();
  }
  vjp.regions = regions;
  if (!regions.empty()) offer_gradients(inputs, &vjp);
  {
    ThreadState& state = thread_state();
    Scoped<NodeId> twin(state.twin, n);
    Scoped<Name> path(state.path, at.origin.path);
    if (custom)
      run_custom(CustomBackward(extra->custom), &vjp, n);
    else
      run_vjp(n, &vjp);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      // An ordinary loop reads the first carried values and the slices before its passes, and the captured values in its
      // passes. Backward adds the gradients in the reverse order, so for a loop it starts with the last operand.
      const std::size_t i = regions.empty() ? k : inputs.size() - 1 - k;
      if (!vjp.taken.empty() && vjp.taken[i]) grads_[inputs[i]] = Tensor();  // the new piece contains the sum
      if (vjp.dxs[i].defined()) add_piece(inputs[i], vjp.dxs[i]);
    }
    for (const Vjp::Window& window : vjp.windows) add_window(inputs[window.operand], window);
  }
  if (!retain_) tape_.release_saved(n);
  close(std::move(vjp));
}

// Lets the tensors of a Vjp go, and keeps the memory of its lists for the next node.
void BackwardWalk::close(Vjp vjp) {
  for (std::vector<Tensor>* list : {&vjp.xs, &vjp.ys, &vjp.dys, &vjp.dxs, &vjp.so_far}) list->clear();
  vjp.taken.clear();
  vjp.windows.clear();
  vjp.need.clear();
  vjp.attrs = nullptr;
  vjp.regions = {};
  spare_ = std::move(vjp);
}

// Frees the values that the region read from outside. This happens after backward has visited all nodes of the region. Until
// then the gradient of another loss may need these values.
void BackwardWalk::release_region(std::int32_t region) {
  CheckpointRegion& range = tape_.regions[region];
  auto inside = [&](NodeId n) { return node(n).origin.region == region && !tape_.notes[n].dead && tape_.carries_gradient(n); };
  if (range.released) return;
  for (NodeId n = range.first; n < range.last; ++n)
    if (inside(n) && !tape_.notes[n].released) return;
  range.released = true;
  for (NodeId n = range.first; n < range.last; ++n)
    if (inside(n))
      for (ValueId v : tape_.graph.inputs(node(n)))
        if (!tape_.made_inside(region, v)) tape_.release_one(v);
}

// Returns g if no other tensor can see its bytes, otherwise a copy: a gradient must not share bytes with another gradient or
// with a tensor of the user. A broadcast g, whose elements share bytes, is copied too. A view whose bases have no other handle
// is returned as it is, cut off from its bases. For an abstract tensor, which has no bytes, only the handles are counted.
Tensor BackwardWalk::own_bytes(Tensor g) const {
  TensorImpl& t = *g.impl();
  std::int32_t holders = 0;
  bool shared = false;
  for (const TensorImpl* i = &t; i; i = i->link ? i->link->parent : nullptr, ++holders) shared = shared || i->refs.load() != 1;
  shared = shared || (t.storage && t.storage->refs.load() != holders);
  for (int i = 0; i < t.shape.rank; ++i) shared = shared || (t.strides[i] == 0 && t.shape[i] > 1);
  if (shared) return copy(g);
  if (t.link) unlink_view(&t);
  return g;
}

void BackwardWalk::write_leaf(ValueId v) {
  if (info(v).outside == kNone || !grads_[v].defined()) return;
  if (tape_.nested)
    throw CaptureError(error_text(
        "backward", "a loop or branch that is captured cannot write grad() of tensors outside; use gradients()", site_));
  Tensor leaf = tape_.outside[info(v).outside].tensor;
  if (const detail::Extra* extra = leaf.impl()->extra) {
    const std::vector<GradHook> hooks = extra->hooks;
    for (const GradHook& hook : hooks) run_hook(hook, &grads_[v]);
  }
  Tensor g = cast(std::exchange(grads_[v], Tensor()), leaf.dtype());  // Module::to() may have converted the leaf since
  const bool write = leaf.grad_request() == GradRequest::write && written_.insert(leaf.impl()).second;
  const Tensor old = write ? Tensor() : leaf.grad();
  leaf.set_grad(old.defined() ? add(old, g) : own_bytes(std::move(g)));
  mark_grad_fresh(leaf, site_);
}

void BackwardWalk::add_target(const Tensor& target, const Tensor& head) {
  const ValueId v = tape_.value_of(target.impl(), site_);
  const Scoped<EagerDevice*> on(thread_state().device, device_of(target));
  targets_.push_back({v, head.defined() ? head : full(target.shape(), 1, target.dtype(), site_)});
}

void BackwardWalk::ask(ValueId v, std::size_t result) {
  asked_.emplace(v, result);
  wanted_[v] = true;
}

// Marks as wanted every value that was computed from a wanted value.
void BackwardWalk::mark_wanted() {
  only_wanted_ = true;
  for (NodeId n = 0; n < tape_.graph.node_count(); ++n) {
    bool any = false;
    for (ValueId v : tape_.graph.inputs(node(n))) any = any || wanted_[v];
    for (std::int32_t k = 0; k < node(n).n_outputs; ++k) {
      const ValueId v = node(n).first_output + k, through = info(v).through;
      if (any || (through != kNone && wanted_[through])) wanted_[v] = true;
    }
  }
}

std::vector<Tensor> BackwardWalk::walk_for_results() {
  mark_wanted();
  run();
  return std::move(results_);
}

std::vector<Tensor> BackwardWalk::ask_for(const std::vector<Tensor>& wrt) {
  results_.assign(wrt.size(), Tensor());
  wanted_.assign(tape_.graph.values.size(), false);
  std::unordered_multimap<const TensorImpl*, std::size_t> leaves;
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (tape_.owns(*wrt[i].impl()))
      ask(tape_.bound_value(*wrt[i].impl()), i);
    else
      leaves.emplace(wrt[i].impl(), i);
  }
  // A leaf may have several values on the tape. The gradients of all of them are requested.
  for (ValueId v = 0; v < tape_.graph.value_count() && !leaves.empty(); ++v) {
    if (info(v).outside == kNone || info(v).through != kNone) continue;
    for (auto [it, end] = leaves.equal_range(tape_.outside[info(v).outside].tensor.impl()); it != end; ++it) ask(v, it->second);
  }
  std::vector<Tensor> results = walk_for_results();
  for (Tensor& result : results)
    if (result.defined() && !create_graph_) result = own_bytes(std::move(result));
  return results;
}

std::vector<Tensor> BackwardWalk::ask_for(const std::vector<ValueId>& wrt) {
  results_.assign(wrt.size(), Tensor());
  wanted_.assign(tape_.graph.values.size(), false);
  for (std::size_t i = 0; i < wrt.size(); ++i) ask(wrt[i], i);
  return walk_for_results();
}

// The last node on the tape that a gradient has reached and that was not visited yet; kNone: there is none.
NodeId BackwardWalk::next_node() {
  if (to_visit_.empty()) return kNone;
  const NodeId n = to_visit_.top();
  while (!to_visit_.empty() && to_visit_.top() == n) to_visit_.pop();
  return n;
}

// Leaves the checkpoint regions that begin after node n: all their nodes that a gradient reaches have been visited.
void BackwardWalk::leave_regions(NodeId n) {
  const auto left = std::remove_if(entered_regions_.begin(), entered_regions_.end(), [&](std::int32_t region) {
    if (tape_.regions[region].first <= n) return false;
    recomputed_.erase(region);
    if (!retain_) release_region(region);
    return true;
  });
  entered_regions_.erase(left, entered_regions_.end());
}

void BackwardWalk::visit_nodes() {
  for (NodeId n = next_node(); n != kNone; n = next_node()) {
    stop_if_interrupted();
    if (!entered_regions_.empty()) leave_regions(n);
    const std::int32_t region = forward_parts_ ? kNone : node(n).origin.region;
    if (region != kNone && std::find(entered_regions_.begin(), entered_regions_.end(), region) == entered_regions_.end())
      entered_regions_.push_back(region);
    if (!tape_.notes[n].dead) visit(n);
  }
  leave_regions(kNone);
}

// The gradients of values that no node on the tape has made are complete once all nodes were visited.
void BackwardWalk::visit_outside_values() {
  std::vector<ValueId> outside;
  for (ValueId v : reached_)
    if (tape_.graph.values[v].node == kNone) outside.push_back(v);
  std::sort(outside.begin(), outside.end());
  outside.erase(std::unique(outside.begin(), outside.end()), outside.end());
  for (ValueId v : outside) {
    complete(v);
    if (!only_wanted_) write_leaf(v);
  }
}

void BackwardWalk::run() {
  ThreadState& state = thread_state();
  Scoped<bool> grad(state.grad_enabled, create_graph_), autocast(state.autocast, false);
  Scoped<Phase> phase(state.phase, Phase::backward);
  Scoped<std::int32_t> region(state.region, kNone);
  grads_ = std::exchange(tape_.spare_gradients, {});
  grads_.resize(std::max(grads_.size(), tape_.graph.values.size()));
  try {
    for (auto& [v, head] : targets_) add_piece(v, head);
    targets_.clear();
    visit_nodes();
    visit_outside_values();
  } catch (const MemoryLimitError& error) {  // the place that it names is in this file
    throw MemoryLimitError(error_text(error.op().c_str(), "in backward: " + error.message(), site_));
  }
  for (ValueId v : reached_) grads_[v] = Tensor();
  tape_.spare_gradients = std::move(grads_);
}

// ---- the functions of tape.h and gradients.h ----

namespace {

Recorder& checked_tape(const char* what, const Tensor& target, const Tensor& head, bool ones, Site site) {
  if (!target.defined()) throw GradientError(error_text(what, "the loss is undefined", site));
  Recorder& tape = *thread_state().tape;
  if (!tape.owns(*target.impl()) || !tape.needs_grad(*target.impl()))
    throw GradientError(
        error_text(what, fmt::format("{} has no gradient history on this thread's tape", to_string(target.type())), site));
  if (head.defined() && head.type() != target.type())
    throw TypeError(error_text(
        what, fmt::format("the head gradient {} does not fit {}", to_string(head.type()), to_string(target.type())), site));
  if (!head.defined() && !ones && target.numel() != 1)
    throw GradientError(
        error_text(what, fmt::format("{} is not a scalar; give a head gradient", to_string(target.type())), site));
  return tape;
}

}  // namespace

void backward(const Tensor& loss, const BackwardOptions& options, Site site) {
  Recorder& tape = checked_tape("backward", loss, options.head, false, site);
  BackwardWalk walk(tape, options.retain, options.create_graph, site);
  walk.add_target(loss, options.head);
  walk.run();
}

std::vector<Tensor> gradients(const std::vector<Tensor>& targets, const std::vector<Tensor>& wrt,
                              const GradientOptions& options, Site site) {
  if (targets.empty()) throw GradientError(error_text("gradients", "there is no target", site));
  if (!options.heads.empty() && options.heads.size() != targets.size())
    throw UsageError(
        error_text("gradients", fmt::format("{} head gradients for {} targets", options.heads.size(), targets.size()), site));
  for (const Tensor& t : wrt) {
    if (!t.defined()) throw GradientError(error_text("gradients", "a wrt is undefined", site));
    if (!is_floating(t.dtype()))
      throw TypeError(error_text("gradients", fmt::format("{} holds integers: no gradient", to_string(t.type())), site));
  }
  Recorder* tape = nullptr;
  for (std::size_t i = 0; i < targets.size(); ++i)
    tape = &checked_tape("gradients", targets[i], options.heads.empty() ? Tensor() : options.heads[i], true, site);
  BackwardWalk walk(*tape, options.retain, options.create_graph, site);
  for (std::size_t i = 0; i < targets.size(); ++i)
    walk.add_target(targets[i], options.heads.empty() ? Tensor() : options.heads[i]);
  std::vector<Tensor> results = walk.ask_for(wrt);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!results[i].defined() && !options.allow_unused)
      throw GradientError(
          error_text("gradients", fmt::format("no target depends on wrt {}: {}", i, to_string(wrt[i].type())), site));
  return results;
}

}  // namespace tapedeck
