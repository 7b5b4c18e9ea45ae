// The kernels of attention, in the emulator, against the CPU kernel in f64.
#include <tapedeck/tests/kernels/cuda/products/attention_cases.h>
#include <tapedeck/kernels/cuda/products/attention.inl>

namespace tapedeck::kernels {
namespace {

// y and logsumexp.
std::vector<Operand> run(Kernel kernel, const AttentionCase& c, const AttentionOperands& o, DType y, DType logsumexp,
                         bool wide) {
  std::vector<Operand> operands;
  for (const Operand& x : o.all) operands.push_back(converted(x, wide ? DType::f64 : c.dtype));
  if (o.mask) operands.push_back(wide ? in_f64(*o.mask) : converted(*o.mask, o.mask->view.dtype));
  std::vector<Operand> results;
  results.push_back(Operands(2).make(y, {c.b, c.h, c.t, c.e}));
  results.push_back(Operands(2).make(logsumexp, {c.b, c.h, c.t}));
  KernelFault fault;
  call_kernel(kernel, views_of(operands), views_of(results), fault, &c.attrs);
  EXPECT_EQ(fault.what.load(), nullptr) << c.name;
  return results;
}

std::vector<Operand> run_ours(const AttentionCase& c, const AttentionOperands& o) {
  return run(&emulated::scaled_dot_product_attention, c, o, c.dtype, c.dtype == DType::f64 ? DType::f64 : DType::f32, false);
}

std::vector<Operand> run_cpu(const AttentionCase& c, const AttentionOperands& o) {
  return run(&cpu::scaled_dot_product_attention, c, o, DType::f64, DType::f64, true);
}

TEST(CudaAttention, AgreesWithTheCpu) {
  for (const AttentionCase& c : attention_cases()) {
    const AttentionOperands operands(c);
    const std::vector<Operand> ours = run_ours(c, operands), wanted = run_cpu(c, operands);
    expect_close(ours[0], wanted[0], attention_tolerance(c.dtype), std::string(c.name) + ": y");
    expect_close(ours[1], wanted[1], c.dtype == DType::f64 ? 1e-13 : 1e-5, std::string(c.name) + ": logsumexp");
  }
}

TEST(CudaAttention, AQueryThatSeesNoKeyGivesZero) {
  AttentionCase c{"blind queries", DType::f32, 1, 1, 3, 70, 4, 4, {1, false}, DType::boolean, {3, 1}};
  for (const DType dtype : {DType::f32, DType::f64}) {
    c.dtype = dtype;
    AttentionOperands operands(c);
    for (std::int64_t i = 0; i < 3; ++i) operands.mask->set(i, i == 1 ? 0 : 1);
    const std::vector<Operand> ours = run_ours(c, operands);
    for (std::int64_t i = 4; i < 8; ++i) EXPECT_EQ(ours[0].at(i), 0);
    EXPECT_EQ(ours[1].at(1), -INFINITY);
    expect_close(ours[0], run_cpu(c, operands)[0], 1e-5, c.name);
  }
}

TEST(CudaAttention, LargeScoresDoNotOverflow) {
  const AttentionCase c{"large", DType::f32, 1, 1, 5, 70, 4, 4, {1000, false}};
  const AttentionOperands operands(c);
  expect_close(run_ours(c, operands)[0], run_cpu(c, operands)[0], 1e-3, c.name);
}

TEST(CudaAttention, SameBitsEveryTime) {
  const AttentionCase c{"again", DType::bf16, 1, 1, 66, 70, 32, 32, {0.2, true}};
  const AttentionOperands operands(c);
  const std::vector<Operand> once = run_ours(c, operands), again = run_ours(c, operands);
  EXPECT_EQ(once[0].bytes, again[0].bytes);
  EXPECT_EQ(once[1].bytes, again[1].bytes);
}

}  // namespace
}  // namespace tapedeck::kernels
