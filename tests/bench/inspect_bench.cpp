// Measures what it takes to look at values that a replay has freed, beside a whole step of the same plan on the same threads.
//
//   inspect_bench [--model NAME] [--batch N] [--image N] [--budget PERCENT] [--values N] [--threads N]
//
// The step stops at its end, where most values are gone. `values` of the values whose bytes are gone are looked at, evenly
// spaced in the order of the plan. Each must have the bits that a replay which keeps every value shows to a monitor.
#include <tapedeck/tapedeck.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>

#include <fmt/format.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;
using Clock = std::chrono::steady_clock;

struct Asked {
  std::string model = "resnet50";
  ModelOptions options{.batch = 1, .image = 224};
  int budget_percent = 92, values = 40, threads = 1;
};

template <class F>
double ms_of(F&& f) {
  const auto start = Clock::now();
  f();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

void set(Executor* executor, const Captured& values) {
  const Graph& g = values.graph;
  for (std::size_t i = 0; i < values.inputs.size(); ++i) executor->set_input(static_cast<int>(i), values.inputs[i]);
  for (std::size_t s = 0; s < values.state.size(); ++s)
    executor->set_state(g.value_name(g.n_inputs + static_cast<ValueId>(s)), values.state[s]);
}

// Some of the values that have names and whose bytes are gone.
std::vector<std::string> gone_values(const Executor& e, int wanted) {
  const Graph& g = e.plan().graph;
  std::vector<std::string> gone;
  for (ValueId v = g.n_inputs + g.n_state; v < g.value_count(); ++v) {
    if (g.values[v].name.empty()) continue;
    try {
      e.value(g.values[v].name.str());
    } catch (const ExecutionError&) {
      gone.push_back(g.values[v].name.str());
    }
  }
  std::vector<std::string> some;
  const std::size_t every = std::max<std::size_t>(gone.size() / static_cast<std::size_t>(wanted), 1);
  for (std::size_t i = 0; i < gone.size(); i += every) some.push_back(gone[i]);
  return some;
}

// The values, as a replay that keeps every value shows them.
std::map<std::string, Tensor> kept_values(const Captured& captured, const std::vector<std::string>& names) {
  Executor e(make_plan(captured.graph, {.strategy = Strategy::none}), {.threads = 1});
  set(&e, captured);
  std::map<std::string, Tensor> kept;
  for (const std::string& name : names)
    e.monitor(name, [&](const Monitored& m) {
      if (m.name == name) kept[name] = m.value;
    });
  e.run();
  return kept;
}

void bench(const Asked& asked) {
  const Captured captured = record_model(*find_model(asked.model), asked.options);
  const Plan all = make_plan(captured.graph, {.strategy = Strategy::none});
  const Plan plan =
      make_plan(captured.graph, {.budget = all.peak_bytes / 100 * asked.budget_percent, .threads = asked.threads});
  Executor e(plan, {.threads = asked.threads});
  set(&e, captured);
  std::vector<double> steps;
  for (int i = 0; i < 6; ++i) {
    const double ms = ms_of([&] { e.run(); });
    if (i > 0) steps.push_back(ms);
  }
  set(&e, captured);
  e.keep_steps();
  const double parts_ms = ms_of([&] {
    e.step(0);
    e.resume();
  });
  const std::vector<std::string> names = gone_values(e, asked.values);
  const std::map<std::string, Tensor> kept = kept_values(captured, names);
  std::vector<double> ratios;
  std::int64_t extra = 0;
  std::string slowest;
  int differ = 0, again = 0;
  tbb::task_arena arena(asked.threads);
  for (const std::string& name : names) {
    Inspected seen;
    std::vector<double> ms;
    for (int round = 0; round < 3; ++round) ms.push_back(ms_of([&] { arena.execute([&] { seen = e.inspect(name); }); }));
    ratios.push_back(median(ms) / median(steps));
    if (ratios.back() == *std::max_element(ratios.begin(), ratios.end())) {
      slowest = name;
      again = seen.nodes;
    }
    extra = std::max(extra, seen.extra_bytes);
    differ += kept.count(name) == 0 || !bit_equal(seen.value, kept.at(name));
  }
  fmt::print("{} batch {}, image {}, budget {} %, {} threads: {} nodes, {} of them clones\n", asked.model, asked.options.batch,
             asked.options.image, asked.budget_percent, asked.threads, plan.nodes, plan.recomputed_nodes);
  fmt::print("  a step {:.1f} ms, a step that is kept {:.1f} ms and {:.1f} MB of copies; peak {:.1f} MB\n", median(steps),
             parts_ms, static_cast<double>(e.kept_bytes()) / 1e6, static_cast<double>(plan.peak_bytes) / 1e6);
  fmt::print(
      "  {} values that are gone: median {:.2f}, most {:.2f} of a step (%{}, {} nodes again); at most {:.1f} MB extra; {} "
      "differ\n",
      names.size(), median(ratios), *std::max_element(ratios.begin(), ratios.end()), slowest, again,
      static_cast<double>(extra) / 1e6, differ);
}

}  // namespace

int main(int argc, char** argv) {
  Asked asked;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const int number = std::atoi(argv[i + 1]);
    if (option == "--model") asked.model = argv[i + 1];
    if (option == "--batch") asked.options.batch = number;
    if (option == "--image") asked.options.image = number;
    if (option == "--budget") asked.budget_percent = number;
    if (option == "--values") asked.values = number;
    if (option == "--threads") asked.threads = number;
  }
  bench(asked);
}
