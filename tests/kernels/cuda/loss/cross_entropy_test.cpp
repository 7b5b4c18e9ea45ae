// cross_entropy, nll_loss and their gradients of the device, in the emulator, against the CPU kernels.
#include <tapedeck/kernels/cuda/loss/cross_entropy.inl>

#include <tapedeck/tests/kernels/cuda/compare.h>

namespace tapedeck::kernels::cpu {
void cross_entropy(const KernelCall& call);
void cross_entropy_grad(const KernelCall& call);
void nll_loss(const KernelCall& call);
void nll_loss_grad(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

constexpr unsigned kCrossEntropySeed = 45;

struct Case {
  Random& random;
  DType dtype, labels;
  Sizes scores;
  const char* reduction;
  double smoothing = 0;
  bool weighted = false;
};

Sizes without_classes(const Sizes& scores) {
  Sizes sizes = scores;
  sizes.erase(sizes.begin() + 1);
  return sizes;
}

// One label in four is the ignored label 1.
Array random_labels(const Case& c) {
  Array labels = make_array(c.labels, without_classes(c.scores));
  for (std::int64_t i = 0; i < labels.numel(); ++i)
    labels.set(i, c.random() % 4 == 0 ? 1 : static_cast<double>(static_cast<std::int64_t>(c.random()) % c.scores[1]));
  return labels;
}

void check_cross_entropy(const Case& c) {
  SCOPED_TRACE(::testing::Message() << dtype_name(c.dtype) << " " << c.reduction << " classes " << c.scores[1]);
  const CrossEntropyAttrs attrs{c.smoothing, 1, c.reduction};
  const NllAttrs nll{1, c.reduction};
  const NllGradAttrs nll_grad{c.scores[1], 1, c.reduction};
  const bool none = Name(c.reduction).view() == "none";
  const Sizes rows = none ? without_classes(c.scores) : Sizes{};
  const Array x = random_numbers(c.random, c.dtype, c.scores, -5, 5), labels = random_labels(c),
              dloss = random_numbers(c.random, c.dtype, rows, 0.5, 2),
              weights = random_numbers(c.random, c.dtype, {c.scores[1]}, 0.5, 2);
  std::vector<Array> forward = {x, labels}, backward = {x, labels, dloss}, nll_backward = {labels, dloss};
  if (c.weighted)
    for (auto* operands : {&forward, &backward, &nll_backward}) operands->push_back(weights);
  const auto made = [&](const Sizes& sizes) { return make_array(c.dtype, sizes); };
  const bool half = kernels::is_half(c.dtype);
  const DType wide = half ? DType::f32 : c.dtype;  // which the loss of cross_entropy may have
  const double sum = Name(c.reduction).view() == "sum" ? 20 * static_cast<double>(labels.numel()) : 20;
  for (const DType loss : {c.dtype, wide})
    compare(emulated::cross_entropy, emulated::cross_entropy_workspace, cpu::cross_entropy, 0,
            {forward, {make_array(loss, rows)}, &attrs}, {sum});
  compare(emulated::cross_entropy_grad, emulated::cross_entropy_grad_workspace, cpu::cross_entropy_grad, 0,
          {backward, {made(c.scores)}, &attrs}, {4});
  if (half) {  // the gradient of the loss, and the weights, have the type of the loss
    std::vector<Array> of_loss = {x, labels, random_numbers(c.random, wide, rows, 0.5, 2)};
    if (c.weighted) of_loss.push_back(random_numbers(c.random, wide, {c.scores[1]}, 0.5, 2));
    compare(emulated::cross_entropy_grad, emulated::cross_entropy_grad_workspace, cpu::cross_entropy_grad, 0,
            {of_loss, {made(c.scores)}, &attrs}, {4});
  }
  compare(emulated::nll_loss, emulated::nll_loss_workspace, cpu::nll_loss, 0, {forward, {made(rows)}, &nll}, {sum});
  compare(emulated::nll_loss_grad, emulated::nll_loss_grad_workspace, cpu::nll_loss_grad, 0,
          {nll_backward, {made(c.scores)}, &nll_grad}, {4});
}

TEST(CudaCrossEntropy, EveryTypeAndReduction) {
  SCOPED_TRACE(::testing::Message() << "seed " << kCrossEntropySeed);
  Random random(kCrossEntropySeed);
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const char* reduction : {"none", "mean", "sum"}) {
      check_cross_entropy({random, dtype, DType::i32, {5, 10}, reduction});
      check_cross_entropy({random, dtype, DType::i64, {2, 3, 5}, reduction, 0.1, true});
      check_cross_entropy({random, dtype, DType::i64, {3, 33}, reduction, 0.2, false});
    }
}

TEST(CudaCrossEntropy, EverySize) {
  Random random(kCrossEntropySeed);
  check_cross_entropy({random, DType::f32, DType::i64, {2, 1025}, "mean", 0.1, true});
  check_cross_entropy({random, DType::f32, DType::i32, {3, 1000}, "sum"});
  // A thread for each row, and more rows than one piece of a fold.
  check_cross_entropy({random, DType::f64, DType::i32, {4, 2, 33, 33}, "mean", 0.1, true});
  check_cross_entropy(
      {random, DType::f32, DType::i32, {1, 3000}, "mean", 0.1, true});  // the weights of the classes are summed in pieces
  check_cross_entropy({random, DType::f32, DType::i32, {0, 3}, "sum"});
  check_cross_entropy({random, DType::f32, DType::i32, {0, 3}, "mean"});
}

// Rows that begin at any distance from an aligned address.
TEST(CudaCrossEntropy, RowsByPacks) {
  Random random(kCrossEntropySeed);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const std::int64_t n : {32, 130, 2051}) {
      check_cross_entropy({random, dtype, DType::i64, {5, n}, "mean", 0, true});
      check_cross_entropy({random, dtype, DType::i32, {9, n}, "none"});
    }
  check_cross_entropy({random, DType::f32, DType::i32, {2, 60001}, "sum"});
}

TEST(CudaCrossEntropy, IgnoresAllRows) {
  const CrossEntropyAttrs attrs{0, 7, "mean"};
  const Array x = array_of(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}), labels = array_of(DType::i32, {2}, {7, 7}),
              dloss = array_of(DType::f32, {}, {1}), loss = make_array(DType::f32, {}), dx = make_array(DType::f32, {2, 3});
  compare(emulated::cross_entropy, emulated::cross_entropy_workspace, cpu::cross_entropy, 0, {{x, labels}, {loss}, &attrs});
  EXPECT_TRUE(std::isnan(loss.get(0)));
  compare(emulated::cross_entropy_grad, emulated::cross_entropy_grad_workspace, cpu::cross_entropy_grad, 0,
          {{x, labels, dloss}, {dx}, &attrs});
  EXPECT_EQ(dx.get(0), 0);
}

TEST(CudaCrossEntropy, ReportsLabelsOutOfRange) {
  const CrossEntropyAttrs attrs{0, -100, "none"};
  const Array x = array_of(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6}), labels = array_of(DType::i64, {3}, {1, 2, 0}),
              loss = make_array(DType::f32, {3});
  const Outcome outcome = run_emulated(emulated::cross_entropy, nullptr, {{x, labels}, {loss}, &attrs});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(outcome.fault), static_cast<std::uintptr_t>(emulated::Fault::label_out_of_range));
  EXPECT_EQ(outcome.value, 2);
  EXPECT_EQ(loss.get(1), 0);
  compare(emulated::cross_entropy, nullptr, cpu::cross_entropy, 0, {{x, labels}, {loss}, &attrs});
}

TEST(CudaCrossEntropy, GradientMayOverwriteTheScores) {
  Random random(kCrossEntropySeed);
  for (const std::int64_t n : {40, 1300}) {
    const CrossEntropyAttrs attrs{0.1, -100, "sum"};
    const Array x = random_numbers(random, DType::f32, {3, n}), labels = array_of(DType::i32, {3}, {1, 39, 7}),
                dloss = array_of(DType::f32, {}, {1}), dx = make_array(DType::f32, {3, n});
    run(emulated::cross_entropy_grad, {x, labels, dloss}, {dx}, &attrs);
    run(emulated::cross_entropy_grad, {x, labels, dloss}, {x}, &attrs);
    EXPECT_TRUE(same_bits(dx, x));
  }
}

}  // namespace
}  // namespace tapedeck::testing
