// The workspace holds the f32 copies of all half-precision operands and results, in order, then the workspace of the kernel:
//
//     half operand 0 | half operand 2 | half result 0 | workspace of the f32 kernel
//
// A dimension of stride 0 is converted once, not once for each repetition.
#include <tapedeck/kernels/cuda/run_in_f32.h>

#include <tapedeck/kernels/f32_copy.h>
#include <tapedeck/kernels/half.h>

namespace tapedeck::kernels::cuda {
namespace {

constexpr int kMostViews = 128;
constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void convert(const KernelCall& outer, const View& from, const View& to) {
  static const Kernel cast = find_kernel("cast")->kernel;
  const View source = without_repeats(from), target = without_repeats(to);
  KernelCall call;
  call.inputs = &source;
  call.outputs = &target;
  call.n_inputs = call.n_outputs = 1;
  call.stream = outer.stream;
  call.fault = outer.fault;
  cast(call);
}

// Fills in the views of the f32 call, and the bytes before the workspace of the kernel. `scratch` may be null.
std::int64_t lay_out(const KernelCall& call, char* scratch, View* views) {
  std::int64_t used = 0;
  for (int i = 0; i < call.n_inputs + call.n_outputs; ++i) {
    const View& given = i < call.n_inputs ? call.inputs[i] : call.outputs[i - call.n_inputs];
    views[i] = given;
    if (!is_half(given.dtype)) continue;
    const F32Copy copy = f32_copy(given, scratch ? scratch + used : nullptr);
    views[i] = copy.view;
    used += aligned(copy.elements * 4);
  }
  return used;
}

KernelCall inner_call(const KernelCall& call, const View* views) {
  KernelCall inner = call;
  inner.inputs = views;
  inner.outputs = views + call.n_inputs;
  inner.f32_kernel = nullptr;
  return inner;
}

}  // namespace

void run_in_f32(const KernelCall& call) {
  if (call.n_inputs + call.n_outputs > kMostViews) return call.fault->report("too many half-precision operands", call.n_inputs);
  View views[kMostViews];
  const std::int64_t used = lay_out(call, static_cast<char*>(call.workspace), views);
  KernelCall inner = inner_call(call, views);
  inner.workspace_bytes = call.workspace_bytes - static_cast<std::size_t>(used);
  inner.workspace = inner.workspace_bytes > 0 ? static_cast<char*>(call.workspace) + used : nullptr;
  for (int i = 0; i < call.n_inputs; ++i)
    if (is_half(call.inputs[i].dtype)) convert(call, call.inputs[i], views[i]);
  call.f32_kernel(inner);
  for (int i = 0; i < call.n_outputs; ++i)
    if (is_half(call.outputs[i].dtype)) convert(call, inner.outputs[i], call.outputs[i]);
}

std::int64_t f32_workspace(const KernelCall& call, const std::function<std::int64_t(const KernelCall&)>& wanted) {
  if (call.n_inputs + call.n_outputs > kMostViews) return 0;
  View views[kMostViews];
  const std::int64_t used = lay_out(call, nullptr, views);
  return used + wanted(inner_call(call, views));
}

}  // namespace tapedeck::kernels::cuda
