// batch_norm, its gradient and batch_norm_inference of the device, in the emulator, against the CPU kernels.
#include <tapedeck/kernels/cuda/normalization/batch_norm.inl>

#include <tapedeck/kernels/cpu/normalization/norm_plan.h>
#include <tapedeck/tests/kernels/cuda/compare.h>

namespace tapedeck::kernels::cpu {
void batch_norm(const KernelCall& call);
void batch_norm_grad(const KernelCall& call);
void batch_norm_inference(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

constexpr unsigned kBatchNormSeed = 44;

struct Batch {
  Random& random;
  DType dtype;
  Sizes sizes;
  std::int64_t gap = 0;
  int affine = 2;  // how many of weight and bias are given

  Array x(double low = -2, double high = 2) const { return apart(random_numbers(random, dtype, sizes, low, high), gap); }
  Array made() const { return apart(make_array(dtype, sizes), gap); }
  Array channel(double low = -2, double high = 2) const { return random_numbers(random, dtype, {sizes[1]}, low, high); }
  Array made_channel() const { return make_array(dtype, {sizes[1]}); }
  std::int64_t scratch() const {
    std::int64_t plane = 1;
    for (std::size_t d = 2; d < sizes.size(); ++d) plane *= sizes[d];
    return cpu::BatchPlan(sizes[0], sizes[1], plane).workspace();
  }
};

void check_batch_norm(const Batch& b) {
  SCOPED_TRACE(::testing::Message() << dtype_name(b.dtype) << " rank " << b.sizes.size() << " gap " << b.gap << " affine "
                                    << b.affine);
  const BatchNormAttrs attrs;
  const Array x = b.x(), dy = b.x(-1, 1), weight = b.channel(), bias = b.channel(), mean = b.channel(-0.2, 0.2),
              variance = b.channel(0.5, 1.5);
  std::vector<Array> forward = {x}, inference = {x, mean, variance};
  for (auto* operands : {&forward, &inference}) {
    if (b.affine > 0) operands->push_back(weight);
    if (b.affine > 1) operands->push_back(bias);
  }
  std::vector<Array> backward = {x, dy, mean, variance, b.channel(), b.channel()}, results = {b.made()};
  if (b.affine > 0) {
    backward.push_back(weight);
    results.push_back(b.made_channel());
    results.push_back(b.made_channel());
  }
  const double summed = static_cast<double>(x.numel()) / static_cast<double>(std::max<std::int64_t>(b.sizes[1], 1));
  compare(emulated::batch_norm, emulated::batch_norm_workspace, cpu::batch_norm, b.scratch(),
          {forward, {b.made(), b.made_channel(), b.made_channel()}, &attrs}, {10});
  compare(emulated::batch_norm_inference, emulated::batch_norm_inference_workspace, cpu::batch_norm_inference, b.scratch(),
          {inference, {b.made()}, &attrs}, {10});
  compare(emulated::batch_norm_grad, emulated::batch_norm_grad_workspace, cpu::batch_norm_grad, b.scratch(),
          {backward, results, &attrs}, {10 + 2 * summed});
}

TEST(CudaBatchNorm, EveryShapeAndType) {
  SCOPED_TRACE(::testing::Message() << "seed " << kBatchNormSeed);
  Random random(kBatchNormSeed);
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    check_batch_norm({random, dtype, {6, 3}});
    check_batch_norm({random, dtype, {33, 40}, 0, 1});
    check_batch_norm({random, dtype, {3, 2, 3, 7}, 5});
    check_batch_norm({random, dtype, {2, 3, 4, 8}, 16});  // packs of 16 bytes
    check_batch_norm({random, dtype, {5, 4, 5}, 0, 0});
    check_batch_norm({random, dtype, {0, 2, 3}});
    check_batch_norm({random, dtype, {2, 3, 0}});
  }
  check_batch_norm({random, DType::f32, {4, 0, 3}});
}

// Few channels of many elements are summed in pieces, along planes and across channels.
TEST(CudaBatchNorm, ManyElementsOfFewChannels) {
  Random random(kBatchNormSeed);
  check_batch_norm({random, DType::f32, {5, 2, 1025}});
  check_batch_norm({random, DType::f32, {2500, 5}});
  check_batch_norm({random, DType::bf16, {1500, 3, 2}});
}

// The first element of a channel is far from all others, and all are far from zero.
TEST(CudaBatchNorm, MomentsDoNotCancel) {
  Random random(kBatchNormSeed);
  const BatchNormAttrs attrs;
  const Batch b{random, DType::f32, {3, 2, 700}};
  const Array x = b.x(1000, 1002);
  x.set(0, -1000);
  x.set(700, 1e6);
  compare(emulated::batch_norm, emulated::batch_norm_workspace, cpu::batch_norm, b.scratch(),
          {{x}, {b.made(), b.made_channel(), b.made_channel()}, &attrs}, {2});
}

TEST(CudaBatchNorm, ResultsMayOverwriteTheirOperands) {
  Random random(kBatchNormSeed);
  const BatchNormAttrs attrs;
  const Batch b{random, DType::f32, {3, 2, 12}};
  const Array x = b.x(), dy = b.x(), y = b.made(), dx = b.made(), v = b.channel(1, 2), mean = b.made_channel(),
              variance = b.made_channel();
  const std::int64_t bytes = workspace_for(emulated::batch_norm_grad_workspace, {{x, dy, v, v, v, v}, {dx}, &attrs});
  run(emulated::batch_norm_grad, {x, dy, v, v, v, v}, {dx}, &attrs, bytes);
  run(emulated::batch_norm_grad, {x, dy, v, v, v, v}, {dy}, &attrs, bytes);
  EXPECT_TRUE(same_bits(dx, dy));
  run(emulated::batch_norm, {x}, {y, mean, variance}, &attrs, bytes);
  run(emulated::batch_norm, {x}, {x, mean, variance}, &attrs, bytes);
  EXPECT_TRUE(same_bits(x, y));
}

}  // namespace
}  // namespace tapedeck::testing
