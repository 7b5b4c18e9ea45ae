// all_finite and global_norm of the device, in the emulator, against the CPU kernels.
#include <tapedeck/kernels/cuda/optimizer/gradients.inl>

#include <tapedeck/tests/kernels/cuda/compare.h>

namespace tapedeck::kernels::cpu {
void all_finite(const KernelCall& call);
void global_norm(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

constexpr unsigned kSeed = 48;

// Fifty tensors take two launches.
TEST(CudaGradients, FoldsTensorsOfEverySizeAndType) {
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  const DType dtypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64};
  for (const int types : {1, 3, 4}) {
    std::vector<Array> tensors = {random_numbers(random, DType::f32, {}), random_numbers(random, DType::f32, {0}),
                                  random_numbers(random, DType::f32, {9000})};
    for (int i = 3; i < (types == 1 ? 50 : 6); ++i) tensors.push_back(random_numbers(random, dtypes[i % types], {3, i}));
    const DType out = types == 4 ? DType::f64 : DType::f32;
    compare(emulated::global_norm, emulated::global_norm_workspace, cpu::global_norm, 0, {tensors, {make_array(out, {})}});
    compare(emulated::all_finite, emulated::all_finite_workspace, cpu::all_finite, 0,
            {tensors, {make_array(DType::boolean, {})}});
  }
}

TEST(CudaGradients, FindsTheOneElementThatIsNotFinite) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Array x = make_array(dtype, {700}), other = array_of(DType::f32, {1}, {3e38}), out = make_array(DType::boolean, {});
      compare(emulated::all_finite, emulated::all_finite_workspace, cpu::all_finite, 0, {{x, other}, {out}});
      EXPECT_EQ(out.get(0), 1);
      x.set(699, bad);
      compare(emulated::all_finite, emulated::all_finite_workspace, cpu::all_finite, 0, {{x, other}, {out}});
      EXPECT_EQ(out.get(0), 0);
    }
}

}  // namespace
}  // namespace tapedeck::testing
