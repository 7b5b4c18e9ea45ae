// The kernels of the gradient of attention, in the emulator, against the CPU kernel in f64.
#include <tapedeck/tests/kernels/cuda/products/attention_cases.h>
#include <tapedeck/kernels/cuda/products/attention_grad.inl>

namespace tapedeck::kernels {
namespace {

// The operands q, k, v, y, logsumexp, dy, dlogsumexp and the mask. The CPU kernel made y and logsumexp.
std::vector<Operand> gradient_operands(const AttentionCase& c, const AttentionOperands& o, DType of_logsumexp) {
  std::vector<Operand> wide = in_f64(o.all), results;
  if (o.mask) wide.push_back(in_f64(*o.mask));
  results.push_back(zeros(DType::f64, {c.b, c.h, c.t, c.e}));
  results.push_back(zeros(DType::f64, {c.b, c.h, c.t}));
  KernelFault fault;
  call_kernel(&cpu::scaled_dot_product_attention, views_of(wide), views_of(results), fault, &c.attrs);

  std::vector<Operand> all;
  for (const Operand& x : o.all) all.push_back(converted(x, c.dtype));
  all.push_back(converted(results[0], c.dtype));
  all.push_back(converted(results[1], of_logsumexp));
  all.push_back(filled(c.dtype, results[0].view));
  all.push_back(filled(of_logsumexp, results[1].view));
  if (o.mask) all.push_back(converted(*o.mask, o.mask->view.dtype));
  return all;
}

// dq, dk and dv.
std::vector<Operand> run_gradient(Kernel kernel, const AttentionCase& c, const std::vector<Operand>& operands, DType dtype) {
  std::vector<Operand> results;
  for (int i = 0; i < 3; ++i) results.push_back(filled(dtype, operands[static_cast<std::size_t>(i)].view));
  const std::vector<View> inputs = views_of(operands), outputs = views_of(results);
  KernelCall call;
  call.inputs = inputs.data();
  call.outputs = outputs.data();
  std::vector<char> workspace(static_cast<std::size_t>(emulated::scaled_dot_product_attention_grad_workspace(call)));
  KernelFault fault;
  call_kernel(kernel, inputs, outputs, fault, &c.attrs, &workspace);
  EXPECT_EQ(fault.what.load(), nullptr) << c.name;
  return results;
}

std::vector<Operand> run_gradient_ours(const AttentionCase& c, const std::vector<Operand>& operands) {
  return run_gradient(&emulated::scaled_dot_product_attention_grad, c, operands, c.dtype);
}

std::vector<Operand> run_gradient_cpu(const AttentionCase& c, const std::vector<Operand>& operands) {
  return run_gradient(&cpu::scaled_dot_product_attention_grad, c, in_f64(operands), DType::f64);
}

void expect_same_gradients(const AttentionCase& c, const std::vector<Operand>& operands) {
  const std::vector<Operand> ours = run_gradient_ours(c, operands), wanted = run_gradient_cpu(c, operands);
  const char* names[] = {"dq", "dk", "dv"};
  for (std::size_t i = 0; i < 3; ++i)
    expect_close(ours[i], wanted[i], 2 * attention_tolerance(c.dtype), std::string(c.name) + ": " + names[i]);
}

TEST(CudaAttentionGrad, AgreesWithTheCpu) {
  for (const AttentionCase& c : attention_cases()) {
    const AttentionOperands operands(c);
    expect_same_gradients(c, gradient_operands(c, operands, c.dtype == DType::f64 ? DType::f64 : DType::f32));
  }
}

// After a cast of all operands, logsumexp may be of half precision too.
TEST(CudaAttentionGrad, TakesLogsumexpOfHalfPrecision) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const AttentionCase c{"half logsumexp", dtype, 1, 1, 9, 11, 8, 8, {0.3, false}};
    const AttentionOperands operands(c);
    expect_same_gradients(c, gradient_operands(c, operands, dtype));
  }
}

TEST(CudaAttentionGrad, AQueryThatSeesNoKeyGivesNoGradient) {
  AttentionCase c{"blind queries", DType::f32, 1, 1, 3, 70, 4, 4, {1, false}, DType::boolean, {3, 1}};
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    c.dtype = dtype;
    AttentionOperands operands(c);
    for (std::int64_t i = 0; i < 3; ++i) operands.mask->set(i, i == 1 ? 0 : 1);
    const std::vector<Operand> all = gradient_operands(c, operands, dtype == DType::f64 ? dtype : DType::f32);
    const std::vector<Operand> ours = run_gradient_ours(c, all);
    for (std::int64_t i = 4; i < 8; ++i) EXPECT_EQ(ours[0].at(i), 0);
    expect_same_gradients(c, all);
  }
}

TEST(CudaAttentionGrad, SameBitsEveryTime) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const AttentionCase c{"again", dtype, 1, 1, 66, 70, 32, 32, {0.2, true}};
    const AttentionOperands operands(c);
    const std::vector<Operand> all = gradient_operands(c, operands, DType::f32);
    const std::vector<Operand> once = run_gradient_ours(c, all), again = run_gradient_ours(c, all);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(once[i].bytes, again[i].bytes);
  }
}

// The kernels of halves, with blocks of this many warps.
template <bool kByKeys>
void sum_with_warps(const KernelCall& call, const emulated::AttentionBackward& b, unsigned warps) {
  using Shape = emulated::halves::GradShape<64, kByKeys>;
  emulated::launch(call, &emulated::halves::sum_gradients<F16, 64, kByKeys>,
                   emulated::halves::launch_of(b.a.pairs, kByKeys ? b.a.s : b.a.t, warps, Shape::kRows, Shape::bytes(warps)),
                   b);
}

TEST(CudaAttentionGrad, AnyNumberOfWarpsGivesTheSameBits) {
  const AttentionCase c{"warps", DType::f16, 1, 2, 70, 90, 64, 64, {0.2, true}};
  const AttentionOperands operands(c);
  const std::vector<Operand> all = gradient_operands(c, operands, DType::f32), wanted = run_gradient_ours(c, all);
  for (const unsigned warps : {1u, 2u, 4u}) {
    std::vector<Operand> results;
    for (const Operand& x : wanted) results.push_back(filled(DType::f16, x.view));
    const std::vector<View> inputs = views_of(all), outputs = views_of(results);
    KernelFault fault;
    KernelCall call;
    call.inputs = inputs.data();
    call.n_inputs = static_cast<std::int32_t>(inputs.size());
    call.outputs = outputs.data();
    call.attrs = &c.attrs;
    call.fault = &fault;
    std::vector<char> workspace(static_cast<std::size_t>(emulated::scaled_dot_product_attention_grad_workspace(call)));
    call.workspace = workspace.data();
    const emulated::AttentionBackward b = emulated::backward_of(call);
    emulated::launch(call, &emulated::halves::make_query_numbers, emulated::for_items(2 * 70 * 8), b);
    sum_with_warps<false>(call, b, warps);
    sum_with_warps<true>(call, b, warps);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(results[i].bytes, wanted[i].bytes) << warps << ", result " << i;
  }
}

}  // namespace
}  // namespace tapedeck::kernels
