// Derives which values backward keeps of a node (derive_saved.h). The vjp runs once on abstract tensors, and each of its
// calls becomes a node on a tape of its own. Calls that read only forward values are candidates for the forward pass:
//
//       vjp of maximum(a, b):    %m = less(%a, %b)  |  %da = where(%m, 0, %dy)   %db = where(%m, %dy, 0)
//                                forward part       |  backward part, which reads %m and %dy
//
// The two parts are used only if the values they keep have fewer bytes than the values that the whole vjp reads.
#include <tapedeck/engine/eager/derive_saved.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/graph_access.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>

namespace tapedeck {

using detail::TensorImpl;

namespace {

bool needed(std::uint32_t need, std::size_t i) { return (need >> std::min<std::size_t>(i, 31)) & 1; }

// The trace of one vjp on abstract tensors: a tape with one node for each call.
class Trace {
 public:
  Trace(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs, std::uint32_t need);
  Derived derive(bool two_parts);

 private:
  using Marks = std::vector<char>;
  static bool has(const Marks& marks, ValueId v) { return marks[v] != 0; }
  const Node& node(NodeId n) const { return tape_.graph.nodes[n]; }
  bool any_output(const Marks& marks, NodeId n) const {
    for (std::int32_t k = 0; k < node(n).n_outputs; ++k)
      if (has(marks, node(n).first_output + k)) return true;
    return false;
  }
  bool any_input(const Marks& marks, NodeId n) const {
    const auto in = tape_.graph.inputs(node(n));
    return std::any_of(in.begin(), in.end(), [&](ValueId v) { return has(marks, v); });
  }
  double bytes(ValueId v) const { return static_cast<double>(tape_.graph.values[v].type.bytes()); }

  void mark_wanted();
  void mark_sources();
  bool may_be_kept(NodeId n) const;
  void choose_forward();
  void keep_what_is_read();
  Marks read_in_backward() const;
  double kept_bytes(const Marks& read) const;
  SaveMask mask(const Marks& read) const;

  Recorder tape_{true};
  std::vector<ValueId> xs_, ys_, pieces_;
  Marks wanted_;                 // the values that the gradient pieces depend on
  Marks gradient_, forward_;     // values that depend on the gradient of a result; values that depend on an operand or a result
  std::vector<CallPart> parts_;  // for each node
};

Trace::Trace(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs, std::uint32_t need) {
  ThreadState& state = thread_state();
  Scoped<Recorder*> tape(state.tape, &tape_);
  Scoped<bool> abstract(state.abstract, true), no_grad(state.grad_enabled, false), autocast(state.autocast, false);
  Scoped<std::int32_t> region(state.region, kNone);
  Scoped<NodeId> twin(state.twin, kNone);  // the caller's node belongs to another tape
  Scoped<VjpCalls*> calls(state.calls, nullptr);
  Vjp vjp;
  vjp.attrs = attrs;
  for (const Type& t : inputs) vjp.xs.push_back(abstract_tensor(t));
  for (const Type& t : outputs) vjp.ys.push_back(abstract_tensor(t));
  for (const Type& t : outputs) vjp.dys.push_back(abstract_tensor(t));
  vjp.dxs.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) vjp.need.push_back(needed(need, i));
  for (const Tensor& x : vjp.xs) xs_.push_back(tape_.value_of(x.impl(), {}));
  for (const Tensor& y : vjp.ys) ys_.push_back(tape_.value_of(y.impl(), {}));
  std::vector<ValueId> dys;
  for (const Tensor& dy : vjp.dys) dys.push_back(tape_.value_of(dy.impl(), {}));
  op.vjp(vjp);
  for (const Tensor& piece : vjp.dxs)
    if (piece.defined()) pieces_.push_back(tape_.value_of(piece.impl(), {}));
  for (const Vjp::Window& window : vjp.windows) pieces_.push_back(tape_.value_of(window.piece.impl(), {}));
  const std::size_t n = tape_.graph.values.size();
  wanted_.resize(n), gradient_.resize(n), forward_.resize(n);
  for (ValueId v : pieces_) wanted_[v] = 1;
  for (ValueId v : dys) gradient_[v] = 1;
  for (ValueId v : xs_) forward_[v] = 1;
  for (ValueId v : ys_) forward_[v] = 1;
}

void Trace::mark_wanted() {
  for (NodeId n = tape_.graph.node_count() - 1; n >= 0; --n)
    if (any_output(wanted_, n))
      for (ValueId v : tape_.graph.inputs(node(n))) wanted_[v] = 1;
}

void Trace::mark_sources() {
  for (NodeId n = 0; n < tape_.graph.node_count(); ++n) {
    const bool gradient = any_input(gradient_, n), forward = any_input(forward_, n);
    for (std::int32_t k = 0; k < node(n).n_outputs; ++k) {
      gradient_[node(n).first_output + k] = gradient;
      forward_[node(n).first_output + k] = forward;
    }
  }
}

// Whether the result of a call may be kept in the forward pass. Kept values have no history, so a result that gradients could
// pass through may not be kept.
bool Trace::may_be_kept(NodeId n) const {
  if (node(n).op->is(kNoGradient)) return true;
  for (const Value& v : tape_.graph.output_values(node(n)))
    if (is_floating(v.type.dtype)) return false;
  return true;
}

// Chooses the calls of the forward part. They read only forward values. A call goes back to the backward part if backward
// reads its result and the result may not be kept, or if backward reads the operands of the call anyway.
void Trace::choose_forward() {
  const NodeId n_nodes = tape_.graph.node_count();
  parts_.assign(static_cast<std::size_t>(n_nodes), CallPart::backward);
  for (NodeId n = 0; n < n_nodes; ++n)
    if (any_output(wanted_, n) && any_output(forward_, n) && !any_output(gradient_, n)) parts_[n] = CallPart::forward;
  for (int round = 0; round < 2; ++round) {
    const Marks read = read_in_backward();
    Marks now = read;
    for (NodeId n = n_nodes - 1; n >= 0; --n) {
      CallPart& part = parts_[n];
      if (part != CallPart::forward || !any_output(now, n)) continue;
      const auto in = tape_.graph.inputs(node(n));
      const bool operands_there =
          std::all_of(in.begin(), in.end(), [&](ValueId v) { return has(now, v) || !has(forward_, v); });
      if (may_be_kept(n) && !operands_there) continue;
      part = CallPart::backward;
      for (ValueId v : in) now[v] = 1;
    }
  }
}

Trace::Marks Trace::read_in_backward() const {
  Marks read(tape_.graph.values.size());
  for (ValueId v : pieces_) read[v] = 1;
  for (NodeId n = 0; n < tape_.graph.node_count(); ++n)
    if (any_output(wanted_, n) && parts_[n] == CallPart::backward)
      for (ValueId v : tape_.graph.inputs(node(n))) read[v] = 1;
  return read;
}

double Trace::kept_bytes(const Marks& read) const {
  double total = 0;
  for (ValueId v = 0; v < tape_.graph.value_count(); ++v) {
    if (!has(read, v)) continue;
    const NodeId n = tape_.graph.values[v].node;
    if (n == kNone ? has(forward_, v) : parts_[n] == CallPart::forward) total += bytes(v);
  }
  return total;
}

SaveMask Trace::mask(const Marks& read) const {
  SaveMask saves = 0;
  for (std::size_t i = 0; i < xs_.size(); ++i)
    if (has(read, xs_[i])) saves |= operand_bit(i);
  for (std::size_t k = 0; k < ys_.size(); ++k)
    if (has(read, ys_[k])) saves |= result_bit(k);
  return saves;
}

// Decides which results of the forward part are kept, and which calls without operands run in both parts.
void Trace::keep_what_is_read() {
  const Marks read = read_in_backward();
  for (NodeId n = 0; n < tape_.graph.node_count(); ++n)
    if (parts_[n] == CallPart::forward && any_output(read, n)) parts_[n] = CallPart::kept;
  Marks wanted(tape_.graph.values.size());
  for (NodeId n = tape_.graph.node_count() - 1; n >= 0; --n) {
    CallPart& part = parts_[n];
    const bool in_forward = part == CallPart::forward || part == CallPart::kept;
    if (!in_forward && any_output(wanted, n)) part = CallPart::both;
    if (in_forward || part == CallPart::both)
      for (ValueId v : tape_.graph.inputs(node(n))) wanted[v] = 1;
  }
}

Derived Trace::derive(bool two_parts) {
  mark_wanted();
  mark_sources();
  parts_.assign(tape_.graph.nodes.size(), CallPart::backward);
  Derived derived;
  derived.saves = mask(read_in_backward());
  if (!two_parts) return derived;
  const double before = kept_bytes(read_in_backward());
  choose_forward();
  if (kept_bytes(read_in_backward()) >= before) return derived;
  derived.saves = mask(read_in_backward());
  keep_what_is_read();
  derived.parts = parts_;
  for (const Node& n : tape_.graph.nodes) derived.calls.push_back(n.op);
  return derived;
}

void append(std::string& key, const void* data, std::size_t bytes) { key.append(static_cast<const char*>(data), bytes); }

void append(std::string& key, const Type& t) {
  key.push_back(static_cast<char>(t.dtype));
  key.push_back(static_cast<char>(t.shape.rank));
  append(key, t.shape.sizes, static_cast<std::size_t>(t.shape.rank) * sizeof(std::int64_t));
}

// The fields alone: the bytes between them may hold anything.
void append(std::string& key, const Op& op, const void* attrs) {
  for (const Field& field : fields_of(op)) {
    if (field.kind != FieldKind::ints) {
      append(key, static_cast<const unsigned char*>(attrs) + field.offset, field_bytes(field.kind));
      continue;
    }
    const Ints& list = field_of<Ints>(attrs, field);
    append(key, &list.size, sizeof list.size);
    append(key, list.items, static_cast<std::size_t>(list.size) * sizeof(std::int64_t));
  }
}

// Returns one object for all equal answers. It is never destroyed, so the cache can be emptied while tapes point to its
// answers.
const Derived* interned(Derived d) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  static std::unordered_map<std::string, const Derived*>* all = new std::unordered_map<std::string, const Derived*>;
  std::string key;
  append(key, &d.saves, sizeof d.saves);
  append(key, d.calls.data(), d.calls.size() * sizeof(const Op*));
  append(key, d.parts.data(), d.parts.size());
  const Derived*& known = (*all)[key];
  if (!known) known = new Derived(std::move(d));
  return known;
}

}  // namespace

const Derived& saving(SaveMask saves) {
  Derived d;
  d.saves = saves;
  return *interned(std::move(d));
}

const Derived& derive(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs,
                      std::uint32_t need, bool two_parts) {
  static std::mutex mutex;
  static std::unordered_map<std::string, const Derived*>* cache = new std::unordered_map<std::string, const Derived*>;
  std::string key;
  append(key, &op.id, sizeof op.id);
  append(key, &need, sizeof need);
  key.push_back(two_parts ? 'p' : 'w');
  for (const Type& t : inputs) append(key, t);
  append(key, op, attrs);
  {
    std::lock_guard lock(mutex);
    auto it = cache->find(key);
    if (it != cache->end()) return *it->second;
  }
  Derived derived = Trace(op, inputs, outputs, attrs, need).derive(two_parts);
  std::lock_guard lock(mutex);
  if (cache->size() > 100000) cache->clear();
  return *cache->emplace(std::move(key), interned(std::move(derived))).first->second;
}

std::vector<Tensor> run_forward_part(const Op& op, const Derived& derived, std::span<TensorImpl* const> in,
                                     std::span<TensorImpl* const> out, const void* attrs, std::uint32_t need, Site site) {
  ThreadState& state = thread_state();
  std::vector<Tensor> kept;
  VjpCalls calls{derived, kept, true};
  Scoped<VjpCalls*> two_parts(state.calls, &calls);
  Scoped<bool> no_grad(state.grad_enabled, false), autocast(state.autocast, false);
  // Tensors that the vjp makes lie where the results of the node lie.
  const Scoped<EagerDevice*> on(state.device, out[0]->storage ? out[0]->storage->device : nullptr);
  Vjp vjp;
  vjp.attrs = attrs;
  vjp.where = site;
  auto share = [](TensorImpl* t) {
    detail::retain(t);
    return Tensor(t);
  };
  for (TensorImpl* t : in) vjp.xs.push_back(share(t));
  for (TensorImpl* t : out) {
    vjp.ys.push_back(share(t));
    vjp.dys.push_back(abstract_tensor(t->type()));
  }
  vjp.dxs.resize(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) vjp.need.push_back(needed(need, i));
  op.vjp(vjp);
  return kept;
}

}  // namespace tapedeck
