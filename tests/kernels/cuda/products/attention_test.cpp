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
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    c.dtype = dtype;
    AttentionOperands operands(c);
    for (std::int64_t i = 0; i < 3; ++i) operands.mask->set(i, i == 1 ? 0 : 1);
    const std::vector<Operand> ours = run_ours(c, operands);
    for (std::int64_t i = 4; i < 8; ++i) EXPECT_EQ(ours[0].at(i), 0);
    EXPECT_EQ(ours[1].at(1), -INFINITY);
    expect_close(ours[0], run_cpu(c, operands)[0], attention_tolerance(dtype), c.name);
  }
}

TEST(CudaAttention, LargeScoresDoNotOverflow) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const AttentionCase c{"large", dtype, 1, 1, 5, 70, 4, 4, {1000, false}};
    const AttentionOperands operands(c);
    expect_close(run_ours(c, operands)[0], run_cpu(c, operands)[0], dtype == DType::f32 ? 1e-3 : 1.6e-2, c.name);
  }
}

TEST(CudaAttention, SameBitsEveryTime) {
  const AttentionCase c{"again", DType::bf16, 1, 1, 66, 70, 32, 32, {0.2, true}};
  const AttentionOperands operands(c);
  const std::vector<Operand> once = run_ours(c, operands), again = run_ours(c, operands);
  EXPECT_EQ(once[0].bytes, again[0].bytes);
  EXPECT_EQ(once[1].bytes, again[1].bytes);
}

TEST(CudaAttention, NaNReachesTheQueriesThatSeeIt) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const AttentionCase c{"a key is NaN", dtype, 1, 1, 70, 80, 8, 8, {0.5, true}};
    AttentionOperands operands(c);
    for (std::int64_t i = 0; i < 8; ++i) operands.all[1].set(66 * 8 + i, NAN);
    const std::vector<Operand> ours = run_ours(c, operands);
    for (std::int64_t query = 0; query < 70; ++query) {
      EXPECT_EQ(std::isnan(ours[1].at(query)), query >= 66) << query;
      for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(std::isnan(ours[0].at(query * 8 + i)), query >= 66) << query;
    }
  }
}

// The blocks of a call have as many warps as suit its size. The bits are those of any other number.
TEST(CudaAttention, AnyNumberOfWarpsGivesTheSameBits) {
  const AttentionCase c{"warps", DType::bf16, 1, 2, 70, 140, 64, 64, {0.2, true}};
  const AttentionOperands operands(c);
  const std::vector<Operand> wanted = run_ours(c, operands);
  using Shape = emulated::halves::ForwardShape<64>;
  const std::vector<View> inputs = views_of(operands.all);
  for (const unsigned warps : {1u, 2u, 4u}) {
    std::vector<Operand> results;
    results.push_back(filled(DType::bf16, wanted[0].view));
    results.push_back(filled(DType::f32, wanted[1].view));
    const std::vector<View> outputs = views_of(results);
    KernelFault fault;
    KernelCall call;
    call.inputs = inputs.data();
    call.n_inputs = 3;
    call.outputs = outputs.data();
    call.attrs = &c.attrs;
    call.fault = &fault;
    const emulated::AttentionForward f{emulated::attention_of(call, 3), outputs[0].data, outputs[1].data};
    emulated::launch(call, &emulated::halves::attend<Bf16, 64>,
                     emulated::halves::launch_of(2, 70, warps, Shape::kRows, Shape::bytes(warps)), f);
    EXPECT_EQ(results[0].bytes, wanted[0].bytes) << warps;
    EXPECT_EQ(results[1].bytes, wanted[1].bytes) << warps;
  }
}

TEST(CudaAttention, MoreBlocksHaveMoreWarps) {
  EXPECT_EQ(emulated::halves::warps_of_block_for(1, 20, 32), 1u);
  EXPECT_EQ(emulated::halves::warps_of_block_for(48, 1024, 32), 4u);
  EXPECT_EQ(emulated::halves::warps_of_block_for(64, 256, 32), 2u);
  EXPECT_EQ(emulated::halves::warps_of_block_for(0, 0, 32), 1u);
}

// The operand in memory that begins two bytes later, so that no rows of it are aligned to 16 bytes.
Operand shifted_by_a_half(const Operand& x) {
  Operand y;
  y.view = x.view;
  y.bytes.resize(x.bytes.size() + 2);
  std::memcpy(y.bytes.data() + 2, x.bytes.data(), x.bytes.size());
  y.view.data = y.bytes.data() + 2;
  return y;
}

TEST(CudaAttention, OperandsNeedNotBeAligned) {
  const AttentionCase c{"shifted", DType::f16, 1, 1, 20, 70, 16, 16, {0.5, false}};
  AttentionOperands operands(c);
  const std::vector<Operand> wanted = run_ours(c, operands);
  std::vector<Operand> inputs, results;
  for (const Operand& x : operands.all) inputs.push_back(shifted_by_a_half(x));
  results.push_back(shifted_by_a_half(filled(DType::f16, wanted[0].view)));
  results.push_back(filled(DType::f32, wanted[1].view));
  KernelFault fault;
  call_kernel(&emulated::scaled_dot_product_attention, views_of(inputs), views_of(results), fault, &c.attrs);
  results[0].bytes.erase(results[0].bytes.begin(), results[0].bytes.begin() + 2);
  EXPECT_EQ(results[0].bytes, wanted[0].bytes);
  EXPECT_EQ(results[1].bytes, wanted[1].bytes);
}

}  // namespace
}  // namespace tapedeck::kernels
