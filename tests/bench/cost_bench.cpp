// Compares the price of recomputation that plans state with the price that replays measure: for every model of the zoo, a plan
// that keeps everything and plans at a budget, whose costs come from the calibration of this machine and from a profile of the
// kept step.
//
//   cost_bench [MODEL...] [--batch N] [--seq N] [--between PERCENT | --activations PERCENT] [--seconds S]
//     [--full]
//
// Models are recorded at small sizes, and at the batch or length of sequence that is given; --full records them at their own
// sizes. The budget lies PERCENT (50) of the way from the floor to the peak of keeping everything, since parameters fill most
// of the memory of a small step. Replays run on one thread, because the planner's microseconds are of one thread. The steps of
// all plans run in turns, so that a machine that slows down slows all of them alike; each number is the median of the ratios of
// neighbouring steps. S seconds (2) are spent on each model. If this machine has no calibration, the bench makes one first.
#include <tapedeck/tapedeck.h>

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/capture/measure/calibrate.h>
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/record/model_registry.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;

struct Settings {
  std::vector<std::string> models;
  double percent = 50, seconds = 2;
  std::int64_t batch = 0, seq = 0;
  bool full = false, of_activations = false;
};

constexpr int kProfileSteps = 23, kWarmUpSteps = 3, kFewestRounds = 9;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<Executor> replay_of(const Captured& step, const Plan& plan) {
  ExecutorOptions options;
  options.threads = 1;
  std::optional<Executor> executor(std::in_place, plan, options);
  const std::vector<std::string> names = executor->state_names();
  for (std::size_t i = 0; i < names.size(); ++i) executor->set_state(names[i], step.state[i].detach());
  for (std::size_t i = 0; i < step.inputs.size(); ++i) executor->set_input(static_cast<int>(i), step.inputs[i]);
  for (int i = 0; i < kWarmUpSteps; ++i) executor->run();
  return executor;
}

// Of a step behind one of the same replay.
std::int64_t step_ns(Executor* executor) {
  executor->run();
  const std::int64_t begin = now_ns();
  executor->run();
  return now_ns() - begin;
}

Profile profile_of(Executor* executor) {
  ProfileBuilder builder(executor->plan().graph, clock_read_ns());
  for (int i = 0; i < kProfileSteps; ++i) {
    Timeline timeline;
    executor->run(&timeline);
    builder.add(timeline);
  }
  return builder.finish();
}

struct Compared {
  double predicted = 0, measured = 0;
  double error() const { return predicted / measured - 1; }
};

// The steps of the kept plan and of the others in turns; for each of the others the median of its time over the kept step's.
std::vector<double> measured_ratios(Executor* kept, const std::vector<Executor*>& others, double seconds) {
  std::vector<std::vector<double>> ratios(others.size());
  const std::int64_t begin = now_ns();
  for (int round = 0; round < kFewestRounds || static_cast<double>(now_ns() - begin) < seconds * 1e9; ++round) {
    const std::int64_t before = step_ns(kept);
    std::vector<double> ns;
    for (Executor* other : others) ns.push_back(static_cast<double>(step_ns(other)));
    const double around = static_cast<double>(before + step_ns(kept)) / 2;
    for (std::size_t i = 0; i < ns.size(); ++i) ratios[i].push_back(ns[i] / around);
  }
  std::vector<double> medians;
  for (const std::vector<double>& of_one : ratios) medians.push_back(median(of_one));
  return medians;
}

Plan plan_below(const Graph& graph, const Settings& settings, std::shared_ptr<const CostModel> costs) {
  PlanOptions options;
  options.costs = std::move(costs);
  PlanSearch search(graph, options);
  const std::int64_t low = settings.of_activations ? search.plan(-1).external_bytes : search.floor();
  const auto above = static_cast<double>(search.keep_all_peak() - low);
  return search.plan(low + static_cast<std::int64_t>(above * settings.percent / 100));
}

// Empty if nothing is recomputed under the budget.
std::vector<Compared> compare(const Model& model, const Settings& settings, const Calibration& calibration) {
  ModelOptions sizes = settings.full ? ModelOptions{} : small_options(model);
  if (settings.batch > 0) sizes.batch = settings.batch;
  if (settings.seq > 0) sizes.seq = settings.seq;
  const Captured step = record_model(model, sizes);
  auto costs = std::make_shared<CostModel>();
  costs->calibration = calibration;
  PlanOptions keep;
  keep.strategy = Strategy::none;
  keep.costs = costs;
  std::optional<Executor> kept = replay_of(step, make_plan(step.graph, keep));
  auto measured = std::make_shared<CostModel>(*costs);
  measured->profile = profile_of(&*kept);
  const Plan plans[] = {plan_below(step.graph, settings, costs), plan_below(step.graph, settings, measured)};
  std::vector<std::optional<Executor>> executors;
  std::vector<Executor*> others;
  for (const Plan& plan : plans) {
    if (!plan.feasible || plan.recomputed_nodes == 0) return {};
    executors.push_back(replay_of(step, plan));
  }
  for (std::optional<Executor>& executor : executors) others.push_back(&*executor);
  const std::vector<double> ratios = measured_ratios(&*kept, others, settings.seconds);
  return {{plans[0].recompute_cost_ratio(), ratios[0]}, {plans[1].recompute_cost_ratio(), ratios[1]}};
}

void print_summary(const char* source, std::vector<double> errors) {
  if (errors.empty()) return;
  std::sort(errors.begin(), errors.end());
  fmt::print("{:<11} off by {:.1f} % in the median and {:.1f} % at most, over {} models\n", source, 100 * median(errors),
             100 * errors.back(), errors.size());
}

Calibration calibration_here() {
  std::string why;
  if (std::optional<Calibration> found = load_calibration(calibration_path(), &why)) return *found;
  fmt::print("calibrating, which takes half a minute ...\n");
  std::fflush(stdout);
  return calibrate();
}

bool read_arguments(int argc, char** argv, Settings* settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--batch" && has_value)
      settings->batch = std::atoll(argv[++i]);
    else if (argument == "--seq" && has_value)
      settings->seq = std::atoll(argv[++i]);
    else if ((argument == "--between" || argument == "--activations") && has_value) {
      settings->of_activations = argument == "--activations";
      settings->percent = std::atof(argv[++i]);
    } else if (argument == "--seconds" && has_value)
      settings->seconds = std::atof(argv[++i]);
    else if (argument == "--full")
      settings->full = true;
    else if (argument.starts_with("--"))
      return false;
    else
      settings->models.push_back(argument);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (!read_arguments(argc, argv, &settings)) {
    fmt::print(
        stderr,
        "cost_bench [MODEL...] [--batch N] [--seq N] [--between PERCENT | --activations PERCENT] [--seconds S] [--full]\n");
    return 2;
  }
  if (settings.models.empty())
    for (const Model& model : all_models()) settings.models.push_back(model.name);
  const Calibration calibration = calibration_here();
  fmt::print("{:<14} {:>28} {:>28}\n{:<14} {:>9} {:>9} {:>8} {:>9} {:>9} {:>8}\n", "", "calibrated", "profile", "model",
             "predicted", "measured", "off", "predicted", "measured", "off");
  std::vector<double> off[2];
  for (const std::string& name : settings.models) {
    const Model* model = find_model(name);
    if (!model) {
      fmt::print(stderr, "cost_bench: there is no model {}\n", name);
      return 2;
    }
    const std::vector<Compared> rows = compare(*model, settings, calibration);
    fmt::print("{:<14}", name);
    if (rows.empty()) fmt::print(" nothing is recomputed there");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      fmt::print(" {:9.4f} {:9.4f} {:+7.1f}%", rows[i].predicted, rows[i].measured, 100 * rows[i].error());
      off[i].push_back(std::abs(rows[i].error()));
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  print_summary("calibrated:", off[0]);
  print_summary("profile:", off[1]);
  return 0;
}
