// Tests elementwise kernels on every mixture of dense, permuted, gapped and broadcast views. The oracle is one scalar call
// for each element, so all paths through a kernel must give the same bits.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/scalar_functions.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace tapedeck::kernels::cpu {
void tan(const KernelCall& call);
void lgamma(const KernelCall& call);
void digamma(const KernelCall& call);
void remainder(const KernelCall& call);
void fmod(const KernelCall& call);
void floor_divide(const KernelCall& call);
void logaddexp(const KernelCall& call);
void erf(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace k = kernels;
namespace cpu = kernels::cpu;

constexpr unsigned kElementwiseSeed = 20240611;

// A random array of these sizes in a random layout: dense, scrambled, or broadcast from smaller sizes.
Array any_layout(Random& random, DType dtype, const Sizes& sizes, double low, double high) {
  switch (random() % 3) {
    case 0:
      return random_array(random, dtype, sizes, low, high);
    case 1:
      return scrambled(random, random_array(random, dtype, sizes, low, high));
    default: {
      Sizes smaller(sizes.begin() + static_cast<std::ptrdiff_t>(random() % (sizes.size() + 1)), sizes.end());
      for (auto& s : smaller)
        if (random() % 2) s = 1;
      return broadcast(random_array(random, dtype, smaller, low, high), sizes);
    }
  }
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};

template <class Out, class In, class F>
void check_binary(Kernel kernel, F f, DType out_dtype = DTypeOf<Out>::value, double low = -5, double high = 5) {
  SCOPED_TRACE(::testing::Message() << "seed " << kElementwiseSeed << " dtype " << dtype_name(DTypeOf<In>::value));
  Random random(kElementwiseSeed);
  for (int round = 0; round < 40; ++round) {
    const Sizes sizes = random_sizes(random, 4, 9);
    const Array a = any_layout(random, DTypeOf<In>::value, sizes, low, high),
                b = any_layout(random, DTypeOf<In>::value, sizes, low, high);
    Array out = make_array(out_dtype, sizes);
    if (round % 4 == 3) out = scrambled(random, out);
    ASSERT_EQ(run(kernel, {a, b}, {out}).fault, nullptr);
    for (std::int64_t i = 0; i < out.numel(); ++i) ASSERT_EQ(out.at<Out>(i), f(a.at<In>(i), b.at<In>(i))) << i;
  }
}

template <class F>
void check_arithmetic(Kernel kernel, F f) {
  check_binary<float, float>(kernel, f);
  check_binary<double, double>(kernel, f);
  check_binary<std::int32_t, std::int32_t>(kernel, f);
  check_binary<std::int64_t, std::int64_t>(kernel, f);
  check_binary<std::uint8_t, std::uint8_t>(kernel, f, DType::u8, 0, 255);
}

TEST(Elementwise, Arithmetic) {
  check_arithmetic(cpu::add, k::Add{});
  check_arithmetic(cpu::sub, k::Sub{});
  check_arithmetic(cpu::mul, k::Mul{});
  check_arithmetic(cpu::maximum, k::Maximum{});
  check_arithmetic(cpu::minimum, k::Minimum{});
}

TEST(Elementwise, DivisionAndPower) {
  check_binary<float, float>(cpu::div, [](float a, float b) { return a / b; });
  check_binary<double, double>(cpu::div, [](double a, double b) { return a / b; });
  check_binary<std::int32_t, std::int32_t>(
      cpu::div, [](int a, int b) { return a / b; }, DType::i32, 1, 100);
  check_binary<float, float>(
      cpu::pow, [](float a, float b) { return k::Pow{}(a, b); }, DType::f32, 0.1, 4);
  check_binary<std::int64_t, std::int64_t>(
      cpu::pow,
      [](std::int64_t a, std::int64_t b) {
        std::int64_t r = 1;
        for (std::int64_t i = 0; i < b; ++i) r *= a;
        return r;
      },
      DType::i64, 0, 9);
}

TEST(Elementwise, GradientsFromTheResult) {
  check_binary<float, float>(cpu::relu_grad, [](float y, float dy) { return y > 0 ? dy : 0.0f; });
  check_binary<double, double>(cpu::tanh_grad, [](double y, double dy) { return dy * (1 - y * y); });
  check_binary<float, float>(cpu::sigmoid_grad, [](float y, float dy) { return dy * (y * (1 - y)); });
}

template <class T>
void check_comparisons() {
  check_binary<std::uint8_t, T>(
      cpu::equal, [](T a, T b) { return a == b; }, DType::boolean, 0, 3);
  check_binary<std::uint8_t, T>(
      cpu::not_equal, [](T a, T b) { return a != b; }, DType::boolean, 0, 3);
  check_binary<std::uint8_t, T>(
      cpu::less, [](T a, T b) { return a < b; }, DType::boolean, 0, 3);
  check_binary<std::uint8_t, T>(
      cpu::less_equal, [](T a, T b) { return a <= b; }, DType::boolean, 0, 3);
  check_binary<std::uint8_t, T>(
      cpu::greater, [](T a, T b) { return a > b; }, DType::boolean, 0, 3);
  check_binary<std::uint8_t, T>(
      cpu::greater_equal, [](T a, T b) { return a >= b; }, DType::boolean, 0, 3);
}

TEST(Elementwise, ComparisonsAndLogic) {
  check_comparisons<float>();
  check_comparisons<std::int32_t>();
  check_comparisons<std::uint8_t>();
  check_binary<std::uint8_t, std::uint8_t>(
      cpu::logical_and, [](int a, int b) { return a && b; }, DType::boolean, 0, 2);
  check_binary<std::uint8_t, std::uint8_t>(
      cpu::logical_or, [](int a, int b) { return a || b; }, DType::boolean, 0, 2);
}

template <class T, class F>
void check_unary(Kernel kernel, F f, double low = -5, double high = 5) {
  SCOPED_TRACE(::testing::Message() << "seed " << kElementwiseSeed << " dtype " << dtype_name(DTypeOf<T>::value));
  Random random(kElementwiseSeed);
  for (int round = 0; round < 30; ++round) {
    const Sizes sizes = random_sizes(random, 4, 9);
    const Array a = any_layout(random, DTypeOf<T>::value, sizes, low, high);
    const Array out = make_array(DTypeOf<T>::value, sizes);
    ASSERT_EQ(run(kernel, {a}, {out}).fault, nullptr);
    for (std::int64_t i = 0; i < out.numel(); ++i) ASSERT_EQ(out.at<T>(i), f(a.at<T>(i))) << i;
  }
}

TEST(Elementwise, Unary) {
  check_unary<float>(cpu::neg, [](float x) { return -x; });
  check_unary<std::int32_t>(cpu::neg, [](int x) { return -x; });
  check_unary<float>(cpu::abs, [](float x) { return std::fabs(x); });
  check_unary<std::int64_t>(cpu::abs, [](std::int64_t x) { return x < 0 ? -x : x; });
  check_unary<float>(cpu::sign, [](float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f; });
  check_unary<float>(cpu::relu, [](float x) { return std::max(x, 0.0f); });
  check_unary<std::int32_t>(cpu::relu, [](int x) { return std::max(x, 0); });
  check_unary<float>(cpu::square, [](float x) { return x * x; });
  check_unary<float>(cpu::exp, k::exp_f32);
  check_unary<float>(cpu::tanh, k::tanh_f32);
  check_unary<float>(cpu::sigmoid, k::sigmoid_f32);
  check_unary<float>(cpu::log, k::log_f32, 0.01, 9);
  check_unary<float>(
      cpu::sqrt, [](float x) { return std::sqrt(x); }, 0, 9);
  check_unary<float>(
      cpu::rsqrt, [](float x) { return 1.0f / std::sqrt(x); }, 0.1, 9);
  check_unary<double>(cpu::exp, [](double x) { return std::exp(x); });
  check_unary<double>(
      cpu::log, [](double x) { return std::log(x); }, 0.01, 9);
  check_unary<double>(cpu::tanh, [](double x) { return std::tanh(x); });
  check_unary<double>(cpu::sin, [](double x) { return std::sin(x); });
  check_unary<double>(cpu::cos, [](double x) { return std::cos(x); });
  check_unary<std::uint8_t>(
      cpu::logical_not, [](int x) { return x == 0; }, 0, 2);
}

TEST(Elementwise, Where) {
  Random random(kElementwiseSeed);
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean})
    for (int round = 0; round < 20; ++round) {
      const Sizes sizes = random_sizes(random, 4, 7);
      const Array c = any_layout(random, DType::boolean, sizes, 0, 1), a = any_layout(random, dtype, sizes, 0, 9),
                  b = any_layout(random, dtype, sizes, 0, 9), out = make_array(dtype, sizes);
      run(cpu::where, {c, a, b}, {out});
      for (std::int64_t i = 0; i < out.numel(); ++i) ASSERT_EQ(out.get(i), c.get(i) != 0 ? a.get(i) : b.get(i));
    }
}

TEST(Elementwise, CastBetweenAllTypes) {
  Random random(kElementwiseSeed);
  for (const DType from : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean})
    for (const DType to : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean})
      for (int round = 0; round < 6; ++round) {
        const Sizes sizes = random_sizes(random, 3, 9);
        const Array a = any_layout(random, from, sizes, 0, 100), out = make_array(to, sizes);
        ASSERT_EQ(run(cpu::cast, {a}, {out}).fault, nullptr);
        for (std::int64_t i = 0; i < out.numel(); ++i) {
          const double x = a.get(i);
          const double expected = to == DType::boolean ? x != 0
                                  : to == DType::f64   ? x
                                  : to == DType::f32   ? static_cast<double>(static_cast<float>(x))
                                                       : std::trunc(x);
          ASSERT_EQ(out.get(i), expected) << dtype_name(from) << " to " << dtype_name(to);
        }
      }
}

TEST(Elementwise, IntegerDivisionByZeroIsAFault) {
  const Array a = array_of(DType::i32, {3}, {1, 2, 3}), b = array_of(DType::i32, {3}, {1, 0, 2}),
              out = make_array(DType::i32, {3});
  EXPECT_STREQ(run(cpu::div, {a, b}, {out}).fault, "integer division by zero");
  EXPECT_EQ(out.get(2), 1);
  const Array zero = array_of(DType::i64, {1}, {0}), minus = array_of(DType::i64, {1}, {-2}),
              power = make_array(DType::i64, {1});
  const Outcome outcome = run(cpu::pow, {zero, minus}, {power});
  EXPECT_NE(outcome.fault, nullptr);
  EXPECT_EQ(outcome.value, -2);
}

TEST(Elementwise, HalfTypesAreRefused) {
  const Array a = make_array(DType::f16, {2});
  EXPECT_NE(run(cpu::add, {a, a}, {a}).fault, nullptr);
}

TEST(Elementwise, InPlaceOnDenseAndStridedViews) {
  Random random(kElementwiseSeed);
  for (int round = 0; round < 20; ++round) {
    const Sizes sizes = {5, 7, 33};
    Array a = random_array(random, DType::f32, sizes);
    if (round % 2) a = scrambled(random, a);
    const Array b = any_layout(random, DType::f32, sizes, -1, 1), before = dense_copy(a);
    run(cpu::add, {a, b}, {a});
    for (std::int64_t i = 0; i < a.numel(); ++i) ASSERT_EQ(a.at<float>(i), before.at<float>(i) + b.at<float>(i));
  }
}

// Operands that the vector loop of a function does not cover lie among operands that it covers, in some tiles of 256 and not in
// others, in fresh memory and in place.
template <class F>
void check_rare_operands(Kernel kernel, const F& f, const std::vector<double>& rare) {
  Random random(kElementwiseSeed);
  const Array x = random_array(random, DType::f32, {3, 700}, 0.1, 50);
  for (std::int64_t i = 300; i < x.numel(); i += 7 + i / 9) x.set(i, rare[random() % rare.size()]);
  const Array y = make_array(DType::f32, {3, 700}), gapped = make_array(DType::f32, {3, 700});
  run(kernel, {x}, {y});
  run(kernel, {scrambled(random, x)}, {gapped});
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const float expected = f(x.at<float>(i));
    ASSERT_EQ(std::memcmp(y.address(i), &expected, sizeof expected), 0) << x.get(i);
  }
  EXPECT_TRUE(same_bits(y, gapped));
  run(kernel, {x}, {x});
  EXPECT_TRUE(same_bits(x, y));
}

TEST(Elementwise, FunctionsWithRareOperands) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> far = {1e5, -1.5e5, 1e9, -3e38, inf, nan}, below = {0, -0.0, -0.5, -3, -7.25, inf, -inf, nan};
  check_rare_operands(cpu::sin, k::Sin{}, far);
  check_rare_operands(cpu::cos, k::Cos{}, far);
  check_rare_operands(cpu::tan, k::Tan{}, far);
  check_rare_operands(cpu::lgamma, k::Lgamma{}, below);
  check_rare_operands(cpu::digamma, k::Digamma{}, below);
}

// Functors of two operands that run tile by tile: rows of more than a tile, dense, broadcast along rows and along columns, and
// gapped. The operands hold some that are rare. In place, the result replaces the first operand.
template <class F>
void check_tiles_of_two(Kernel kernel, const F& f, const std::vector<double>& rare) {
  Random random(kElementwiseSeed);
  const Sizes sizes = {3, 700};
  const auto with_rare = [&](const Array& a) {
    for (std::int64_t i = a.numel() / 7; i < a.numel(); i += 5 + i / 9) a.set(i, rare[random() % rare.size()]);
    return a;
  };
  const Array a = with_rare(random_array(random, DType::f32, sizes, -5, 5));
  std::vector<Array> others = {with_rare(random_array(random, DType::f32, sizes, -5, 5)),
                               broadcast(random_array(random, DType::f32, {700}, -5, 5), sizes),
                               broadcast(with_rare(random_array(random, DType::f32, {3, 1}, -5, 5)), sizes)};
  for (const double x : rare) others.push_back(broadcast(array_of(DType::f32, {}, {x}), sizes));
  others.push_back(scrambled(random, others[0]));
  for (const Array& b : others) {
    const Array y = make_array(DType::f32, sizes), in_place = dense_copy(a);
    run(kernel, {a, b}, {y});
    run(kernel, {in_place, b}, {in_place});
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      const float expected = f(a.at<float>(i), b.at<float>(i)), got = y.at<float>(i);
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(got) : std::memcmp(&got, &expected, sizeof got) == 0)
          << a.get(i) << ", " << b.get(i) << ": " << got << " for " << expected;
      const float again = in_place.at<float>(i);
      ASSERT_TRUE(std::isnan(got) ? std::isnan(again) : std::memcmp(&got, &again, sizeof got) == 0);
    }
  }
}

TEST(Elementwise, FunctionsOfTwoThatRunByTiles) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> edges = {0, -0.0, 1, -1, inf, -inf, nan, 1e-40, 3e38, -2e-9};
  check_tiles_of_two(cpu::remainder, k::Remainder{}, edges);
  check_tiles_of_two(cpu::fmod, k::Fmod{}, edges);
  check_tiles_of_two(cpu::floor_divide, k::FloorDivide{}, edges);
  check_tiles_of_two(cpu::logaddexp, k::LogAddExp{}, edges);
  check_tiles_of_two(cpu::pow, k::Pow{}, {2, 3, 0.5, -0.5, -1, 0, 1, inf, -inf, nan, -0.0, 7});
}

TEST(Elementwise, ThreadsAndLayoutsGiveTheSameBits) {
  Random random(kElementwiseSeed);
  const Sizes sizes = {70, 30, 101};
  const Array x = random_array(random, DType::f32, sizes, -8, 8);
  for (const Kernel kernel : {cpu::exp, cpu::tanh, cpu::sigmoid, cpu::square, cpu::log, cpu::erf}) {
    const Array one = make_array(DType::f32, sizes), two = make_array(DType::f32, sizes), other = make_array(DType::f32, sizes);
    with_threads(1, [&] { run(kernel, {x}, {one}); });
    with_threads(2, [&] { run(kernel, {x}, {two}); });
    with_threads(2, [&] { run(kernel, {scrambled(random, x)}, {other}); });
    EXPECT_TRUE(same_bits(one, two));
    EXPECT_TRUE(same_bits(one, other));
  }
}

}  // namespace
}  // namespace tapedeck::testing
