// any, all, count_nonzero, var, std, logsumexp, norm, argmax and argmin of the device, in the emulator, against the CPU
// kernels.
#include <tapedeck/kernels/cuda/reduction/argmax.inl>
#include <tapedeck/kernels/cuda/reduction/statistics.inl>

#include <tapedeck/tests/kernels/cuda/compare.h>

namespace tapedeck::kernels::cpu {
void any(const KernelCall& call);
void all(const KernelCall& call);
void count_nonzero(const KernelCall& call);
void var(const KernelCall& call);
void std(const KernelCall& call);
void logsumexp(const KernelCall& call);
void norm(const KernelCall& call);
void argmax(const KernelCall& call);
void argmin(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

constexpr unsigned kStatisticsSeed = 46;
const double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

const Sizes kShapes[] = {{5, 33}, {40, 35}, {2, 2100}, {3, 1}, {0, 4}, {2100, 3}};

// Whether the emulator would take long: a reduction to many results.
bool many_results(const Sizes& sizes, int axis) { return sizes[static_cast<std::size_t>(1 - axis)] > 1000; }

// A third of the elements are 0 or -0.
Array with_zeros(Random& random, DType dtype, const Sizes& sizes) {
  const Array x = random_numbers(random, dtype, sizes, 0, 3);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    if (random() % 3 != 0) continue;
    x.set(i, kernels::is_half(dtype) ? 0x8000 : -0.0);
  }
  return x;
}

TEST(CudaStatistics, CountsTruths) {
  SCOPED_TRACE(::testing::Message() << "seed " << kStatisticsSeed);
  Random random(kStatisticsSeed);
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32, DType::i64, DType::u8, DType::boolean})
    for (const Sizes& sizes : {Sizes{3, 3}, Sizes{2100, 2}, Sizes{2, 0}})
      for (const int axis : {0, 1}) {
        if (many_results(sizes, axis)) continue;
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " axis " << axis << " of " << sizes[0]);
        const ReduceAttrs attrs{{axis}, false};
        const Array x = with_zeros(random, dtype, sizes);
        const Sizes kept = {sizes[1 - axis]};
        const auto truths = [&] { return make_array(DType::boolean, kept); };
        compare(emulated::any, emulated::any_workspace, cpu::any, 0, {{x}, {truths()}, &attrs});
        compare(emulated::all, emulated::all_workspace, cpu::all, 0, {{x}, {truths()}, &attrs});
        compare(emulated::count_nonzero, emulated::count_nonzero_workspace, cpu::count_nonzero, 0,
                {{x}, {make_array(DType::i64, kept)}, &attrs});
      }
}

TEST(CudaStatistics, SpreadsAndNorms) {
  Random random(kStatisticsSeed);
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Sizes& sizes : kShapes)
      for (const int axis : {0, 1}) {
        if (many_results(sizes, axis)) continue;
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " axis " << axis << " of " << sizes[0]);
        const Array dense = random_numbers(random, dtype, sizes, 0.5, 2), x = axis == 0 ? scrambled(random, dense) : dense;
        const VarAttrs attrs{{axis}, 1, false};
        const ReduceAttrs reduce{{axis}, false};
        const auto out = [&] { return make_array(dtype, {sizes[1 - axis]}); };
        compare(emulated::var, emulated::var_workspace, cpu::var, 0, {{x}, {out()}, &attrs});
        compare(emulated::std, emulated::std_workspace, cpu::std, 0, {{x}, {out()}, &attrs});
        compare(emulated::logsumexp, emulated::logsumexp_workspace, cpu::logsumexp, 0, {{x}, {out()}, &reduce}, {2});
        for (const double p : {2.0, 1.0, 0.0, 3.0, -1.5, kInfinity, -kInfinity}) {
          if (std::isinf(p) && sizes[static_cast<std::size_t>(axis)] == 0) continue;
          SCOPED_TRACE(::testing::Message() << "p " << p);
          const NormAttrs norm{{axis}, p, false};
          compare(emulated::norm, emulated::norm_workspace, cpu::norm, 0, {{x}, {out()}, &norm});
        }
      }
}

// Distances from a first element far away from all others, and elements that are not finite.
TEST(CudaStatistics, KeepInfinityAndNanAndDoNotCancel) {
  const auto out = [] { return make_array(DType::f32, {5}); };
  const Array x = array_of(DType::f32, {5, 3},
                           {-kInfinity, -kInfinity, -kInfinity, kInfinity, 1, 2, 1, kNan, 2, 1e6, 1, 2, 1000, 999, -kInfinity});
  const ReduceAttrs reduce{{1}, false};
  const VarAttrs attrs{{1}, 0, false};
  compare(emulated::logsumexp, emulated::logsumexp_workspace, cpu::logsumexp, 0, {{x}, {out()}, &reduce});
  compare(emulated::var, emulated::var_workspace, cpu::var, 0, {{x}, {out()}, &attrs});
}

TEST(CudaArgmax, FindsTheFirstExtreme) {
  Random random(kStatisticsSeed);
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean})
    for (const Sizes& sizes : kShapes)
      for (const int axis : {0, 1}) {
        if (sizes[static_cast<std::size_t>(axis)] == 0 || many_results(sizes, axis)) continue;
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " axis " << axis << " of " << sizes[0]);
        const AxisAttrs attrs{axis};
        const Array dense = random_numbers(random, dtype, sizes, 0, 4), x = axis == 0 ? scrambled(random, dense) : dense;
        if (is_floating(dtype))  // few values, so that many are equal
          for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, std::floor(x.get(i)));
        const auto out = [&] { return make_array(DType::i64, {sizes[1 - axis]}); };
        compare(emulated::argmax, emulated::argmax_workspace, cpu::argmax, 0, {{x}, {out()}, &attrs});
        compare(emulated::argmin, emulated::argmin_workspace, cpu::argmin, 0, {{x}, {out()}, &attrs});
      }
}

TEST(CudaArgmax, TakesTheFirstNanAndReportsExtremesOfNothing) {
  const AxisAttrs attrs{1};
  const Array x = array_of(DType::f32, {3, 4},
                           {1, kNan, 7, kNan, -kInfinity, -kInfinity, -kInfinity, -kInfinity, 0, -0.0, 0, 0}),
              out = make_array(DType::i64, {3});
  compare(emulated::argmax, emulated::argmax_workspace, cpu::argmax, 0, {{x}, {out}, &attrs});
  EXPECT_EQ(out.get(0), 1);
  compare(emulated::argmin, emulated::argmin_workspace, cpu::argmin, 0, {{x}, {out}, &attrs});
  compare(emulated::argmax, emulated::argmax_workspace, cpu::argmax, 0, {{make_array(DType::f32, {3, 0})}, {out}, &attrs});
}

}  // namespace
}  // namespace tapedeck::testing
