// Runs random programs with gradients and threads inside a memory budget and without, and compares the bits. Sessions open and
// close anywhere, also in the middle of a tape.
#include <tapedeck/engine/control/loops.h>
#include <tapedeck/engine/eager/checkpoint.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/memory.h>
#include <tapedeck/engine/eager/session.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <future>
#include <optional>
#include <random>
#include <thread>

namespace tapedeck {
namespace {

using Values = std::vector<std::vector<std::uint32_t>>;  // the bits, because a NaN equals nothing

std::vector<std::uint32_t> bits_of(const Tensor& t) {
  std::vector<std::uint32_t> bits;
  for (const float x : copy(t).to_vector<float>()) bits.push_back(std::bit_cast<std::uint32_t>(x));
  return bits;
}

// One random program. Its choices depend on the seed alone.
class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) {
    manual_seed(seed);
    for (Tensor& w : weights_) w = mul(normal({32, 32}), 0.2).detach().requires_grad(true);
    for (int i = 0; i < 3; ++i) held_.push_back(normal({32, 32}));
  }

  void step(bool drops) {
    const Tensor a = one_of(held_), b = one_of(held_), w = one_of(weights_);
    const std::size_t what = pick(22);
    if (what < 10)
      held_.push_back(result(what, a, b, w));
    else if (what < 12)
      train(a, b, pick(2) == 0);
    else if (what < 16)
      other(what, a, b, drops);
    else if (what < 20)
      held_.push_back(controlled(what, a, b, w));
    else if (what == 20)
      held_.push_back(mul(on_host(a, [this](const Tensor& x) { see(x); }), 0.5));  // a second call would be seen
    else
      differentiate_twice(a, w);
    if (held_.size() > 10) held_.erase(held_.begin());
  }

  Values end() {
    for (const Tensor& t : held_) see(t);
    for (const Tensor& w : weights_) see(w);
    return std::move(seen_);
  }

 private:
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  template <class List>
  Tensor one_of(const List& list) {
    return list[pick(list.size())];
  }
  void see(const Tensor& t) { seen_.push_back(bits_of(t)); }

  static Tensor result(std::size_t what, const Tensor& a, const Tensor& b, const Tensor& w) {
    switch (what) {
      case 0:
        return add(a, b);
      case 1:
        return tanh(matmul(a, w));
      case 2:
        return transpose(a, {1, 0});
      case 3:
        return dropout(a, 0.5);
      case 4:
        return checkpoint([&] { return tanh(matmul(sigmoid(matmul(a, w)), w)); });
      case 5: {
        const std::vector<Tensor> parts = split(a, 16, 0);
        return concat({parts[1], parts[0]}, 0);
      }
      case 6:
        return cast(cast(matmul(cast(a, DType::f16), cast(w, DType::f16)), DType::bf16), DType::f32);
      case 7:
        return add(a, mul(sum(topk(a, 5, 1).first), 0.01));
      case 8: {
        Tensor written = add(a, 0.5);
        mul_(written[3], 2);
        return written;
      }
      default:
        return softmax(a, 1);
    }
  }

  static Tensor controlled(std::size_t what, const Tensor& a, const Tensor& b, const Tensor& w) {
    if (what == 16)
      return cond(
          sum(a) > 0, [&](const Tensors&) { return Tensors{tanh(a)}; }, [&](const Tensors&) { return Tensors{mul(a, w)}; })[0];
    if (what == 17) {
      const auto less = [](const Tensors& at) { return at[1] < 3; };
      const auto body = [](const Tensors& at) { return Tensors{tanh(matmul(at[0], at[2])), at[1] + 1}; };
      return while_loop(less, body, {a, zeros({})}, {w}, {.max_trips = 5}).carried[0];
    }
    const LoopOptions options{.checkpoint_every = what == 18 ? 0 : 5, .reverse = what == 19};
    const auto body = [](const Tensors& at) {
      const Tensor next = tanh(at[0] + at[1]);
      return Tensors{next, next * at[2]};
    };
    return scan(body, {reshape(narrow(b, 0, 0, 1), {32})}, {a}, {reshape(narrow(w, 0, 3, 1), {32})}, options).stacked[0];
  }

  void differentiate_twice(const Tensor& a, const Tensor& w) {
    const Tensor first = gradients({sum(square(tanh(matmul(a, w))))}, {w}, {.create_graph = true})[0];
    held_.push_back(mul(gradients({sum(square(first))}, {w})[0], 0.01));
    forget_history();  // it is spent
  }

  void train(const Tensor& a, const Tensor& b, bool in_place) {
    const Tensor loss = mean(square(add(a, b)));
    if (!loss.requires_grad()) return;
    for (Tensor& w : weights_) w.set_grad(Tensor());
    backward(loss);
    for (Tensor& w : weights_) {
      if (!w.grad().defined()) continue;
      held_.push_back(mul(w.grad(), 10));
      const NoGrad no_grad;
      if (in_place) sub_(w, mul(w.grad(), 0.1));
    }
    forget_history();  // it is spent
  }

  void forget_history() {
    for (Tensor& t : held_) t = t.detach();
  }

  void other(std::size_t what, const Tensor& a, const Tensor& b, bool drops) {
    if (what == 12) see(a);
    if (what == 13) {
      next_step();  // writes the random state that earlier draws need in backward
      forget_history();
    }
    if (what == 14 && held_.size() > 3) held_.erase(held_.begin() + 1);
    if (what == 15 && drops) drop(a), drop(b);
  }

  std::mt19937 random_;
  std::array<Tensor, 3> weights_;
  std::vector<Tensor> held_;
  Values seen_;
};

constexpr int kSteps = 120;

Values run(unsigned seed) {
  Program program(seed);
  for (int s = 0; s < kSteps; ++s) program.step(false);
  return program.end();
}

Values run_in_a_session(unsigned seed, std::int64_t room) {
  const int opens = static_cast<int>(seed % 20), closes = 60 + static_cast<int>(seed % 70);
  Program program(seed);
  std::optional<MemoryBudget> budget;
  const auto close = [&] {
    if (!budget) return;
    EXPECT_LE(budget->stats().peak_bytes, budget->stats().budget);
    budget.reset();
  };
  for (int s = 0; s < kSteps; ++s) {
    if (s == closes) close();
    if (s == opens) {
      trim_memory();
      budget.emplace(Allocator::host().system_bytes() + room);
    }
    program.step(true);
  }
  Values values = program.end();
  close();
  return values;
}

TEST(SessionPrograms, ProgramsWithGradientsHaveTheSameBits) {
  int met = 0;
  for (int i = 0; i < test::seeds(100); ++i) {
    const auto seed = static_cast<unsigned>(i);
    SCOPED_TRACE("seed " + std::to_string(i));
    const Values expected = run(seed);
    for (const std::int64_t room : {std::int64_t{1} << 40, std::int64_t{30'000}, std::int64_t{8'000 + 500 * (i % 60)}}) {
      try {
        ASSERT_TRUE(run_in_a_session(seed, room) == expected) << "in " << room << " bytes more";
        ++met;
      } catch (const MemoryLimitError&) {  // this program needs more, and says so
        EXPECT_LT(room, 1_MB);
      }
    }
  }
  EXPECT_GT(met, test::seeds(100) * 3 / 2);
}

// The values that a thread computes from tensors which all threads read.
Values run_on_shared(unsigned seed, const std::vector<Tensor>& shared) {
  const NoGrad no_grad;
  std::mt19937 random(seed);
  std::vector<Tensor> held = shared;
  Values seen;
  for (int s = 0; s < 60; ++s) {
    const Tensor a = held[random() % held.size()], b = held[random() % held.size()];
    const auto what = random() % 4;
    if (what == 0) held.push_back(tanh(matmul(a, b)));
    if (what == 1) held.push_back(add(a, b));
    if (what == 2) drop(a);
    if (what == 3) seen.push_back(bits_of(a));
    if (held.size() > 12) held.erase(held.begin() + static_cast<std::ptrdiff_t>(shared.size()));
  }
  return seen;
}

TEST(SessionPrograms, ThreadsShareABudgetAndEvictedTensors) {
  for (int i = 0; i < test::seeds(10); ++i) {
    SCOPED_TRACE("seed " + std::to_string(i));
    const auto seed = static_cast<unsigned>(4 * i);
    manual_seed(seed);
    const Tensor x = normal({32, 32});
    trim_memory();
    const MemoryBudget budget(Allocator::host().system_bytes() + 1'000'000);
    const std::vector<Tensor> shared{x, tanh(x), exp(x)}, kept{x, tanh(x), exp(x)};
    for (const Tensor& t : kept) pin(t);
    std::array<Values, 4> seen;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < seen.size(); ++t) threads.emplace_back([&, t] { seen[t] = run_on_shared(seed + t, shared); });
    for (std::thread& thread : threads) thread.join();
    for (unsigned t = 0; t < seen.size(); ++t) EXPECT_TRUE(seen[t] == run_on_shared(seed + t, kept)) << "thread " << t;
    EXPECT_LE(budget.stats().peak_bytes, budget.stats().budget);
  }
}

TEST(SessionPrograms, MemoryThatOneThreadFreesServesAnother) {
  trim_memory();
  const MemoryBudget budget(Allocator::host().system_bytes() + 900'000);
  const auto fill = [] {
    std::vector<Tensor> tensors;
    for (int i = 0; i < 100; ++i) tensors.push_back(from_bytes({DType::u8, {4096}}, std::array<char, 4096>{}.data()));
    return tensors;
  };
  std::vector<Tensor> tensors = fill();
  std::promise<void> freed, finished;
  std::thread other([&] {
    fill();  // a thread that never made a tensor keeps no memory
    tensors.clear();
    freed.set_value();
    finished.get_future().wait();  // a thread that ends gives its memory back anyway
  });
  freed.get_future().wait();
  EXPECT_NO_THROW(tensors = fill());
  std::vector<Tensor> more;
  EXPECT_NO_THROW(more = fill());
  finished.set_value();
  other.join();
}

}  // namespace
}  // namespace tapedeck
