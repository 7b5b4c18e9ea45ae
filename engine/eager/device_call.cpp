// A call on a device: its operands are found there or copied, and its results are made there. The op runs on the host, between
// two copies, where the device has no kernel for it.
#include <tapedeck/engine/eager/device_call.h>

#include <tapedeck/engine/eager/dispatch_parts.h>
#include <tapedeck/engine/eager/eviction.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/kernels/attrs/device.h>
#include <tapedeck/kernels/cuda/run_in_f32.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace tapedeck {

using detail::TensorImpl;

bool copies_between_devices(const Op& op) {
  static const Op* const to_device = find_op("to_device");
  return &op == to_device;
}

EagerDevice* device_of_call(const Op& op, TensorImpl* const* in, int n, const void* attrs) {
  if (copies_between_devices(op)) return find_eager_device(static_cast<const ToDeviceAttrs*>(attrs)->device.view());
  for (int i = 0; i < n; ++i)
    if (in[i]->storage && in[i]->storage->device) return in[i]->storage->device;
  return n == 0 || op.is(kRandom) ? thread_state().device : nullptr;
}

namespace {

Tensor new_on(EagerDevice* device, const Type& type) {
  return Tensor(detail::new_impl(type, detail::new_storage(type.bytes(), device)));
}

std::string name_of_device(const TensorImpl& t) { return t.storage->device ? t.storage->device->name() : "cpu"; }

}  // namespace

namespace {

// Copies the elements to a dense tensor. REQUIRES: one of the two is on a device.
void copy_between(const TensorImpl& t, EagerDevice* to, TensorImpl& copied, Site site) {
  EagerDevice* const from = t.storage->device;
  const auto bytes = static_cast<std::size_t>(t.type().bytes());
  if (bytes == 0) return;
  const Tensor dense(detail::is_dense(t.shape, t.strides) ? detail::new_view(t, t.shape, 0, t.strides) : dense_copy(t, site));
  const void* const source = dense.impl()->resident_data();
  void* const target = copied.resident_data();
  if (from && to) {
    std::vector<unsigned char> between(bytes);
    from->read(between.data(), source, bytes);
    to->write(target, between.data(), bytes);
  } else if (from) {
    from->read(target, source, bytes);
  } else {
    to->write(target, source, bytes);
  }
}

std::string first_device(TensorImpl* const* in, int n) {
  for (int i = 0; i < n; ++i)
    if (in[i]->storage->device) return in[i]->storage->device->name();
  return "cpu";
}

}  // namespace

TensorImpl* copy_to_device(const TensorImpl& t, EagerDevice* to, Site site) {
  const detail::ResidentTensors resident(t, "to_device", site);
  const Tensor copied = new_on(to, t.type());
  copy_between(t, to, *copied.impl(), site);
  detail::retain(copied.impl());
  return copied.impl();
}

namespace {

// One call on a device.
class DeviceCall {
 public:
  DeviceCall(EagerDevice& device, const Op& op, const void* attrs, Site site)
      : device_(device), op_(op), attrs_(attrs), site_(site) {}

  void run(TensorImpl* const* in, int n, TensorImpl* const* out, int n_out) {
    check_results(out, n_out);
    bring(in, n);
    const kernels::cuda::KernelEntry* const entry = device_.kernel(op_.name);
    if (!entry || !entry->kernel) return run_on_host(out, n_out);
    fill_views(out, n_out);
    const bool in_f32 = !entry->native_half && runs_in_f32(op_, types_of(in_), types_of(out, n_out));
    KernelCall call = call_of(n_out);
    if (in_f32) call.f32_kernel = entry->kernel;
    const auto wanted = [&](const KernelCall& c) { return device_.workspace(*entry, c); };
    const std::vector<View> with_data = views_;
    for (View& v : views_) v.data = nullptr;  // a rule of workspace never sees data
    const std::int64_t bytes = in_f32 ? kernels::cuda::f32_workspace(call, wanted) : wanted(call);
    std::copy(with_data.begin(), with_data.end(), views_.begin());
    const Tensor scratch = bytes > 0 ? new_on(&device_, {DType::u8, {bytes}}) : Tensor();
    if (bytes > 0) call.workspace = scratch.impl()->resident_data();
    call.workspace_bytes = static_cast<std::size_t>(bytes);
    device_.launch(op_, in_f32 ? kernels::cuda::run_in_f32 : entry->kernel, call, site_);
  }

 private:
  static std::vector<Type> types_of(TensorImpl* const* t, int n) {
    std::vector<Type> types;
    for (int i = 0; i < n; ++i) types.push_back(t[i]->type());
    return types;
  }
  static std::vector<Type> types_of(const std::vector<TensorImpl*>& t) {
    return types_of(t.data(), static_cast<int>(t.size()));
  }

  void check_results(TensorImpl* const* out, int n_out) const {
    for (int k = 0; k < n_out; ++k)
      if (out[k]->storage->device != &device_)
        throw DeviceError(error_text(
            op_.name, fmt::format("result {} is on {}, another on {}", k, name_of_device(*out[k]), device_.name()), site_));
  }

  // Takes the operands, and copies of small ones that are on the host.
  void bring(TensorImpl* const* in, int n) {
    for (int i = 0; i < n; ++i) {
      TensorImpl* t = in[i];
      if (t->storage->device != &device_) {
        if (t->storage->device || t->type().bytes() > kBytesThatGoAlong)
          throw DeviceError(
              error_text(op_.name,
                         fmt::format("operand {} is on {}, another on {}; copy it there with to_device(x, \"{}\")", i,
                                     name_of_device(*t), device_.name(), device_.name()),
                         site_));
        t = owned_.emplace_back(Tensor(copy_to_device(*t, &device_, site_))).impl();
      }
      in_.push_back(t);
    }
  }

  void fill_views(TensorImpl* const* out, int n_out) {
    const Shape* const first = n_out > 0 ? &out[0]->shape : nullptr;
    views_.resize(in_.size() + static_cast<std::size_t>(n_out));
    for (std::size_t i = 0; i < in_.size(); ++i) operand_view(op_, *in_[i], first, &views_[i]);
    for (int i = 0; i < n_out; ++i) detail::fill_view(*out[i], &views_[in_.size() + static_cast<std::size_t>(i)]);
  }

  KernelCall call_of(int n_out) const {
    KernelCall call;
    call.inputs = views_.data();
    call.outputs = views_.data() + in_.size();
    call.n_inputs = static_cast<std::int32_t>(in_.size());
    call.n_outputs = n_out;
    call.attrs = attrs_;
    return call;
  }

  void say_once() const {
    static std::mutex mutex;
    static auto* said = new std::set<std::string>;
    const std::lock_guard lock(mutex);
    if (said->insert(op_.name).second)
      std::fprintf(stderr, "tapedeck: %s has no kernel on %s; it runs on the host, between two copies\n", op_.name,
                   device_.name().c_str());
  }

  void run_on_host(TensorImpl* const* out, int n_out) {
    say_once();
    std::vector<Tensor> tensors;
    std::vector<TensorImpl*> in, made;
    for (TensorImpl* const t : in_)
      in.push_back(tensors.emplace_back(Tensor(tapedeck::copy_to_device(*t, nullptr, site_))).impl());
    for (int i = 0; i < n_out; ++i) made.push_back(tensors.emplace_back(new_on(nullptr, out[i]->type())).impl());
    run_with_layouts(op_, in.data(), static_cast<int>(in.size()), attrs_, made.data(), n_out, site_);
    for (int i = 0; i < n_out; ++i) put(*made[static_cast<std::size_t>(i)], *out[i]);
  }

  // Copies a dense tensor of the host to a result, which may have any strides.
  void put(TensorImpl& from, TensorImpl& to) const {
    const auto bytes = static_cast<std::size_t>(from.type().bytes());
    if (bytes == 0) return;
    if (detail::is_dense(to.shape, to.strides)) return device_.write(to.resident_data(), from.resident_data(), bytes);
    const Tensor there(tapedeck::copy_to_device(from, &device_, site_));
    TensorImpl *source = there.impl(), *target = &to;
    run_kernel(ops::copy, &source, 1, nullptr, &target, 1, site_);
  }

  EagerDevice& device_;
  const Op& op_;
  const void* attrs_;
  Site site_;
  std::vector<Tensor> owned_;
  std::vector<TensorImpl*> in_;
  std::vector<View> views_;
};

}  // namespace

void run_on_device(const Op& op, TensorImpl* const* in, int n, const void* attrs, TensorImpl* const* out, int n_out,
                   Site site) {
  EagerDevice* const device = out[0]->storage->device;
  if (copies_between_devices(op) && thread_state().tape->capturing)
    throw DeviceError(error_text(op.name, "a captured step runs on one device; copy tensors to it before the step", site));
  if (copies_between_devices(op)) return copy_between(*in[0], device, *out[0], site);
  if (!device)
    throw DeviceError(error_text(op.name, fmt::format("an operand is on {}, the result on cpu", first_device(in, n)), site));
  DeviceCall(*device, op, attrs, site).run(in, n, out, n_out);
}

}  // namespace tapedeck
