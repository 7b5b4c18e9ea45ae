// Tests softmax, log_softmax, cross entropy and their gradients against formulas in double precision.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/attrs/loss.h>
#include <tapedeck/kernels/cpu/kernels.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;

constexpr unsigned kSoftmaxSeed = 31;

struct Rows {
  std::int64_t outer = 1, n, inner = 1;
  Rows(const Sizes& sizes, int axis) : n(sizes[axis]) {
    for (int d = 0; d < axis; ++d) outer *= sizes[d];
    for (std::size_t d = axis + 1; d < sizes.size(); ++d) inner *= sizes[d];
  }
  std::int64_t count() const { return outer * inner; }
  std::int64_t at(std::int64_t row, std::int64_t i) const { return (row / inner * n + i) * inner + row % inner; }
};

void check_softmax(Random& random, DType dtype, const Sizes& sizes, int axis) {
  const Array x = random_array(random, dtype, sizes, -30, 30), dy = random_array(random, dtype, sizes, -1, 1);
  const Array y = make_array(dtype, sizes), log_y = make_array(dtype, sizes), dx = make_array(dtype, sizes),
              log_dx = make_array(dtype, sizes);
  AxisAttrs attrs;
  attrs.axis = axis;
  run(cpu::softmax, {x}, {y}, &attrs);
  run(cpu::log_softmax, {x}, {log_y}, &attrs);
  run(cpu::softmax_grad, {y, dy}, {dx}, &attrs);
  run(cpu::log_softmax_grad, {log_y, dy}, {log_dx}, &attrs);
  const Rows rows(sizes, axis);
  const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-13;
  for (std::int64_t r = 0; r < rows.count(); ++r) {
    double total = 0, dot = 0, sum = 0;
    for (std::int64_t i = 0; i < rows.n; ++i) total += std::exp(x.get(rows.at(r, i)));
    const auto p = [&](std::int64_t i) { return std::exp(x.get(rows.at(r, i))) / total; };
    for (std::int64_t i = 0; i < rows.n; ++i) dot += p(i) * dy.get(rows.at(r, i)), sum += dy.get(rows.at(r, i));
    for (std::int64_t i = 0; i < rows.n; ++i) {
      const std::int64_t at = rows.at(r, i);
      ASSERT_NEAR(y.get(at), p(i), tolerance);
      ASSERT_NEAR(log_y.get(at), std::log(p(i)), tolerance * 10);
      ASSERT_NEAR(dx.get(at), p(i) * (dy.get(at) - dot), tolerance);
      ASSERT_NEAR(log_dx.get(at), dy.get(at) - p(i) * sum, tolerance * static_cast<double>(rows.n));
    }
  }
}

TEST(Softmax, EveryAxis) {
  SCOPED_TRACE(::testing::Message() << "seed " << kSoftmaxSeed);
  Random random(kSoftmaxSeed);
  for (const DType dtype : {DType::f32, DType::f64})
    for (int axis = 0; axis < 3; ++axis) {
      check_softmax(random, dtype, {3, 17, 5}, axis);
      check_softmax(random, dtype, {1, 1, 100}, axis);
      check_softmax(random, dtype, {2, 0, 4}, axis);
    }
}

// Rows that lie side by side, more of them than the kernel takes together, and long rows. The rows of a copy that are
// contiguous must have the same bits.
TEST(Softmax, RowsSideBySideHaveTheBitsOfContiguousRows) {
  SCOPED_TRACE(::testing::Message() << "seed " << kSoftmaxSeed);
  Random random(kSoftmaxSeed);
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 15, 16, 40, 300})
      for (const std::int64_t inner : {1, 3, 8, 130}) {
        const Array x = random_array(random, dtype, {2, n, inner}, -5, 5),
                    dy = random_array(random, dtype, {2, n, inner}, -1, 1);
        const Array flat_x = dense_copy(permuted(x, {0, 2, 1})), flat_dy = dense_copy(permuted(dy, {0, 2, 1}));
        AxisAttrs middle, last;
        middle.axis = 1;
        last.axis = 2;
        for (const Kernel kernel : {cpu::softmax, cpu::log_softmax}) {
          const Array y = make_array(dtype, {2, n, inner}), flat_y = make_array(dtype, {2, inner, n});
          run(kernel, {x}, {y}, &middle);
          run(kernel, {flat_x}, {flat_y}, &last);
          EXPECT_TRUE(same_bits(permuted(flat_y, {0, 2, 1}), y)) << n << ", " << inner;
          const Array dx = make_array(dtype, {2, n, inner}), flat_dx = make_array(dtype, {2, inner, n});
          const Kernel gradient = kernel == cpu::softmax ? cpu::softmax_grad : cpu::log_softmax_grad;
          run(gradient, {y, dy}, {dx}, &middle);
          run(gradient, {flat_y, flat_dy}, {flat_dx}, &last);
          EXPECT_TRUE(same_bits(permuted(flat_dx, {0, 2, 1}), dx)) << n << ", " << inner;
        }
        check_softmax(random, dtype, {2, static_cast<std::int64_t>(n), inner}, 1);
      }
}

TEST(Softmax, ExtremeRows) {
  const double inf = std::numeric_limits<double>::infinity();
  AxisAttrs attrs;
  attrs.axis = 1;
  const Array x = array_of(DType::f32, {3, 2}, {1e30, -1e30, -inf, 3, 1000, 1000}), y = make_array(DType::f32, {3, 2});
  run(cpu::softmax, {x}, {y}, &attrs);
  const double expected[] = {1, 0, 0, 1, 0.5, 0.5};
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.get(i), expected[i]);
  x.set(0, NAN);
  run(cpu::softmax, {x}, {y}, &attrs);
  EXPECT_TRUE(std::isnan(y.get(0)) && std::isnan(y.get(1)));
}

// Logits around `shift` have the log probabilities of the same logits around 0.
void expect_no_digits_lost(double shift) {
  SCOPED_TRACE(shift);
  const std::vector<double> base = {0, 0.25, -0.5, 1};  // exact in f32 beside a shift of up to 2^20
  AxisAttrs attrs;
  attrs.axis = 1;
  const Array x = make_array(DType::f32, {1, 4}), y = make_array(DType::f32, {1, 4}), dx = make_array(DType::f32, {1, 4}),
              dy = array_of(DType::f32, {1, 4}, {-1, 0, 0, 0});
  double total = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    x.set(i, shift + base[static_cast<std::size_t>(i)]);
    total += std::exp(base[static_cast<std::size_t>(i)]);
  }
  run(cpu::log_softmax, {x}, {y}, &attrs);
  run(cpu::log_softmax_grad, {y, dy}, {dx}, &attrs);
  for (std::int64_t i = 0; i < 4; ++i) {
    const double expected = base[static_cast<std::size_t>(i)] - std::log(total);
    EXPECT_NEAR(y.get(i), expected, 3e-7);
    EXPECT_NEAR(dx.get(i), std::exp(expected) - (i == 0), 3e-7);
  }
  for (const double smoothing : {0.0, 0.5}) {
    CrossEntropyAttrs loss_attrs;
    loss_attrs.label_smoothing = smoothing;
    const Array loss = make_array(DType::f32, {});
    run(cpu::cross_entropy, {x, array_of(DType::i32, {1}, {2})}, {loss}, &loss_attrs);
    const double hard = std::log(total) + 0.5, soft = std::log(total) - 0.75 / 4;
    EXPECT_NEAR(loss.get(0), (1 - smoothing) * hard + smoothing * soft, 4e-7);
  }
}

TEST(Softmax, LargeLogitsKeepTheirDigits) {
  for (const double shift : {0.0, 1e3, 1e4, 1048576.0, -1e4}) expect_no_digits_lost(shift);
}

const CrossEntropyAttrs kMean;

template <class Check>
void with_problem(DType dtype, DType label_dtype, std::int64_t n, std::int64_t c, Check&& check_problem) {
  Random random(kSoftmaxSeed);
  const Array x = random_array(random, dtype, {n, c}, -20, 20), labels = make_array(label_dtype, {n});
  for (std::int64_t i = 0; i < n; ++i) labels.set(i, static_cast<double>(random() % static_cast<unsigned>(c)));
  check_problem(x, labels);
}

TEST(CrossEntropy, LossAndGradient) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const DType label_dtype : {DType::i32, DType::i64})
      for (const std::int64_t n : {1, 64, 700})
        with_problem(dtype, label_dtype, n, 10, [&](const Array& x, const Array& labels) {
          const Array loss = make_array(dtype, {}), dloss = array_of(dtype, {}, {0.7}), dx = make_array(dtype, {n, 10});
          run(cpu::cross_entropy, {x, labels}, {loss}, &kMean);
          run(cpu::cross_entropy_grad, {x, labels, dloss}, {dx}, &kMean);
          double mean = 0;
          for (std::int64_t r = 0; r < n; ++r) {
            double total = 0;
            for (std::int64_t i = 0; i < 10; ++i) total += std::exp(x.get(r * 10 + i));
            const auto label = static_cast<std::int64_t>(labels.get(r));
            mean += (std::log(total) - x.get(r * 10 + label)) / static_cast<double>(n);
            for (std::int64_t i = 0; i < 10; ++i) {
              const double expected = (std::exp(x.get(r * 10 + i)) / total - (i == label)) * 0.7 / static_cast<double>(n);
              ASSERT_NEAR(dx.get(r * 10 + i), expected, dtype == DType::f32 ? 1e-6 : 1e-14);
            }
          }
          ASSERT_NEAR(loss.get(0), mean, dtype == DType::f32 ? 2e-5 : 1e-12);
        });
}

// Scores of shape [2, classes, inner] with weights, smoothing, and a label that is ignored, against the formula in f64.
void check_dense_labels(Random& random, DType dtype, std::int64_t classes, std::int64_t inner, double smoothing,
                        bool weighted) {
  const Array x = random_array(random, dtype, {2, classes, inner}, -9, 9), w = random_array(random, dtype, {classes}, 0.5, 2),
              labels = make_array(DType::i64, {2, inner}), dloss = random_array(random, dtype, {2, inner}, -1, 1),
              loss = make_array(dtype, {2, inner}), dx = make_array(dtype, {2, classes, inner});
  for (std::int64_t i = 0; i < labels.numel(); ++i)
    labels.set(i, static_cast<double>(random() % static_cast<unsigned>(classes)));
  CrossEntropyAttrs attrs;
  attrs.label_smoothing = smoothing;
  attrs.reduction = "none";
  attrs.ignore_index = 1;
  run(cpu::cross_entropy, weighted ? std::vector<Array>{x, labels, w} : std::vector<Array>{x, labels}, {loss}, &attrs);
  run(cpu::cross_entropy_grad, weighted ? std::vector<Array>{x, labels, dloss, w} : std::vector<Array>{x, labels, dloss}, {dx},
      &attrs);
  const double tolerance = dtype == DType::f32 ? 2e-5 : 1e-12;
  const auto weight = [&](std::int64_t k) { return weighted ? w.get(k) : 1.0; };
  for (std::int64_t row = 0; row < 2 * inner; ++row) {
    const auto at = [&](std::int64_t k) { return (row / inner * classes + k) * inner + row % inner; };
    const auto label = static_cast<std::int64_t>(labels.get(row));
    double total = 0, expected = 0, all = 0;
    for (std::int64_t k = 0; k < classes; ++k) total += std::exp(x.get(at(k)));
    const auto target = [&](std::int64_t k) {
      return label == 1 ? 0 : weight(k) * (smoothing / static_cast<double>(classes) + (k == label ? 1 - smoothing : 0));
    };
    for (std::int64_t k = 0; k < classes; ++k) {
      expected -= target(k) * (x.get(at(k)) - std::log(total));
      all += target(k);
    }
    ASSERT_NEAR(loss.get(row), expected, tolerance);
    for (std::int64_t k = 0; k < classes; ++k)
      ASSERT_NEAR(dx.get(at(k)), dloss.get(row) * (all * std::exp(x.get(at(k))) / total - target(k)), tolerance);
  }
}

TEST(CrossEntropy, RowsOfEveryLayoutWithWeightsAndSmoothing) {
  SCOPED_TRACE(::testing::Message() << "seed " << kSoftmaxSeed);
  Random random(kSoftmaxSeed);
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t classes : {3, 40, 300})
      for (const std::int64_t inner : {1, 5, 8, 150})
        for (const double smoothing : {0.0, 0.2})
          for (const bool weighted : {false, true}) check_dense_labels(random, dtype, classes, inner, smoothing, weighted);
}

// A row with an ignored label has gradient 0, whatever its scores are.
TEST(CrossEntropy, IgnoredRowsHaveNoGradient) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CrossEntropyAttrs attrs;
  attrs.ignore_index = 0;
  for (const std::int64_t inner : {1, 8}) {
    const Array x = make_array(DType::f32, {1, 2, inner}), labels = make_array(DType::i32, {1, inner}),
                dx = make_array(DType::f32, {1, 2, inner});
    for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, nan);
    run(cpu::cross_entropy_grad, {x, labels, array_of(DType::f32, {}, {1})}, {dx}, &attrs);
    EXPECT_EQ(values(dx), std::vector<double>(static_cast<std::size_t>(2 * inner), 0.0));
  }
}

TEST(CrossEntropy, LabelOutOfRange) {
  with_problem(DType::f32, DType::i32, 5, 3, [](const Array& x, const Array& labels) {
    labels.set(3, 3);
    const Outcome loss = run(cpu::cross_entropy, {x, labels}, {make_array(DType::f32, {})}, &kMean);
    EXPECT_STREQ(loss.fault, "label out of range");
    EXPECT_EQ(loss.value, 3);
    const Array one = array_of(DType::f32, {}, {1});
    EXPECT_STREQ(run(cpu::cross_entropy_grad, {x, labels, one}, {make_array(DType::f32, {5, 3})}, &kMean).fault,
                 "label out of range");
  });
}

TEST(CrossEntropy, ThreadsDoNotChangeTheBits) {
  with_problem(DType::f32, DType::i32, 5000, 10, [](const Array& x, const Array& labels) {
    const Array one = make_array(DType::f32, {}), two = make_array(DType::f32, {});
    with_threads(1, [&] { run(cpu::cross_entropy, {x, labels}, {one}, &kMean); });
    with_threads(2, [&] { run(cpu::cross_entropy, {x, labels}, {two}, &kMean); });
    EXPECT_TRUE(same_bits(one, two));
  });
}

}  // namespace
}  // namespace tapedeck::testing
