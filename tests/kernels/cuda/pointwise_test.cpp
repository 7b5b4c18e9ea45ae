// Runs the bodies of the CUDA pointwise kernels on the host, thread by thread. nvcc compiles the same code. The oracles are
// the CPU kernels, bit for bit on random strided views, and plain formulas.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cuda/pointwise.inl>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::kernels::cuda {
namespace {

// Runs the body for each of a few threads. There are fewer threads than elements, so each takes several; the last thread
// runs first, because the order must not matter.
struct HostLaunch {
  static constexpr std::int64_t kThreads = 7;

  template <class Out, class... In, class F>
  static void map(const KernelCall& call, const F& f) {
    const auto walk = make_walk<1 + sizeof...(In)>(call);
    for (std::int64_t thread = kThreads - 1; thread >= 0; --thread) map_thread<Out, In...>(walk, f, thread, kThreads);
  }
};

struct Case {
  const char* name;
  Kernel host;  // the CUDA body, run on the host
  Kernel cpu;
};

#define TAPEDECK_CASE(name, family, functor) {#name, &family<HostLaunch, functor>, &cpu::name},
const std::vector<Case> kArithmetic = {TAPEDECK_POINTWISE_ARITHMETIC(TAPEDECK_CASE)};
const std::vector<Case> kFunctions = {TAPEDECK_POINTWISE_FUNCTIONS(TAPEDECK_CASE)};
const std::vector<Case> kComparisons = {TAPEDECK_POINTWISE_COMPARISONS(TAPEDECK_CASE)};
const std::vector<Case> kConversions = {TAPEDECK_POINTWISE_CONVERSIONS(TAPEDECK_CASE)};
#undef TAPEDECK_CASE

const std::vector<DType> kFloats = {DType::f32, DType::f64};
const std::vector<DType> kNumbers = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8};
const std::vector<DType> kAll = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean};

// ---- random views ----

// A view and its bytes. The buffer ends with the last byte of the view, so that the address sanitizer reports an access
// outside.
struct Buffer {
  View view;
  std::vector<std::uint8_t> bytes;
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t below(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(engine_); }
  bool chance(double p) { return std::bernoulli_distribution(p)(engine_); }

  std::vector<std::int64_t> sizes() {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(below(5)));
    for (auto& size : sizes) size = chance(0.03) ? 0 : 1 + below(6);
    return sizes;
  }

  // Puts the dimensions in any order in memory, with gaps. A broadcast dimension has stride 0.
  Buffer buffer(DType dtype, const std::vector<std::int64_t>& sizes, bool may_broadcast) {
    Buffer b;
    b.view.dtype = dtype;
    b.view.rank = static_cast<int>(sizes.size());
    std::vector<int> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    if (chance(0.5)) std::shuffle(order.begin(), order.end(), engine_);
    const bool gaps = chance(0.4);
    std::int64_t extent = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      const int d = order[i];
      b.view.sizes[d] = sizes[d];
      if (may_broadcast && chance(0.2)) {
        b.view.strides[d] = 0;
        continue;
      }
      if (gaps) extent += below(3);
      b.view.strides[d] = extent;
      extent *= std::max<std::int64_t>(b.view.sizes[d], 1);
    }
    std::int64_t reach = 1;
    for (int d = 0; d < b.view.rank; ++d) reach += b.view.strides[d] * std::max<std::int64_t>(b.view.sizes[d] - 1, 0);
    b.bytes.resize(static_cast<std::size_t>(reach) * dtype_size(dtype));
    fill(b, reach);
    b.view.data = b.bytes.data();
    return b;
  }

 private:
  void fill(Buffer& b, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      switch (b.view.dtype) {
        case DType::f32:
          store(b, i, floating<float>());
          break;
        case DType::f64:
          store(b, i, floating<double>());
          break;
        case DType::i32:
          store(b, i, integer<std::int32_t>());
          break;
        case DType::i64:
          store(b, i, integer<std::int64_t>());
          break;
        case DType::u8:
          store(b, i, integer<std::uint8_t>());
          break;
        default:
          store(b, i, static_cast<std::uint8_t>(below(2)));
          break;
      }
    }
  }
  template <class T>
  void store(Buffer& b, std::int64_t i, T value) {
    std::memcpy(b.bytes.data() + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof value);
  }
  template <class T>
  T floating() {
    using Limits = std::numeric_limits<T>;
    const T special[] = {T(0),
                         -T(0),
                         T(1),
                         T(-1),
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         Limits::denorm_min(),
                         Limits::max(),
                         Limits::lowest(),
                         Limits::min()};
    if (chance(0.1)) return special[below(std::size(special))];
    return std::uniform_real_distribution<T>(-5, 5)(engine_);
  }
  template <class T>
  T integer() {
    if (chance(0.1)) return chance(0.5) ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
    const std::int64_t value = below(11) - (std::is_signed_v<T> ? 5 : 0);
    return static_cast<T>(value);
  }

  std::mt19937_64 engine_;
};

// ---- comparing results ----

template <class T>
bool equal_elements(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    T x, y;
    std::memcpy(&x, a + at, sizeof x);
    std::memcpy(&y, b + at, sizeof y);
    if (std::isnan(x) && std::isnan(y)) continue;  // the compiler chooses which NaN
    if (std::memcmp(a + at, b + at, sizeof(T)) != 0) return false;
  }
  return true;
}

// Compares all bytes under the outputs, gaps included, because a kernel must not write outside of the view.
bool equal_buffers(const Buffer& a, const Buffer& b) {
  if (a.view.dtype == DType::f32) return equal_elements<float>(a.bytes.data(), b.bytes.data(), a.bytes.size());
  if (a.view.dtype == DType::f64) return equal_elements<double>(a.bytes.data(), b.bytes.data(), a.bytes.size());
  return a.bytes == b.bytes;
}

std::string describe(const View& view) {
  std::string text = dtype_name(view.dtype);
  for (int d = 0; d < view.rank; ++d) text += " " + std::to_string(view.sizes[d]) + "*" + std::to_string(view.strides[d]);
  return text;
}

// Runs both kernels on copies of one output. It ignores faults, because a kernel on the device cannot report a division by
// zero.
void compare_kernels(const Case& c, const std::vector<Buffer>& inputs, const Buffer& output, const void* attrs = nullptr) {
  std::vector<View> views;
  for (const Buffer& input : inputs) views.push_back(input.view);
  Buffer by_cuda = output, by_cpu = output;
  by_cuda.view.data = by_cuda.bytes.data();
  by_cpu.view.data = by_cpu.bytes.data();
  KernelFault ignored, fault;
  KernelCall call;
  call.inputs = views.data();
  call.n_inputs = static_cast<int>(views.size());
  call.n_outputs = 1;
  call.attrs = attrs;
  call.outputs = &by_cpu.view;
  call.fault = &ignored;
  c.cpu(call);
  call.outputs = &by_cuda.view;
  call.fault = &fault;
  c.host(call);
  EXPECT_EQ(fault.what.load(), nullptr);
  std::string operands;
  for (const View& view : views) operands += "\n  in  " + describe(view);
  EXPECT_TRUE(equal_buffers(by_cuda, by_cpu)) << c.name << operands << "\n  out " << describe(output.view);
}

// Tries random views of the given dtypes; the last dtype is that of the output.
void try_case(Random& random, const Case& c, const std::vector<DType>& dtypes, const void* attrs = nullptr) {
  for (int round = 0; round < 30; ++round) {
    const auto sizes = random.sizes();
    std::vector<Buffer> inputs;
    for (std::size_t k = 0; k + 1 < dtypes.size(); ++k) inputs.push_back(random.buffer(dtypes[k], sizes, true));
    compare_kernels(c, inputs, random.buffer(dtypes.back(), sizes, false), attrs);
    if (testing::Test::HasFailure()) return;
  }
}

// TAPEDECK_TEST_SEED sets the seed, to repeat a run.
unsigned chosen_seed() {
  const char* text = std::getenv("TAPEDECK_TEST_SEED");
  return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : std::random_device{}() & 0xFFFFFF;
}

class CudaPointwise : public testing::Test {
 protected:
  const unsigned seed_ = chosen_seed();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  Random random_{seed_};
};

bool is_one_of(const char* name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return std::strcmp(n, name) == 0; });
}

TEST_F(CudaPointwise, ArithmeticEqualsCpu) {
  for (const Case& c : kArithmetic)
    for (const DType t : is_one_of(c.name, {"relu_grad", "tanh_grad", "sigmoid_grad"}) ? kFloats : kNumbers)
      try_case(random_, c, {t, t, t});
}

TEST_F(CudaPointwise, FunctionsEqualCpu) {
  for (const Case& c : kFunctions)
    for (const DType t : is_one_of(c.name, {"neg", "abs", "sign", "relu", "square"}) ? kNumbers : kFloats)
      try_case(random_, c, {t, t});
}

TEST_F(CudaPointwise, ComparisonsEqualCpu) {
  for (const Case& c : kComparisons) {
    const bool logic = is_one_of(c.name, {"logical_and", "logical_or", "logical_not"});
    for (const DType t : logic ? std::vector<DType>{DType::boolean} : kAll) {
      if (is_one_of(c.name, {"logical_not"}))
        try_case(random_, c, {t, DType::boolean});
      else if (is_one_of(c.name, {"where"}))
        try_case(random_, c, {DType::boolean, t, t, t});
      else
        try_case(random_, c, {t, t, DType::boolean});
    }
  }
}

TEST_F(CudaPointwise, ConversionsEqualCpu) {
  for (const Case& c : kConversions)
    for (const DType from : kAll)
      for (const DType to : kAll) {
        const CastAttrs attrs{to};
        if (is_one_of(c.name, {"cast"}))
          try_case(random_, c, {from, to}, &attrs);
        else if (from == to)
          try_case(random_, c, {from, to});
      }
}

// ---- kernels compared with plain formulas ----

const Case& find_case(const char* name) {
  for (const auto* list : {&kArithmetic, &kFunctions, &kComparisons, &kConversions})
    for (const Case& c : *list)
      if (std::strcmp(c.name, name) == 0) return c;
  throw std::runtime_error(name);
}

template <class T>
DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return DType::i64;
  else
    return DType::u8;
}

template <class T>
View row(T* data, std::int64_t n) {
  View view;
  view.data = data;
  view.dtype = dtype_of<T>();
  view.rank = 1;
  view.sizes[0] = n;
  view.strides[0] = 1;
  return view;
}

template <class T, class Out>
void run_binary(const char* name, std::vector<T>& a, std::vector<T>& b, std::vector<Out>& out) {
  const auto n = static_cast<std::int64_t>(out.size());
  const View inputs[] = {row(a.data(), n), row(b.data(), n)};
  const View output = row(out.data(), n);
  KernelFault fault;
  KernelCall call;
  call.inputs = inputs;
  call.outputs = &output;
  call.n_inputs = 2;
  call.n_outputs = 1;
  call.fault = &fault;
  find_case(name).host(call);
  EXPECT_EQ(fault.what.load(), nullptr) << name;
}

template <class T>
class CudaPointwiseFormula : public testing::Test {};
using AllNumbers = testing::Types<float, double, std::int32_t, std::int64_t, std::uint8_t>;
TYPED_TEST_SUITE(CudaPointwiseFormula, AllNumbers);

TYPED_TEST(CudaPointwiseFormula, Binary) {
  using T = TypeParam;
  using Formula = std::function<double(double, double)>;
  const std::map<const char*, Formula> arithmetic = {
      {"add", [](double a, double b) { return a + b; }},
      {"sub", [](double a, double b) { return a - b; }},
      {"mul", [](double a, double b) { return a * b; }},
      {"div", [](double a, double b) { return std::is_integral_v<T> ? std::trunc(a / b) : a / b; }},
      {"maximum", [](double a, double b) { return a > b ? a : b; }},
      {"minimum", [](double a, double b) { return a < b ? a : b; }},
      {"pow", [](double a, double b) { return std::pow(a, b); }},
  };
  std::vector<T> a, b;
  for (int x = 3; x <= 6; ++x)
    for (int y = 1; y <= 3; ++y) a.push_back(static_cast<T>(x)), b.push_back(static_cast<T>(y));
  for (const auto& [name, formula] : arithmetic) {
    std::vector<T> out(a.size());
    run_binary(name, a, b, out);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double wanted = formula(static_cast<double>(a[i]), static_cast<double>(b[i]));
      EXPECT_NEAR(static_cast<double>(out[i]), wanted, 1e-6 * std::fabs(wanted)) << name << " " << +a[i] << " " << +b[i];
    }
  }
  const std::map<const char*, std::function<bool(T, T)>> comparisons = {
      {"equal", std::equal_to<T>()},  {"not_equal", std::not_equal_to<T>()}, {"less", std::less<T>()},
      {"greater", std::greater<T>()}, {"less_equal", std::less_equal<T>()},  {"greater_equal", std::greater_equal<T>()},
  };
  for (const auto& [name, formula] : comparisons) {
    std::vector<std::uint8_t> out(a.size());
    run_binary(name, a, b, out);
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(out[i] != 0, formula(a[i], b[i])) << name << " " << +a[i] << " " << +b[i];
  }
}

TYPED_TEST(CudaPointwiseFormula, Unary) {
  using T = TypeParam;
  if constexpr (std::is_floating_point_v<T>) {
    const std::map<const char*, std::function<double(double)>> functions = {
        {"neg", [](double x) { return -x; }},
        {"abs", [](double x) { return std::fabs(x); }},
        {"sign", [](double x) { return x > 0   ? 1.0
                                       : x < 0 ? -1.0
                                               : 0.0; }},
        {"relu", [](double x) { return x > 0 ? x : 0.0; }},
        {"square", [](double x) { return x * x; }},
        {"exp", [](double x) { return std::exp(x); }},
        {"log", [](double x) { return std::log(x); }},
        {"tanh", [](double x) { return std::tanh(x); }},
        {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
        {"sqrt", [](double x) { return std::sqrt(x); }},
        {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
        {"sin", [](double x) { return std::sin(x); }},
        {"cos", [](double x) { return std::cos(x); }},
    };
    const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;
    for (const auto& [name, formula] : functions) {
      std::vector<T> x = {T(0.01), T(0.5), T(1), T(2.5), T(9), T(-0.5), T(-3)}, out(x.size());
      if (is_one_of(name, {"log", "sqrt", "rsqrt"})) x.resize(5), out.resize(5);
      std::vector<T> unused = x;
      run_binary(name, x, unused, out);  // run_binary passes a second operand; the kernel does not read it
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double wanted = formula(static_cast<double>(x[i]));
        EXPECT_NEAR(static_cast<double>(out[i]), wanted, tolerance * std::max(1.0, std::fabs(wanted))) << name << " " << x[i];
      }
    }
  }
}

// ---- how threads walk over elements ----

TEST(CudaPointwiseWalk, EveryElementOnceWhateverTheThreads) {
  for (const std::int64_t n : {0, 1, 2, 255, 256, 257, 1000}) {
    for (const std::int64_t threads : {1, 3, 256, 1024}) {
      std::vector<std::int32_t> counts(static_cast<std::size_t>(n), 0), ones(1, 1);
      View inputs[] = {row(counts.data(), n), row(ones.data(), n)};
      inputs[1].strides[0] = 0;
      const View output = inputs[0];  // in place: a second visit of an element would change it again
      KernelCall call;
      call.inputs = inputs;
      call.outputs = &output;
      const auto walk = make_walk<3>(call);
      for (std::int64_t t = 0; t < threads; ++t) map_thread<std::int32_t, std::int32_t, std::int32_t>(walk, Add{}, t, threads);
      EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), n) << n << " elements, " << threads << " threads";
    }
  }
}

// The test does not allocate 2^31 elements; it only checks the index arithmetic for them.
TEST(CudaPointwiseWalk, BothIndexWidthsAgree) {
  Walk<2> walk;
  walk.rank = 3;
  const std::int64_t sizes[] = {3, 70000, 20000}, strides[2][3] = {{1400000000, 20000, 1}, {1, 0, 5}};
  walk.n = sizes[0] * sizes[1] * sizes[2];
  for (int d = 0; d < 3; ++d) {
    walk.sizes[d] = sizes[d];
    for (int k = 0; k < 2; ++k) walk.strides[k][d] = strides[k][d];
  }
  for (const std::int64_t i :
       {std::int64_t{0}, std::int64_t{19999}, std::int64_t{20000}, std::int64_t{1399999999}, walk.n - 1}) {
    std::int64_t wide[2], narrow[2];
    locate<std::uint64_t>(walk, i, wide);
    EXPECT_EQ(wide[0], i);
    EXPECT_EQ(wide[1], i / 1400000000 + i % 20000 * 5);
    if (i > std::numeric_limits<std::int32_t>::max()) continue;
    locate<std::uint32_t>(walk, i, narrow);
    EXPECT_EQ(narrow[0], wide[0]);
    EXPECT_EQ(narrow[1], wide[1]);
  }
}

TEST(CudaPointwiseWalk, DenseViewsBecomeOneDimension) {
  View view;
  view.rank = 4;
  const std::int64_t sizes[] = {2, 1, 3, 4}, strides[] = {12, 99, 4, 1};
  std::copy(sizes, sizes + 4, view.sizes);
  std::copy(strides, strides + 4, view.strides);
  KernelCall call;
  call.inputs = call.outputs = &view;
  const auto walk = make_walk<2>(call);
  EXPECT_EQ(walk.rank, 1);
  EXPECT_EQ(walk.sizes[0], 24);
  EXPECT_EQ(walk.strides[0][0], 1);
}

TEST(CudaPointwiseWalk, ForeignTypesAreReported) {
  std::uint16_t x = 7, y = 9;
  View input = row(reinterpret_cast<std::uint8_t*>(&x), 1), output = row(reinterpret_cast<std::uint8_t*>(&y), 1);
  input.dtype = output.dtype = DType::bf16;
  KernelFault fault;
  KernelCall call;
  call.inputs = &input;
  call.outputs = &output;
  call.n_inputs = call.n_outputs = 1;
  call.fault = &fault;
  find_case("exp").host(call);
  ASSERT_NE(fault.what.load(), nullptr);
  EXPECT_EQ(fault.value.load(), static_cast<std::int64_t>(DType::bf16));
  EXPECT_EQ(y, 9) << "nothing is computed";
}

}  // namespace
}  // namespace tapedeck::kernels::cuda
