// Tests dispatch, in place and out of place: shared bytes, layouts, errors, threads. The oracles are plain loops over small
// numbers.
#include <tapedeck/engine/eager/memory.h>
#include <tapedeck/engine/eager/op_observer.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <fmt/format.h>

#include <atomic>
#include <thread>

namespace tapedeck {
namespace {

using Floats = std::vector<float>;
using testing::message_of;

Tensor matrix() { return from_vector(Floats{1, 2, 3, 4}, {2, 2}); }
void in_place(const Op& op, const std::vector<Tensor>& operands, const void* attrs = nullptr) {
  apply_in_place(op, operands, attrs, {__FILE__, __LINE__});
}

TEST(InPlace, WritesTheTensorAndEveryView) {
  const Tensor x = matrix(), row = slice(x, 0, 1, 2);
  in_place(ops::add, {x, tensor({10, 20})});
  EXPECT_EQ(x.to_vector<float>(), (Floats{11, 22, 13, 24}));
  EXPECT_EQ(row.to_vector<float>(), (Floats{13, 24}));
}

TEST(InPlace, WritesOnlyTheWindowOfAView) {
  const Tensor x = matrix();
  in_place(ops::neg, {slice(x, 1, 0, 1)});
  EXPECT_EQ(x.to_vector<float>(), (Floats{-1, 2, -3, 4}));
}

// The operand is a window on the bytes that are written. The op must read it as it was before the write.
TEST(InPlace, ReadsOverlappingOperandsAsTheyWere) {
  Tensor x = matrix();
  in_place(ops::add, {x, transpose(x, {1, 0})});
  EXPECT_EQ(x.to_vector<float>(), (Floats{2, 5, 5, 8}));
  x = tensor({1, 2, 3, 4});
  in_place(ops::add, {slice(x, 0, 1, 4), slice(x, 0, 0, 3)});
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 3, 5, 7}));
  x = tensor({1, 2, 3});
  in_place(ops::mul, {x, slice(x, 0, 1, 2)});
  EXPECT_EQ(x.to_vector<float>(), (Floats{2, 4, 6}));
  in_place(ops::mul, {x, x});
  EXPECT_EQ(x.to_vector<float>(), (Floats{4, 16, 36}));
}

TEST(InPlace, KernelsThatWriteDenseServeStridedTargets) {
  const Tensor w = matrix(), t = transpose(w, {1, 0});
  const SgdAttrs attrs;
  in_place(ops::sgd, {t, from_vector(Floats{1, 2, 3, 4}, {2, 2}), scalar(1)}, &attrs);
  EXPECT_EQ(t.to_vector<float>(), (Floats{0, 1, -1, 0}));
  EXPECT_EQ(w.to_vector<float>(), (Floats{0, -1, 1, 0}));
}

TEST(Dispatch, TakesAnyNumberOfOperands) {
  const Tensor t = tensor({1});
  const AxisAttrs attrs{0};
  const Tensor y = apply(ops::concat, {&t, &t, &t, &t, &t, &t, &t, &t, &t, &t, &t, &t}, &attrs, {});
  EXPECT_EQ(y.to_vector<float>(), Floats(12, 1));
}

TEST(InPlace, RefusesWhatDoesNotFit) {
  EXPECT_MENTIONS(message_of<TypeError>([] {
                    in_place(ops::equal, {tensor({1}), tensor({1})});
                  }),
                  "[equal] cannot run in place");
  EXPECT_MENTIONS(message_of<TypeError>([] {
                    in_place(ops::add, {tensor({1}), tensor({1, 2})});
                  }),
                  "[add] result f32[2] does not fit in place of f32[1]");
  const Tensor repeated = broadcast_to(tensor({1}), {3});
  EXPECT_MENTIONS(message_of<TypeError>([&] { in_place(ops::neg, {repeated}); }),
                  "[neg] cannot write f32[3] in place: it is broadcast");
  EXPECT_EQ(repeated.to_vector<float>(), (Floats{1, 1, 1}));
  const std::uint16_t raw[2] = {0x3c00, 0x4000};
  const Tensor half = from_bytes({DType::f16, {2}}, raw);
  EXPECT_TRUE(bit_equal(copy(half), half)) << "bytes can be moved";
}

TEST(Dispatch, TheSignatureCacheKnowsAttributesAndTypesApart) {
  const Tensor x = from_vector(Floats{1, 2, 3, 4, 5, 6}, {2, 3});
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(sum(x, {0}).to_vector<float>(), (Floats{5, 7, 9}));
    EXPECT_EQ(sum(x, {1}).to_vector<float>(), (Floats{6, 15}));
    EXPECT_EQ(sum(x, {1}, true).shape(), (Shape{2, 1}));
    EXPECT_EQ(sum(reshape(x, {3, 2}), {1}).to_vector<float>(), (Floats{3, 7, 11}));
    EXPECT_EQ(sum(cast(x, DType::f64), {1}).dtype(), DType::f64);
  }
}

// A thread remembers a few signatures of each op. These calls have more of them in turn, with and without a history.
TEST(Dispatch, ManySignaturesInTurnAreKnownApart) {
  for (int round = 0; round < 3; ++round)
    for (std::int64_t n = 1; n <= 13; ++n) {
      Tensor x = arange(static_cast<double>(n));
      x.requires_grad(n % 2 == 0);
      const Tensor y = clamp(x * x, 0, static_cast<double>(n + round) + 0.5);
      std::vector<float> expected, slope;
      for (std::int64_t i = 0; i < n; ++i) {
        expected.push_back(std::min(static_cast<float>(i * i), static_cast<float>(n + round) + 0.5F));
        slope.push_back(i * i <= n + round ? 2 * static_cast<float>(i) : 0);
      }
      ASSERT_EQ(y.to_vector<float>(), expected) << n << " elements, round " << round;
      if (n % 2) continue;
      backward(sum(y));
      ASSERT_EQ(x.grad().to_vector<float>(), slope) << n << " elements, round " << round;
    }
}

// Counts the calls, so that none of them takes the short way of dispatch.cpp: that way serves only calls that nobody watches.
class CountsCalls : public OpObserver {
 public:
  void ran(const RanOp&) noexcept override { ++calls; }
  void stepped() noexcept override {}
  std::atomic<int> calls{0};
};

// Operands that are dense, turned around, broadcast, of rank 0 and empty; kernels that take any strides and kernels that do
// not.
std::vector<Tensor> results_of_both_ways() {
  const Tensor a = reshape(arange(24.0), {4, 6}), b = transpose(reshape(arange(24.0), {6, 4}), {1, 0}), row = arange(6.0);
  const Tensor labels = from_vector(std::vector<std::int32_t>{1, 0, 5, 2}, {4});
  return {a + b,
          b * row,
          a - scalar(2),
          where(a > b, a, b),
          matmul(a, transpose(b, {1, 0})),
          sum(b, 0),
          tanh(b),
          softmax(b, 1),
          cumsum(b, 0),
          slice(b, 0, 1, 3) + slice(a, 0, 0, 2),
          cast(b, DType::f16) + cast(a, DType::f16),
          relu(zeros({0, 3})),
          cross_entropy(b, labels)};
}

TEST(Dispatch, CallsThatNobodyWatchesGiveTheSameResults) {
  static CountsCalls observer;  // an observer lives for the rest of the process
  const std::vector<Tensor> plain = results_of_both_ways(), again = results_of_both_ways();
  OpObserver* const before = set_op_observer(&observer);
  const std::vector<Tensor> watched = results_of_both_ways();
  set_op_observer(before);
  EXPECT_GE(observer.calls, 13);
  for (std::size_t i = 0; i < plain.size(); ++i)
    for (const Tensor& other : {again[i], watched[i]}) {
      ASSERT_EQ(plain[i].type(), other.type()) << i;
      EXPECT_EQ(cast(plain[i], DType::f32).to_vector<float>(), cast(other, DType::f32).to_vector<float>()) << i;
    }
}

// The first call of these types takes the long way, the others the short one. All name the call, and keep no memory.
TEST(Dispatch, AFaultOfAKernelNamesTheCallAndKeepsNothing) {
  const Tensor rows = matrix(), wrong = from_vector(std::vector<std::int32_t>{7}, {1});
  const std::int64_t before = memory_stats().bytes_in_use;
  for (int i = 0; i < 3; ++i) {
    const int line = __LINE__ + 1;
    const std::string message = message_of<ExecutionError>([&] { embedding(rows, wrong); });
    EXPECT_NE(message.find(fmt::format("dispatch_test.cpp:{}", line)), std::string::npos) << message;
    EXPECT_NE(message.find("7"), std::string::npos) << message;
    EXPECT_EQ(memory_stats().bytes_in_use, before);
  }
}

TEST(Dispatch, ManyOperandsAreFine) {
  std::vector<Tensor> parts;
  Tensor first = tensor({0});
  first.requires_grad(true);
  parts.push_back(first);
  for (int i = 1; i < 100; ++i) {
    Tensor t = tensor({static_cast<float>(i)});
    t.requires_grad(true);
    parts.push_back(t);
  }
  const Tensor all = concat(parts, 0);
  EXPECT_EQ(all.numel(), 100);
  EXPECT_EQ(all.to_vector<float>()[77], 77);
  EXPECT_TRUE(all.requires_grad());
}

// Each of more than 32 operands must get its gradient.
TEST(Dispatch, ManyOperandsAllGetTheirGradient) {
  std::vector<Tensor> parts;
  for (int i = 0; i < 40; ++i) {
    Tensor t = tensor({static_cast<float>(i)});
    t.requires_grad(true);
    parts.push_back(t);
  }
  const Tensor all = concat(parts, 0);
  backward(sum(all * all));
  for (int i = 0; i < 40; ++i) {
    const Tensor g = parts[i].grad();
    ASSERT_TRUE(g.defined()) << "operand " << i;
    EXPECT_EQ(g.item(), 2.0 * i);
  }
}

TEST(Dispatch, LastOperandAloneOfManyIsSeen) {
  std::vector<Tensor> parts;
  for (int i = 0; i < 40; ++i) parts.push_back(tensor({1}));
  parts.back().requires_grad(true);
  const Tensor all = concat(parts, 0);
  ASSERT_TRUE(all.requires_grad());
  backward(sum(all));
  EXPECT_EQ(parts.back().grad().item(), 1);
}

TEST(Dispatch, DeepBroadcastAndRankLimits) {
  const Tensor x = ones({1, 1, 1, 1, 1, 1, 1, 2});
  EXPECT_EQ((x + x).rank(), kMaxRank);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), TypeError);
}

TEST(Dispatch, TensorsMayBeReadByManyThreads) {
  const Tensor shared = full({1000}, 2);
  std::vector<std::thread> threads;
  std::vector<double> totals(4);
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const Tensor copy_of_handle = shared;
        totals[t] += sum(copy_of_handle * 2).item();
      }
    });
  for (std::thread& t : threads) t.join();
  for (double total : totals) EXPECT_EQ(total, 50 * 4000.0);
}

TEST(Dispatch, TensorsOutliveTheThreadThatMadeThem) {
  Tensor t, g;
  std::thread([&] {
    Tensor x = ones({100});
    x.requires_grad(true);
    t = x * 2;
    backward(sum(t));
    g = x.grad();
  }).join();
  EXPECT_EQ(sum(t).item(), 200);
  EXPECT_EQ(sum(g).item(), 200);
}

}  // namespace
}  // namespace tapedeck
