// Tests random ops as users see them: seeds, random steps and paths decide the numbers.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/kernels/names.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/thread_limit.h>

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

namespace tapedeck {
namespace {

TEST(Random, EqualSeedsDrawEqualBits) {
  manual_seed(7);
  const Tensor a = normal({100}), b = normal({100});
  manual_seed(7);
  EXPECT_TRUE(bit_equal(normal({100}), a));
  EXPECT_TRUE(bit_equal(normal({100}), b));
  EXPECT_FALSE(bit_equal(a, b));
  manual_seed(8);
  EXPECT_FALSE(bit_equal(normal({100}), a));
}

TEST(Random, StepsDrawOtherBits) {
  manual_seed(7);
  const Tensor a = uniform({100});
  next_step();
  const Tensor b = uniform({100});
  next_step();
  EXPECT_FALSE(bit_equal(a, b));
  EXPECT_FALSE(bit_equal(uniform({100}), b));
  EXPECT_EQ(rng_state().to_vector<std::int64_t>(), (std::vector<std::int64_t>{7, 2}));
}

// The same call in the same step under the same path draws the same numbers, whatever else has run.
TEST(Random, DrawsDependOnThePathAlone) {
  auto draw = [](const char* path) {
    const PathScope scope(path);
    return uniform({10});
  };
  manual_seed(7);
  const Tensor a = draw("a");
  manual_seed(7);
  const Tensor b = draw("b"), c = draw("b");
  EXPECT_TRUE(bit_equal(draw("a"), a));
  EXPECT_FALSE(bit_equal(a, b));
  EXPECT_FALSE(bit_equal(b, c)) << "occurrences differ";
}

TEST(Random, SeedRestartsTheStep) {
  manual_seed(7);
  const Tensor a = uniform({10});
  next_step();
  uniform({10});
  manual_seed(7);
  EXPECT_EQ(rng_state().to_vector<std::int64_t>(), (std::vector<std::int64_t>{7, 0}));
  EXPECT_TRUE(bit_equal(uniform({10}), a));
}

// manual_seed() writes the existing state tensor. So a captured step, which holds this tensor, sees the new seed.
TEST(Random, SeedWritesTheStateInPlace) {
  manual_seed(7);
  const Tensor held = rng_state();
  manual_seed(9);
  EXPECT_EQ(held.to_vector<std::int64_t>()[0], 9);
}

TEST(Random, UniformStaysInItsRangeAndNormalHasItsMoments) {
  manual_seed(1);
  double low = 1e9, high = -1e9, total = 0, squares = 0;
  for (float v : uniform({100000}, -3, 5).to_vector<float>())
    low = std::min<double>(low, v), high = std::max<double>(high, v), total += v;
  EXPECT_GE(low, -3);
  EXPECT_LT(high, 5);
  EXPECT_NEAR(total / 1e5, 1, 0.03);  // the mean's deviation is 8 / sqrt(12 * 1e5) = 0.0073
  total = 0;
  for (double v : normal({100000}, 2, 3, DType::f64).to_vector<double>()) total += v, squares += (v - 2) * (v - 2);
  EXPECT_NEAR(total / 1e5, 2, 0.04);
  EXPECT_NEAR(squares / 1e5, 9, 0.16);
}

TEST(Random, DropoutKeepsTheRightShareAndScalesIt) {
  manual_seed(1);
  const std::vector<float> y = dropout(ones({100000}), 0.25).to_vector<float>();
  std::int64_t zeros = 0;
  for (float v : y) {
    ASSERT_TRUE(v == 0 || v == 1.0f / 0.75f) << v;
    zeros += v == 0;
  }
  EXPECT_NEAR(static_cast<double>(zeros) / 1e5, 0.25, 0.006);
  EXPECT_THROW(dropout(ones({2}), 1.0), TypeError);
  EXPECT_THROW(dropout(ones({2}), -0.1), TypeError);
}

TEST(Random, BackwardOfDropoutDrawsTheSameMask) {
  manual_seed(1);
  Tensor x = ones({1000});
  x.requires_grad(true);
  const Tensor y = dropout(x, 0.5);
  backward(sum(y));
  EXPECT_TRUE(bit_equal(x.grad(), y));
}

struct Net : Module {
  Linear fc1{*this, "fc1", 6, 16}, fc2{*this, "fc2", 16, 4};
  Dropout drop{*this, "drop", 0.5};
  Tensor operator()(const Tensor& x) { return fc2(drop(relu(fc1(x)))); }
};

std::vector<Tensor> trained(std::uint64_t stream) {
  use_random_stream(stream);
  Net net;
  AdamW optimizer(net.parameters(), {.lr = 0.01});
  const Tensor x = normal({8, 6}), y = from_vector(std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3}, {8});
  for (int step = 0; step < 20; ++step) {
    backward(cross_entropy(net(x), y));
    optimizer.step();
    optimizer.zero_grad();
  }
  return net.parameters();
}

// Runs fn on a thread of its own to its end.
template <class F>
void on_another_thread(F&& fn) {
  std::thread(std::forward<F>(fn)).join();
}

TEST(Random, ThreadsTrainAsIfAlone) {
  manual_seed(5);
  std::vector<Tensor> alone1, alone2, one, two;
  on_another_thread([&] { alone1 = trained(1); });
  on_another_thread([&] { alone2 = trained(2); });
  std::thread a([&] { one = trained(1); }), b([&] { two = trained(2); });
  a.join();
  b.join();
  ASSERT_EQ(one.size(), 4u);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(bit_equal(one[i], alone1[i]));
    EXPECT_TRUE(bit_equal(two[i], alone2[i]));
    EXPECT_EQ(one[i].grad().defined(), false);
  }
  EXPECT_FALSE(bit_equal(one[0], two[0]));
}

// Eager code may draw any number of times in one step. The paths of its draws go with the draws.
TEST(Random, EagerDrawsLeaveNoNamesBehind) {
  manual_seed(1);
  Tensor x = ones({4});
  x.requires_grad(true);
  const auto draw_all = [&] {
    const PathScope scope("net");
    uniform({2}), randint(0, 9, {2}), multinomial(x.detach(), 2);
    const Tensor y = sum(dropout(x, 0.5));
    backward(y);
    cond(
        full({}, 1, DType::boolean), [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + uniform({4})}; },
        [](const std::vector<Tensor>& in) { return in; }, {x.detach()});
  };
  draw_all();
  const std::size_t before = interned_names();
  for (int i = 0; i < 50; ++i) draw_all();
  EXPECT_EQ(interned_names(), before);
}

// The node of a draw keeps its path, whatever becomes of the tape around it.
TEST(Random, ARecordedDrawKeepsItsPath) {
  manual_seed(1);
  Tensor x = ones({64});
  x.requires_grad(true);
  Tensor y, kept;
  {
    const PathScope scope("a.module.whose.path.is.longer.than.a.short.text");
    y = dropout(x, 0.5);
  }
  for (int i = 0; i < 3000; ++i) {  // the tape closes its gaps meanwhile
    kept = dropout(x, 0.5) * 2;
  }
  const std::vector<Tensor> dx = gradients({sum(y * y)}, {x}, {.retain = true, .create_graph = true});
  EXPECT_TRUE(bit_equal(dx[0], y * y * 2));
  backward(sum(dx[0]));
  EXPECT_TRUE(bit_equal(x.grad(), y * y * 2));
}

// ---- the streams of threads ----

Tensor drawn_on_another_thread() {
  Tensor y;
  on_another_thread([&] { y = uniform({100}); });
  return y;
}

TEST(RandomStreams, ThreadsDrawOtherBits) {
  manual_seed(7);
  const Tensor own = uniform({100}), first = drawn_on_another_thread(), second = drawn_on_another_thread();
  EXPECT_FALSE(bit_equal(own, first));
  EXPECT_FALSE(bit_equal(own, second));
  EXPECT_FALSE(bit_equal(first, second));
}

TEST(RandomStreams, TheSeedReachesThreadsToCome) {
  manual_seed(7);
  const Tensor first = drawn_on_another_thread(), second = drawn_on_another_thread();
  manual_seed(8);
  EXPECT_FALSE(bit_equal(drawn_on_another_thread(), first));
  manual_seed(7);
  EXPECT_TRUE(bit_equal(drawn_on_another_thread(), first)) << "numbers count from the seed on";
  EXPECT_TRUE(bit_equal(drawn_on_another_thread(), second));
}

// A thread that has drawn before, and made random steps, follows a new seed of another thread.
TEST(RandomStreams, TheSeedReachesThreadsThatHaveDrawn) {
  std::binary_semaphore go{0}, done{0};
  std::vector<Tensor> drawn;
  std::thread other([&] {
    for (int i = 0; i < 3; ++i) {
      go.acquire();
      drawn.push_back(uniform({100}));
      drawn.push_back(uniform({100}));
      if (i == 1) next_step();
      done.release();
    }
  });
  for (const std::uint64_t seed : {7, 8, 7}) {
    manual_seed(seed);
    go.release();
    done.acquire();
  }
  other.join();
  EXPECT_TRUE(bit_equal(drawn[0], drawn[4])) << "the step and the number of the draw begin anew";
  EXPECT_TRUE(bit_equal(drawn[1], drawn[5]));
  EXPECT_FALSE(bit_equal(drawn[0], drawn[2]));
}

TEST(RandomStreams, TheThreadThatSeedsDrawsTheBitsOfTheSeed) {
  manual_seed(7);
  const Tensor here = uniform({100});
  Tensor there;
  on_another_thread([&] {
    drawn_on_another_thread();
    manual_seed(7);
    there = uniform({100});
  });
  EXPECT_TRUE(bit_equal(here, there));
  EXPECT_FALSE(bit_equal(uniform({100}), here)) << "this thread follows as another thread now";
}

TEST(RandomStreams, AGivenNumberNamesAStreamWhateverTheOrder) {
  const auto drawn = [](std::uint64_t number) {
    Tensor y;
    on_another_thread([&] {
      use_random_stream(number);
      y = uniform({100});
    });
    return y;
  };
  manual_seed(7);
  const Tensor main = uniform({100}), one = drawn(1), two = drawn(2);
  manual_seed(7);
  EXPECT_TRUE(bit_equal(drawn(2), two));
  const Tensor by_order = drawn_on_another_thread();
  EXPECT_TRUE(bit_equal(drawn(1), one));
  EXPECT_TRUE(bit_equal(drawn(0), main)) << "stream 0 is that of the seed alone";
  EXPECT_FALSE(bit_equal(one, two));
  EXPECT_FALSE(bit_equal(one, by_order)) << "number 1, given and by order, means two streams";
  EXPECT_TRUE(bit_equal(uniform({100}), main)) << "this thread was the first of the order";
}

TEST(RandomStreams, AThreadKeepsTheNumberItGave) {
  on_another_thread([] {
    use_random_stream(3);
    manual_seed(7);
    const Tensor first = uniform({100});
    next_step();
    use_random_stream(3);
    EXPECT_TRUE(bit_equal(uniform({100}), first));
    use_random_stream(0);
    EXPECT_EQ(rng_state().to_vector<std::int64_t>(), (std::vector<std::int64_t>{7, 0}));
  });
}

// Workers take no place in the order, so it does not matter whether one draws before a thread of the user.
TEST(RandomStreams, WorkersHaveFixedStreams) {
  if (kernels::hardware_threads() < 2) GTEST_SKIP() << "TBB starts no worker on this machine";
  manual_seed(7);
  const Tensor first = drawn_on_another_thread();
  manual_seed(7);
  std::vector<Tensor> drawn(2);
  std::atomic<int> here{0};
  kernels::run_on_threads(2, [&] {
    kernels::parallel_for(2, 1, [&](std::int64_t begin, std::int64_t) {
      for (++here; here < 2;) std::this_thread::yield();  // so that the pieces run on two threads
      if (kernels::worker_place() > 0) drawn[static_cast<std::size_t>(begin)] = uniform({100});
    });
  });
  const Tensor worker = drawn[0].defined() ? drawn[0] : drawn[1];
  ASSERT_TRUE(worker.defined());
  EXPECT_TRUE(bit_equal(drawn_on_another_thread(), first));
  EXPECT_FALSE(bit_equal(worker, first));
}

}  // namespace
}  // namespace tapedeck
