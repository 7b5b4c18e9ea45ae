// OP(name, {...}) is the one block that defines an op. Two kinds of files read the header of an op family:
//   users                   the block declares `ops::name`, nothing more
//   the .cpp of the family  it defines TAPEDECK_DEFINE_OPS and reads the header a second time; then the block defines the op
// The block also declares the kernels of the op. A missing CPU kernel is a link error. A missing CUDA kernel is a null
// pointer.
//
// This header has no include guard, because the header of a family includes it in both readings. The header of a family has a
// guard that is open in the second reading.
#include <tapedeck/engine/eager/core_calls.h>
#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/export.h>

#undef OP
#undef OP_WITHOUT_KERNEL
#undef OP_CONTROL

#ifdef TAPEDECK_DEFINE_OPS

#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>

#undef TAPEDECK_OP_DEFINE
#define TAPEDECK_OP_DEFINE(op_name, cpu_kernel, cuda_kernel, ...) \
  static Op make_op_##op_name() {                                 \
    Op op __VA_ARGS__;                                            \
    op.name = #op_name;                                           \
    op.kernels[static_cast<int>(DeviceType::cpu)] = cpu_kernel;   \
    op.kernels[static_cast<int>(DeviceType::cuda)] = cuda_kernel; \
    return op;                                                    \
  }                                                               \
  namespace ops {                                                 \
  const Op& op_name = register_op(make_op_##op_name());           \
  }
#define OP(op_name, ...)                                     \
  namespace kernels __attribute__((visibility("hidden"))) {  \
    namespace cpu {                                          \
    void op_name(const KernelCall&);                         \
    }                                                        \
    namespace cuda __attribute__((visibility("default"))) {  \
      __attribute__((weak)) void op_name(const KernelCall&); \
    }                                                        \
  }                                                          \
  TAPEDECK_OP_DEFINE(op_name, &kernels::cpu::op_name, &kernels::cuda::op_name, __VA_ARGS__)
// For ops that have no kernel of their own: views, constants, and ops that only tell the tape something, such as stop_gradient.
#define OP_WITHOUT_KERNEL(op_name, ...) TAPEDECK_OP_DEFINE(op_name, nullptr, nullptr, __VA_ARGS__)
// For control flow: the op has regions instead of a kernel. `variable` is its C++ name, because C++ reserves names such as
// `while`.
#define OP_CONTROL(variable, op_name, ...)                \
  static Op make_op_##variable() {                        \
    Op op __VA_ARGS__;                                    \
    op.name = op_name;                                    \
    return op;                                            \
  }                                                       \
  namespace ops {                                         \
  const Op& variable = register_op(make_op_##variable()); \
  }

#else

#define OP(op_name, ...)    \
  namespace ops {           \
  extern const Op& op_name; \
  }
#define OP_WITHOUT_KERNEL(op_name, ...) OP(op_name)
#define OP_CONTROL(variable, op_name, ...) OP(variable)

#endif
