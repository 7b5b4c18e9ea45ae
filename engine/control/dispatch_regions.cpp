#include <tapedeck/engine/control/dispatch_regions.h>

#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

using detail::TensorImpl;

namespace {

std::vector<Type> infer(const Op& op, std::span<const Region> regions, std::span<const Tensor> inputs, const void* attrs,
                        Site site) {
  std::vector<Type> types, outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) throw TypeError(error_text(op.name, fmt::format("operand {} is undefined", i), site));
    types.push_back(inputs[i].type());
  }
  try {
    infer_types(op, types, attrs, outputs, regions);
  } catch (const TypeError& error) {
    throw TypeError(error_text(op.name, error.op() == op.name ? error.message() : error.what(), site));
  }
  return outputs;
}

// Returns `t`, or a copy if other tensors hold its bytes. So a later write in place into the result changes no other tensor.
Tensor with_own_bytes(Tensor t) {
  TensorImpl& i = *t.impl();
  if (i.refs.load() == 1 && i.storage && i.storage->refs.load() == 1 && !i.link && t.dense()) return t;
  Tensor copy = empty(t.type());
  t.copy_to(copy.impl()->data(), static_cast<std::size_t>(copy.bytes()), dtype_size(copy.dtype()));
  return copy;
}

std::vector<Tensor> run(const Op& op, std::span<const Region> regions, std::span<const Tensor> inputs, const void* attrs,
                        std::span<const Type> types, Site site) {
  std::vector<Tensor> results;
  const bool abstract =
      thread_state().abstract || std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.abstract(); });
  if (abstract) {
    for (const Type& t : types) results.push_back(abstract_tensor(t));
    return results;
  }
  const Unrecorded unrecorded;
  results = op.run(regions, inputs, attrs, types, site);
  for (Tensor& t : results) t = with_own_bytes(std::move(t));
  return results;
}

}  // namespace

std::vector<Tensor> apply_regions(const Op& op, std::span<const Region> regions, std::span<const Tensor> inputs,
                                  const void* attrs, Site site) {
  const std::vector<Type> types = infer(op, regions, inputs, attrs, site);
  std::vector<Tensor> results = run(op, regions, inputs, attrs, types, site);
  ThreadState& state = thread_state();
  Recorder& tape = *state.tape;
  bool needs = false;
  for (const Tensor& t : inputs)
    needs = needs || (state.grad_enabled && !op.is(kNoGradient) && is_floating(t.dtype()) && tape.needs_grad(*t.impl()));
  if (!needs && !tape.capturing) return results;
  std::vector<TensorImpl*> in, out;
  for (const Tensor& t : inputs) in.push_back(t.impl());
  for (const Tensor& t : results) out.push_back(t.impl());
  tape.record(op, in, attrs, out, needs, needs ? &saving(~SaveMask{0}) : nullptr, site, regions);
  return results;
}

}  // namespace tapedeck
