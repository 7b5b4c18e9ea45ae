// Measures every zoo model at a small size: a replay beside the same ops run eagerly one by one, and two threads beside one.
//
//   zoo_bench [--only NAME] [--seconds S] [--threads N]
//
// `eager` is run_eagerly(): dispatch, allocation and kernels, without recording and autograd. Eager training costs more. So a
// replay that is not slower than `eager` is not slower than eager training either. `outside` is the time of a serial replay
// outside of kernels: the run time minus the timeline's slices, minus two clock reads for each node. Each round runs every way
// at least once, one after the other. The figures are medians over the rounds.
#include <tapedeck/tapedeck.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>

#include <fmt/format.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;
using Clock = std::chrono::steady_clock;

struct Case {
  const char* model;
  ModelOptions options;
};

const std::vector<Case> kCases = {
    {"mlp", {.batch = 32}},
    {"lenet", {.batch = 16}},
    {"cnn", {.batch = 8}},
    {"lstm_lm", {.batch = 4, .seq = 8}},
    {"gru_seq2seq_attention", {.batch = 4, .seq = 6}},
    {"rnn_cell", {}},
    {"mlp_attention", {}},
    {"resnet18", {.batch = 8, .image = 64}},
    {"resnet50", {.batch = 2, .image = 64}},
    {"mobilenet_v2", {.batch = 2, .image = 64}},
    {"gpt2", {.batch = 2, .seq = 32, .layers = 2}},
    {"transformer_encoder", {.batch = 2, .seq = 32, .layers = 2}},
};

double ms_of(const std::function<void()>& step, int times) {
  const auto start = Clock::now();
  for (int i = 0; i < times; ++i) step();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count() / times;
}

double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

double clock_read_ns() {
  constexpr int kReads = 100000;
  const auto start = Clock::now();
  for (int i = 0; i < kReads; ++i) (void)Clock::now();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kReads;
}

void set(Executor* executor, const Captured& values) {
  const Graph& g = values.graph;
  for (std::size_t i = 0; i < values.inputs.size(); ++i) executor->set_input(static_cast<int>(i), values.inputs[i]);
  for (std::size_t s = 0; s < values.state.size(); ++s)
    executor->set_state(g.value_name(g.n_inputs + static_cast<ValueId>(s)), values.state[s]);
}

void bench(const Case& c, double seconds, int threads, double read_ns) {
  const Captured captured = record_model(*find_model(c.model), c.options);
  Executor one(make_plan(captured.graph), {.threads = 1}),
      many(make_plan(captured.graph, {.threads = threads}), {.threads = threads});
  set(&one, captured);
  set(&many, captured);
  tbb::task_arena arena(1);
  const std::function<void()> ways[] = {
      [&] { arena.execute([&] { run_eagerly(captured.graph, captured.inputs, captured.state); }); }, [&] { one.run(); },
      [&] { many.run(); }};
  constexpr int kRounds = 7;
  std::vector<double> ms[3], outside;
  int times[3];
  for (int w = 0; w < 3; ++w) {
    ways[w]();
    times[w] = std::max(1, static_cast<int>(seconds * 1000 / 3 / kRounds / std::max(ms_of(ways[w], 1), 1e-6)));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (int w = 0; w < 3; ++w) ms[w].push_back(ms_of(ways[w], times[w]));
    Timeline t;
    one.run(&t);
    double kernels = 0;
    for (const Slice& s : t.slices) kernels += static_cast<double>(s.end_ns - s.start_ns);
    const double rest = static_cast<double>(t.run_ns) - kernels - static_cast<double>(t.slices.size()) * read_ns;
    outside.push_back(100 * std::max(rest, 0.0) / static_cast<double>(t.run_ns));
  }
  fmt::print("{:<24} {:>6} {:>10.3f} {:>10.3f} {:>10.3f} {:>8.2f} {:>8.2f} {:>8.2f}\n", c.model, one.plan().nodes,
             median(ms[0]), median(ms[1]), median(ms[2]), median(ms[0]) / median(ms[1]), median(ms[1]) / median(ms[2]),
             median(outside));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 3;
  int threads = 2;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    const auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0 && i + 1 < argc; };
    if (is("--only"))
      only = argv[++i];
    else if (is("--seconds"))
      seconds = std::max(0.1, std::atof(argv[++i]));
    else if (is("--threads"))
      threads = std::max(1, std::atoi(argv[++i]));
    else
      return fmt::print(stderr, "zoo_bench [--only NAME] [--seconds S] [--threads N]\n"), 2;
  }
  const double read_ns = clock_read_ns();
  fmt::print("{:<24} {:>6} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8}\n", "ms", "nodes", "eager", "replay",
             fmt::format("{} threads", threads), "eager/1", "1/many", "outside%");
  for (const Case& c : kCases)
    if (std::string(c.model).find(only) != std::string::npos) bench(c, seconds, threads, read_ns);
}
