// Writes into tensors in place (inplace.h). The bytes are written at once; the tape records pure nodes, for the written
// tensor and then for each base that it is a view of:
//
//       x = b * 1;  v = slice(x, ..);  copy_(v, w)     ->    %v2 = copy(%w)   %x2 = slice_assign(%x, %v2)
//
// Operands that backward needs, and whose bytes are about to be overwritten, are copied first.
#include <tapedeck/engine/eager/core_calls.h>
#include <tapedeck/engine/eager/dispatch_parts.h>
#include <tapedeck/engine/eager/eviction.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/op_observer.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/strides.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

using detail::TensorImpl;
using detail::ViewLink;

namespace {

bool same_window(const TensorImpl& a, const TensorImpl& b) {
  return a.storage == b.storage && a.offset == b.offset && a.shape == b.shape &&
         std::equal(a.strides, a.strides + a.shape.rank, b.strides);
}

// Whether the kernel may read operand i while it writes result k over `target`.
bool may_share(const Op& op, const TensorImpl& operand, const TensorImpl& target, std::size_t i, std::size_t k) {
  if (operand.storage != target.storage) return true;
  return same_window(operand, target) && std::any_of(op.inplace.begin(), op.inplace.end(), [&](const InplacePair& p) {
           return p.output == static_cast<int>(k) && p.input == static_cast<int>(i);
         });
}

// Computes the results over the bytes of `out`. If an operand overlaps a target and no in-place rule allows this, the kernel
// reads a copy of the operand. If the kernel cannot write the strides of a target, it writes a dense result, which is then
// copied.
void compute_over(const Call& c, const std::vector<TensorImpl*>& out) {
  const detail::ResidentTensors operands({c.in, static_cast<std::size_t>(c.n)}), targets(out);
  std::vector<Tensor> owned;
  std::vector<TensorImpl*> in(c.in, c.in + c.n);
  for (std::size_t i = 0; i < in.size(); ++i)
    for (std::size_t k = 0; k < out.size(); ++k)
      if (!may_share(c.op, *in[i], *out[k], i, k)) in[i] = owned.emplace_back(Tensor(dense_copy(*in[i], c.site))).impl();
  std::vector<TensorImpl*> made = out;
  for (std::size_t k = 0; k < made.size(); ++k)
    if (TensorImpl*& t = made[k]; !writes_strides(c.op, static_cast<int>(k), t->shape, t->strides))
      t = owned.emplace_back(Tensor(detail::new_impl(t->type(), detail::new_storage(t->type().bytes(), t->storage->device))))
              .impl();
  run_with_layouts(c.op, in.data(), c.n, c.attrs, made.data(), static_cast<int>(made.size()), c.site);
  if (settings().watches_results()) watch_results(c, made.data());
  for (std::size_t k = 0; k < out.size(); ++k)
    if (made[k] != out[k]) run_kernel(ops::copy, &made[k], 1, nullptr, &out[k], 1, c.site);
  report_op(c.op, out, c.site, true);
}

// Whether the tensor shows one element at several places. Such a tensor cannot be written element by element.
bool repeats(const TensorImpl& t) {
  if (t.shape.numel() == 0) return false;
  for (int i = 0; i < t.shape.rank; ++i)
    if (t.strides[i] == 0 && t.shape[i] > 1) return true;
  return false;
}

// One write. It computes the results, records the node, and records the new values of the targets' bases.
class Write {
 public:
  Write(Call& call, std::vector<TensorImpl*> targets)
      : call_(call), targets_(std::move(targets)), state_(thread_state()), tape_(*state_.tape) {}

  void run() {
    for (std::size_t i = 0; i < targets_.size(); ++i) check(*targets_[i], call_.out_types[i]);
    try {
      write();
    } catch (...) {
      rethrow_memory_limit(call_);
    }
  }

 private:
  void write() {
    for (TensorImpl* t : targets_)
      if (t->storage) detail::before_write(*t->storage, call_.op.name, call_.site);
    const std::uint32_t need = need_of(thread_state(), call_, tape_);
    const bool tracked = need || tape_.capturing || tracks_a_target();
    if (tracked)
      for (TensorImpl* t : targets_) note_values(t);
    if (!tracked) {
      compute();
      return bump();
    }
    record(need);
  }

  struct Before {
    ValueId value = kNone;       // kNone if the tensor has no history
    std::vector<ValueId> bases;  // the values of its bases, nearest first
  };

  void check(const TensorImpl& t, const Type& result) const {
    if (t.type() != result)
      throw TypeError(error_text(call_.op.name,
                                 fmt::format("result {} does not fit in place of {}", to_string(result), to_string(t.type())),
                                 call_.site));
    if (repeats(t))
      throw TypeError(
          error_text(call_.op.name, fmt::format("cannot write {} in place: it is broadcast", to_string(t.type())), call_.site));
    for (const TensorImpl* p = &t; p->link; p = p->link->parent)
      if (!p->link->op->unview && p->shape.numel() != p->link->parent->shape.numel())
        throw TypeError(error_text(call_.op.name,
                                   fmt::format("cannot write {} in place: it shows {}, repeated by {}", to_string(t.type()),
                                               to_string(p->link->parent->type()), p->link->op->name),
                                   call_.site));
    if (!state_.grad_enabled) return;
    for (const TensorImpl* p = &t; p; p = p->link && p->link->tracked ? p->link->parent : nullptr)
      if (p->requires_grad && !tape_.owns(*p))
        throw GradientError(error_text(
            call_.op.name,
            fmt::format("writes {}a leaf that requires a gradient in place; use NoGrad", p == &t ? "" : "a view of "),
            call_.site));
  }

  // Whether a target or one of its bases needs a gradient. If so, the write is recorded even if no operand needs a gradient.
  bool tracks_a_target() const {
    if (!state_.grad_enabled) return false;
    return std::any_of(targets_.begin(), targets_.end(), [&](const TensorImpl* t) {
      for (const TensorImpl* p = t; p; p = p->link ? p->link->parent : nullptr)
        if (tape_.needs_grad(*p)) return true;
      return false;
    });
  }

  void note_values(TensorImpl* t) {
    Before b;
    // For a view of state, the base is declared first.
    if (tape_.capturing && t->link && !tape_.owns(*t)) tape_.value_of(root_of(t), call_.site);
    if (tape_.capturing || tape_.owns(*t) || tape_.needs_grad(*t)) b.value = tape_.value_of(t, call_.site);
    for (const ViewLink* link = t->link; link; link = link->parent->link)
      b.bases.push_back(tape_.value_of(link->parent, call_.site));
    before_.push_back(std::move(b));
  }

  static TensorImpl* root_of(TensorImpl* t) {
    while (t->link) t = t->link->parent;
    return t;
  }

  void compute() const {
    const bool abstract = std::any_of(targets_.begin(), targets_.end(), [](TensorImpl* t) { return !t->storage; }) ||
                          std::any_of(call_.in, call_.in + call_.n, [](TensorImpl* t) { return !t->storage; });
    if (!abstract && !state_.abstract) compute_over(call_, targets_);
  }

  void bump() const {
    for (TensorImpl* t : targets_)
      if (t->storage) {
        ++t->storage->version;
        t->storage->written_at = call_.site;
      }
  }

  // Keeps a copy of each operand that backward reads and that the write will overwrite.
  void rescue(NodeId n) const {
    const SaveMask saves = tape_.notes[n].saves();
    const std::vector<ValueId> operands(tape_.graph.inputs(tape_.graph.nodes[n]).begin(),
                                        tape_.graph.inputs(tape_.graph.nodes[n]).end());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const detail::Storage* storage = call_.in[i]->storage;
      const bool hit =
          storage && std::any_of(targets_.begin(), targets_.end(), [&](TensorImpl* t) { return t->storage == storage; });
      if (!(saves & operand_bit(i)) || !hit || storage->version != tape_.info[operands[i]].version) continue;
      const Tensor copy(dense_copy(*call_.in[i], call_.site));
      tape_.keep_instead(operands[i], *copy.impl());
    }
  }

  // Records the node. Its operands are the values before the write, so this happens before the bytes and the versions change.
  void record(std::uint32_t need) {
    std::vector<Tensor> results;
    std::vector<TensorImpl*> fresh;
    for (TensorImpl* t : targets_) {
      results.push_back(Tensor(detail::new_view(*t, t->shape, 0, t->strides)));
      fresh.push_back(results.back().impl());
    }
    const NodeId n = record_node(call_, need, fresh.data(), true);
    const ValueId first = tape_.graph.nodes[n].first_output;
    rescue(n);
    compute();
    bump();
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const ValueId v = first + static_cast<ValueId>(i);
      tape_.rebind(targets_[i], v);
      if (!state_.grad_enabled) pass_through(v, before_[i].value);
      carry_up(targets_[i], v, before_[i]);
    }
  }

  // For a write under NoGrad: gradients pass as if nothing had been written.
  void pass_through(ValueId v, ValueId old) const {
    if (old == kNone || !tape_.info[old].needs_grad) return;
    tape_.info[v].through = old;
    tape_.info[v].needs_grad = true;
  }

  Tensor handle(ValueId v) const {
    Tensor t(detail::new_impl(tape_.graph.values[v].type, nullptr));
    tape_.bind(t.impl(), v);
    return t;
  }

  static Tensor same_elements(const Tensor& piece, const Shape& shape) {
    return alias(piece.shape() == shape ? piece : reshape(piece, shape));
  }

  // Records base' = base with the elements of the view replaced, for each base from the nearest to the farthest. The bytes
  // are already written.
  void carry_up(TensorImpl* t, ValueId v, const Before& before) const {
    Scoped<bool> abstract(state_.abstract, true), grad(state_.grad_enabled, true);
    for (ValueId base : before.bases) {
      const ViewLink& link = *t->link;
      const Tensor piece = handle(v);
      const Tensor whole = link.op->unview
                               ? link.op->unview(handle(base), piece, link.op->attrs ? link.attrs : nullptr, call_.site)
                               : same_elements(piece, link.parent->shape);
      const ValueId now = tape_.value_of(whole.impl(), call_.site);
      if (link.op->is(kNoGradient)) pass_through(now, base);
      tape_.info[v].parent = now;
      tape_.rebind(link.parent, now);
      t = link.parent;
      v = now;
    }
  }

  Call& call_;
  std::vector<TensorImpl*> targets_;
  ThreadState& state_;
  Recorder& tape_;
  std::vector<Before> before_;
};

std::vector<TensorImpl*> impls(std::span<const Tensor> tensors) {
  std::vector<TensorImpl*> list;
  for (const Tensor& t : tensors) list.push_back(t.impl());
  return list;
}

void require_defined(const char* op, const Tensor& x, Site site) {
  if (!x.defined()) throw TypeError(error_text(op, "the tensor to write is undefined", site));
}

// The operand, converted to the dtype of the tensor that is written.
Tensor fitted(const char* op, const Tensor& x, const Arg& y, Site site) {
  require_defined(op, x, site);
  if (!y.is_scalar() && !y.tensor().defined()) throw TypeError(error_text(op, "an operand is undefined", site));
  const bool fraction = y.is_scalar() ? !y.is_integer() : is_floating(y.tensor().dtype());
  if (fraction && !is_floating(x.dtype()))
    throw TypeError(error_text(op,
                               fmt::format("cannot put {} into {} in place",
                                           y.is_scalar() ? "a fraction" : to_string(y.tensor().type()), to_string(x.type())),
                               site));
  return y.is_scalar() ? scalar_of(op, y, x.dtype()) : cast(Arg(y.tensor(), site.file, site.line), x.dtype());
}

const Tensor& binary(const Op& op, const Tensor& x, const Arg& y) {
  const Tensor in[2] = {x, fitted(op.name, x, y, y.site())};
  apply_in_place(op, in, nullptr, y.site());
  return x;
}

}  // namespace

void apply_in_place(const Op& op, std::span<const Tensor> inputs, const void* attrs, Site site) {
  const std::vector<TensorImpl*> in = impls(inputs);
  Call call{op, in.data(), static_cast<int>(in.size()), attrs, site, {}, nullptr, 0, nullptr};
  infer(call, {});
  std::vector<TensorImpl*> targets(static_cast<std::size_t>(call.n_out));
  for (const InplacePair& pair : op.inplace)
    if (pair.output < call.n_out && pair.input < call.n && !targets[pair.output]) targets[pair.output] = in[pair.input];
  for (const TensorImpl* t : targets)
    if (!t) throw TypeError(error_text(op.name, "cannot run in place", site));
  Write(call, std::move(targets)).run();
}

void apply_over(const Op& op, std::span<const Tensor> inputs, const void* attrs, const Tensor& target, Site site) {
  require_defined(op.name, target, site);
  const std::vector<TensorImpl*> in = impls(inputs);
  Call call{op, in.data(), static_cast<int>(in.size()), attrs, site, {}, nullptr, 0, nullptr};
  infer(call, {});
  if (call.n_out != 1) throw TypeError(error_text(op.name, "has no single result to write", site));
  Write(call, {target.impl()}).run();
}

const Tensor& add_(const Tensor& x, const Arg& y) { return binary(ops::add, x, y); }
const Tensor& sub_(const Tensor& x, const Arg& y) { return binary(ops::sub, x, y); }
const Tensor& mul_(const Tensor& x, const Arg& y) { return binary(ops::mul, x, y); }
const Tensor& div_(const Tensor& x, const Arg& y) { return binary(ops::div, x, y); }

void refuse_lost_write(const char* op, const Tensor& x, Site site) {
  const TensorImpl* t = x.impl();
  if (!t || !t->storage || t->refs.load() != 1 || t->storage->refs.load() != 1) return;
  throw TypeError(error_text(
      op,
      "the left side is a new tensor that shares its bytes with no other, so the write would be lost; it may be a copy that a "
      "tensor among subscripts made",
      site));
}

const Tensor& copy_(const Tensor& x, const Arg& y) {
  const Tensor value = fitted("copy", x, y, y.site());
  const Tensor in[1] = {broadcast_to(Arg(value, y.site().file, y.site().line), x.shape())};
  apply_over(ops::copy, in, nullptr, x, y.site());
  return x;
}

const Tensor& fill_(const Tensor& x, double value, Site site) {
  require_defined("full", x, site);
  FullAttrs attrs;
  for (std::int64_t s : x.shape()) attrs.shape.push_back(s);
  attrs.dtype = x.dtype();
  attrs.value = value;
  apply_over(ops::full, {}, &attrs, x, site);
  return x;
}

const Tensor& zero_(const Tensor& x, Site site) { return fill_(x, 0, site); }

const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, const Arg& value) {
  const Tensor in[3] = {mask, fitted("where", x, value, value.site()), x};
  apply_over(ops::where, in, nullptr, x, value.site());
  return x;
}

const Tensor& slice_assign_(const Tensor& x, const Ints& starts, const Ints& stops, const Arg& value) {
  return slice_assign_(x, starts, stops, {}, value);
}

const Tensor& slice_assign_(const Tensor& x, const Ints& starts, const Ints& stops, const Ints& steps, const Arg& value) {
  copy_(slice(Arg(x, value.site().file, value.site().line), starts, stops, steps), value);
  return x;
}

const Tensor& apply_(const Op& op, const Tensor& x, const void* attrs, Site site) {
  const Tensor in[1] = {x};
  apply_in_place(op, in, attrs, site);
  return x;
}

}  // namespace tapedeck
