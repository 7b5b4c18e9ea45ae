// Tensor handles, storage and views. A handle counts references to a TensorImpl, and the TensorImpl counts references to its
// Storage:
//
//       Tensor x, Tensor y = x   ->   TensorImpl (f32[2,3])  --+
//       Tensor v = slice(x)      ->   TensorImpl (f32[1,3])  --+->   Storage (24 bytes)
//
// Objects come from free lists (object_pool.h), bytes from the allocator.
#include <tapedeck/engine/eager/core_calls.h>
#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/engine/eager/eviction.h>
#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/marked_extra.h>
#include <tapedeck/engine/eager/object_pool.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

namespace tapedeck {
namespace detail {

Storage* new_storage(std::int64_t bytes, EagerDevice* device) {
  void* place = Pool<Storage>::take();
  void* data = nullptr;
  try {
    data = device ? device->allocate(bytes) : Allocator::host().allocate(bytes);
  } catch (...) {
    Pool<Storage>::give(place);
    throw;
  }
  auto* s = new (place) Storage;
  s->data = data;
  s->bytes = bytes;
  s->device = device;
  return s;
}

void retain(Storage* s) noexcept { s->refs.fetch_add(1, std::memory_order_relaxed); }

void release(Storage* s) noexcept {
  if (s->refs.load(std::memory_order_acquire) != 1 && s->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (s->block != kNone) let_go(s);
  if (s->device)
    s->device->release(s->data, s->bytes);
  else
    Allocator::host().release(s->data, s->bytes);
  s->~Storage();
  Pool<Storage>::give(s);
}

namespace {

// A place for a tensor. Lets the storage go if there is none.
void* take_place(Storage* storage) {
  try {
    return Pool<TensorImpl>::take();
  } catch (...) {
    if (storage) release(storage);
    throw;
  }
}

}  // namespace

TensorImpl* new_impl(const Type& type, Storage* storage) {
  auto* t = new (take_place(storage)) TensorImpl;
  t->dtype = type.dtype;
  t->storage = storage;
  t->shape.rank = type.shape.rank;
  std::int64_t stride = 1;
  for (int i = type.shape.rank - 1; i >= 0; --i) {
    t->shape.sizes[i] = type.shape.sizes[i];
    t->strides[i] = stride;
    stride *= type.shape.sizes[i];
  }
  return t;
}

TensorImpl* new_view(const TensorImpl& base, const Shape& shape, std::int64_t offset, const std::int64_t* strides) {
  if (base.storage) retain(base.storage);
  TensorImpl* t = new_impl({base.dtype, shape}, base.storage);
  // A view of an empty storage always has offset 0, because its null address cannot be stepped from.
  t->offset = base.storage && base.storage->bytes == 0 ? 0 : base.offset + offset;
  for (int i = 0; i < shape.rank; ++i) t->strides[i] = strides[i];
  return t;
}

TensorImpl* new_dense(const Type& type) {
  const ThreadState& state = thread_state();
  return new_impl(type, state.abstract ? nullptr : new_storage(type.bytes(), state.device));
}

void retain(TensorImpl* t) noexcept { t->refs.fetch_add(1, std::memory_order_relaxed); }

void release(TensorImpl* t) noexcept {
  // If there is only one reference, no other thread can change the count, so no atomic subtraction is needed.
  if (t->refs.load(std::memory_order_acquire) != 1 && t->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (t->tape != 0)
    if (ThreadState* state = thread_state_if_any()) {
      if (state->tape->owns(*t))
        state->tape->dropped(*t);
      else if (state->own && state->own->owns(*t))
        state->own->dropped(*t);
    }
  if (t->link) unlink_view(t);
  if (t->storage) release(t->storage);
  delete static_cast<MarkedExtra*>(t->extra);
  t->~TensorImpl();
  Pool<TensorImpl>::give(t);
}

void unlink_view(TensorImpl* view) noexcept {
  ViewLink* link = std::exchange(view->link, nullptr);
  release(link->parent);
  link->~ViewLink();
  Pool<ViewLink>::give(link);
}

void link_view(TensorImpl* view, TensorImpl* parent, const Op& op, const void* attrs, bool tracked) {
  const int depth = parent->link ? parent->link->depth + 1 : 1;
  const std::size_t bytes = op.attrs ? op.attrs->size : 0;
  if (depth > ViewLink::kMaxDepth || bytes > ViewLink::kAttrBytes) return;
  auto* link = new (Pool<ViewLink>::take()) ViewLink;
  retain(parent);
  link->parent = parent;
  link->op = &op;
  link->depth = depth;
  link->tracked = tracked;
  if (bytes) std::memcpy(link->attrs, attrs, bytes);
  view->link = link;
}

void fill_view_expanded(const TensorImpl& t, const Shape& shape, View* view) {
  view->data = t.resident_data();
  view->dtype = t.dtype;
  view->rank = shape.rank;
  const int lead = shape.rank - t.shape.rank;
  for (int i = 0; i < shape.rank; ++i) {
    view->sizes[i] = shape.sizes[i];
    const bool repeats = i < lead || (t.shape.sizes[i - lead] == 1 && shape.sizes[i] != 1);
    view->strides[i] = repeats ? 0 : t.strides[i - lead];
  }
}

bool is_dense(const Shape& shape, const std::int64_t* strides) {
  std::int64_t expected = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    if (shape.sizes[i] != 1 && strides[i] != expected) return false;
    expected *= shape.sizes[i];
  }
  return true;
}

}  // namespace detail

namespace {

detail::TensorImpl& need(detail::TensorImpl* impl, const char* what) {
  if (!impl) throw TypeError(fmt::format("{} of an undefined tensor", what));
  return *impl;
}

detail::Extra& extra(detail::TensorImpl& t) {
  if (!t.extra) t.extra = new detail::MarkedExtra;
  return *t.extra;
}

// Refuses to read elements on the host inside a capture: a replay would use the values of the recording.
void refuse_host_read(const detail::TensorImpl& t, const char* what, Site site = {}) {
  const ThreadState* state = thread_state_if_any();
  if (state && state->tape->capturing)
    refuse_host_read_on(
        *state->tape,
        error_text(what, "reads a tensor on the host inside a capture, which a replay could not repeat; read it outside",
                   site));
  if (!t.storage)
    throw TypeError(error_text(what, fmt::format("{} is abstract: it has a type and no data", to_string(t.type())), site));
}

}  // namespace

DType Tensor::dtype() const { return need(impl_, "dtype").dtype; }
const Shape& Tensor::shape() const { return need(impl_, "shape").shape; }
Type Tensor::type() const { return need(impl_, "type").type(); }
std::int64_t Tensor::bytes() const { return type().bytes(); }
const std::int64_t* Tensor::strides() const { return need(impl_, "strides").strides; }
bool Tensor::dense() const { return detail::is_dense(shape(), impl_->strides); }
bool Tensor::abstract() const { return need(impl_, "abstract").storage == nullptr; }

std::int64_t Tensor::size(int dim) const {
  const Shape& s = shape();
  const int d = dim < 0 ? dim + s.rank : dim;
  if (d < 0 || d >= s.rank)
    throw TypeError(error_text("size", fmt::format("dimension {} is outside {}", dim, to_string(type())), {}));
  return s[d];
}

const void* Tensor::data() const {
  refuse_host_read(need(impl_, "data"), "data");
  if (impl_->storage->block != kNone || impl_->storage->device)
    return impl_->place_in(detail::exposed_bytes(*impl_->storage, "data", {}));
  return impl_->resident_data();
}

void* Tensor::mutable_data(Site site) {
  need(impl_, "data");
  const ThreadState* state = thread_state_if_any();
  if (state && state->tape->capturing)
    refuse_in_capture(
        *state->tape,
        error_text("mutable_data", "writes a tensor from the host inside a capture, which a replay could not repeat", site));
  refuse_host_read(*impl_, "mutable_data", site);
  if (impl_->storage->device) detail::exposed_bytes(*impl_->storage, "mutable_data", site);
  detail::before_write(*impl_->storage, "mutable_data", site);
  ++impl_->storage->version;
  impl_->storage->written_at = site;
  impl_->storage->handed_out = true;
  return impl_->resident_data();
}

void Tensor::refuse_elements(const char* what, Site site) const {
  throw TypeError(error_text(
      what, fmt::format("the elements of {} are {}, not of the type asked for", to_string(type()), element_name(dtype())),
      site));
}

void Tensor::widen(const std::vector<std::uint16_t>& bits, float* out) const {
  for (std::uint16_t one : bits)
    *out++ = impl_->dtype == DType::f16 ? kernels::to_f32(kernels::F16{one}) : kernels::to_f32(kernels::Bf16{one});
}

void Tensor::require_one(Site site) const {
  refuse_host_read(need(impl_, "item"), "item", site);
  if (numel() != 1)
    throw TypeError(error_text("item", fmt::format("{} has {} elements, not one", to_string(type()), numel()), site));
}

namespace {

bool some_double_equals(std::int64_t value) {
  const auto rounded = static_cast<double>(value);
  return rounded < 0x1p63 && static_cast<std::int64_t>(rounded) == value;
}

double exact_item(std::int64_t value, Site site) {
  if (some_double_equals(value)) return static_cast<double>(value);
  throw TypeError(error_text("item", fmt::format("no double equals {}; call item<std::int64_t>()", value), site));
}

}  // namespace

double Tensor::item(Site site) const {
  require_one(site);
  const detail::ResidentTensors resident(*impl_, "item", site);
  std::uint64_t element = 0;
  const void* p = impl_->resident_data();
  if (EagerDevice* const device = impl_->storage->device) {
    device->read(&element, p, dtype_size(impl_->dtype));
    p = &element;
  }
  switch (impl_->dtype) {
    case DType::f32:
      return *static_cast<const float*>(p);
    case DType::f64:
      return *static_cast<const double*>(p);
    case DType::i32:
      return *static_cast<const std::int32_t*>(p);
    case DType::i64:
      return exact_item(*static_cast<const std::int64_t*>(p), site);
    case DType::u8:
    case DType::boolean:
      return *static_cast<const std::uint8_t*>(p);
    case DType::f16:
      return kernels::to_f32(*static_cast<const kernels::F16*>(p));
    case DType::bf16:
      return kernels::to_f32(*static_cast<const kernels::Bf16*>(p));
  }
  return 0;
}

void Tensor::copy_to(void* dst, std::size_t bytes, std::size_t element_size) const {
  refuse_host_read(need(impl_, "to_vector"), "to_vector");
  if (element_size != dtype_size(impl_->dtype))
    throw TypeError(error_text(
        "to_vector",
        fmt::format("elements of {} have {} bytes, not {}", to_string(type()), dtype_size(impl_->dtype), element_size), {}));
  if (bytes == 0) return;
  const NoGrad no_grad;
  const Tensor d = dense() ? *this : copy(*this);
  const detail::ResidentTensors resident(*d.impl_, "to_vector");
  if (EagerDevice* const device = d.impl_->storage->device) return device->read(dst, d.impl_->resident_data(), bytes);
  std::memcpy(dst, d.impl_->resident_data(), bytes);
}

bool Tensor::requires_grad() const {
  const detail::TensorImpl& t = need(impl_, "requires_grad");
  const ThreadState* state = thread_state_if_any();
  return state ? state->tape->needs_grad(t) : t.requires_grad;
}

Tensor& Tensor::requires_grad(bool on) {
  detail::TensorImpl& t = need(impl_, "requires_grad");
  if (on && !is_floating(t.dtype))
    throw TypeError(error_text("requires_grad", fmt::format("{} holds integers: no gradient", to_string(t.type())), {}));
  const ThreadState* state = thread_state_if_any();
  if (state && state->tape->owns(t)) {
    if (state->tape->needs_grad(t))
      throw GradientError(
          error_text("requires_grad", fmt::format("{} is a result and no leaf; detach() it first", to_string(t.type())), {}));
    if (on) {
      refuse_in_capture(
          *state->tape,
          error_text("requires_grad",
                     fmt::format("{} was computed inside the capture; make the leaf before it", to_string(t.type())), {}));
      state->tape->dropped(t);  // from here on it is a tensor from outside
      t.tape = 0;
    }
  }
  t.requires_grad = on;
  return *this;
}

Tensor Tensor::grad() const { return need(impl_, "grad").extra ? impl_->extra->grad : Tensor(); }

void Tensor::set_grad(Tensor g) {
  detail::TensorImpl& t = need(impl_, "set_grad");
  if (g.defined() && g.type() != t.type())
    throw TypeError(
        error_text("set_grad", fmt::format("the gradient of {} cannot be {}", to_string(t.type()), to_string(g.type())), {}));
  const ThreadState* state = thread_state_if_any();
  if (state && state->tape->capturing) state->tape->note_grad(&t, !g.defined());
  const bool cleared = !g.defined();
  extra(t).grad = std::move(g);
  if (cleared) detail::fresh_mark(t) = false;
}

GradRequest Tensor::grad_request() const { return need(impl_, "grad_request").request; }

Tensor& Tensor::grad_request(GradRequest request) {
  need(impl_, "grad_request").request = request;
  return *this;
}

Tensor Tensor::detach() const {
  need(impl_, "detach");
  return stop_gradient(*this);
}

Tensor& Tensor::detach_() {
  detail::TensorImpl& t = need(impl_, "detach_");
  t.requires_grad = false;
  if (t.link) t.link->tracked = false;
  const ThreadState* state = thread_state_if_any();
  if (state && state->tape->owns(t)) state->tape->cut(state->tape->value_of(&t, {}));
  return *this;
}

Tensor& Tensor::on_grad(GradHook hook) {
  detail::TensorImpl& t = need(impl_, "on_grad");
  ThreadState& state = thread_state();
  if (!requires_grad())
    throw GradientError(error_text("on_grad", fmt::format("{} needs no gradient", to_string(t.type())), {}));
  if (!state.tape->owns(t)) {
    extra(t).hooks.push_back(std::move(hook));
    return *this;
  }
  const ValueId v = state.tape->value_of(&t, {});
  state.tape->hooks[v].push_back(std::move(hook));
  state.tape->info[v].has_hooks = true;
  return *this;
}

Tensor& Tensor::retain_grad() {
  detail::TensorImpl& t = need(impl_, "retain_grad");
  if (t.requires_grad) return *this;  // a leaf keeps its gradient anyway
  extra(t);
  // The tape holds the hook, and this tensor keeps the tape alive. So the hook must not hold a reference to the tensor.
  return on_grad([impl = impl_](const Tensor& g) {
    const Tensor old = impl->extra->grad;
    const Tensor now = old.defined() ? add(old, g) : copy(g);
    impl->extra->grad = now;
    detail::fresh_mark(*impl) = true;
    return Tensor();
  });
}

Name Tensor::name() const { return need(impl_, "name").extra ? impl_->extra->name : Name(); }

Tensor& Tensor::name(Name n) {
  extra(need(impl_, "name")).name = n;
  return *this;
}

Role Tensor::role() const { return need(impl_, "role").role; }

Tensor& Tensor::role(Role r) {
  need(impl_, "role").role = r;
  return *this;
}

const Tensor& Arg::undefined() {
  static const Tensor none;
  return none;
}

Tensor empty(const Type& type) {
  try {
    return Tensor(detail::new_dense(type));
  } catch (const MemoryLimitError& error) {
    throw MemoryLimitError(error_text("empty", error.message(), {}));
  }
}

static detail::Storage* storage_for_bytes(const Type& type) {
  try {
    return detail::new_storage(type.bytes());
  } catch (const MemoryLimitError& error) {
    throw MemoryLimitError(error_text("from_bytes", error.message(), {}));
  }
}

Tensor from_bytes(const Type& type, const void* bytes) {
  detail::Storage* s = storage_for_bytes(type);
  if (type.bytes() > 0) std::memcpy(s->data, bytes, static_cast<std::size_t>(type.bytes()));
  return Tensor(detail::new_impl(type, s));
}

namespace {

template <class T>
Tensor scalar_of_bytes(DType dtype, T value) {
  return from_bytes({dtype, {}}, &value);
}

}  // namespace

Tensor scalar(double value, DType dtype) {
  if (!fits_dtype(value, dtype))
    throw TypeError(error_text("scalar", fmt::format("{} does not fit {}", value, dtype_name(dtype)), {}));
  switch (dtype) {
    case DType::f32:
      return scalar_of_bytes(dtype, static_cast<float>(value));
    case DType::f64:
      return scalar_of_bytes(dtype, value);
    case DType::f16:
      return scalar_of_bytes(dtype, kernels::to_f16(static_cast<float>(value)).bits);
    case DType::bf16:
      return scalar_of_bytes(dtype, kernels::to_bf16(static_cast<float>(value)).bits);
    case DType::i32:
      return scalar_of_bytes(dtype, static_cast<std::int32_t>(value));
    case DType::i64:
      return scalar_of_bytes(dtype, static_cast<std::int64_t>(value));
    case DType::u8:
      return scalar_of_bytes(dtype, static_cast<std::uint8_t>(static_cast<std::int32_t>(value)));
    case DType::boolean:
      break;
  }
  return scalar_of_bytes(dtype, static_cast<std::uint8_t>(value != 0));
}

double exact_double(const char* op, std::int64_t value, Site site) {
  if (some_double_equals(value)) return static_cast<double>(value);
  throw TypeError(error_text(op, fmt::format("no double equals {}; make it a tensor by integer_scalar()", value), site));
}

Tensor integer_scalar(std::int64_t value, DType dtype) {
  if (dtype == DType::i64) return scalar_of_bytes(dtype, value);
  return scalar(static_cast<double>(value), dtype);
}

Tensor abstract_tensor(const Type& type) { return Tensor(detail::new_impl(type, nullptr)); }

// The tensor, or a copy of it in the memory of the host. Throws like data().
static Tensor on_host_memory(const Tensor& t) {
  refuse_host_read(*t.impl(), "data");
  EagerDevice* const device = t.impl()->storage->device;
  if (!device) return t;
  const Tensor dense = t.dense() ? t : copy(t);
  detail::Storage* const bytes = detail::new_storage(t.bytes());
  const Tensor host(detail::new_impl(t.type(), bytes));
  if (t.bytes() > 0) device->read(bytes->data, dense.impl()->resident_data(), static_cast<std::size_t>(t.bytes()));
  return host;
}

bool bit_equal(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type()) return false;
  const NoGrad no_grad;
  const Tensor x = on_host_memory(a.dense() ? a : copy(a)), y = on_host_memory(b.dense() ? b : copy(b));
  detail::TensorImpl* const both[2] = {x.impl(), y.impl()};
  const detail::ResidentTensors resident(both, "bit_equal");
  return a.bytes() == 0 ||
         std::memcmp(x.impl()->resident_data(), y.impl()->resident_data(), static_cast<std::size_t>(a.bytes())) == 0;
}

}  // namespace tapedeck
