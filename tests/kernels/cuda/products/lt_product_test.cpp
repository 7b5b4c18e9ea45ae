// Products on cuBLASLt, against a fake that records what it is asked for: sizes, layouts, types, alignments, and what happens
// when it refuses. NVIDIA's headers check the constants where they are installed.
#include <tapedeck/kernels/cuda/lt_api.h>
#include <tapedeck/kernels/cuda/products/lt_constants.h>
#include <tapedeck/kernels/cuda/products/lt_product.h>
#include <tapedeck/tests/kernels/cuda/products/operands.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <thread>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

namespace tapedeck::kernels {

namespace emulated {  // matmul_test.cpp compiles them
void matmul(const KernelCall& call);
void linear(const KernelCall& call);
void addmm(const KernelCall& call);
}  // namespace emulated

namespace {

#if __has_include(<cublasLt.h>)
static_assert(cuda::lt::kReal32 == CUDA_R_32F && cuda::lt::kReal64 == CUDA_R_64F);
static_assert(cuda::lt::kReal16 == CUDA_R_16F && cuda::lt::kRealBf16 == CUDA_R_16BF);
static_assert(cuda::lt::kCompute32 == CUBLAS_COMPUTE_32F && cuda::lt::kCompute64 == CUBLAS_COMPUTE_64F);
static_assert(cuda::lt::kComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(cuda::lt::kPlain == CUBLAS_OP_N && cuda::lt::kTransposed == CUBLAS_OP_T);
static_assert(cuda::lt::kTransposeA == CUBLASLT_MATMUL_DESC_TRANSA && cuda::lt::kTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(cuda::lt::kEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE && cuda::lt::kEpilogueBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(cuda::lt::kBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(cuda::lt::kBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(cuda::lt::kBatchOffset == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(cuda::lt::kMaxWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(cuda::lt::kReductionSchemes == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(cuda::lt::kReduceInWorkspace == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(cuda::lt::kAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(cuda::lt::kAlignmentB == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(cuda::lt::kAlignmentC == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(cuda::lt::kAlignmentD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
#endif

using Sizes = std::vector<std::int64_t>;

// ---- the fake ----

struct FakeLayout {
  int type = 0;
  std::int64_t rows = 0, cols = 0, leading = 0, batch = 1, batch_stride = 0;
};

struct FakeMatmul {
  int compute = 0, scale = 0, transpose_a = 0, transpose_b = 0, epilogue = 1;
  const void* bias = nullptr;
};

// One call of cublasLtMatmul.
struct Call {
  FakeMatmul matmul;
  FakeLayout a, b, c;
  double beta = 0;
  const void *a_data = nullptr, *b_data = nullptr, *c_data = nullptr;
  void* out = nullptr;
  std::size_t workspace_bytes = 0;
  std::uint64_t algorithm = 0;
};

struct Fake {
  std::vector<Call> calls;
  std::vector<std::map<int, std::uint64_t>> preferences;  // one for each choice of an algorithm
  int alive = 0, handles = 0;                             // descriptors that are not destroyed; handles made
  bool no_handle = false, no_algorithm = false, no_bias = false;
  std::optional<std::size_t> refuse_from;  // the number of the first call that is refused
  std::map<int, std::uint64_t> preference;
};
Fake fake;

template <class T, class Opaque>
T* of(Opaque* opaque) {
  return reinterpret_cast<T*>(opaque);
}

template <class T, class Opaque, class... Arguments>
int make_descriptor(Opaque** at, Arguments... arguments) {
  ++fake.alive;
  *at = reinterpret_cast<Opaque*>(new T{arguments...});
  return 0;
}

template <class T, class Opaque>
int drop_descriptor(Opaque* opaque) {
  --fake.alive;
  delete of<T>(opaque);
  return 0;
}

std::uint64_t number(const void* value, std::size_t bytes) {
  std::uint64_t result = 0;
  std::memcpy(&result, value, bytes);
  return result;
}

int set_matmul(cuda::LtMatmul opaque, int attribute, const void* value, std::size_t bytes) {
  auto& m = *of<FakeMatmul>(opaque);
  if (attribute == cuda::lt::kBiasPointer) {
    std::memcpy(&m.bias, value, bytes);
    return 0;
  }
  const int to = static_cast<int>(number(value, bytes));
  if (attribute == cuda::lt::kTransposeA) m.transpose_a = to;
  if (attribute == cuda::lt::kTransposeB) m.transpose_b = to;
  if (attribute == cuda::lt::kEpilogue) m.epilogue = to;
  return 0;
}

int set_layout(cuda::LtLayout opaque, int attribute, const void* value, std::size_t bytes) {
  auto& layout = *of<FakeLayout>(opaque);
  const auto to = static_cast<std::int64_t>(number(value, bytes));
  (attribute == cuda::lt::kBatchCount ? layout.batch : layout.batch_stride) = to;
  return 0;
}

int choose(cuda::LtHandle, cuda::LtMatmul matmul, cuda::LtLayout, cuda::LtLayout, cuda::LtLayout, cuda::LtLayout,
           cuda::LtPreference, int, cuda::LtHeuristic* found, int* count) {
  fake.preferences.push_back(fake.preference);
  const FakeMatmul& m = *of<FakeMatmul>(matmul);
  const bool none = fake.no_algorithm || (fake.no_bias && m.epilogue == cuda::lt::kEpilogueBias);
  EXPECT_EQ(m.epilogue == cuda::lt::kEpilogueBias, m.bias != nullptr);
  *count = none ? 0 : 1;
  found->algorithm.data[0] = 1000 + fake.preferences.size();
  return 0;
}

int multiply(cuda::LtHandle, cuda::LtMatmul matmul, const void* alpha, const void* a, cuda::LtLayout a_layout, const void* b,
             cuda::LtLayout b_layout, const void* beta, const void* c, cuda::LtLayout c_layout, void* d,
             cuda::LtLayout d_layout, const cuda::LtAlgorithm* algorithm, void*, std::size_t workspace_bytes, cuda::LtStream) {
  if (fake.refuse_from && fake.calls.size() >= *fake.refuse_from) return 13;
  Call call;
  call.matmul = *of<FakeMatmul>(matmul);
  call.a = *of<FakeLayout>(a_layout);
  call.b = *of<FakeLayout>(b_layout);
  call.c = *of<FakeLayout>(c_layout);
  const bool wide = call.matmul.scale == cuda::lt::kReal64;
  EXPECT_EQ(wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha), 1);
  EXPECT_EQ(c_layout, d_layout);
  call.beta = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  call.a_data = a;
  call.b_data = b;
  call.c_data = c;
  call.out = d;
  call.workspace_bytes = workspace_bytes;
  call.algorithm = algorithm->data[0];
  fake.calls.push_back(call);
  return 0;
}

cuda::LtApi fake_api() {
  cuda::LtApi api;
  api.cublasLtGetStatusString = [](cuda::LtStatus) { return "out of order"; };
  api.cublasLtCreate = [](cuda::LtHandle* handle) -> int {
    if (fake.no_handle) return 1;
    ++fake.handles;
    *handle = reinterpret_cast<cuda::LtHandle>(&fake);
    return 0;
  };
  api.cublasLtMatmulDescCreate = [](cuda::LtMatmul* at, int compute, int scale) {
    return make_descriptor<FakeMatmul>(at, compute, scale);
  };
  api.cublasLtMatmulDescDestroy = &drop_descriptor<FakeMatmul, cuda::LtMatmulOpaque>;
  api.cublasLtMatmulDescSetAttribute = &set_matmul;
  api.cublasLtMatrixLayoutCreate = [](cuda::LtLayout* at, int type, std::uint64_t rows, std::uint64_t cols,
                                      std::int64_t leading) {
    return make_descriptor<FakeLayout>(at, type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(cols), leading);
  };
  api.cublasLtMatrixLayoutDestroy = &drop_descriptor<FakeLayout, cuda::LtLayoutOpaque>;
  api.cublasLtMatrixLayoutSetAttribute = &set_layout;
  api.cublasLtMatmulPreferenceCreate = [](cuda::LtPreference* at) -> int {
    fake.preference.clear();
    ++fake.alive;
    *at = reinterpret_cast<cuda::LtPreference>(&fake);
    return 0;
  };
  api.cublasLtMatmulPreferenceDestroy = [](cuda::LtPreference) -> int {
    --fake.alive;
    return 0;
  };
  api.cublasLtMatmulPreferenceSetAttribute = [](cuda::LtPreference, int attribute, const void* value,
                                                std::size_t bytes) -> int {
    fake.preference[attribute] = number(value, bytes);
    return 0;
  };
  api.cublasLtMatmulAlgoGetHeuristic = &choose;
  api.cublasLtMatmul = &multiply;
  return api;
}

class CudaLtProducts : public ::testing::Test {
 protected:
  CudaLtProducts() : api_(fake_api()), scope_(std::in_place, api_) {
    fake = Fake();
    cuda::forget_products();
  }
  ~CudaLtProducts() override {
    cuda::forget_products();
    EXPECT_EQ(fake.alive, 0) << "descriptors are left";
    scope_.reset();
    cuda::forget_products();
  }

  void matmul(const Operand& a, const Operand& b, const Operand& out) {
    call_kernel(&emulated::matmul, {a.view, b.view}, {out.view}, fault_, nullptr, &workspace_);
  }
  const Call& only_call() {
    EXPECT_EQ(fake.calls.size(), 1u);
    static const Call none;
    return fake.calls.empty() ? none : fake.calls.back();
  }

  Operands numbers_;
  KernelFault fault_;
  std::vector<char> workspace_ = std::vector<char>(1 << 20);

 private:
  cuda::LtApi api_;
  std::optional<cuda::ScopedFake<cuda::LtApi>> scope_;
};

// Computes the call from its descriptors alone, as column-major matrices: out = op(a) op(b) + beta c. This is the
// definition of cublasLtMatmul, written as loops over f32 numbers.
void compute(const Call& call) {
  const auto offset = [](const FakeLayout& x, std::int64_t row, std::int64_t col) { return row + col * x.leading; };
  const std::int64_t k = call.matmul.transpose_a ? call.a.rows : call.a.cols;
  for (std::int64_t i = 0; i < call.c.batch; ++i) {
    const auto* a = static_cast<const float*>(call.a_data) + i * call.a.batch_stride;
    const auto* b = static_cast<const float*>(call.b_data) + i * call.b.batch_stride;
    const auto* c = static_cast<const float*>(call.c_data) + i * call.c.batch_stride;
    auto* out = static_cast<float*>(call.out) + i * call.c.batch_stride;
    for (std::int64_t row = 0; row < call.c.rows; ++row)
      for (std::int64_t col = 0; col < call.c.cols; ++col) {
        float sum = 0;
        for (std::int64_t q = 0; q < k; ++q)
          sum += a[call.matmul.transpose_a ? offset(call.a, q, row) : offset(call.a, row, q)] *
                 b[call.matmul.transpose_b ? offset(call.b, col, q) : offset(call.b, q, col)];
        if (call.matmul.epilogue == cuda::lt::kEpilogueBias) sum += static_cast<const float*>(call.matmul.bias)[row];
        if (call.beta != 0) sum += c[offset(call.c, row, col)];
        out[offset(call.c, row, col)] = sum;
      }
  }
}

// Our own kernels compute the same product, without cuBLASLt.
void expect_same_as_own(Kernel kernel, const std::vector<View>& inputs, const Operand& out) {
  Operand own = converted(out, out.view.dtype);
  KernelFault fault;
  fake.no_algorithm = true;
  cuda::forget_products();
  call_kernel(kernel, inputs, {own.view}, fault);
  fake.no_algorithm = false;
  for (std::int64_t i = 0; i < out.view.numel(); ++i) ASSERT_NEAR(out.at(i), own.at(i), 1e-5) << i;
}

// ---- what is asked for ----

TEST_F(CudaLtProducts, SwapsTheOperandsOfARowMajorProduct) {
  const Operand a = numbers_.make(DType::f32, {4, 3}), b = numbers_.make(DType::f32, {3, 6}),
                out = numbers_.make(DType::f32, {4, 6});
  matmul(a, b, out);
  const Call& call = only_call();
  EXPECT_EQ(call.a_data, b.view.data);
  EXPECT_EQ(call.b_data, a.view.data);
  EXPECT_EQ(call.out, out.view.data);
  EXPECT_EQ(call.matmul.compute, cuda::lt::kCompute32);
  EXPECT_EQ(call.matmul.transpose_a, 0);
  EXPECT_EQ(call.matmul.transpose_b, 0);
  EXPECT_EQ(call.a.rows, 6);
  EXPECT_EQ(call.a.cols, 3);
  EXPECT_EQ(call.a.leading, 6);
  EXPECT_EQ(call.b.rows, 3);
  EXPECT_EQ(call.b.cols, 4);
  EXPECT_EQ(call.c.rows, 6);
  EXPECT_EQ(call.c.cols, 4);
  EXPECT_EQ(call.beta, 0);
}

TEST_F(CudaLtProducts, EveryLayoutComputesTheProduct) {
  for (int layout = 0; layout < 4; ++layout)
    for (const Sizes& batch : {Sizes{}, Sizes{3}, Sizes{2, 3}}) {
      Sizes left = batch, right = batch, result = batch;
      left.insert(left.end(), {4, 5});
      right.insert(right.end(), {5, 6});
      result.insert(result.end(), {4, 6});
      const Operand a = layout & 1 ? numbers_.turned(DType::f32, left) : numbers_.make(DType::f32, left);
      const Operand b = layout & 2 ? numbers_.turned(DType::f32, right) : numbers_.make(DType::f32, right);
      const Operand out = numbers_.make(DType::f32, result);
      fake.calls.clear();
      matmul(a, b, out);
      compute(only_call());
      EXPECT_EQ(only_call().matmul.transpose_b, layout & 1 ? 1 : 0);
      EXPECT_EQ(only_call().matmul.transpose_a, layout & 2 ? 1 : 0);
      expect_same_as_own(&emulated::matmul, {a.view, b.view}, out);
    }
}

TEST_F(CudaLtProducts, GapsBetweenRowsAreLeadingDimensions) {
  const Operand a = numbers_.make(DType::f32, {2, 4, 5}, {60, 11, 1}), b = numbers_.make(DType::f32, {2, 5, 6}, {70, 1, 9});
  const Operand out = numbers_.make(DType::f32, {2, 4, 6});
  matmul(a, b, out);
  EXPECT_EQ(only_call().b.leading, 11);
  EXPECT_EQ(only_call().b.batch_stride, 60);
  EXPECT_EQ(only_call().a.leading, 9);
  compute(only_call());
  expect_same_as_own(&emulated::matmul, {a.view, b.view}, out);
}

TEST_F(CudaLtProducts, OneMatrixForABatch) {
  // Dense rows of all matrices follow each other: one product of 12 rows.
  const Operand a = numbers_.make(DType::f32, {3, 4, 5}), b = numbers_.make(DType::f32, {5, 6}),
                out = numbers_.make(DType::f32, {3, 4, 6});
  matmul(a, b, out);
  EXPECT_EQ(only_call().c.cols, 12);
  EXPECT_EQ(only_call().c.batch, 1);
  // Turned matrices do not join, so b is repeated by a stride of 0.
  const Operand turned = numbers_.turned(DType::f32, {3, 4, 5});
  fake.calls.clear();
  matmul(turned, b, out);
  EXPECT_EQ(only_call().c.batch, 3);
  EXPECT_EQ(only_call().a.batch_stride, 0);
  compute(only_call());
  expect_same_as_own(&emulated::matmul, {turned.view, b.view}, out);
}

TEST_F(CudaLtProducts, ABatchThatDoesNotJoinIsALoop) {
  const Operand a = numbers_.make(DType::f32, {2, 1, 4, 5}), b = numbers_.make(DType::f32, {3, 5, 6}),
                out = numbers_.make(DType::f32, {2, 3, 4, 6});
  matmul(a, b, out);
  ASSERT_EQ(fake.calls.size(), 2u);
  EXPECT_EQ(fake.preferences.size(), 1u);
  for (const Call& call : fake.calls) compute(call);
  expect_same_as_own(&emulated::matmul, {a.view, b.view}, out);

  fake.calls.clear();
  const Operand many = numbers_.make(DType::f32, {33, 1, 2, 2}), few = numbers_.make(DType::f32, {3, 2, 2});
  matmul(many, few, numbers_.make(DType::f32, {33, 3, 2, 2}));
  EXPECT_EQ(fake.calls.size(), 0u) << "33 launches are too many";
}

TEST_F(CudaLtProducts, Types) {
  const std::vector<std::array<int, 4>> wanted = {
      {static_cast<int>(DType::f32), cuda::lt::kReal32, cuda::lt::kCompute32, cuda::lt::kReal32},
      {static_cast<int>(DType::f64), cuda::lt::kReal64, cuda::lt::kCompute64, cuda::lt::kReal64},
      {static_cast<int>(DType::f16), cuda::lt::kReal16, cuda::lt::kCompute32, cuda::lt::kReal32},
      {static_cast<int>(DType::bf16), cuda::lt::kRealBf16, cuda::lt::kCompute32, cuda::lt::kReal32},
  };
  for (const auto& [dtype, type, compute_type, scale] : wanted) {
    const auto d = static_cast<DType>(dtype);
    fake.calls.clear();
    matmul(numbers_.make(d, {4, 3}), numbers_.make(d, {3, 6}), numbers_.make(d, {4, 6}));
    EXPECT_EQ(only_call().a.type, type);
    EXPECT_EQ(only_call().matmul.compute, compute_type);
    EXPECT_EQ(only_call().matmul.scale, scale);
  }
  fake.calls.clear();
  matmul(numbers_.make(DType::i32, {4, 3}), numbers_.make(DType::i32, {3, 6}), numbers_.make(DType::i32, {4, 6}));
  EXPECT_EQ(fake.calls.size(), 0u);
}

TEST_F(CudaLtProducts, Tf32IsAChoice) {
  ::setenv("TAPEDECK_TF32", "1", 1);
  cuda::forget_products();
  matmul(numbers_.make(DType::f32, {4, 3}), numbers_.make(DType::f32, {3, 6}), numbers_.make(DType::f32, {4, 6}));
  ::unsetenv("TAPEDECK_TF32");
  EXPECT_EQ(only_call().matmul.compute, cuda::lt::kComputeTf32);
}

TEST_F(CudaLtProducts, PrefersRepeatableAlgorithmsAndHonestAlignments) {
  const Operand a = numbers_.make(DType::f32, {4, 8}), out = numbers_.make(DType::f32, {4, 12});
  Operand b = numbers_.make(DType::f32, {8, 12}, {13, 1});
  View shifted = b.view;
  shifted.sizes[1] = 11;
  shifted.data = static_cast<float*>(shifted.data) + 1;
  const Operand narrow = numbers_.make(DType::f32, {4, 11});
  matmul(a, b, out);
  call_kernel(&emulated::matmul, {a.view, shifted}, {narrow.view}, fault_, nullptr, &workspace_);
  ASSERT_EQ(fake.preferences.size(), 2u);
  for (auto& preference : fake.preferences) {
    EXPECT_EQ(preference[cuda::lt::kReductionSchemes], cuda::lt::kReduceInWorkspace);
    EXPECT_EQ(preference[cuda::lt::kAlignmentB], 16u);
    EXPECT_EQ(preference[cuda::lt::kAlignmentC], 16u);
    EXPECT_EQ(preference[cuda::lt::kMaxWorkspace], 256u << 10);
  }
  EXPECT_EQ(fake.preferences[0][cuda::lt::kAlignmentA], 16u);
  EXPECT_EQ(fake.preferences[1][cuda::lt::kAlignmentA], 4u);
}

// ---- sums and biases ----

TEST_F(CudaLtProducts, AddsToASumInPlaceWithTheAlgorithmOfTheProduct) {
  const Operand a = numbers_.make(DType::f32, {4, 5}), b = numbers_.make(DType::f32, {5, 6}),
                out = numbers_.make(DType::f32, {4, 6});
  matmul(a, b, out);
  call_kernel(&emulated::addmm, {out.view, a.view, b.view}, {out.view}, fault_, nullptr, &workspace_);
  ASSERT_EQ(fake.calls.size(), 2u);
  EXPECT_EQ(fake.preferences.size(), 1u);
  EXPECT_EQ(fake.calls[0].algorithm, fake.calls[1].algorithm);
  EXPECT_EQ(fake.calls[1].beta, 1);
  EXPECT_EQ(fake.calls[1].c_data, out.view.data);
}

TEST_F(CudaLtProducts, AddsASumOfAnotherLayoutAfterwards) {
  const Operand a = numbers_.make(DType::f32, {4, 5}), b = numbers_.make(DType::f32, {5, 6});
  const Operand old = numbers_.turned(DType::f32, {4, 6}), out = numbers_.make(DType::f32, {4, 6});
  const Operand before = converted(out, DType::f32);
  call_kernel(&emulated::addmm, {old.view, a.view, b.view}, {out.view}, fault_, nullptr, &workspace_);
  EXPECT_EQ(only_call().beta, 0);
  // The fake computed nothing, so the result holds what lay there, plus the sum.
  for (std::int64_t i = 0; i < 24; ++i)
    EXPECT_EQ(out.at(i), static_cast<float>(before.at(i)) + static_cast<float>(old.element(i)));
}

TEST_F(CudaLtProducts, BiasIsAnEpilogue) {
  const Operand x = numbers_.make(DType::f32, {2, 4, 5}), w = numbers_.make(DType::f32, {5, 6}),
                bias = numbers_.make(DType::f32, {6});
  const Operand out = numbers_.make(DType::f32, {2, 4, 6});
  call_kernel(&emulated::linear, {x.view, w.view, bias.view}, {out.view}, fault_, nullptr, &workspace_);
  EXPECT_EQ(only_call().matmul.epilogue, cuda::lt::kEpilogueBias);
  EXPECT_EQ(only_call().matmul.bias, bias.view.data);
  compute(only_call());
  expect_same_as_own(&emulated::linear, {x.view, w.view, bias.view}, out);
}

TEST_F(CudaLtProducts, ABiasThatDoesNotFitIsAddedAfterwards) {
  const Operand x = numbers_.make(DType::f32, {4, 5}), w = numbers_.make(DType::f32, {5, 6}),
                strided = numbers_.make(DType::f32, {6}, {2});
  const Operand dense = numbers_.make(DType::f32, {6}), out = numbers_.make(DType::f32, {4, 6});
  for (const Operand* bias : {&strided, &dense}) {
    fake.no_bias = bias == &dense;  // there is no algorithm with a bias
    fake.calls.clear();
    const Operand before = converted(out, DType::f32);
    call_kernel(&emulated::linear, {x.view, w.view, bias->view}, {out.view}, fault_, nullptr, &workspace_);
    EXPECT_EQ(only_call().matmul.epilogue, 1);
    for (std::int64_t i = 0; i < 24; ++i)
      EXPECT_EQ(out.at(i), static_cast<float>(before.at(i)) + static_cast<float>(bias->element(i % 6)));
  }
}

// A half is rounded once, after everything is added. So where cuBLASLt cannot add everything itself, it is not asked, and the
// result is that of the call on f32 operands, rounded.
TEST_F(CudaLtProducts, HalvesAreRoundedAfterTheSum) {
  for (const DType half : {DType::f16, DType::bf16}) {
    const Operand a = numbers_.make(half, {4, 5}), b = numbers_.make(half, {5, 6}), out = numbers_.make(half, {4, 6});
    const Operand row = numbers_.make(half, {4, 6}, {0, 1}), turned = numbers_.turned(half, {4, 6});
    const Operand strided = numbers_.make(half, {6}, {2}), dense = numbers_.make(half, {6});
    const auto expect_rounded_once = [&](Kernel kernel, const std::vector<const Operand*>& inputs) {
      std::vector<Operand> wide;
      for (const Operand* input : inputs) wide.push_back(converted(*input, DType::f32));
      const Operand sum = numbers_.make(DType::f32, {4, 6});
      std::vector<View> halves, widened;
      for (const Operand* input : inputs) halves.push_back(input->view);
      for (const Operand& input : wide) widened.push_back(input.view);
      const std::size_t calls = fake.calls.size();
      call_kernel(kernel, halves, {out.view}, fault_, nullptr, &workspace_);
      EXPECT_EQ(fake.calls.size(), calls) << "cuBLASLt rounds before the sum";
      fake.no_algorithm = true;
      cuda::forget_products();
      call_kernel(kernel, widened, {sum.view}, fault_);
      fake.no_algorithm = false;
      cuda::forget_products();
      const Operand rounded = converted(sum, half);
      for (std::int64_t i = 0; i < 24; ++i) EXPECT_EQ(out.at(i), rounded.at(i)) << i;
    };
    for (const Operand* old : {&row, &turned}) expect_rounded_once(&emulated::addmm, {old, &a, &b});
    expect_rounded_once(&emulated::linear, {&a, &b, &strided});
    fake.no_bias = true;  // there is no algorithm with a bias
    expect_rounded_once(&emulated::linear, {&a, &b, &dense});
    fake.no_bias = false;
  }
}

// ---- what is kept, and refusals ----

TEST_F(CudaLtProducts, KeepsTheAlgorithmOfAShape) {
  const Operand a = numbers_.make(DType::f32, {4, 5}), b = numbers_.make(DType::f32, {5, 6}),
                out = numbers_.make(DType::f32, {4, 6});
  for (int i = 0; i < 3; ++i) matmul(a, b, out);
  matmul(numbers_.make(DType::f32, {4, 5}), numbers_.make(DType::f32, {5, 7}), numbers_.make(DType::f32, {4, 7}));
  EXPECT_EQ(fake.calls.size(), 4u);
  EXPECT_EQ(fake.preferences.size(), 2u);
  EXPECT_EQ(fake.handles, 1);
  EXPECT_EQ(cuda::lt_shapes_kept(), 2u);
}

TEST_F(CudaLtProducts, ForgetsTheOldestShapes) {
  for (std::int64_t k = 1; k <= 1030; ++k) {
    Product p;
    p.m = p.n = 2;
    p.k = k;
    p.a.row_stride = k;
    p.b.row_stride = 2;
    p.a.col_stride = p.b.col_stride = 1;
    p.a.data = p.b.data = p.out = workspace_.data();
    EXPECT_EQ(cuda::lt_multiply(p, 0, nullptr, 0, nullptr), cuda::LtDone::everything);
  }
  EXPECT_EQ(cuda::lt_shapes_kept(), 1024u);
}

TEST_F(CudaLtProducts, OurKernelsComputeWhatCublasRefuses) {
  const Operand a = numbers_.make(DType::f32, {4, 5}), b = numbers_.make(DType::f32, {5, 6});
  for (const int way : {0, 1, 2}) {
    fake.no_handle = way == 0;
    fake.no_algorithm = way == 1;
    if (way == 2) fake.refuse_from = 0;
    cuda::forget_products();
    const Operand out = numbers_.make(DType::f32, {4, 6});
    matmul(a, b, out);
    double first = 0;
    for (std::int64_t q = 0; q < 5; ++q) first += a.at(q) * b.at(q * 6);
    EXPECT_NEAR(out.at(0), first, 1e-6) << way;
    EXPECT_EQ(fake.calls.size(), 0u);
  }
  EXPECT_EQ(fault_.what.load(), nullptr);
}

TEST_F(CudaLtProducts, ReportsABatchThatFailsHalfway) {
  fake.refuse_from = 1;
  const Operand a = numbers_.make(DType::f32, {2, 1, 4, 5}), b = numbers_.make(DType::f32, {3, 5, 6});
  matmul(a, b, numbers_.make(DType::f32, {2, 3, 4, 6}));
  EXPECT_NE(fault_.what.load(), nullptr);
}

TEST_F(CudaLtProducts, SaysWhyItIsNotUsed) {
  std::string why;
  EXPECT_TRUE(cuda::lt_usable(0, &why));
  fake.no_handle = true;
  cuda::forget_products();
  EXPECT_FALSE(cuda::lt_usable(0, &why));
  EXPECT_EQ(why, "cuBLASLt does not start: out of order");
  fake.no_handle = false;
  ::setenv("TAPEDECK_CUDA_GEMM", "own", 1);
  cuda::forget_products();
  ::unsetenv("TAPEDECK_CUDA_GEMM");
  EXPECT_FALSE(cuda::lt_usable(0, &why));
  EXPECT_EQ(why, "TAPEDECK_CUDA_GEMM=own asks for our own kernels");
}

TEST_F(CudaLtProducts, WorkspaceGrowsWithTheProduct) {
  const auto wanted = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    Product p;
    p.m = m;
    p.n = n;
    p.k = k;
    p.a.row_stride = k;
    p.b.row_stride = n;
    p.a.col_stride = p.b.col_stride = 1;
    return cuda::lt_workspace(p, 0);
  };
  EXPECT_EQ(wanted(4, 4, 4), 256 << 10);
  EXPECT_EQ(wanted(256, 256, 256), 4 << 20);
  EXPECT_EQ(wanted(4096, 4096, 4096), 32 << 20);
  EXPECT_EQ(wanted(1, 256, 256), 0) << "a product with a vector is ours";
  EXPECT_EQ(wanted(4, 4, 0), 0);
}

TEST_F(CudaLtProducts, ThreadsShareOnePlan) {
  std::vector<std::thread> threads;
  static std::atomic<int> launched{0};
  launched = 0;
  cuda::LtApi api = fake_api();
  api.cublasLtMatmul = [](auto...) -> int { return launched++, 0; };
  const cuda::ScopedFake scope(api);
  cuda::forget_products();
  std::vector<char> memory(64);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      Product p;
      p.m = p.n = p.k = 2;
      p.a.row_stride = p.b.row_stride = 2;
      p.a.col_stride = p.b.col_stride = 1;
      p.a.data = p.b.data = p.out = memory.data();
      for (int i = 0; i < 50; ++i) cuda::lt_multiply(p, 0, nullptr, 0, nullptr);
    });
  for (std::thread& thread : threads) thread.join();
  cuda::forget_products();  // the plans know this table
  EXPECT_EQ(launched, 200);
  EXPECT_EQ(fake.preferences.size(), 1u);
}

// The real library, where it is installed. Without a GPU it takes every attribute of the descriptors, but makes no handle, and
// our kernels take over.
class CudaLtLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::getenv("TAPEDECK_CUDA_LIBDIR")) GTEST_SKIP() << "it maps half a gigabyte: TAPEDECK_CUDA_LIBDIR asks for it";
    api_ = cuda::lt_api(&why_);
    if (!api_) GTEST_SKIP() << why_;
    cuda::forget_products();
  }
  void TearDown() override { cuda::forget_products(); }

  const cuda::LtApi* api_ = nullptr;
  std::string why_;
};

TEST_F(CudaLtLibrary, StartsOrSaysWhyNot) {
  const bool usable = cuda::lt_usable(0, &why_);
  EXPECT_NE(usable, !why_.empty()) << why_;
  EXPECT_EQ(why_.find('\n'), std::string::npos);
}

TEST_F(CudaLtLibrary, TakesTheAttributes) {
  namespace lt = cuda::lt;
  cuda::LtMatmul matmul = nullptr;
  ASSERT_EQ(api_->cublasLtMatmulDescCreate(&matmul, lt::kCompute32, lt::kReal32), 0);
  const void* bias = this;
  EXPECT_EQ(api_->cublasLtMatmulDescSetAttribute(matmul, lt::kBiasPointer, &bias, sizeof bias), 0);
  for (const auto& [attribute, value] : {std::pair{lt::kTransposeA, lt::kTransposed}, std::pair{lt::kTransposeB, lt::kPlain},
                                         std::pair{lt::kEpilogue, lt::kEpilogueBias}})
    EXPECT_EQ(api_->cublasLtMatmulDescSetAttribute(matmul, attribute, &value, sizeof value), 0) << attribute;
  EXPECT_EQ(api_->cublasLtMatmulDescDestroy(matmul), 0);

  cuda::LtLayout layout = nullptr;
  ASSERT_EQ(api_->cublasLtMatrixLayoutCreate(&layout, lt::kRealBf16, 6, 3, 6), 0);
  const std::int32_t count = 5;
  const std::int64_t offset = 0;
  EXPECT_EQ(api_->cublasLtMatrixLayoutSetAttribute(layout, lt::kBatchCount, &count, sizeof count), 0);
  EXPECT_EQ(api_->cublasLtMatrixLayoutSetAttribute(layout, lt::kBatchOffset, &offset, sizeof offset), 0);
  EXPECT_EQ(api_->cublasLtMatrixLayoutDestroy(layout), 0);

  cuda::LtPreference preference = nullptr;
  ASSERT_EQ(api_->cublasLtMatmulPreferenceCreate(&preference), 0);
  const std::uint64_t workspace = 32 << 20;
  EXPECT_EQ(api_->cublasLtMatmulPreferenceSetAttribute(preference, lt::kMaxWorkspace, &workspace, sizeof workspace), 0);
  for (const int attribute : {lt::kReductionSchemes, lt::kAlignmentA, lt::kAlignmentB, lt::kAlignmentC, lt::kAlignmentD}) {
    const std::uint32_t value = attribute == lt::kReductionSchemes ? lt::kReduceInWorkspace : 16;
    EXPECT_EQ(api_->cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value), 0) << attribute;
  }
  EXPECT_EQ(api_->cublasLtMatmulPreferenceDestroy(preference), 0);
}

}  // namespace
}  // namespace tapedeck::kernels
