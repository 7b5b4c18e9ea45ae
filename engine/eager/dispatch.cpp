// Runs one call of an op: infers the types, adapts the layouts of operands, takes memory, runs the kernel, and records the
// node.
//
//       apply(mul, {a, b})   ->   infer   ->   compute   ->   record
//
// If the op had the same types and attributes in a recent call on this thread, the call takes no lock. After the first steps
// have filled the free lists, it makes no system allocation either. Most such calls need their kernel and one result, and
// nothing else: compute_plainly() runs them without the steps that only other calls need.
#include <tapedeck/engine/eager/device_call.h>
#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/dispatch_parts.h>
#include <tapedeck/engine/eager/eager_profile.h>
#include <tapedeck/engine/eager/eviction.h>
#include <tapedeck/engine/eager/op_observer.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/ir/compare_nodes.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/graph_access.h>
#include <tapedeck/engine/ir/half_calls.h>
#include <tapedeck/engine/ir/interruption.h>
#include <tapedeck/engine/ir/strides.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tapedeck {

using detail::TensorImpl;

// The types and attributes of a recent call of an op on this thread, with the results of inference for them.
struct Signature {
  static constexpr int kInputs = 4, kOutputs = 3;
  static constexpr std::size_t kAttrBytes = 400;
  int n_inputs = -1;
  int n_outputs = 0;
  std::uint32_t need = 0;
  const Derived* derived = nullptr;
  Kernel plain = nullptr;         // for compute_plainly(); null: a call with these types needs more than its kernel
  std::int64_t result_bytes = 0;  // of a plain call
  bool same_shapes = false;       // the operands of a plain call have the shape of the result
  Type inputs[kInputs];
  Type outputs[kOutputs];
  unsigned char attrs[kAttrBytes];
};

namespace {

constexpr int kFewOperands = 8;

// The last signatures of one op. The layers of a model call an op with a few signatures in turn. Once all places are taken, a
// new signature replaces the oldest.
struct Signatures {
  static constexpr int kMost = 8;
  std::unique_ptr<Signature> known[kMost];
  int n = 0, oldest = 0;

  Signature& place_for_new() {
    if (n < kMost) {
      known[n] = std::make_unique<Signature>();
      return *known[n++];
    }
    Signature& replaced = *known[oldest];
    oldest = (oldest + 1) % kMost;
    return replaced;
  }
};

// The signatures by op id. The pointer has no destructor, so reading it needs no check for initialisation. The owner frees
// the signatures when the thread ends.
using SignatureTable = std::vector<std::unique_ptr<Signatures>>;
constinit thread_local SignatureTable* signatures = nullptr;
struct SignaturesOwner {
  ~SignaturesOwner() { delete std::exchange(signatures, nullptr); }
};

Signatures& new_signatures(std::size_t id) {
  static thread_local SignaturesOwner owner;
  (void)owner;
  if (!signatures) signatures = new SignatureTable;
  if (id >= signatures->size()) signatures->resize(id + 1);
  if (!(*signatures)[id]) (*signatures)[id] = std::make_unique<Signatures>();
  return *(*signatures)[id];
}

Signatures& signatures_of(const Op& op) {
  const auto id = static_cast<std::size_t>(op.id);
  if (signatures && id < signatures->size() && (*signatures)[id]) return *(*signatures)[id];
  return new_signatures(id);
}

bool cacheable(const Op& op, int n) {
  return n <= Signature::kInputs && !op.is(kDeclaredTypes) && (!op.attrs || op.attrs->size <= Signature::kAttrBytes);
}

// Attribute structs have bytes that belong to no field, such as those behind a bool, and they may hold anything.
bool same_attributes(const Op& op, const void* a, const void* b) {
  if (std::memcmp(a, b, op.attrs->size) == 0) return true;
  const std::span<const Field> fields = fields_of(op);
  return std::all_of(fields.begin(), fields.end(), [&](const Field& field) { return same_field(a, b, field); });
}

bool matches(const Signature& s, const Op& op, TensorImpl* const* in, int n, const void* attrs) {
  if (s.n_inputs != n) return false;
  for (int i = 0; i < n; ++i)
    if (s.inputs[i].dtype != in[i]->dtype || s.inputs[i].shape != in[i]->shape) return false;
  return !op.attrs || same_attributes(op, s.attrs, attrs);
}

Signature* find(const Signatures& all, const Call& c) {
  for (int k = 0; k < all.n; ++k)
    if (matches(*all.known[k], c.op, c.in, c.n, c.attrs)) return all.known[k].get();
  return nullptr;
}

[[noreturn]] void rethrow_with_site(const Op& op, const TypeError& error, Site site) {
  throw TypeError(error_text(op.name, error.op() == op.name ? error.message() : error.what(), site));
}

// The kernel of calls with these types and any attributes, if it is all that they need: one result of its own bytes, no
// workspace, no conversion to f32, no choice of a device.
Kernel plain_kernel(const Op& op, const Signature& s) {
  const auto special = [](const Type& type) { return kernels::is_half(type.dtype); };
  if (s.n_outputs != 1 || s.n_inputs == 0 || op.view || op.workspace || op.is(kRandom) || copies_between_devices(op))
    return nullptr;
  if (std::any_of(s.inputs, s.inputs + s.n_inputs, special) || special(s.outputs[0])) return nullptr;
  return op.kernels[0];
}

// Writes the call and its inferred types into a signature.
void note(const Call& c, Signature* s) {
  for (int i = 0; i < c.n; ++i) s->inputs[i] = c.in[i]->type();
  for (int i = 0; i < c.n_out; ++i) s->outputs[i] = c.spilled[i];
  if (c.op.attrs) std::memcpy(s->attrs, c.attrs, c.op.attrs->size);
  s->n_outputs = c.n_out;
  s->derived = nullptr;
  s->n_inputs = c.n;
  s->plain = plain_kernel(c.op, *s);
  s->result_bytes = s->plain ? s->outputs[0].bytes() : 0;
  s->same_shapes =
      s->plain && std::all_of(s->inputs, s->inputs + c.n, [&](const Type& t) { return t.shape == s->outputs[0].shape; });
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

}  // namespace

void infer(Call& c, std::span<const Type> declared) {
  for (int i = 0; i < c.n; ++i)
    if (!c.in[i]) throw TypeError(error_text(c.op.name, fmt::format("operand {} is undefined", i), c.site));
  if (!cacheable(c.op, c.n)) return infer_slowly(c, declared);
  Signatures& all = signatures_of(c.op);
  Signature* s = find(all, c);
  if (!s) {
    infer_slowly(c, declared);
    if (c.n_out > Signature::kOutputs) return;
    s = &all.place_for_new();
    note(c, s);
  }
  c.signature = s;
  c.out_types = s->outputs;
  c.n_out = s->n_outputs;
}

void operand_view(const Op& op, const TensorImpl& t, const Shape* out, View* view) {
  if (op.is(kElementwise) && t.shape != *out) return detail::fill_view_expanded(t, *out, view);
  if (op.is(kMatrixStrides) && t.shape.rank >= 2) {
    Shape shape = *out;
    for (int i = 1; i <= 2; ++i) shape.sizes[shape.rank - i] = t.shape[t.shape.rank - i];
    return detail::fill_view_expanded(t, shape, view);
  }
  detail::fill_view(t, view);
}

namespace {
bool any_half(TensorImpl* const* t, int n) {
  return std::any_of(t, t + n, [](const TensorImpl* x) { return kernels::is_half(x->dtype); });
}
}  // namespace

namespace {
bool any_on_device(TensorImpl* const* t, int n) {
  return std::any_of(t, t + n, [](const TensorImpl* x) { return x->storage->device != nullptr; });
}
}  // namespace

namespace {
void throw_fault(const KernelFault& fault, const Op& op, Site site) {
  if (const char* what = fault.what.load()) [[unlikely]]
    throw ExecutionError(error_text(op.name, fmt::format("{} ({})", what, fault.value.load()), site));
}
}  // namespace

// Runs the kernel into `out`. REQUIRES: the kernel takes the strides of the operands, and all tensors are resident.
void run_kernel(const Op& op, TensorImpl* const* in, int n, const void* attrs, TensorImpl* const* out, int n_out, Site site) {
  if (any_on_device(in, n) || any_on_device(out, n_out)) [[unlikely]]
    return run_on_device(op, in, n, attrs, out, n_out, site);
  alignas(View) unsigned char few[sizeof(View) * (kFewOperands + 4)];  // not initialised: the views are filled in below
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
  Kernel kernel = op.kernels[0];
  if (!kernel) throw ExecutionError(error_text(op.name, "has no kernel on cpu", site));
  Buffer workspace;
  if (op.workspace || any_half(in, n) || any_half(out, n_out)) {
    std::vector<Type> in_types, out_types;
    for (int i = 0; i < n; ++i) in_types.push_back(in[i]->type());
    for (int i = 0; i < n_out; ++i) out_types.push_back(out[i]->type());
    workspace = Buffer(Allocator::host(), workspace_bytes(op, in_types, out_types, attrs));
    call.workspace = workspace.data();
    call.workspace_bytes = static_cast<std::size_t>(workspace.bytes());
    if (runs_in_f32(op, in_types, out_types)) call.f32_kernel = std::exchange(kernel, f32_runner(op));
  }
  if (eager_profile_is_on()) {
    std::int64_t bytes = 0;
    for (int i = 0; i < n; ++i) bytes += in[i]->type().bytes();
    for (int i = 0; i < n_out; ++i) bytes += out[i]->type().bytes();
    const EagerTimer timer(op.name, site, bytes);
    kernel(call);
  } else {
    kernel(call);
  }
  throw_fault(fault, op, site);
}

// Returns a dense copy of an operand whose strides the kernel does not take. The copy is not recorded, because the plan
// decides about such copies itself.
TensorImpl* dense_copy(const TensorImpl& t, Site site) {
  const detail::ResidentTensors resident(t);
  const Tensor dense(detail::new_impl(t.type(), detail::new_storage(t.type().bytes(), t.storage->device)));
  TensorImpl* in[1] = {const_cast<TensorImpl*>(&t)};
  TensorImpl* out[1] = {dense.impl()};
  run_kernel(ops::copy, in, 1, nullptr, out, 1, site);
  detail::retain(out[0]);  // for the caller
  return out[0];
}

void run_with_layouts(const Op& op, TensorImpl* const* in, int n, const void* attrs, TensorImpl* const* out, int n_out,
                      Site site) {
  const auto taken = [&](int i) { return takes_strides(op, i, in[i]->shape, in[i]->strides); };
  bool all_taken = true;
  for (int i = 0; i < n; ++i) all_taken = all_taken && taken(i);
  if (all_taken) return run_kernel(op, in, n, attrs, out, n_out, site);
  std::vector<Tensor> owned;
  std::vector<TensorImpl*> fixed(in, in + n);
  for (int i = 0; i < n; ++i)
    if (!taken(i)) fixed[i] = owned.emplace_back(Tensor(dense_copy(*in[i], site))).impl();
  run_kernel(op, fixed.data(), n, attrs, out, n_out, site);
}

namespace {

TensorImpl* make_view(const Op& op, TensorImpl& base, const void* attrs, const Type& out, Site site, bool* window) {
  std::int64_t offset = 0, strides[kMaxRank];
  *window = op.view(base.type(), base.strides, attrs, out, &offset, strides);
  if (*window) return detail::new_view(base, out.shape, offset, strides);
  if (!base.storage || thread_state().abstract) return detail::new_impl(out, nullptr);
  const Tensor d(dense_copy(base, site));
  TensorImpl *from[1] = {&base}, *to[1] = {d.impl()};
  if (detail::calls_are_logged()) detail::log_call(ops::copy, from, nullptr, to, site);
  op.view(d.type(), d.strides(), attrs, out, &offset, strides);
  return detail::new_view(*d.impl(), out.shape, offset, strides);
}

// The result of an op that shows its operand.
TensorImpl* compute_view(Call& c) {
  bool window = false;
  TensorImpl* out = make_view(c.op, *c.in[0], c.attrs, c.out_types[0], c.site, &window);
  // A detached view must not keep the history of its base alive, so it gets no link. In a capture it gets one, so that the
  // capture can follow writes through it.
  const ThreadState& state = thread_state();
  const bool tracked = state.grad_enabled && !c.op.is(kNoGradient);
  if (!window || !(tracked || state.tape->capturing)) return out;
  try {
    detail::link_view(out, c.in[0], c.op, c.attrs, tracked);
  } catch (...) {
    detail::release(out);
    throw;
  }
  return out;
}

}  // namespace

void rethrow_memory_limit(const Call& c) {
  try {
    throw;
  } catch (const MemoryLimitError& error) {
    if (!error.op().empty()) throw;
    throw MemoryLimitError(error_text(c.op.name, error.message(), c.site));
  }
}

namespace {

// Apart from compute(), so that a call without an observer pays one branch and no more.
[[gnu::cold, gnu::noinline]] void report_results(const Call& c, TensorImpl* const* out) {
  report_op(c.op, {out, static_cast<std::size_t>(c.n_out)}, c.site, false);
}

// Allocates and computes the results. The caller owns them; if this throws, there are none.
void compute(Call& c, TensorImpl** out) {
  bool abstract = thread_state().abstract;
  for (int i = 0; i < c.n; ++i) abstract = abstract || !c.in[i]->storage;
  const std::span<TensorImpl* const> in(c.in, static_cast<std::size_t>(c.n));
  int made = 0;
  try {
    if (c.op.view) {
      out[0] = compute_view(c);
      if (op_observer() && !abstract) [[unlikely]]
        report_results(c, out);
      return;
    }
    const detail::ResidentTensors operands(abstract ? std::span<TensorImpl* const>() : in);
    EagerDevice* const device = abstract ? nullptr : device_of_call(c.op, c.in, c.n, c.attrs);
    for (; made < c.n_out; ++made)
      out[made] =
          detail::new_impl(c.out_types[made], abstract ? nullptr : detail::new_storage(c.out_types[made].bytes(), device));
    if (abstract) return;
    run_with_layouts(c.op, c.in, c.n, c.attrs, out, c.n_out, c.site);
    if (settings().watches_results()) watch_results(c, out);
    if (!device && detail::calls_are_logged())
      detail::log_call(c.op, in, c.attrs, {out, static_cast<std::size_t>(c.n_out)}, c.site);
    if (op_observer()) [[unlikely]]
      report_results(c, out);
  } catch (...) {
    for (int i = 0; i < made; ++i) detail::release(out[i]);
    rethrow_memory_limit(c);
  }
}

// Whether a mode of the process or the thread looks at every call.
bool calls_are_watched() {
  return detail::log_has_blocks.load(std::memory_order_relaxed) || op_observer() || eager_profile_is_on() ||
         detail::calls_are_logged() || settings().watches_results();
}

// Whether the kernel takes the operands as they lie in the memory of the host.
bool operands_are_plain(const Call& c) {
  const bool any_strides = c.op.is(kElementwise) || c.op.is(kAnyStrides);
  for (int i = 0; i < c.n; ++i) {
    const TensorImpl& t = *c.in[i];
    if (!t.storage || t.storage->device) return false;
    if (!any_strides && !takes_strides(c.op, i, t.shape, t.strides)) return false;
  }
  return true;
}

// Does what compute() does, for a call that needs its kernel and one result, and nothing else. An undefined tensor: it needs
// more, and nothing was done.
Tensor compute_plainly(const ThreadState& state, const Call& c) {
  const Signature* const s = c.signature;
  if (!s || !s->plain || state.abstract || calls_are_watched() || !operands_are_plain(c)) return {};
  try {
    Tensor out(detail::new_impl(s->outputs[0], detail::new_storage(s->result_bytes)));
    alignas(
        View) unsigned char room[sizeof(View) * (Signature::kInputs + 1)];  // not initialised: the views are filled in below
    View* const views = reinterpret_cast<View*>(room);
    for (int i = 0; i < c.n; ++i)
      s->same_shapes ? detail::fill_view(*c.in[i], &views[i]) : operand_view(c.op, *c.in[i], &out.impl()->shape, &views[i]);
    detail::fill_view(*out.impl(), &views[c.n]);
    KernelFault fault;
    KernelCall call;
    call.inputs = views;
    call.outputs = views + c.n;
    call.n_inputs = c.n;
    call.n_outputs = 1;
    call.attrs = c.attrs;
    call.fault = &fault;
    s->plain(call);
    throw_fault(fault, c.op, c.site);
    return out;
  } catch (...) {
    rethrow_memory_limit(c);
  }
}

// The results of a call as tensors. They have room before there are results that could be lost.
std::vector<Tensor> computed(Call& c, std::vector<TensorImpl*>& out) {
  out.resize(static_cast<std::size_t>(c.n_out));
  std::vector<Tensor> results;
  results.reserve(out.size());
  compute(c, out.data());
  for (TensorImpl* t : out) results.emplace_back(t);
  return results;
}

const Derived* derived_of(Call& c, std::uint32_t need, bool in_place) {
  if (!c.op.vjp) return nullptr;
  if (!in_place && c.signature && c.signature->derived && c.signature->need == need) return c.signature->derived;
  std::vector<Type> inputs;
  for (int i = 0; i < c.n; ++i) inputs.push_back(c.in[i]->type());
  const std::vector<Type> outputs(c.out_types, c.out_types + c.n_out);
  const Derived& derived = derive(c.op, inputs, outputs, c.attrs, need, !in_place);
  // derive() runs ops, and they may have replaced the cached signature. So the answer is stored only if the signature still
  // belongs to this call.
  if (!in_place && c.signature && matches(*c.signature, c.op, c.in, c.n, c.attrs)) {
    c.signature->need = need;
    c.signature->derived = &derived;
  }
  return &derived;
}

// Whether a capture must record a stop_gradient for the operands of this call, because the call runs under NoGrad. The graph
// then shows that no gradient passes.
bool cut_gradient(const ThreadState& state, const Op& op, const Recorder& tape, TensorImpl* const* in, int n) {
  if (state.grad_enabled || !tape.capturing || state.phase != Phase::forward || !op.vjp || state.calls) return false;
  for (int i = 0; i < n; ++i)
    if (tape.needs_grad(*in[i])) return true;
  return false;
}

}  // namespace

std::uint32_t need_of(const ThreadState& state, const Call& c, const Recorder& tape) {
  std::uint32_t need = 0;
  const auto unmarked = [&](const TensorImpl& t) { return t.tape == 0 && !t.requires_grad && !t.link && !tape.nested; };
  if (state.grad_enabled && !c.op.is(kNoGradient))
    for (int i = 0; i < c.n; ++i)
      if (!unmarked(*c.in[i]) && is_floating(c.in[i]->dtype) && tape.needs_grad(*c.in[i]))
        need |= 1u << std::min(i, 31);  // bit 31 stands for operand 31 and all after it
  return need;
}

NodeId record_node(Call& c, std::uint32_t need, TensorImpl* const* out, bool in_place) {
  Recorder& tape = *thread_state().tape;
  const Derived* derived = need ? derived_of(c, need, in_place) : nullptr;
  std::vector<Tensor> kept;
  const std::span<TensorImpl*const> in(c.in, static_cast<std::size_t>(c.n)), results(out, static_cast<std::size_t>(c.n_out));
  const NodeId n = tape.record(c.op, in, c.attrs, results, need != 0, derived, c.site);
  if (derived && derived->two_parts()) {
    kept = run_forward_part(c.op, *derived, in, results, c.attrs, need, c.site);
    tape.notes[n].more().kept = std::move(kept);
  }
  return n;
}

namespace {

// Whether this is a call inside a vjp with an operand that backward does not read. Such an operand is an abstract tensor, and
// the result of the call is not used.
bool idle_in_backward(const ThreadState& state, const Call& c) {
  if (state.phase != Phase::backward || state.abstract) return false;
  return std::any_of(c.in, c.in + c.n, [](const TensorImpl* t) { return !t->storage; });
}

void record(const ThreadState& state, Call& c, TensorImpl* const* out) {
  if (idle_in_backward(state, c)) return;
  Recorder& tape = *state.tape;
  const std::uint32_t need = need_of(state, c, tape);
  if (!need && !tape.capturing) return;
  if (!cut_gradient(state, c.op, tape, c.in, c.n)) {
    record_node(c, need, out);
    return;
  }
  std::vector<Tensor> cut;
  std::vector<TensorImpl*> in;
  for (int i = 0; i < c.n; ++i) {
    cut.push_back(Tensor(detail::new_view(*c.in[i], c.in[i]->shape, 0, c.in[i]->strides)));
    TensorImpl* from[1] = {c.in[i]};
    TensorImpl* to[1] = {cut.back().impl()};
    if (tape.needs_grad(*c.in[i])) tape.record(ops::stop_gradient, from, nullptr, to, false, nullptr, c.site);
    in.push_back(tape.needs_grad(*c.in[i]) ? cut.back().impl() : c.in[i]);
  }
  tape.record(c.op, in, c.attrs, {out, static_cast<std::size_t>(c.n_out)}, false, nullptr, c.site);
}

// ---- uncommon calls: in a vjp that runs in two parts, and under autocast ----

std::vector<Tensor> abstract_results(Call& c) {
  std::vector<Tensor> results;
  for (int i = 0; i < c.n_out; ++i) results.push_back(abstract_tensor(c.out_types[i]));
  return results;
}

std::vector<Tensor> call_in_part(const Op& op, std::span<const Tensor> inputs, const void* attrs, Site site,
                                 std::span<const Type> declared) {
  VjpCalls& calls = *thread_state().calls;
  const std::size_t k = calls.next++;
  if (k >= calls.derived.calls.size() || calls.derived.calls[k] != &op)
    throw GradientError(error_text(
        op.name, "a gradient function makes other calls than when it was traced: it may depend on types and attributes alone",
        site));
  const CallPart part = calls.derived.parts[k];
  const bool here = part == CallPart::both || (part == CallPart::backward) != calls.forward;
  if (here) {
    Scoped<bool> inside(calls.inside, true);
    const std::vector<Tensor> results = apply_all(op, inputs, attrs, site, declared);
    if (part == CallPart::kept) calls.kept.insert(calls.kept.end(), results.begin(), results.end());
    return results;
  }
  std::vector<TensorImpl*> in;
  for (const Tensor& t : inputs) in.push_back(t.impl());
  Call call{op, in.data(), static_cast<int>(in.size()), attrs, site, {}, nullptr, 0, nullptr};
  infer(call, declared);
  if (part != CallPart::kept) return abstract_results(call);
  const auto first = calls.kept.begin() + static_cast<std::ptrdiff_t>(calls.taken);
  calls.taken += static_cast<std::size_t>(call.n_out);
  return {first, first + call.n_out};
}

// Whether the last two dimensions lie the other way round, as those of a transposed matrix.
bool lies_turned(const TensorImpl& t) {
  const int r = t.shape.rank;
  return r >= 2 && t.strides[r - 2] == 1 && t.strides[r - 1] > 1;
}

// The cast of an operand of autocast. A product takes matrices of any strides, so a matrix that lies turned is cast as it lies,
// and stays turned: the cast reads and writes neighbours.
Tensor autocast_to(const Op& op, const Tensor& t, const CastAttrs& attrs, Site site) {
  if (!(op.is(kMatrixStrides) || op.is(kAnyStrides)) || !lies_turned(*t.impl())) return apply(ops::cast, {&t}, &attrs, site);
  static const Op& transpose = *find_op("transpose");
  PermuteAttrs turned;
  for (int i = 0; i < t.rank(); ++i) turned.axes.push_back(i);
  std::swap(turned.axes.items[t.rank() - 2], turned.axes.items[t.rank() - 1]);
  const Tensor as_it_lies = apply(transpose, {&t}, &turned, site);
  const Tensor low = apply(ops::cast, {&as_it_lies}, &attrs, site);
  return apply(transpose, {&low}, &turned, site);
}

// Casts the operands: products run in the low dtype, losses and similar ops in f32. The casts are ops and are recorded. An op
// for f32 that takes halves as they are computes in f32 too, so its halves are not cast.
std::vector<Tensor> call_under_autocast(const Op& op, std::span<const Tensor> inputs, const void* attrs, Site site,
                                        std::span<const Type> declared) {
  ThreadState& state = thread_state();
  Scoped<bool> once(state.autocast, false);
  const DType to = op.is(kLowPrecision) ? state.autocast_dtype : DType::f32;
  std::vector<Tensor> cast_inputs;
  for (const Tensor& t : inputs) {
    const bool stays = t.defined() && op.is(kFullPrecision) && op.is(kNativeHalf) && kernels::is_half(t.dtype());
    const bool from = t.defined() && is_floating(t.dtype()) && t.dtype() != DType::f64 && t.dtype() != to && !stays;
    const CastAttrs cast_attrs{to};
    cast_inputs.push_back(from ? autocast_to(op, t, cast_attrs, site) : t);
  }
  return apply_all(op, cast_inputs, attrs, site, declared);
}

bool takes_uncommon_way(const ThreadState& state, const Op& op) {
  return (state.calls && !state.calls->inside) || (state.autocast && (op.is(kLowPrecision) || op.is(kFullPrecision)));
}

std::vector<Tensor> uncommon_way(const Op& op, std::span<const Tensor> inputs, const void* attrs, Site site,
                                 std::span<const Type> declared) {
  const ThreadState& state = thread_state();
  if (state.calls && !state.calls->inside) return call_in_part(op, inputs, attrs, site, declared);
  return call_under_autocast(op, inputs, attrs, site, declared);
}

}  // namespace

Tensor apply(const Op& op, std::initializer_list<const Tensor*> inputs, const void* attrs, Site site) {
  stop_if_interrupted();
  const ThreadState& state = thread_state();
  const bool large = inputs.size() > kFewOperands || op.max_outputs < 0 || op.max_outputs > Signature::kOutputs;
  if (large || takes_uncommon_way(state, op)) {
    std::vector<Tensor> all;
    for (const Tensor* t : inputs) all.push_back(*t);
    return apply_all(op, all, attrs, site)[0];
  }
  TensorImpl* in[kFewOperands] = {};
  int n = 0;
  for (const Tensor* t : inputs) in[n++] = t->impl();
  Call call{op, in, n, attrs, site, {}, nullptr, 0, nullptr};
  infer(call, {});
  if (Tensor plain = compute_plainly(state, call); plain.defined()) {
    TensorImpl* const one = plain.impl();
    record(state, call, &one);
    return plain;
  }
  TensorImpl* out[Signature::kOutputs] = {};
  compute(call, out);
  static_assert(Signature::kOutputs == 3);
  const Tensor result(out[0]), second(out[1]), third(out[2]);  // those that nobody asked for end here
  record(state, call, out);
  return result;
}

std::vector<Tensor> apply_all(const Op& op, std::span<const Tensor> inputs, const void* attrs, Site site,
                              std::span<const Type> declared) {
  stop_if_interrupted();
  if (takes_uncommon_way(thread_state(), op)) return uncommon_way(op, inputs, attrs, site, declared);
  std::vector<TensorImpl*> in;
  for (const Tensor& t : inputs) in.push_back(t.impl());
  Call call{op, in.data(), static_cast<int>(in.size()), attrs, site, {}, nullptr, 0, nullptr};
  infer(call, declared);
  std::vector<TensorImpl*> out;
  std::vector<Tensor> results = computed(call, out);
  record(thread_state(), call, out.data());
  return results;
}

std::vector<Tensor> execute(const Op& op, std::span<const Tensor> inputs, const void* attrs, std::span<const Type> outputs,
                            Site site) {
  std::vector<TensorImpl*> in;
  for (const Tensor& t : inputs) in.push_back(t.impl());
  Call call{op, in.data(),      static_cast<int>(in.size()),      attrs,  site,
            {}, outputs.data(), static_cast<int>(outputs.size()), nullptr};
  std::vector<TensorImpl*> out;
  return computed(call, out);
}

}  // namespace tapedeck
