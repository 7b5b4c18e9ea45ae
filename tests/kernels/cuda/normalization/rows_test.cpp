// layer_norm, rms_norm, group_norm and their gradients of the device, in the emulator, against the CPU kernels.
#include <tapedeck/kernels/cuda/normalization/rows.inl>

#include <tapedeck/kernels/cpu/normalization/norm_plan.h>
#include <tapedeck/tests/kernels/cuda/compare.h>

namespace tapedeck::kernels::cpu {
void layer_norm(const KernelCall& call);
void layer_norm_grad(const KernelCall& call);
void rms_norm(const KernelCall& call);
void rms_norm_grad(const KernelCall& call);
void group_norm(const KernelCall& call);
void group_norm_grad(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

constexpr unsigned kRowsSeed = 43;
const DType kFloats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

// x as rows of `length`, and operands of these shapes.
struct Norm {
  Random& random;
  DType dtype;
  Sizes x, statistic, weight;

  Array made(const Sizes& sizes) const { return make_array(dtype, sizes); }
  Array drawn(const Sizes& sizes, double low = -2, double high = 2) const {
    return random_numbers(random, dtype, sizes, low, high);
  }
  std::int64_t length() const { return make_array(dtype, weight).numel(); }
};

void check_layer(const Norm& n, std::int64_t dims, bool affine) {
  SCOPED_TRACE(::testing::Message() << dtype_name(n.dtype) << " rows of " << n.length());
  const LayerNormAttrs attrs{dims, 1e-5};
  const Array x = n.drawn(n.x), dy = n.drawn(n.x), mean = n.drawn(n.statistic, -0.2, 0.2),
              rstd = n.drawn(n.statistic, 0.5, 1.5), dmean = n.drawn(n.statistic), drstd = n.drawn(n.statistic);
  const std::int64_t scratch = cpu::RowPlan(mean.numel(), n.length()).workspace(8);
  std::vector<Array> forward = {x}, rms = {x}, backward = {x, dy, mean, rstd, dmean, drstd},
                     rms_backward = {x, dy, rstd, drstd};
  std::vector<Array> results = {n.made(n.x)}, rms_results = {n.made(n.x)};
  if (affine) {
    const Array weight = n.drawn(n.weight), bias = n.drawn(n.weight);
    forward = {x, weight, bias};
    for (auto* operands : {&rms, &backward, &rms_backward}) operands->push_back(weight);
    results = {n.made(n.x), n.made(n.weight), n.made(n.weight)};
    rms_results = {n.made(n.x), n.made(n.weight)};
  }
  const double rows = static_cast<double>(mean.numel());
  compare(emulated::layer_norm, nullptr, cpu::layer_norm, 0,
          {forward, {n.made(n.x), n.made(n.statistic), n.made(n.statistic)}, &attrs}, {10});
  compare(emulated::rms_norm, nullptr, cpu::rms_norm, 0, {rms, {n.made(n.x), n.made(n.statistic)}, &attrs}, {10});
  compare(emulated::layer_norm_grad, emulated::layer_norm_grad_workspace, cpu::layer_norm_grad, scratch,
          {backward, results, &attrs}, {10 + 4 * rows});
  compare(emulated::rms_norm_grad, emulated::rms_norm_grad_workspace, cpu::rms_norm_grad, scratch,
          {rms_backward, rms_results, &attrs}, {10 + 4 * rows});
}

TEST(CudaRowNorms, LayerNormOfRowsOfEverySizeAndType) {
  SCOPED_TRACE(::testing::Message() << "seed " << kRowsSeed);
  Random random(kRowsSeed);
  for (const DType dtype : kFloats) {
    for (const std::int64_t n : {1, 31, 33, 1025}) check_layer({random, dtype, {3, n}, {3}, {n}}, 1, n != 31);
    check_layer({random, dtype, {2, 3, 4, 5}, {2, 3}, {4, 5}}, 2, true);
    check_layer({random, dtype, {0, 5}, {0}, {5}}, 1, true);
    check_layer({random, dtype, {4, 0}, {4}, {0}}, 1, true);
  }
}

// Rows of whole packs: of a warp, of a block, and too long for the shared memory; and many rows, summed across in pieces.
// Sanitizers make the threads of the emulator slow: they see the many rows in one type.
TEST(CudaRowNorms, LayerNormByPacks) {
  Random random(kRowsSeed);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t n : {32, 264, 2056}) check_layer({random, dtype, {3, n}, {3}, {n}}, 1, n != 32);
#ifdef TAPEDECK_SANITIZED
    if (dtype != DType::bf16) continue;
#endif
    check_layer({random, dtype, {1100, 32}, {1100}, {32}}, 1, true);
  }
  check_layer({random, DType::f32, {2, 60000}, {2}, {60000}}, 1, true);
}

// A row whose mean is large beside its deviations.
TEST(CudaRowNorms, LayerNormOfRowsFarFromZero) {
  Random random(kRowsSeed);
  const LayerNormAttrs attrs;
  const Array x = random_numbers(random, DType::f32, {2, 2000}, 1000, 1004);
  const auto made = [](const Sizes& sizes) { return make_array(DType::f32, sizes); };
  const Array y = made({2, 2000});
  compare(emulated::layer_norm, nullptr, cpu::layer_norm, 0, {{x}, {y, made({2}), made({2})}, &attrs}, {20});
}

void check_group(const Norm& n, std::int64_t groups, bool affine, std::int64_t gap) {
  SCOPED_TRACE(::testing::Message() << dtype_name(n.dtype) << " groups " << groups << " gap " << gap);
  const GroupNormAttrs attrs{groups, 1e-5};
  const Array x = apart(n.drawn(n.x), gap), dy = apart(n.drawn(n.x), 2 * gap);
  const Array mean = n.drawn(n.statistic, -0.2, 0.2), rstd = n.drawn(n.statistic, 0.5, 1.5), dmean = n.drawn(n.statistic),
              drstd = n.drawn(n.statistic);
  std::vector<Array> forward = {x}, backward = {x, dy, mean, rstd, dmean, drstd}, results = {apart(n.made(n.x), gap)};
  if (affine) {
    const Array weight = n.drawn(n.weight), bias = n.drawn(n.weight);
    forward = {x, weight, bias};
    backward.push_back(weight);
    results.push_back(n.made(n.weight));
    results.push_back(n.made(n.weight));
  }
  compare(emulated::group_norm, nullptr, cpu::group_norm, 0,
          {forward, {apart(n.made(n.x), gap), n.made(n.statistic), n.made(n.statistic)}, &attrs}, {10});
  const double summed = static_cast<double>(x.numel()) / static_cast<double>(n.x[1]);
  compare(emulated::group_norm_grad, emulated::group_norm_grad_workspace, cpu::group_norm_grad, 16 * n.x[0] * n.x[1],
          {backward, results, &attrs}, {10 + 4 * summed});
}

TEST(CudaRowNorms, GroupNormOfImages) {
  Random random(kRowsSeed);
  for (const DType dtype : kFloats) {
    check_group({random, dtype, {2, 6, 3, 3}, {2, 3}, {6}}, 3, true, 0);
    check_group({random, dtype, {3, 4, 33}, {3, 4}, {4}}, 4, true, 7);
    check_group({random, dtype, {2, 6}, {2, 2}, {6}}, 2, false, 1);
  }
  check_group({random, DType::f32, {2, 4, 300}, {2, 1}, {4}}, 1, true, 3);
  check_group({random, DType::f32, {3, 2, 900}, {3, 2}, {2}}, 2, true, 0);  // the planes are summed in pieces
  check_group({random, DType::f32, {0, 4, 3}, {0, 2}, {4}}, 2, true, 0);
}

TEST(CudaRowNorms, GradientMayOverwriteTheGradientOfItsResult) {
  Random random(kRowsSeed);
  for (const std::int64_t n : {40, 1300}) {
    const LayerNormAttrs attrs;
    const auto drawn = [&](const Sizes& sizes) { return random_numbers(random, DType::f32, sizes); };
    const Array x = drawn({3, n}), dy = drawn({3, n}), s = drawn({3}), w = drawn({n}), dx = drawn({3, n});
    const Array dw = drawn({n}), db = drawn({n}), dw2 = drawn({n}), db2 = drawn({n});
    run(emulated::layer_norm_grad, {x, dy, s, s, s, s, w}, {dx, dw, db}, &attrs);
    run(emulated::layer_norm_grad, {x, dy, s, s, s, s, w}, {dy, dw2, db2}, &attrs);
    EXPECT_TRUE(same_bits(dx, dy) && same_bits(dw, dw2) && same_bits(db, db2));
  }
}

}  // namespace
}  // namespace tapedeck::testing
