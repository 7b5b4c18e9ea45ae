// Tests the optimizer kernels against their formulas in double precision, in place as plans run them.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs/optimizer.h>
#include <tapedeck/kernels/cpu/kernels.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;

constexpr unsigned kOptimizerSeed = 8;

struct Problem {
  Array w, g, m, v, rate;
  double tolerance;
  explicit Problem(DType dtype) : tolerance(dtype == DType::f32 ? 1e-6 : 1e-14) {
    Random random(kOptimizerSeed);
    w = random_array(random, dtype, {50, 7});
    g = random_array(random, dtype, {50, 7});
    m = random_array(random, dtype, {50, 7});
    v = random_array(random, dtype, {50, 7}, 0, 1);
    rate = array_of(dtype, {}, {0.05});
  }
};

TEST(Optimizer, Sgd) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Problem p(dtype);
    const Array before = dense_copy(p.w);
    SgdAttrs attrs;
    attrs.weight_decay = 0.1;
    run(cpu::sgd, {p.w, p.g, p.rate}, {p.w}, &attrs);
    for (std::int64_t i = 0; i < p.w.numel(); ++i)
      ASSERT_NEAR(p.w.get(i), before.get(i) - 0.05 * (p.g.get(i) + 0.1 * before.get(i)), p.tolerance * 4);
  }
}

TEST(Optimizer, SgdMomentum) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Problem p(dtype);
    const Array w = dense_copy(p.w), v = dense_copy(p.v);
    MomentumAttrs attrs;
    attrs.momentum = 0.9;
    attrs.weight_decay = 0.1;
    run(cpu::sgd_momentum, {p.w, p.g, p.v, p.rate}, {p.w, p.v}, &attrs);
    for (std::int64_t i = 0; i < p.w.numel(); ++i) {
      const double velocity = 0.9 * v.get(i) + p.g.get(i) + 0.1 * w.get(i);
      ASSERT_NEAR(p.v.get(i), velocity, p.tolerance * 4);
      ASSERT_NEAR(p.w.get(i), w.get(i) - 0.05 * velocity, p.tolerance * 4);
    }
  }
}

TEST(Optimizer, Adamw) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const double step : {1.0, 20.0}) {
      const Problem p(dtype);
      const Array w = dense_copy(p.w), m = dense_copy(p.m), v = dense_copy(p.v), count = array_of(DType::i64, {}, {step});
      AdamAttrs attrs;
      run(cpu::adamw, {p.w, p.g, p.m, p.v, count, p.rate}, {p.w, p.m, p.v}, &attrs);
      for (std::int64_t i = 0; i < p.w.numel(); ++i) {
        const double g = p.g.get(i), first = 0.9 * m.get(i) + 0.1 * g, second = 0.999 * v.get(i) + 0.001 * g * g;
        const double denominator = std::sqrt(second / (1 - std::pow(0.999, step))) + 1e-8;
        const double update = first / (1 - std::pow(0.9, step)) / denominator;
        ASSERT_NEAR(p.m.get(i), first, p.tolerance * 4);
        ASSERT_NEAR(p.v.get(i), second, p.tolerance * 4);
        ASSERT_NEAR(p.w.get(i), w.get(i) - 0.05 * (update + 0.01 * w.get(i)), p.tolerance * (10 + 10 * std::fabs(update)));
      }
    }
}

TEST(Optimizer, CountNext) {
  const Array t = array_of(DType::i64, {}, {6});
  run(cpu::count_next, {t}, {t});
  EXPECT_EQ(t.get(0), 7);
}

}  // namespace
}  // namespace tapedeck::testing
