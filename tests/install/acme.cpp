// A user's own op, acme.cube: an op block and its kernel in a library that a program loads while it runs.
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ir/load_op_library.h>
#include <tapedeck/tapedeck.h>

namespace {

using namespace tapedeck;

// Computes x * x * x. An elementwise kernel must accept any strides.
void cube_kernel(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    std::int64_t at_x = 0, at_y = 0, rest = i;
    for (int d = y.rank - 1; d >= 0; --d) {
      at_x += rest % y.sizes[d] * x.strides[d];
      at_y += rest % y.sizes[d] * y.strides[d];
      rest /= y.sizes[d];
    }
    const float v = x.as<float>()[at_x];
    y.as<float>()[at_y] = v * v * v;
  }
}

const Op cube{
    .name = "acme.cube",
    .doc = "x * x * x",
    .traits = kElementwise | kCheap | kAnyStrides,
    .inplace = {{0, 0}},
    .min_inputs = 1,
    .max_inputs = 1,
    .infer =
        [](Infer& f) {
          if (f.inputs[0].dtype != DType::f32) f.fail("needs f32, got " + to_string(f.inputs[0]));
          infer_same(f);
        },
    .vjp = [](Vjp& b) { b.dx(0, b.dy() * square(b.x(0)) * 3); },
    .kernels = {cube_kernel},
    .examples = {"acme.cube(f32[3,5])"},
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void tapedeck_register_ops() { tapedeck::register_op(cube); }
