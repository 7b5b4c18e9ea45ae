// Elements of floating types as the kernels of the device read and write them: f16 and bf16 become f32 when they are read, and
// are rounded when they are written.
#pragma once

#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/half.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace convolution {

// The type in which a kernel computes with elements of type T.
template <class T>
struct RealOf {
  using Type = float;
};
template <>
struct RealOf<double> {
  using Type = double;
};
template <class T>
using Real = typename RealOf<T>::Type;

TAPEDECK_DEVICE float read(float x) { return x; }
TAPEDECK_DEVICE double read(double x) { return x; }
TAPEDECK_DEVICE float read(F16 x) { return to_f32(x); }
TAPEDECK_DEVICE float read(Bf16 x) { return to_f32(x); }

TAPEDECK_DEVICE void write(float& to, float x) { to = x; }
TAPEDECK_DEVICE void write(double& to, double x) { to = x; }
TAPEDECK_DEVICE void write(F16& to, float x) { to = to_f16(x); }
TAPEDECK_DEVICE void write(Bf16& to, float x) { to = to_bf16(x); }

// Calls f(T{}) for f32, f64, f16 and bf16.
template <class F>
void for_reals(const KernelCall& call, DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::f16:
      return f(F16{});
    case DType::bf16:
      return f(Bf16{});
    default:
      call.fault->report("element type not supported by this kernel", static_cast<std::int64_t>(dtype));
  }
}

}  // namespace convolution
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
