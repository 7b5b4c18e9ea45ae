// OP(name, {...}) is the one block that says everything about an op. The header of a family of ops is read twice. Users read it
// first: for them the block declares `ops::name` and nothing more. The .cpp of the family reads it a second time with
// TAPEDECK_DEFINE_OPS: there the block defines the op. The block declares the kernels of the op itself: a missing CPU kernel is
// a link error, a missing CUDA kernel is a null slot.
//
// This header has no include guard, because the header of a family includes it in each reading. The header of a family has a
// guard, so that users read it once.
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
// Views and placeholders: no kernel of their own.
#define OP_WITHOUT_KERNEL(op_name, ...) TAPEDECK_OP_DEFINE(op_name, nullptr, nullptr, __VA_ARGS__)
// Control flow: regions instead of a kernel, and names that C++ reserves.
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
