// Elementwise losses of the device, in the emulator, against the CPU kernels: f32 and f64 have equal bits.
#include <tapedeck/kernels/cuda/loss/elementwise.inl>

#include <tapedeck/tests/kernels/cuda/compare.h>

namespace tapedeck::kernels::cpu {
void huber(const KernelCall& call);
void binary_cross_entropy(const KernelCall& call);
void binary_cross_entropy_with_logits(const KernelCall& call);
void kl_div(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

constexpr unsigned kElementwiseLossSeed = 47;

struct KernelPair {
  Kernel emulated, cpu;
};

TEST(CudaElementwiseLosses, EqualTheCpu) {
  SCOPED_TRACE(::testing::Message() << "seed " << kElementwiseLossSeed);
  Random random(kElementwiseLossSeed);
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const Sizes& sizes : {Sizes{7, 33}, Sizes{4, 64}, Sizes{0, 3}}) {
      SCOPED_TRACE(dtype_name(dtype));
      const Array x = random_numbers(random, dtype, sizes, -3, 3), p = random_numbers(random, dtype, sizes, 0, 1),
                  target = random_numbers(random, dtype, sizes, 0, 1),
                  weight = broadcast(random_numbers(random, dtype, {sizes[1]}, 0.5, 2), sizes);
      if (p.numel() > 3) p.set(0, 0), p.set(1, 1), target.set(2, 0);
      const HuberAttrs huber{0.75};
      const auto check = [&](const KernelPair& pair, const std::vector<Array>& inputs, const void* attrs = nullptr) {
        compare(pair.emulated, nullptr, pair.cpu, 0, {inputs, {make_array(dtype, sizes)}, attrs}, {0, 0, 0});
      };
      check({emulated::huber, cpu::huber}, {x}, &huber);
      check({emulated::binary_cross_entropy, cpu::binary_cross_entropy}, {p, target});
      check({emulated::binary_cross_entropy_with_logits, cpu::binary_cross_entropy_with_logits}, {x, target});
      check({emulated::binary_cross_entropy_with_logits, cpu::binary_cross_entropy_with_logits}, {x, target, weight});
      for (const bool log_target : {false, true}) {
        const KlDivAttrs kl{log_target};
        check({emulated::kl_div, cpu::kl_div}, {x, log_target ? x : target}, &kl);
      }
    }
}

}  // namespace
}  // namespace tapedeck::testing
