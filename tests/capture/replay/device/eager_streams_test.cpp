// Eager code of several host threads on one device. The fake device runs nothing before it is waited for, and notes two pieces
// of work that use the same bytes and that no event orders. The threads here take turns, so the host never hides a missing
// event. The oracle for results is the same code on the host.
#include <tapedeck/engine/eager/cuda_device.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/capture/replay/device/fake_runtime.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace tapedeck {
namespace {

using test::FakeRuntime;
using testing::message_of;

// A thread that does one thing after the other; do_now() returns when it is done.
class HostThread {
 public:
  ~HostThread() {
    give(nullptr);
    thread_.join();
  }
  void do_now(std::function<void()> work) {
    give(std::move(work));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !work_; });
  }

 private:
  void give(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    ends_ = !work;
    work_ = std::move(work);
    changed_.notify_all();
  }
  void loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return work_ || ends_; });
      if (ends_) return;
      work_();
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool ends_ = false;
  std::thread thread_{[this] { loop(); }};  // last: it uses the others
};

class EagerStreams : public ::testing::Test {
 protected:
  ~EagerStreams() override {
    one.reset();
    two.reset();
    device.reset();
    for (const std::string& problem : fake->problems()) ADD_FAILURE() << problem;
    EXPECT_TRUE(fake->at_rest()) << "memory, a stream or an event was not given back";
  }

  std::shared_ptr<FakeRuntime> fake = std::make_shared<FakeRuntime>();
  std::unique_ptr<EagerDevice> device = make_runtime_device("cuda", fake);
  ScopedEagerDevice scope{"cuda", *device};
  std::unique_ptr<HostThread> one = std::make_unique<HostThread>(), two = std::make_unique<HostThread>();
};

Tensor three_on_device(double value) { return to_device(full({3}, value), "cuda"); }
float first_element(const Tensor& x) { return x.to_vector<float>()[0]; }

TEST_F(EagerStreams, OneThreadNeedsNoEventsBetweenStreams) {
  Tensor x = three_on_device(1);
  for (int i = 0; i < 20; ++i) x = add(x, x) * 0.5;
  EXPECT_EQ(first_element(x), 1);
  EXPECT_EQ(fake->counts.streams, 1);
  EXPECT_EQ(fake->counts.stream_waits, 0);
}

TEST_F(EagerStreams, AResultOfAnotherThreadIsReadBehindItsOp) {
  Tensor x, y;
  one->do_now([&] { x = exp(three_on_device(1)); });
  two->do_now([&] { y = tanh(x); });
  EXPECT_EQ(fake->counts.kernels, 0) << "nobody has waited";
  EXPECT_TRUE(bit_equal(to_device(y, "cpu"), tanh(exp(full({3}, 1.0)))));
  EXPECT_GT(fake->counts.stream_waits, 0);
  EXPECT_EQ(fake->counts.streams, 3);
}

TEST_F(EagerStreams, AWriteComesBehindTheReadsOfOtherThreads) {
  Tensor x = three_on_device(2), y, z;
  one->do_now([&] { y = x + 1; });
  two->do_now([&] { z = x + 2; });
  x += three_on_device(10);
  one->do_now([&] { y = y * x; });
  EXPECT_EQ(first_element(z), 4);
  EXPECT_EQ(first_element(y), 36);
  EXPECT_EQ(first_element(x), 12);
}

TEST_F(EagerStreams, ABlockIsUsedAgainBehindTheWorkOfAnotherThread) {
  Tensor x, y;
  one->do_now([&] { x = three_on_device(3) + 1; });
  const std::int64_t allocations = fake->counts.allocations;
  two->do_now([&] {
    y = x * 2;
    x = Tensor();  // this thread holds it last; its op is still to read it
  });
  const std::int64_t waits = fake->counts.stream_waits, for_two = fake->counts.allocations - allocations;
  one->do_now([&] { x = three_on_device(7) + 1; });
  EXPECT_EQ(fake->counts.allocations, allocations + for_two) << "the blocks of this thread were used again";
  EXPECT_GT(fake->counts.stream_waits, waits);
  EXPECT_EQ(first_element(y), 8);
  EXPECT_EQ(first_element(x), 8);
}

TEST_F(EagerStreams, AFullDeviceGivesTheBlocksOfOneThreadToAnother) {
  fake->capacity = 8 * 512;
  Tensor kept;
  one->do_now([&] {
    std::vector<Tensor> many;
    for (int i = 0; i < 6; ++i) many.push_back(three_on_device(i));
    kept = many[1] + many[2];
  });
  two->do_now([&] {
    std::vector<Tensor> many;
    for (int i = 0; i < 6; ++i) many.push_back(three_on_device(10 + i));
    EXPECT_EQ(first_element(many[5] + many[4]), 29);
  });
  EXPECT_EQ(first_element(kept), 3);
}

TEST_F(EagerStreams, AReadDoesNotWaitForTheWorkOfOtherThreads) {
  Tensor x = three_on_device(1), y;
  one->do_now([&] { y = tanh(three_on_device(5)); });
  EXPECT_EQ(first_element(x), 1);
  EXPECT_GT(fake->waiting(), 0) << "the work of the other thread has not run";
  device->synchronize();
  EXPECT_EQ(fake->waiting(), 0);
}

TEST_F(EagerStreams, AThreadThatEndsLeavesItsStreamToTheNext) {
  Tensor x = three_on_device(0);
  for (int i = 0; i < 20; ++i) std::thread([&] { x = x + 1; }).join();
  EXPECT_EQ(first_element(x), 20);
  EXPECT_EQ(fake->counts.streams, 2);
}

TEST_F(EagerStreams, LargeCopiesGoPieceByPiece) {
  const std::int64_t n = 700'001;  // of 4 bytes: three pieces
  const Tensor x = default_value({DType::f32, {n}}, 3, "x"), y = to_device(x, "cuda");
  EXPECT_TRUE(bit_equal(y, x));
  one->do_now([&] { EXPECT_TRUE(bit_equal(to_device(y + y, "cpu"), x + x)); });
}

// ---- errors ----

class EagerStreamFaults : public EagerStreams {
 protected:
  EagerStreamFaults() {
    one->do_now([&] {
      result = embedding(filled_on_device({4, 2}, DType::f32, 1.0), filled_on_device({20}, DType::i32, 9.0));
    });
  }
  static Tensor filled_on_device(const Shape& shape, DType dtype, double value) {
    return to_device(full(shape, value, dtype), "cuda");
  }
  void expect_fault(const std::string& message) {
    expect_mentions(message, {"[embedding] index out of range (9)", "eager_streams_test.cpp:"});
    device->synchronize();  // it is thrown once
  }
  Tensor result;
};

TEST_F(EagerStreamFaults, SurfaceWhereAllThreadsAreWaitedFor) {
  expect_fault(message_of<ExecutionError>([&] { device->synchronize(); }));
}

TEST_F(EagerStreamFaults, SurfaceWhereAResultIsRead) {
  two->do_now([&] { expect_fault(message_of<ExecutionError>([&] { (result + 1).to_vector<float>(); })); });
}

TEST_F(EagerStreamFaults, StayWithTheThreadWhileNobodyNeedsItsWork) {
  EXPECT_EQ(first_element(three_on_device(4)), 4);
  one->do_now([&] { expect_fault(message_of<ExecutionError>([&] { three_on_device(5).to_vector<float>(); })); });
}

TEST_F(EagerStreamFaults, SurfaceAfterTheThreadHasEnded) {
  one.reset();
  expect_fault(message_of<ExecutionError>([&] { device->synchronize(); }));
}

TEST(EagerStreamErrors, OfTheDeviceNameTheLastOp) {
  const auto fake = std::make_shared<FakeRuntime>();
  const std::unique_ptr<EagerDevice> device = make_runtime_device("cuda", fake);
  const ScopedEagerDevice scope("cuda", *device);
  const Tensor x = three_on_device(1);
  fake->breaks = "exp";
  exp(x);
  tanh(x);
  expect_mentions(message_of<ExecutionError>([&] { device->synchronize(); }), {"[tanh]", "illegal memory access", "cuda:"});
}

// ---- any program ----

class EagerStreamsAnyProgram : public EagerStreams, public ::testing::WithParamInterface<int> {};

// Ops on a few tensors, each on one of three threads: new results, writes in place, copies, and tensors that are dropped.
template <class Run>
std::vector<Tensor> random_thread_program(unsigned seed, const char* name, const Run& run) {
  std::mt19937 random(seed);
  std::vector<Tensor> pool;
  for (int i = 0; i < 4; ++i) pool.push_back(to_device(full({3}, 0.1 * i), name));
  for (int step = 0; step < 60; ++step) {
    const auto thread = static_cast<int>(random() % 3);
    const std::size_t to = random() % pool.size(), from = random() % pool.size();
    const auto what = static_cast<int>(random() % 5);
    run(thread, [&] {
      const NoGrad no_grad;
      if (what == 0) pool[to] = tanh(pool[from]);
      if (what == 1) pool[to] = pool[from] + pool[to];
      if (what == 2 && to != from) pool[to] += pool[from];
      if (what == 3) pool[to] = to_device(to_device(pool[from], "cpu") * 0.5, name);
      if (what == 4) pool[to] = sum(pool[from], {0}, true) * pool[from];
    });
  }
  return pool;
}

TEST_P(EagerStreamsAnyProgram, OnThreeThreadsEqualsTheHost) {
  const auto seed = static_cast<unsigned>(GetParam());
  const std::vector<Tensor> expected = random_thread_program(seed, "cpu", [](int, const auto& work) { work(); });
  const std::vector<Tensor> got = random_thread_program(
      seed, "cuda", [&](int thread, const auto& work) { thread == 0 ? work() : (thread == 1 ? one : two)->do_now(work); });
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(bit_equal(to_device(got[i], "cpu"), expected[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(Seeds, EagerStreamsAnyProgram, ::testing::Range(0, 20));

TEST_F(EagerStreams, ThreadsAtTheSameTime) {
  const Tensor shared = three_on_device(1);
  std::vector<float> sums(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < sums.size(); ++t)
    threads.emplace_back([&, t] {
      Tensor mine = three_on_device(0);
      for (int i = 0; i < 300; ++i) {
        mine = mine + shared;
        if (i % 50 == 0) first_element(mine);
      }
      sums[t] = first_element(mine);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, std::vector<float>(4, 300));
}

}  // namespace
}  // namespace tapedeck
