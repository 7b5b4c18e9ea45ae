// Kernels over all gradients for the device, in the emulator, against plain loops.
#include <tapedeck/tests/kernels/cuda/cases.h>
#include <tapedeck/kernels/cuda/optimizer/gradients.inl>

namespace tapedeck::testing::cuda {
namespace {

double element(const View& x, std::int64_t i) {
  switch (x.dtype) {
    case DType::f64:
      return x.as<double>()[i];
    case DType::f16:
      return kernels::to_f32(x.as<kernels::F16>()[i]);
    case DType::bf16:
      return kernels::to_f32(x.as<kernels::Bf16>()[i]);
    default:
      return x.as<float>()[i];
  }
}

class CudaGradients : public RandomCalls {
 protected:
  // Tensors of mixed types and sizes; some are empty.
  std::vector<Buffer> tensors(int count, bool special) {
    std::vector<Buffer> all;
    for (int k = 0; k < count; ++k) {
      const std::int64_t sizes[] = {0, 1, 5, 256, 700, 9000};
      const DType dtype = kFloats[static_cast<std::size_t>(draws_.below(4))];
      all.push_back(draws_.dense(dtype, {sizes[draws_.below(special ? 3 : k == 0 ? 6 : 5)]}, {-3, 3, special}));
    }
    return all;
  }
};

TEST_F(CudaGradients, AreFiniteIfEveryElementIs) {
  for (const int count : {1, 2, 5, 64, 65, 130})
    for (const bool special : {false, true}) {
      Operands call{tensors(count, special), {draws_.dense(DType::boolean, {})}, {}};
      bool finite = true;
      for (const Buffer& b : call.inputs)
        for (std::int64_t i = 0; i < b.view.numel(); ++i) finite = finite && std::isfinite(element(b.view, i));
      EXPECT_FALSE(run(&kernels::emulated::all_finite, nullptr, call, nullptr, 0));
      EXPECT_EQ(*call.outputs[0].view.as<std::uint8_t>(), finite ? 1 : 0) << count;
    }
}

TEST_F(CudaGradients, HaveTheNormOfAllElements) {
  for (const int count : {1, 2, 5, 64, 65, 130})
    for (const DType out : {DType::f32, DType::f64}) {
      Operands call{tensors(count, false), {draws_.dense(out, {})}, {}};
      double sum = 0;
      for (const Buffer& b : call.inputs)
        for (std::int64_t i = 0; i < b.view.numel(); ++i) sum += element(b.view, i) * element(b.view, i);
      EXPECT_FALSE(run(&kernels::emulated::global_norm, nullptr, call, nullptr, 0, &kernels::emulated::global_norm_workspace));
      const double tolerance = (out == DType::f32 ? 1e-7 : 1e-14) * (std::sqrt(sum) + 1);
      EXPECT_NEAR(element(call.outputs[0].view, 0), std::sqrt(sum), tolerance) << count;
    }
}

}  // namespace
}  // namespace tapedeck::testing::cuda
