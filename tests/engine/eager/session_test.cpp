// Tests eager code inside a memory budget: it has the same bits as without, it stays within the budget, and some values are
// never evicted.
#include <tapedeck/engine/eager/checkpoint.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/memory.h>
#include <tapedeck/engine/eager/session.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/eager/resnet1202.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <thread>

namespace tapedeck {
namespace {

constexpr std::int64_t kUnlimited = 1_GB * 1000;

// Bytes that the process holds before a test begins.
std::int64_t bytes_before() {
  trim_memory();
  return Allocator::host().system_bytes();
}

// A deep perceptron with dropout and batch norm, trained for some steps.
struct DeepNet : Module {
  std::deque<Linear> layers;
  std::deque<BatchNorm> norms;
  DeepNet(int depth, std::int64_t width) {
    for (int i = 0; i < depth; ++i) {
      layers.emplace_back(*this, "fc" + std::to_string(i), width, width);
      norms.emplace_back(*this, "norm" + std::to_string(i), width);
    }
  }
  Tensor forward(const Tensor& x) {
    Tensor h = x;
    for (std::size_t i = 0; i < layers.size(); ++i) h = add(h, dropout(gelu(norms[i](layers[i](h))), 0.2));
    return h;
  }
};

std::vector<Tensor> trained_deep(int steps, int depth = 12, std::int64_t width = 16, std::int64_t batch = 512) {
  manual_seed(7);
  DeepNet net(depth, width);
  AdamW optimizer(net.parameters(), {.lr = 1e-2});
  std::vector<Tensor> seen;
  for (int s = 0; s < steps; ++s) {
    const Tensor x = normal({batch, width});
    const Tensor loss = mean(square(net.forward(x)));
    optimizer.zero_grad();
    backward(loss);
    optimizer.step();
    seen.push_back(loss.detach());
  }
  for (const Tensor& p : net.parameters()) seen.push_back(p);
  for (const Tensor& b : net.buffers()) seen.push_back(b);
  return seen;
}

void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bit_equal(a[i], b[i])) << "value " << i;
}

TEST(Session, TrainingHasTheSameBitsInsideEveryBudgetAndTheBudgetHolds) {
  const std::vector<Tensor> expected = trained_deep(4);
  const std::int64_t base = bytes_before();
  std::int64_t all = 0;
  {
    Session session{.memory_budget = kUnlimited};
    expect_equal(trained_deep(4), expected);
    all = session.stats().peak_bytes - base;
    EXPECT_EQ(session.stats().evictions, 0);
    EXPECT_GT(session.stats().calls, 4 * 12 * 5);
  }
  for (const double part : {0.9, 0.7, 0.5, 0.4}) {
    SCOPED_TRACE(part);
    const std::int64_t budget = bytes_before() + static_cast<std::int64_t>(part * static_cast<double>(all));
    Session session{.memory_budget = budget};
    expect_equal(trained_deep(4), expected);
    const SessionStats stats = session.stats();
    EXPECT_LE(stats.peak_bytes, budget);
    EXPECT_EQ(stats.budget, budget);
    EXPECT_GT(stats.evictions, 0);
    EXPECT_GT(stats.recomputed, 0);
    EXPECT_GT(stats.recomputed_cost, 0);
    EXPECT_LT(stats.recomputed_cost, stats.cost) << "more than everything once again";
  }
}

struct Trained {
  std::vector<Tensor> values;
  SessionStats stats;
};

Trained train_resnet1202(std::int64_t budget) {
  manual_seed(5);
  test::ResNet1202 net(4);
  Sgd optimizer(net.parameters(), {.lr = 0.01});
  Session session{.memory_budget = budget};
  Trained run;
  for (int s = 0; s < 2; ++s) {
    const Tensor x = normal({8, 3, 8, 8}), y = tensor({1, 2, 3, 4, 5, 6, 7, 8}, DType::i32);
    const Tensor loss = cross_entropy(net.forward(x), y);
    optimizer.zero_grad();
    backward(loss);
    optimizer.step();
    run.values.push_back(loss.detach());
  }
  for (const Tensor& p : net.parameters()) run.values.push_back(p);
  for (const Tensor& b : net.buffers()) run.values.push_back(b);
  run.stats = session.stats();
  return run;
}

TEST(Session, ANetOf1202LayersTrainsInAFixedBound) {  // T85
  const std::int64_t base = bytes_before();
  const Trained all = train_resnet1202(kUnlimited);
  EXPECT_GT(all.stats.peak_bytes - base, 20_MB);
  const std::int64_t budget = bytes_before() + 9_MB;
  const Trained bounded = train_resnet1202(budget);
  expect_equal(bounded.values, all.values);
  EXPECT_LE(bounded.stats.peak_bytes, budget);
  EXPECT_GT(bounded.stats.evictions, 1000);
  EXPECT_LT(bounded.stats.recomputed_cost, bounded.stats.cost);
}

// Each gradient needs the next gradient and a value of the forward pass. To compute an evicted gradient again takes both
// chains, but must not keep one value for each layer on the way.
TEST(Session, AChainOfGradientsIsComputedAgainInLittleMemory) {
  const auto gradient = [](std::int64_t budget) {
    manual_seed(1);
    Tensor w = normal({64, 64});
    w.requires_grad(true);
    Tensor h = normal({128, 64});
    Session session{.memory_budget = budget};
    for (int i = 0; i < 12; ++i) h = tanh(matmul(h, w));
    backward(sum(h));
    EXPECT_LE(session.stats().peak_bytes, budget);
    return w.grad();
  };
  const Tensor expected = gradient(kUnlimited);
  for (const std::int64_t kib : {360, 330, 300, 270, 250}) {
    SCOPED_TRACE(kib);
    EXPECT_TRUE(bit_equal(gradient(bytes_before() + kib * 1_KiB), expected));
  }
}

TEST(Session, ADroppedTensorIsComputedAgainWhenItIsRead) {  // T84
  const Tensor x = normal({64, 64});
  Session session{.memory_budget = kUnlimited};
  const Tensor y = exp(x), z = transpose(y, {1, 0});
  const std::vector<float> before = y.to_vector<float>(), turned = copy(z).to_vector<float>();
  EXPECT_TRUE(drop(z)) << "a view shares the bytes";
  EXPECT_FALSE(is_resident(y));
  EXPECT_FALSE(drop(y)) << "it is gone already";
  EXPECT_EQ(copy(z).to_vector<float>(), turned);
  EXPECT_TRUE(is_resident(y));
  EXPECT_EQ(session.stats().recomputed, 1);
  EXPECT_TRUE(drop(y));
  EXPECT_EQ(y.to_vector<float>(), before);
  EXPECT_TRUE(drop(y)) << "to_vector() does not keep it";
  EXPECT_EQ((y[{0, 0}].item()), before[0]);
}

TEST(Session, NeverEvictsWhatCannotOrMustNotBeComputedAgain) {
  Tensor x = normal({64, 64});
  Session session{.memory_budget = kUnlimited};
  EXPECT_FALSE(drop(x)) << "no logged op made it";
  const Tensor made = from_vector(std::vector<float>(16, 1.0f), {16});
  EXPECT_FALSE(drop(made));

  const Tensor pinned = exp(x);
  pin(pin(pinned));
  unpin(pinned);
  EXPECT_FALSE(drop(pinned));
  unpin(pinned);
  EXPECT_TRUE(drop(pinned));
  pin(pinned);
  EXPECT_TRUE(is_resident(pinned));

  const Tensor exposed = exp(x);
  const auto* address = static_cast<const float*>(exposed.data());
  EXPECT_FALSE(drop(exposed));
  EXPECT_EQ(exposed.data(), address);

  const Tensor evicted = exp(x);
  const std::vector<float> values = evicted.to_vector<float>();
  EXPECT_TRUE(drop(evicted));
  EXPECT_EQ(std::memcmp(evicted.data(), values.data(), values.size() * 4), 0) << "data() brings it back";

  int calls = 0;
  const Tensor seen = exp(x);
  on_host(seen, [&](const Tensor&) { ++calls; });
  EXPECT_TRUE(drop(seen)) << "the effect is another op's";
  seen.to_vector<float>();
  EXPECT_EQ(calls, 1);
}

TEST(Session, AWriteKeepsWhatWasComputedFromTheOldBytes) {
  Tensor x = normal({64, 64});
  Session session{.memory_budget = kUnlimited};
  const Tensor a = exp(x), b = neg(exp(x)), c = exp(x);
  const std::vector<float> old_a = a.to_vector<float>(), old_b = b.to_vector<float>();
  EXPECT_TRUE(drop(a));
  EXPECT_TRUE(drop(b));
  add_(x[0], 1);  // through a view
  EXPECT_EQ(a.to_vector<float>(), old_a);
  EXPECT_EQ(b.to_vector<float>(), old_b);
  EXPECT_FALSE(drop(a)) << "its operand's bytes are gone";
  const Tensor d = exp(x);
  EXPECT_FALSE(bit_equal(d, c));
  EXPECT_TRUE(drop(d));
  EXPECT_TRUE(bit_equal(d, exp(x)));

  mul_(d, 2);  // written itself
  const std::vector<float> written = d.to_vector<float>();
  EXPECT_FALSE(drop(d));
  EXPECT_EQ(d.to_vector<float>(), written);

  const Tensor e = exp(x);
  const std::vector<float> old_e = e.to_vector<float>();
  EXPECT_TRUE(drop(e));
  auto* raw = static_cast<float*>(x.mutable_data());
  raw[0] = 100;
  EXPECT_EQ(e.to_vector<float>(), old_e);
  const Tensor f = exp(x);
  raw[0] = 0;  // at any time, without a call
  EXPECT_FALSE(drop(f)) << "its operand may change without notice";
}

TEST(Session, RandomResultsGoAndComeBackEqual) {
  manual_seed(11);
  const Tensor x = ones({128, 64});
  Session session{.memory_budget = kUnlimited};
  const Tensor noise = normal({64, 64}), dropped = dropout(x, 0.5);
  const std::vector<float> a = noise.to_vector<float>(), b = dropped.to_vector<float>();
  EXPECT_TRUE(drop(noise));
  EXPECT_TRUE(drop(dropped));
  const Tensor later = normal({64, 64});
  EXPECT_EQ(noise.to_vector<float>(), a);
  EXPECT_EQ(dropped.to_vector<float>(), b);
  EXPECT_FALSE(bit_equal(later, noise));
  EXPECT_TRUE(drop(noise));
  next_step();  // writes the state that the draw read
  manual_seed(12);
  EXPECT_EQ(noise.to_vector<float>(), a);
}

TEST(Session, ResultsOfBackwardAndWithoutGradientsGoToo) {
  Tensor w = normal({64, 64});
  w.requires_grad(true);
  Session session{.memory_budget = kUnlimited};
  backward(sum(square(exp(w))));
  const std::vector<float> g = w.grad().to_vector<float>();
  EXPECT_TRUE(drop(w.grad()));
  EXPECT_EQ(w.grad().to_vector<float>(), g);
  const NoGrad no_grad;
  const Tensor y = exp(w);
  EXPECT_TRUE(drop(y));
}

TEST(Session, ABudgetThatCannotBeMetNamesTheOpAndThePlaceAndTheProgramGoesOn) {
  const Tensor x = normal({256, 64});
  const std::int64_t base = bytes_before();
  Session session{.memory_budget = base + 200_KiB};
  const Tensor a = exp(x), b = exp(a);
  const std::string error = testing::message_of<MemoryLimitError>([&] { concat({a, b, a, b}, 0); });
  EXPECT_NE(error.find("[concat]"), std::string::npos) << error;
  EXPECT_NE(error.find("session_test.cpp:" + std::to_string(__LINE__ - 2)), std::string::npos) << error;
  EXPECT_NE(error.find("memory budget"), std::string::npos) << error;
  EXPECT_TRUE(bit_equal(b, exp(a))) << "the program goes on";
  Tensor w = normal({64, 64});
  w.requires_grad(true);
  const Tensor loss = sum(square(broadcast_to(reshape(w, {1, 64, 64}), {4, 64, 64})));
  pin(a);
  pin(b);
  const std::string second = testing::message_of<MemoryLimitError>([&] { backward(loss); });
  EXPECT_NE(second.find("in backward"), std::string::npos) << second;
  EXPECT_NE(second.find("session_test.cpp:" + std::to_string(__LINE__ - 2)), std::string::npos) << second;
  EXPECT_LE(session.stats().peak_bytes, base + 200_KiB);
}

Tensor zeros_from_host(std::int64_t n) {
  return from_bytes({DType::u8, {n}}, std::vector<unsigned char>(static_cast<std::size_t>(n)).data());
}

TEST(Session, EveryWayToReadOrWriteNamesItselfWhenTheBudgetCannotBeMet) {
  const Tensor x = normal({64, 64});
  Tensor y, turned, one;
  const std::int64_t budget = bytes_before() + 80_KB;
  Session session{.memory_budget = budget};
  y = exp(x);
  turned = transpose(y, {1, 0});
  one = sum(exp(x));
  EXPECT_TRUE(drop(y));
  EXPECT_TRUE(drop(one));
  std::vector<Tensor> filler;  // tensors that no op made fill the budget
  for (const std::int64_t n : {16384, 64}) try {
      for (;;) filler.push_back(zeros_from_host(n));
    } catch (const MemoryLimitError&) {
    }
  const auto message = [](const auto& fn) { return testing::message_of<MemoryLimitError>(fn); };
  const std::string written = message([&] { add_(y, y); });
  EXPECT_NE(written.find("[add]"), std::string::npos) << written;
  EXPECT_NE(written.find("session_test.cpp"), std::string::npos) << written;
  EXPECT_NE(message([&] { mul(x, 2); }).find("[mul]"), std::string::npos) << "the scalar takes memory too";
  EXPECT_NE(message([&] { reshape(turned, {4096}); }).find("[reshape]"), std::string::npos);
  EXPECT_NE(message([&] { one.item(); }).find("[item]"), std::string::npos);
  EXPECT_NE(message([&] { y.to_vector<float>(); }).find("[to_vector]"), std::string::npos);
  EXPECT_NE(message([&] { bit_equal(y, y); }).find("[bit_equal]"), std::string::npos);
  EXPECT_NE(message([&] { y.data(); }).find("[data]"), std::string::npos);
  EXPECT_NE(message([&] { y.mutable_data(); }).find("[mutable_data]"), std::string::npos);
  filler.clear();
  EXPECT_TRUE(bit_equal(y, exp(x))) << "the program goes on";
}

TEST(Session, ATensorOfNumbersThatDoesNotFitNamesItsFunction) {
  const std::vector<float> values(1 << 18);
  const std::int64_t base = bytes_before();
  Session session{.memory_budget = base + 200_KiB};
  EXPECT_NE(testing::message_of<MemoryLimitError>([&] { from_vector(values, {1 << 18}); }).find("[from_bytes]"),
            std::string::npos);
  EXPECT_NE(testing::message_of<MemoryLimitError>([] { empty({DType::f32, {1 << 18}}); }).find("[empty]"), std::string::npos);
}

TEST(Session, RefusesASecondSessionAndABudgetBelowWhatIsHeld) {
  const Tensor x = normal({256, 256});
  EXPECT_NE(testing::message_of<MemoryLimitError>([] { Session s{.memory_budget = 1_KiB}; }).find("session_test.cpp"),
            std::string::npos);
  EXPECT_NE(testing::message_of<UsageError>([] { Session s{.memory_budget = 0}; }).find("at least 1"), std::string::npos);
  Session session{.memory_budget = kUnlimited};
  EXPECT_NE(testing::message_of<UsageError>([] { Session s{.memory_budget = kUnlimited}; }).find("another session"),
            std::string::npos);
  EXPECT_NE(testing::message_of<TypeError>([] { pin(Tensor()); }).find("undefined"), std::string::npos);
}

TEST(Session, EvictedValuesOutliveTheirSessionAndOtherThreadsReadThem) {
  const Tensor x = normal({64, 64});
  Tensor y;
  std::vector<float> values;
  {
    Session session{.memory_budget = kUnlimited};
    y = exp(mul(x, 2));
    values = y.to_vector<float>();
    EXPECT_TRUE(drop(y));
    std::thread([&] { EXPECT_EQ(y.to_vector<float>(), values); }).join();
    EXPECT_TRUE(drop(y));
  }
  EXPECT_FALSE(is_resident(y));
  EXPECT_EQ(y.to_vector<float>(), values);
  EXPECT_TRUE(drop(y)) << "the log outlives the session as long as a value was evicted at its end";
  const Tensor z = y;
  y = Tensor();
  EXPECT_EQ(z.to_vector<float>(), values);
}

TEST(Session, ASessionAtWhoseEndAllIsResidentLeavesNothingBehind) {
  const Tensor x = normal({64, 64});
  Tensor y, z;
  std::int64_t held = 0;
  {
    Session session{.memory_budget = kUnlimited};
    y = exp(x);
    const Tensor gone = exp(y);
    z = exp(gone);
    drop(y);
    y.to_vector<float>();
    held = memory_stats().bytes_in_use;
  }
  EXPECT_FALSE(drop(y)) << "it is like a tensor that no session saw";
  EXPECT_TRUE(bit_equal(y, exp(x)));
  EXPECT_LE(memory_stats().bytes_in_use, held);
  Session session{.memory_budget = kUnlimited};
  EXPECT_TRUE(bit_equal(z, exp(exp(y))));
  const Tensor again = exp(y);
  EXPECT_TRUE(drop(again));
  EXPECT_TRUE(bit_equal(again, exp(y)));
}

TEST(Session, AnInputThatTheProgramLetsGoStaysAsLongAsItSavesMemory) {
  Session session{.memory_budget = kUnlimited};
  Tensor small = from_vector(std::vector<float>(64, 0.5f), {64}), large = from_vector(std::vector<float>(4096, 2.0f), {64, 64});
  const Tensor wide = broadcast_to(small, {512, 64}), y = exp(wide), s = sum(copy(large));
  small = Tensor();
  large = Tensor();
  const std::vector<float> values = y.to_vector<float>();
  EXPECT_TRUE(drop(y));
  EXPECT_EQ(y.to_vector<float>(), values);
  EXPECT_FALSE(drop(s)) << "its input is larger than it, and went";
}

// Training without writes in place: each step computes a new tensor for each parameter. The program keeps all losses and their
// sum.
std::int64_t bytes_held_after(int steps) {
  manual_seed(3);
  const NoGrad no_grad;
  const std::int64_t before = memory_stats().bytes_in_use;
  Tensor w = mul(normal({64, 64}), 0.05), average = zeros({64, 64}), total = zeros({});
  for (int s = 0; s < steps; ++s) {
    const Tensor x = from_vector(std::vector<float>(8 * 64, 0.5f), {8, 64});
    const Tensor h = tanh(matmul(x, w)), loss = mean(square(h));
    total = add(total, loss);
    average = add(mul(average, 0.9), mul(matmul(transpose(x, {1, 0}), h), 0.1));
    w = sub(w, mul(average, 0.01));
    pin(h);
  }
  return memory_stats().bytes_in_use - before;
}

TEST(Session, ALongTrainingWithoutWritesInPlaceKeepsNoneOfItsPast) {
  const std::int64_t without = bytes_held_after(1);
  Session session{.memory_budget = bytes_before() + 300_KB};
  EXPECT_LE(bytes_held_after(1000), without + 64_KB);
}

// Random programs with ops, views, writes in place, drops, and tensors that the program lets go.
std::vector<std::vector<float>> random_program(unsigned seed, bool drops) {
  const NoGrad no_grad;
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  manual_seed(seed);
  std::vector<Tensor> held{normal({32, 32}), normal({32, 32})};
  std::vector<std::vector<float>> seen;
  for (int step = 0; step < 120; ++step) {
    const Tensor a = held[pick(held.size())], b = held[pick(held.size())];
    switch (pick(12)) {
      case 0:
        held.push_back(add(a, b));
        break;
      case 1:
        held.push_back(tanh(matmul(a, b)));
        break;
      case 2:
        held.push_back(transpose(a, {1, 0}));
        break;
      case 3:
        held.push_back(dropout(a, 0.5));
        break;
      case 4:
        mul_(a, 0.5);
        break;
      case 5:
        add_(a[static_cast<std::int64_t>(pick(32))], 1);
        break;
      case 6:
        held.push_back(sigmoid(a));
        break;
      case 7:
        held.push_back(softmax(a, 1));
        break;
      case 8:
        copy_(a, copy(b));
        break;
      case 9:
        if (held.size() > 3) held.erase(held.begin() + static_cast<std::ptrdiff_t>(pick(held.size())));
        break;
      case 10:
        seen.push_back(copy(a).to_vector<float>());
        break;
      default:
        if (drops) drop(a);
    }
    if (held.size() > 12) held.erase(held.begin());
  }
  for (const Tensor& t : held) seen.push_back(copy(t).to_vector<float>());
  return seen;
}

TEST(Session, RandomProgramsHaveTheSameBits) {
  for (int i = 0; i < test::seeds(100); ++i) {
    SCOPED_TRACE("seed " + std::to_string(i));
    const auto expected = random_program(static_cast<unsigned>(i), false);
    const std::int64_t budget = i % 2 ? kUnlimited : bytes_before() + 90_KB + 1000 * (i % 50);
    Session session{.memory_budget = budget};
    try {
      const auto seen = random_program(static_cast<unsigned>(i), true);
      ASSERT_TRUE(seen == expected);
    } catch (const MemoryLimitError&) {  // this program needs more, and says so
      EXPECT_NE(budget, kUnlimited);
    }
    EXPECT_LE(session.stats().peak_bytes, budget);
  }
}

}  // namespace
}  // namespace tapedeck
