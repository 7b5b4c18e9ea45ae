// Measures what a memory budget costs eager training: the residual net of 1,202 layers, and a perceptron with dropout.
//
//     session_bench [--rounds 7]
//
// Each round runs one training step without a session, one in a session whose budget is large enough to evict nothing (its
// extra time is the time of logging), and one in a session for each smaller budget. A budget is a part of the bytes between
// those held before the step and those held at the peak of the step. Columns: the median time of a step; this time divided by
// the time without a session; the cost of the step with the calls that ran again, divided by the cost without them, by the cost
// model; and the share of the time in which the session chose the values to evict.
#include <tapedeck/tests/engine/eager/resnet1202.h>

#include <tapedeck/tapedeck.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;

struct Perceptron : Module {
  std::deque<Linear> layers;
  Perceptron() {
    for (int i = 0; i < 24; ++i) layers.emplace_back(*this, "fc" + std::to_string(i), 256, 256);
  }
  Tensor forward(const Tensor& x) {
    Tensor h = x;
    for (Linear& layer : layers) h = add(h, dropout(gelu(layer(h)), 0.1));
    return h;
  }
};

struct Way {
  std::string name;
  double part = 0;  // of the bytes between what is held and what a step takes; 0: no session
  std::vector<double> seconds;
  SessionStats stats;
};

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

double run(const std::function<void()>& step, Way& way, std::int64_t held, std::int64_t all) {
  trim_memory();
  std::optional<Session> session;
  if (way.part > 0) session.emplace(held + static_cast<std::int64_t>(way.part * static_cast<double>(all - held)));
  const auto start = std::chrono::steady_clock::now();
  step();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (session) way.stats = session->stats();
  return seconds;
}

void measure(const char* name, const std::function<void()>& step, int rounds) {
  step();
  trim_memory();
  const std::int64_t held = Allocator::host().system_bytes();
  std::int64_t all = 0;
  {
    Session session{.memory_budget = 1'000'000'000'000};
    step();
    all = session.stats().peak_bytes;
  }
  std::vector<Way> ways = {{"no session", 0, {}, {}}, {"all", 1.05, {}, {}}};
  for (const double part : {0.8, 0.6, 0.5, 0.4, 0.3}) ways.push_back({fmt::format("{:.0f} %", part * 100), part, {}, {}});
  for (int round = 0; round < rounds; ++round)
    for (Way& way : ways) {
      if (way.part < 0) continue;
      try {
        way.seconds.push_back(run(step, way, held, all));
      } catch (const MemoryLimitError&) {
        way.part = -1;
      }
    }
  fmt::print("{}: a step holds {:.1f} MB, of which {:.1f} MB lie there before it\n", name, static_cast<double>(all) / 1e6,
             static_cast<double>(held) / 1e6);
  for (const Way& way : ways) {
    if (way.part < 0) {
      fmt::print("  {:<10} cannot be met\n", way.name);
      continue;
    }
    const double seconds = median(way.seconds);
    fmt::print("  {:<10} {:8.1f} ms  x{:.3f}", way.name, seconds * 1e3, seconds / median(ways[0].seconds));
    if (way.part > 0)
      fmt::print("   cost x{:.3f}, {} evictions, chosen in {:.2f} % of the time",
                 1 + way.stats.recomputed_cost / way.stats.cost, way.stats.evictions, way.stats.choosing_us / 1e4 / seconds);
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc == 3 ? std::max(1, std::atoi(argv[2])) : 7;
  manual_seed(1);
  test::ResNet1202 resnet(16);
  Sgd sgd(resnet.parameters(), {.lr = 0.01});
  const Tensor images = normal({8, 3, 16, 16}), labels = tensor({1, 2, 3, 4, 5, 6, 7, 8}, DType::i32);
  measure(
      "ResNet-1202, 16 channels, 8 images of 16x16",
      [&] {
        sgd.zero_grad();
        backward(cross_entropy(resnet.forward(images), labels));
        sgd.step();
      },
      rounds);
  Perceptron perceptron;
  AdamW adam(perceptron.parameters());
  const Tensor x = normal({1024, 256});
  measure(
      "perceptron, 24 layers of 256, batch 1024",
      [&] {
        adam.zero_grad();
        backward(mean(square(perceptron.forward(x))));
        adam.step();
      },
      rounds);
}
