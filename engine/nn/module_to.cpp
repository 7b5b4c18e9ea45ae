// Module::to(): gives tensors another dtype or another device in place. All conversions are computed first, and then the bytes
// of all tensors are exchanged, so that an error changes nothing:
//
//     weight f32[4,3] --cast--> f16[4,3]        handles of `weight` stay; dtype, bytes and strides are those of the conversion
//
// The new bytes have a higher version than the old ones. So tapes and recordings that know the tensor see that it was written.
#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/nn/module.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace tapedeck {
namespace {

struct Conversion {
  Tensor tensor, converted;
  Tensor grad;  // converted; undefined if the tensor has no gradient
};

using Convert = std::function<Tensor(const Tensor&)>;

Conversion convert(const Tensor& t, const Convert& conversion, Site site) {
  const auto refuse = [&](const char* why) {
    throw UsageError(error_text("to", fmt::format("'{}' {}", t.name().view(), why), site));
  };
  if (t.impl()->link) refuse("is a view, and would no longer share its bytes with its base");
  Conversion c{t, conversion(t), {}};
  if (c.converted.abstract() != t.abstract()) refuse("has data, and cannot be converted in abstract mode");
  if (t.grad().defined()) c.grad = conversion(t.grad());
  return c;
}

// Lets the tensor have the dtype, the device, the bytes and the strides of its conversion. No exception is thrown.
void exchange(Conversion& c) {
  detail::TensorImpl& to = *c.tensor.impl();
  detail::TensorImpl& from = *c.converted.impl();
  if (to.storage) from.storage->version = to.storage->version + 1;
  std::swap(to.storage, from.storage);
  std::swap(to.offset, from.offset);
  std::swap(to.dtype, from.dtype);
  std::copy_n(from.strides, from.shape.rank, to.strides);
}

// Converts the tensors for which `wanted` holds: all of them, or, if one cannot be converted, none.
void convert_all(const std::vector<Tensor>& tensors, const std::function<bool(const Tensor&)>& wanted,
                 const Convert& conversion, Site site) {
  const Recorder& tape = *thread_state().tape;
  if (tape.capturing || tape.nested)
    refuse_in_capture(tape, error_text("to", "converts tensors inside a capture, which a replay could not repeat", site));
  const NoGrad no_grad;
  std::vector<Conversion> conversions;
  for (const Tensor& t : tensors) {
    const bool known = std::any_of(conversions.begin(), conversions.end(),
                                   [&](const Conversion& c) { return c.tensor.impl() == t.impl(); });  // tied parameters
    if (wanted(t) && !known) conversions.push_back(convert(t, conversion, site));
  }
  for (Conversion& c : conversions) {
    exchange(c);
    if (c.grad.defined()) c.tensor.set_grad(std::move(c.grad));
  }
}

std::vector<Tensor> state_of(const Module& module) {
  std::vector<Tensor> all = module.parameters();
  for (Tensor& t : module.buffers()) all.push_back(std::move(t));
  return all;
}

}  // namespace

void Module::to(DType dtype, Site site) {
  if (!is_floating(dtype))
    throw UsageError(error_text("to", fmt::format("takes a floating dtype, not {}", dtype_name(dtype)), site));
  convert_all(
      state_of(*this), [&](const Tensor& t) { return is_floating(t.dtype()) && t.dtype() != dtype; },
      [&](const Tensor& t) { return contiguous(cast(t, dtype)); }, site);
}

void Module::to(const std::string& device, Site site) {
  const EagerDevice* const target = find_eager_device(device);
  convert_all(
      state_of(*this), [&](const Tensor& t) { return t.impl()->storage && t.impl()->storage->device != target; },
      [&](const Tensor& t) { return to_device(t, device); }, site);
}

}  // namespace tapedeck
