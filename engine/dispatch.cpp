// The way of an eager op: types (cached per signature), operand layouts, memory, kernel, record. The common case - a signature seen
// just before, on this thread - takes no lock and, the pools being warm, no system allocation.
#include <tapedeck/engine/dispatch.h>
#include <tapedeck/engine/ops.h>
#include <tapedeck/engine/recorder.h>
#include <tapedeck/engine/tape.h>
#include <tapedeck/engine/tensor_impl.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tapedeck {

using detail::TensorImpl;

namespace {

constexpr int kFewOperands = 8;

// The last signature an op was run with on this thread, and what followed from it.
struct Signature {
  static constexpr int kInputs = 4, kOutputs = 3;
  static constexpr std::size_t kAttrBytes = 192;
  int n_inputs = -1;
  int n_outputs = 0;
  std::uint32_t need = 0;
  bool saves_known = false;
  SaveMask saves = 0;
  Type inputs[kInputs];
  Type outputs[kOutputs];
  unsigned char attrs[kAttrBytes];
};

// By op id. A plain pointer, so that reading it needs no initialisation check; the owner frees it at the thread's end.
constinit thread_local std::vector<std::unique_ptr<Signature>>* signatures = nullptr;
struct SignaturesOwner {
  ~SignaturesOwner() { delete std::exchange(signatures, nullptr); }
};

Signature& new_signature(std::size_t id) {
  static thread_local SignaturesOwner owner;
  (void)owner;
  if (!signatures) signatures = new std::vector<std::unique_ptr<Signature>>;
  if (id >= signatures->size()) signatures->resize(id + 1);
  if (!(*signatures)[id]) (*signatures)[id] = std::make_unique<Signature>();
  return *(*signatures)[id];
}

Signature& signature_of(const Op& op) {
  const auto id = static_cast<std::size_t>(op.id);
  if (signatures && id < signatures->size() && (*signatures)[id]) return *(*signatures)[id];
  return new_signature(id);
}

bool cacheable(const Op& op, int n) {
  return n <= Signature::kInputs && !op.is(kDeclaredTypes) && (!op.attrs || op.attrs->size <= Signature::kAttrBytes);
}

bool matches(const Signature& s, const Op& op, TensorImpl* const* in, int n, const void* attrs) {
  if (s.n_inputs != n) return false;
  for (int i = 0; i < n; ++i)
    if (s.inputs[i].dtype != in[i]->dtype || s.inputs[i].shape != in[i]->shape) return false;
  return !op.attrs || std::memcmp(s.attrs, attrs, op.attrs->size) == 0;
}

// One run of an op: operands in, results out.
struct Call {
  const Op& op;
  TensorImpl* const* in;
  int n;
  const void* attrs;
  Site site;
  std::vector<Type> spilled;       // output types where the signature cache does not serve
  const Type* out_types = nullptr;
  int n_out = 0;
  Signature* signature = nullptr;
};

[[noreturn]] void rethrow_with_site(const Op& op, const TypeError& error, Site site) {
  const std::string text = error.what(), prefix = fmt::format("[{}] ", op.name);
  throw TypeError(error_text(op.name, text.rfind(prefix, 0) == 0 ? text.substr(prefix.size()) : text, site));
}

void infer_slowly(Call& c, std::span<const Type> declared) {
  std::vector<Type> inputs;
  for (int i = 0; i < c.n; ++i) inputs.push_back(c.in[i]->type());
  c.spilled.assign(declared.begin(), declared.end());
  try {
    infer_types(c.op, inputs, c.attrs, c.spilled);
  } catch (const TypeError& error) {
    rethrow_with_site(c.op, error, c.site);
  }
  c.out_types = c.spilled.data();
  c.n_out = static_cast<int>(c.spilled.size());
}

void infer(Call& c, std::span<const Type> declared) {
  for (int i = 0; i < c.n; ++i)
    if (!c.in[i]) throw TypeError(error_text(c.op.name, fmt::format("operand {} is undefined", i), c.site));
  if (!cacheable(c.op, c.n)) return infer_slowly(c, declared);
  Signature& s = signature_of(c.op);
  if (!matches(s, c.op, c.in, c.n, c.attrs)) {
    infer_slowly(c, declared);
    if (c.n_out > Signature::kOutputs) return;
    s.n_inputs = -1;
    for (int i = 0; i < c.n; ++i) s.inputs[i] = c.in[i]->type();
    for (int i = 0; i < c.n_out; ++i) s.outputs[i] = c.spilled[static_cast<std::size_t>(i)];
    if (c.op.attrs) std::memcpy(s.attrs, c.attrs, c.op.attrs->size);
    s.n_outputs = c.n_out;
    s.saves_known = false;
    s.n_inputs = c.n;
  }
  c.signature = &s;
  c.out_types = s.outputs;
  c.n_out = s.n_outputs;
}

bool matrix_layout(const TensorImpl& t) {
  const int r = t.shape.rank;
  const std::int64_t rows = t.shape[r - 2], cols = t.shape[r - 1], sr = t.strides[r - 2], sc = t.strides[r - 1];
  const bool row_major = (sc == 1 || cols == 1) && (sr >= cols || rows == 1);
  const bool column_major = (sr == 1 || rows == 1) && (sc >= rows || cols == 1);
  return row_major || column_major;
}

bool layout_ok(const Op& op, const TensorImpl& t) {
  if (op.is(kAnyStrides) || op.is(kElementwise)) return true;
  if (op.is(kMatrixStrides)) return matrix_layout(t);
  return detail::is_dense(t.shape, t.strides);
}

// The operand's view as the kernel wants it: broadcast for elementwise ops, leading dimensions broadcast for matrix products.
void operand_view(const Op& op, const TensorImpl& t, const Shape* out, View* view) {
  if (op.is(kElementwise) && t.shape != *out) return detail::fill_view_expanded(t, *out, view);
  if (op.is(kMatrixStrides) && t.shape.rank >= 2) {
    Shape shape = *out;
    for (int i = 1; i <= 2; ++i) shape.sizes[shape.rank - i] = t.shape[t.shape.rank - i];
    return detail::fill_view_expanded(t, shape, view);
  }
  detail::fill_view(t, view);
}

void check_kernel(const Op& op, TensorImpl* const* in, int n, const Type* out, int n_out, Site site) {
  if (!op.kernels[0])
    throw ExecutionError(error_text(op.name, "has no kernel on cpu", site));
  if (op.is(kPlanOnly)) return;
  auto refuse_half = [&](DType d) {
    if ((d == DType::f16 || d == DType::bf16) && &op != &ops::copy)
      throw TypeError(error_text(op.name, fmt::format("no {} arithmetic in this version", dtype_name(d)), site));
  };
  for (int i = 0; i < n; ++i) refuse_half(in[i]->dtype);
  for (int i = 0; i < n_out; ++i) refuse_half(out[i].dtype);
}

// Runs the kernel on operands of acceptable layout into `out`.
void run_kernel(const Op& op, TensorImpl* const* in, int n, const void* attrs, TensorImpl* const* out, int n_out, Site site) {
  alignas(View) unsigned char few[sizeof(View) * (kFewOperands + 4)];  // filled below, not before
  std::vector<View> many;
  View* views = reinterpret_cast<View*>(few);
  if (n + n_out > kFewOperands + 4) {
    many.resize(static_cast<std::size_t>(n + n_out));
    views = many.data();
  }
  const Shape* first = n_out > 0 ? &out[0]->shape : nullptr;
  for (int i = 0; i < n; ++i) operand_view(op, *in[i], first, &views[i]);
  for (int i = 0; i < n_out; ++i) detail::fill_view(*out[i], &views[n + i]);
  KernelFault fault;
  KernelCall call;
  call.inputs = views;
  call.outputs = views + n;
  call.n_inputs = n;
  call.n_outputs = n_out;
  call.attrs = attrs;
  call.fault = &fault;
  Buffer workspace;
  if (op.workspace) {
    std::vector<Type> in_types, out_types;
    for (int i = 0; i < n; ++i) in_types.push_back(in[i]->type());
    for (int i = 0; i < n_out; ++i) out_types.push_back(out[i]->type());
    workspace = Buffer(Allocator::host(), op.workspace(in_types, out_types, attrs));
    call.workspace = workspace.data();
    call.workspace_bytes = static_cast<std::size_t>(workspace.bytes());
  }
  op.kernels[0](call);
  if (const char* what = fault.what.load())
    throw ExecutionError(error_text(op.name, fmt::format("{} ({})", what, fault.value.load()), site));
}

// A dense stand-in for an operand whose strides the kernel does not take. Not recorded: the plan makes the same choice.
TensorImpl* dense_copy(const TensorImpl& t, Site site) {
  TensorImpl* d = detail::new_impl(t.type(), detail::new_storage(t.type().bytes()));
  TensorImpl* in[1] = {const_cast<TensorImpl*>(&t)};
  run_kernel(ops::copy, in, 1, nullptr, &d, 1, site);
  return d;
}

void run_with_layouts(const Op& op, TensorImpl* const* in, int n, const void* attrs, TensorImpl* const* out, int n_out, Site site) {
  bool all_ok = true;
  for (int i = 0; i < n; ++i) all_ok = all_ok && layout_ok(op, *in[i]);
  if (all_ok) return run_kernel(op, in, n, attrs, out, n_out, site);
  std::vector<Tensor> owned;
  std::vector<TensorImpl*> fixed(in, in + n);
  for (TensorImpl*& t : fixed)
    if (!layout_ok(op, *t)) {
      t = dense_copy(*t, site);
      owned.emplace_back(t);
    }
  run_kernel(op, fixed.data(), n, attrs, out, n_out, site);
}

TensorImpl* make_view(const Op& op, TensorImpl& base, const void* attrs, const Type& out, Site site) {
  std::int64_t offset = 0, strides[kMaxRank];
  if (op.view(base.type(), base.strides, attrs, out, &offset, strides)) return detail::new_view(base, out.shape, offset, strides);
  if (!base.storage) return detail::new_impl(out, nullptr);
  const Tensor d(dense_copy(base, site));
  op.view(d.type(), d.strides(), attrs, out, &offset, strides);
  return detail::new_view(*d.impl(), out.shape, offset, strides);
}

// Makes and computes the results. The caller owns them.
void compute(Call& c, TensorImpl** out) {
  bool abstract = thread_state().abstract;
  for (int i = 0; i < c.n; ++i) abstract = abstract || !c.in[i]->storage;
  if (c.op.view) {
    out[0] = make_view(c.op, *c.in[0], c.attrs, c.out_types[0], c.site);
    return;
  }
  if (abstract) {
    for (int i = 0; i < c.n_out; ++i) out[i] = detail::new_impl(c.out_types[i], nullptr);
    return;
  }
  check_kernel(c.op, c.in, c.n, c.out_types, c.n_out, c.site);
  int made = 0;
  try {
    for (; made < c.n_out; ++made) out[made] = detail::new_impl(c.out_types[made], detail::new_storage(c.out_types[made].bytes()));
    run_with_layouts(c.op, c.in, c.n, c.attrs, out, c.n_out, c.site);
  } catch (...) {
    for (int i = 0; i < made; ++i) detail::release(out[i]);
    throw;
  }
}

SaveMask saves_of(Call& c, std::uint32_t need) {
  if (!c.op.vjp) return 0;
  if (c.signature && c.signature->saves_known && c.signature->need == need) return c.signature->saves;
  std::vector<Type> inputs;
  for (int i = 0; i < c.n; ++i) inputs.push_back(c.in[i]->type());
  const std::vector<Type> outputs(c.out_types, c.out_types + c.n_out);
  const SaveMask saves = derived_saves(c.op, inputs, outputs, c.attrs, need);
  // Deriving runs ops, which may have moved the signature on; only write it back if it is still ours.
  if (c.signature && matches(*c.signature, c.op, c.in, c.n, c.attrs)) {
    c.signature->need = need;
    c.signature->saves = saves;
    c.signature->saves_known = true;
  }
  return saves;
}

// Under no_grad a capture records that no gradient passes, so that the graph says it too.
bool cut_gradient(const ThreadState& state, const Op& op, const Recorder& tape, TensorImpl* const* in, int n) {
  if (state.grad_enabled || !tape.capturing || state.phase != Phase::forward || !op.vjp) return false;
  for (int i = 0; i < n; ++i)
    if (tape.needs_grad(*in[i])) return true;
  return false;
}

void record(Call& c, TensorImpl* const* out) {
  ThreadState& state = thread_state();
  Recorder& tape = *state.tape;
  std::uint32_t need = 0;
  if (state.grad_enabled && !c.op.is(kNoGradient))
    for (int i = 0; i < c.n; ++i)
      if (is_floating(c.in[i]->dtype) && tape.needs_grad(*c.in[i])) need |= 1u << std::min(i, 31);  // the last bit stands for all the rest
  if (!need && !tape.capturing) return;
  const SaveMask saves = need ? saves_of(c, need) : 0;
  if (!cut_gradient(state, c.op, tape, c.in, c.n)) {
    tape.record(c.op, {c.in, static_cast<std::size_t>(c.n)}, c.attrs, {out, static_cast<std::size_t>(c.n_out)}, need != 0, saves, c.site);
    return;
  }
  std::vector<Tensor> cut;
  std::vector<TensorImpl*> in;
  for (int i = 0; i < c.n; ++i) {
    cut.emplace_back(detail::new_view(*c.in[i], c.in[i]->shape, 0, c.in[i]->strides));
    TensorImpl* from[1] = {c.in[i]};
    TensorImpl* to[1] = {cut.back().impl()};
    if (tape.needs_grad(*c.in[i])) tape.record(ops::stop_gradient, from, nullptr, to, false, 0, c.site);
    in.push_back(tape.needs_grad(*c.in[i]) ? cut.back().impl() : c.in[i]);
  }
  tape.record(c.op, in, c.attrs, {out, static_cast<std::size_t>(c.n_out)}, false, 0, c.site);
}

}  // namespace

Tensor apply(const Op& op, std::initializer_list<const Tensor*> inputs, const void* attrs, Site site) {
  TensorImpl* in[kFewOperands] = {};
  int n = 0;
  for (const Tensor* t : inputs) in[n++] = t->impl();
  Call call{op, in, n, attrs, site, {}, nullptr, 0, nullptr};
  infer(call, {});
  TensorImpl* out[Signature::kOutputs] = {};
  compute(call, out);
  const Tensor result(out[0]);
  record(call, out);
  return result;
}

std::vector<Tensor> apply_all(const Op& op, std::span<const Tensor> inputs, const void* attrs, Site site,
                              std::span<const Type> declared) {
  std::vector<TensorImpl*> in;
  for (const Tensor& t : inputs) in.push_back(t.impl());
  Call call{op, in.data(), static_cast<int>(in.size()), attrs, site, {}, nullptr, 0, nullptr};
  infer(call, declared);
  std::vector<TensorImpl*> out(static_cast<std::size_t>(call.n_out));
  compute(call, out.data());
  std::vector<Tensor> results;
  for (TensorImpl* t : out) results.emplace_back(t);
  record(call, out.data());
  return results;
}

std::vector<Tensor> execute(const Op& op, std::span<const Tensor> inputs, const void* attrs, std::span<const Type> outputs, Site site) {
  std::vector<TensorImpl*> in;
  for (const Tensor& t : inputs) in.push_back(t.impl());
  Call call{op, in.data(), static_cast<int>(in.size()), attrs, site, {}, outputs.data(), static_cast<int>(outputs.size()), nullptr};
  std::vector<TensorImpl*> out(outputs.size());
  compute(call, out.data());
  std::vector<Tensor> results;
  for (TensorImpl* t : out) results.emplace_back(t);
  return results;
}

namespace {

bool same_window(const TensorImpl& a, const TensorImpl& b) {
  return a.storage == b.storage && a.offset == b.offset && a.shape == b.shape && std::equal(a.strides, a.strides + a.shape.rank, b.strides);
}

// Whether operand i may be read while result k is written over `target`.
bool may_share(const Op& op, const TensorImpl& operand, const TensorImpl& target, std::size_t i, std::size_t k) {
  if (operand.storage != target.storage) return true;
  return same_window(operand, target) && std::any_of(op.inplace.begin(), op.inplace.end(), [&](const InplacePair& p) {
           return p.output == static_cast<int>(k) && p.input == static_cast<int>(i);
         });
}

// Computes `out` over operands' bytes. Operands that overlap a target otherwise than in-place rules allow are read from copies, and
// targets whose strides the kernel does not write get a copy of its dense results.
void run_in_place(const Call& c, const std::vector<TensorImpl*>& out) {
  std::vector<Tensor> owned;
  std::vector<TensorImpl*> in(c.in, c.in + c.n);
  for (std::size_t i = 0; i < in.size(); ++i)
    for (std::size_t k = 0; k < out.size(); ++k)
      if (!may_share(c.op, *in[i], *out[k], i, k)) in[i] = owned.emplace_back(dense_copy(*in[i], c.site)).impl();
  std::vector<TensorImpl*> made = out;
  for (TensorImpl*& t : made)
    if (!c.op.is(kElementwise) && !detail::is_dense(t->shape, t->strides))
      t = owned.emplace_back(detail::new_impl(t->type(), detail::new_storage(t->type().bytes()))).impl();
  run_with_layouts(c.op, in.data(), c.n, c.attrs, made.data(), static_cast<int>(made.size()), c.site);
  for (std::size_t k = 0; k < out.size(); ++k)
    if (made[k] != out[k]) run_kernel(ops::copy, &made[k], 1, nullptr, &out[k], 1, c.site);
}

// A window that shows one element at several places cannot be written element by element.
bool repeats(const TensorImpl& t) {
  for (int i = 0; i < t.shape.rank; ++i)
    if (t.strides[i] == 0 && t.shape[i] > 1) return true;
  return false;
}

}  // namespace

void apply_in_place(const Op& op, std::span<const Tensor> inputs, const void* attrs, Site site) {
  ThreadState& state = thread_state();
  Recorder& tape = *state.tape;
  std::vector<TensorImpl*> in;
  for (const Tensor& t : inputs) in.push_back(t.impl());
  Call call{op, in.data(), static_cast<int>(in.size()), attrs, site, {}, nullptr, 0, nullptr};
  infer(call, {});
  // Which operand each result is written over.
  std::vector<int> over(static_cast<std::size_t>(call.n_out), -1);
  for (const InplacePair& pair : op.inplace)
    if (pair.output < call.n_out && over[static_cast<std::size_t>(pair.output)] < 0) over[static_cast<std::size_t>(pair.output)] = pair.input;
  std::vector<TensorImpl*> out;
  for (std::size_t i = 0; i < over.size(); ++i) {
    if (over[i] < 0) throw TypeError(error_text(op.name, "cannot run in place", site));
    TensorImpl* t = in[static_cast<std::size_t>(over[i])];
    if (t->type() != call.out_types[i])
      throw TypeError(error_text(op.name, fmt::format("result {} does not fit in place of {}", to_string(call.out_types[i]), to_string(t->type())), site));
    if (repeats(*t)) throw TypeError(error_text(op.name, fmt::format("cannot write {} in place: it is broadcast", to_string(t->type())), site));
    if (state.grad_enabled && tape.needs_grad(*t))
      throw GradientError(error_text(op.name, "writes a tensor that requires a gradient in place; use NoGrad", site));
    out.push_back(t);
  }
  const bool abstract = std::any_of(in.begin(), in.end(), [](TensorImpl* t) { return !t->storage; });
  if (!abstract && !state.abstract) {
    check_kernel(op, in.data(), call.n, call.out_types, call.n_out, site);
    run_in_place(call, out);
  }
  // The node's operands are the values from before the write, so it is recorded before the versions move.
  NodeId node = kNone;
  if (tape.capturing) {
    std::vector<Tensor> results;
    std::vector<TensorImpl*> fresh;
    for (TensorImpl* t : out) {
      results.emplace_back(detail::new_view(*t, t->shape, 0, t->strides));
      fresh.push_back(results.back().impl());
    }
    node = tape.record(op, in, attrs, fresh, false, 0, site);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i]->storage) {
      ++out[i]->storage->version;
      out[i]->storage->written_at = site;
    }
    if (node != kNone) tape.rebind(out[i], tape.graph.nodes[static_cast<std::size_t>(node)].first_output + static_cast<ValueId>(i));
  }
}

bool same_dtype(const Arg& a, const Arg& b) {
  const TensorImpl *x = a.tensor().impl(), *y = b.tensor().impl();
  return x && y && x->dtype == y->dtype;
}

std::pair<Tensor, Tensor> promoted(const char* op, const Arg& a, const Arg& b) {
  if (a.is_scalar() && b.is_scalar()) {
    const DType dtype = a.is_integer() && b.is_integer() ? DType::i64 : DType::f32;
    return {scalar(a.number(), dtype), scalar(b.number(), dtype)};
  }
  auto number = [&](const Arg& n, const Tensor& beside) {
    if (!beside.defined()) throw TypeError(error_text(op, "an operand is undefined", a.site()));
    const bool fraction = !n.is_integer() && !is_floating(beside.dtype());
    return scalar(n.number(), fraction ? DType::f32 : beside.dtype() == DType::boolean ? DType::i64 : beside.dtype());
  };
  Tensor x = a.is_scalar() ? number(a, b.tensor()) : a.tensor();
  Tensor y = b.is_scalar() ? number(b, a.tensor()) : b.tensor();
  if (!x.defined() || !y.defined() || x.dtype() == y.dtype()) return {std::move(x), std::move(y)};
  const DType dtype = promote(x.dtype(), y.dtype());
  const CastAttrs attrs{dtype};
  if (x.dtype() != dtype) x = apply(ops::cast, {&x}, &attrs, a.site());
  if (y.dtype() != dtype) y = apply(ops::cast, {&y}, &attrs, b.site());
  return {std::move(x), std::move(y)};
}

}  // namespace tapedeck
