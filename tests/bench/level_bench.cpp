// Measures steps of zoo models with fused nodes and without them, in pairs that run one after the other. Ratios below 1 are in
// favour of fusion.
//
//   level_bench [--only NAME] [--pairs N] [--threads N] [--nodes] [--same]
//
// Each pair runs one step of both plans, now this one first, now the other one. `ms` is the processor's time of a step in user
// code, `ratio` the median of the ratios of the pairs, between its quartiles. `in nodes` is the sum over the nodes of the
// median time of each, from timelines of steps of their own: most slices are so short that other work on the machine interrupts
// few of them. `faults` counts the pages that a step touches for the first time. With --nodes the ops follow whose time differs
// most.
//
// With --same both plans have the default level. Their ratio, in several processes, shows how much a step depends on the memory
// that its arena happens to get.
#include <tapedeck/tapedeck.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>

#include <fmt/format.h>

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;

struct Case {
  const char* model;
  ModelOptions options;
};

const std::vector<Case> kCases = {
    {"mobilenet_v2", {.batch = 2, .image = 160}},
    {"resnet18", {.batch = 2, .image = 64}},
    {"gpt2", {.batch = 2, .seq = 32, .layers = 2, .width = 128}},
    {"vit_b16", {.batch = 2, .image = 64, .layers = 4, .width = 256}},
    {"lstm_lm", {.batch = 4, .seq = 8}},
    {"unet", {.batch = 1, .image = 64, .width = 16}},
    {"densenet121", {.batch = 1, .image = 64}},
    {"transformer_encoder", {.batch = 2, .seq = 32, .layers = 2, .width = 256}},
    {"gru_seq2seq_attention", {.batch = 4, .seq = 8, .width = 128}},
    {"mlp", {.batch = 64}},
};

struct Spent {
  double ms = 0, faults = 0;
};

Spent spent() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return {static_cast<double>(use.ru_utime.tv_sec) * 1e3 + static_cast<double>(use.ru_utime.tv_usec) / 1e3,
          static_cast<double>(use.ru_minflt)};
}

double quantile(std::vector<double> list, double q) {
  std::sort(list.begin(), list.end());
  return list[static_cast<std::size_t>(q * static_cast<double>(list.size() - 1))];
}

// A plan of one level, and the measurements of its steps.
struct Way {
  Executor executor;
  std::vector<double> ms, faults;
  std::vector<std::vector<double>> of_node;  // by node: milliseconds in each timed step

  Way(const Captured& captured, OptimizationLevel level, int threads)
      : executor(make_plan(captured.graph, {.level = level, .threads = threads}), {.threads = threads}) {
    const Graph& g = captured.graph;
    for (std::size_t i = 0; i < captured.inputs.size(); ++i) executor.set_input(static_cast<int>(i), captured.inputs[i]);
    for (std::size_t s = 0; s < captured.state.size(); ++s)
      executor.set_state(g.value_name(g.n_inputs + static_cast<ValueId>(s)), captured.state[s]);
    of_node.resize(executor.plan().graph.nodes.size());
    for (int i = 0; i < 3; ++i) executor.run();
  }

  void step() {
    const Spent before = spent();
    executor.run();
    const Spent after = spent();
    ms.push_back(after.ms - before.ms);
    faults.push_back(after.faults - before.faults);
  }

  void timed_step() {
    Timeline timeline;
    executor.run(&timeline);
    for (const Slice& slice : timeline.slices)
      of_node[slice.node].push_back(static_cast<double>(slice.end_ns - slice.start_ns) / 1e6);
  }

  // Milliseconds of a step by op.
  std::map<std::string, double> of_op() const {
    std::map<std::string, double> sums;
    for (std::size_t n = 0; n < of_node.size(); ++n)
      if (!of_node[n].empty()) sums[executor.plan().graph.nodes[n].op->name] += quantile(of_node[n], 0.5);
    return sums;
  }

  double in_nodes() const {
    double sum = 0;
    for (const auto& [op, ms] : of_op()) sum += ms;
    return sum;
  }
};

// Milliseconds of a step by op, of ops whose time differs most first.
void print_ops(const Way& plain, const Way& fused) {
  std::map<std::string, std::pair<double, double>> ops;
  for (const auto& [op, ms] : plain.of_op()) ops[op].first = ms;
  for (const auto& [op, ms] : fused.of_op()) ops[op].second = ms;
  std::vector<std::pair<std::string, std::pair<double, double>>> rows(ops.begin(), ops.end());
  const auto change = [](const auto& row) { return std::abs(row.second.first - row.second.second); };
  std::sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return change(a) > change(b); });
  for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 12); ++i)
    fmt::print("    {:<28} {:>9.3f} -> {:>9.3f}\n", rows[i].first, rows[i].second.first, rows[i].second.second);
}

void bench(const Case& c, int pairs, int threads, bool nodes, OptimizationLevel second) {
  const Captured captured = record_model(*find_model(c.model), c.options);
  Way plain(captured, OptimizationLevel::all, threads), fused(captured, second, threads);
  for (int i = 0; i < pairs; ++i) {
    Way &earlier = i % 2 ? fused : plain, &later = i % 2 ? plain : fused;
    earlier.step();
    later.step();
    if (i % 4 > 1) continue;
    earlier.timed_step();
    later.timed_step();
  }
  std::vector<double> ratios;
  for (std::size_t i = 0; i < plain.ms.size(); ++i) ratios.push_back(fused.ms[i] / plain.ms[i]);
  fmt::print("{:<22} {:>5} {:>5} {:>9.3f} {:>9.3f} {:>7.3f} ({:.3f} to {:.3f}) {:>9.3f} {:>9.3f} {:>6.0f} {:>6.0f}\n", c.model,
             plain.executor.plan().nodes, fused.executor.plan().nodes, quantile(plain.ms, 0.5), quantile(fused.ms, 0.5),
             quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75), plain.in_nodes(), fused.in_nodes(),
             quantile(plain.faults, 0.5), quantile(fused.faults, 0.5));
  if (nodes) print_ops(plain, fused);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int pairs = 41, threads = 1;
  bool nodes = false;
  OptimizationLevel second = OptimizationLevel::fused;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    const auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0 && i + 1 < argc; };
    if (is("--only"))
      only = argv[++i];
    else if (is("--pairs"))
      pairs = std::max(1, std::atoi(argv[++i]));
    else if (is("--threads"))
      threads = std::max(1, std::atoi(argv[++i]));
    else if (std::strcmp(argv[i], "--nodes") == 0)
      nodes = true;
    else if (std::strcmp(argv[i], "--same") == 0)
      second = OptimizationLevel::all;
    else
      return fmt::print(stderr, "level_bench [--only NAME] [--pairs N] [--threads N] [--nodes] [--same]\n"), 2;
  }
  fmt::print("{:<22} {:>5} {:>5} {:>9} {:>9} {:>7} {:<18} {:>9} {:>9} {:>13}\n", "", "nodes", "fused", "ms", "fused", "ratio",
             "", "in nodes", "fused", "faults");
  for (const Case& c : kCases)
    if (std::string(c.model).find(only) != std::string::npos) bench(c, pairs, threads, nodes, second);
}
