// Measures what a memory budget costs eager training: the residual net of 1,202 layers, and a perceptron with dropout.
//
//     session_bench [--rounds 7]
//
// Each round runs a training step in every way, in turn: without a session, in a session whose budget holds everything (what
// the log of calls costs), and in sessions at parts of the memory in between. Columns: the median time of a step over that
// without a session; the cost of the calls that ran again, by the cost model; and the share of the step's time in which what
// goes is chosen.
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

struct ResNet1202 : Module {
  Conv2d first;
  std::deque<Conv2d> convs;
  std::deque<BatchNorm> norms;
  Linear last;
  ResNet1202() : first(*this, "first", 3, 16, 3, Padding(1)), last(*this, "last", 16, 10) {
    for (int i = 0; i < 1200; ++i) {
      convs.emplace_back(*this, "conv" + std::to_string(i), 16, 16, 3, Padding(1));
      norms.emplace_back(*this, "norm" + std::to_string(i), 16);
    }
  }
  Tensor forward(const Tensor& x) {
    Tensor h = relu(first(x));
    for (std::size_t i = 0; i < convs.size(); i += 2) h = relu(add(h, norms[i + 1](convs[i + 1](relu(norms[i](convs[i](h)))))));
    return last(mean(h, {2, 3}));
  }
};

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
  ResNet1202 resnet;
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
