// run_in_f32: converts f16 and bf16 operands to f32 in the workspace, runs the f32 kernel on them, and converts the results
// back. A dimension of stride 0 is converted once, not once per repetition.
#include <tapedeck/kernels/half.h>

#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/f32_copy.h>

namespace tapedeck::kernels {
namespace {

template <class H>
struct FromHalf {
  float operator()(std::uint16_t bits) const { return to_f32(H{bits}); }
};
struct IntoF16 {
  std::uint16_t operator()(float x) const { return to_f16(x).bits; }
};
struct IntoBf16 {
  std::uint16_t operator()(float x) const { return to_bf16(x).bits; }
};

KernelCall conversion(const View& from, const View& to, KernelFault* fault) {
  KernelCall call;
  call.inputs = &from;
  call.outputs = &to;
  call.n_inputs = call.n_outputs = 1;
  call.fault = fault;
  return call;
}

// The f32 copy of a half-precision view, in the workspace.
View in_scratch(const View& half, char** scratch) {
  const F32Copy copy = f32_copy(half, *scratch);
  *scratch += half_scratch(copy.elements);
  return copy.view;
}

void load(const View& half, const View& f32, KernelFault* fault) {
  const View from = without_repeats(half), to = without_repeats(f32);
  if (half.dtype == DType::f16)
    cpu::map<float, std::uint16_t>(conversion(from, to, fault), FromHalf<F16>{});
  else
    cpu::map<float, std::uint16_t>(conversion(from, to, fault), FromHalf<Bf16>{});
}

void store(const View& f32, const View& half, KernelFault* fault) {
  if (half.dtype == DType::f16)
    cpu::map<std::uint16_t, float>(conversion(f32, half, fault), IntoF16{});
  else
    cpu::map<std::uint16_t, float>(conversion(f32, half, fault), IntoBf16{});
}

}  // namespace

void run_in_f32(const KernelCall& call) {
  constexpr int kMost = 128;
  if (call.n_inputs + call.n_outputs > kMost) return call.fault->report("too many half-precision operands", call.n_inputs);
  View views[kMost];
  char* scratch = static_cast<char*>(call.workspace);
  for (int i = 0; i < call.n_inputs + call.n_outputs; ++i) {
    const View& given = i < call.n_inputs ? call.inputs[i] : call.outputs[i - call.n_inputs];
    views[i] = is_half(given.dtype) ? in_scratch(given, &scratch) : given;
    if (i < call.n_inputs && is_half(given.dtype)) load(given, views[i], call.fault);
  }
  KernelCall inner = call;
  inner.inputs = views;
  inner.outputs = views + call.n_inputs;
  inner.f32_kernel = nullptr;
  inner.workspace_bytes = call.workspace_bytes - static_cast<std::size_t>(scratch - static_cast<char*>(call.workspace));
  inner.workspace = inner.workspace_bytes > 0 ? scratch : nullptr;
  call.f32_kernel(inner);
  for (int i = 0; i < call.n_outputs; ++i)
    if (is_half(call.outputs[i].dtype)) store(inner.outputs[i], call.outputs[i], call.fault);
}

}  // namespace tapedeck::kernels
