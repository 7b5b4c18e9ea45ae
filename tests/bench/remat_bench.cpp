// Measures what recomputation costs: the plans of `auto` and of `greedy` on public graphs, beside the least cost that is
// possible.
//
//     remat_bench [GRAPH...] [--points N] [--order recorded|auto] [--optima FILE.csv]
//
// GRAPH is a file of ../shared/data/moccasin, a trace of ../shared/data/simrd, or chain:N (N layers of one byte: forward 1 us,
// backward 2 us). By default the bench takes the five graphs there, the three traces, and chains of 10, 12, 16 and 20 layers,
// and 16 budgets from the floor to the peak of keeping everything. Values are not aligned, as in the literature. For graphs
// with optima in the file (tests/bench/remat_optima.csv, made by remat_optima.py with CBC, for the recorded order) its budgets
// are taken too; for traces the tenths of the peak that the traced program held, where the file has the least overhead of
// all heuristics of DTR's simulator (these rows have the status `heuristic`: the planner must not exceed it).
// Columns: the budget as a share of the peak of keeping everything, costs over keeping everything, the lower bound that the
// plan states, the known cost, and the cost of `auto` over it.
#include <tapedeck/tests/capture/planner_graphs.h>

#include <tapedeck/capture/formats/gzip.h>
#include <tapedeck/capture/import/graph_json.h>
#include <tapedeck/capture/import/simrd.h>
#include <tapedeck/capture/planner/plan_search.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;

struct Settings {
  std::vector<std::string> graphs;
  int points = 16;
  Ordering ordering = Ordering::recorded;
  std::string optima = TAPEDECK_SOURCE_DIR "/tests/bench/remat_optima.csv";
};

// By budget, without the bytes of inputs: cost over keeping everything.
struct KnownCosts {
  std::map<std::int64_t, double> at;
  bool optimal = true;  // or the best of DTR's heuristics
};
using KnownByGraph = std::map<std::string, KnownCosts>;

std::string text_of(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool is_trace(const std::string& graph) { return graph.ends_with(".log") || graph.ends_with(".log.gz"); }

std::string name_of(const std::string& graph) {
  const std::string file = std::filesystem::path(graph).filename().string();
  return graph.starts_with("chain:") ? graph : file.substr(0, file.find('.'));
}

Graph read_graph(const std::string& graph) {
  if (graph.starts_with("chain:")) return test::unit_chain(std::stoi(graph.substr(6)));
  if (is_trace(graph)) return import_simrd(unpacked_text(text_of(graph), graph), graph).graph;
  return import_graph_json(text_of(graph), graph);
}

KnownByGraph read_known(const std::string& path) {
  KnownByGraph known;
  std::ifstream stream(path);
  std::string line;
  std::getline(stream, line);  // the header
  while (std::getline(stream, line)) {
    std::istringstream fields(line);
    std::string graph, budget, cost, keep_all, bound, status;
    for (std::string* field : {&graph, &budget, &cost, &keep_all, &bound, &status}) std::getline(fields, *field, ',');
    const bool optimal = status.starts_with("optimal");
    if (!optimal && status != "heuristic") continue;
    known[graph].at[std::stoll(budget)] = std::stod(cost) / std::stod(keep_all);
    known[graph].optimal = optimal;
  }
  return known;
}

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::set<std::int64_t> budgets_for(const PlanSearch& search, std::int64_t external, const std::map<std::int64_t, double>& known,
                                   int points) {
  std::set<std::int64_t> budgets;
  for (const auto& [budget, ratio] : known) budgets.insert(budget + external);
  const std::int64_t low = search.floor(), high = search.keep_all_peak();
  const std::int64_t same = (high - low) / 1000;
  for (int i = 0; i < points; ++i) {
    const std::int64_t budget = low + (high - low) * i / std::max(points - 1, 1);
    const auto near = budgets.lower_bound(budget - same);
    if (near == budgets.end() || *near > budget + same) budgets.insert(budget);
  }
  return budgets;
}

struct Sums {
  int points = 0, known = 0;
  double greedy = 0, ours = 0, most_over_known = -1;
};

void print_point(const Plan& greedy, const Plan& plan, double peak, double known, double seconds, Sums* sums) {
  const double ours = plan.recompute_cost_ratio();
  fmt::print("  {:6.4f}  {:>8}  {:>8}  {:8.5f}  {:>8}  {:>9}  {:6.3f} s\n",
             static_cast<double>(plan.budget_bytes - plan.external_bytes) / peak,
             greedy.feasible ? fmt::format("{:.5f}", greedy.recompute_cost_ratio()) : "-",
             plan.feasible ? fmt::format("{:.5f}", ours) : "-", plan.cost_lower_bound_us / plan.keep_all_cost_us,
             known > 0 ? fmt::format("{:.5f}", known) : "", known > 0 ? fmt::format("{:+.5f}", ours - known) : "", seconds);
  if (!plan.feasible || !greedy.feasible) return;
  ++sums->points;
  sums->greedy += greedy.recompute_cost_ratio() - 1;
  sums->ours += ours - 1;
  if (known <= 0) return;
  ++sums->known;
  sums->most_over_known = std::max(sums->most_over_known, ours - known);
}

void measure(const std::string& name, const Graph& graph, const Settings& settings, const KnownCosts& known) {
  PlanOptions options;
  options.alignment = 1;
  options.ordering = settings.ordering;
  const double begin = seconds_now();
  PlanSearch search(graph, options);
  const double prepared = seconds_now() - begin;
  options.strategy = Strategy::greedy;
  PlanSearch by_greedy(graph, options);
  const Plan keep_all = search.plan(-1);
  const auto peak = static_cast<double>(search.keep_all_peak() - keep_all.external_bytes);
  fmt::print("{}: {} nodes, keep-all peak {} bytes, floor {:.4f} of it, searched in {:.3f} s\n", name, graph.nodes.size(),
             search.keep_all_peak(), static_cast<double>(search.floor() - keep_all.external_bytes) / peak, prepared);
  fmt::print("  budget    greedy      auto     bound     known       over   one plan\n");
  Sums sums;
  for (const std::int64_t budget : budgets_for(search, keep_all.external_bytes, known.at, settings.points)) {
    const double start = seconds_now();
    const Plan plan = search.plan(budget);
    const double seconds = seconds_now() - start;
    const auto at = known.at.find(budget - keep_all.external_bytes);
    print_point(by_greedy.plan(budget), plan, peak, at == known.at.end() ? 0.0 : at->second, seconds, &sums);
  }
  if (sums.points > 0)
    fmt::print("  mean extra work: greedy {:.5f}, auto {:.5f}", sums.greedy / sums.points, sums.ours / sums.points);
  if (sums.known > 0)
    fmt::print("; at most {:+.5f} over {} at {} budgets", sums.most_over_known,
               known.optimal ? "the optimum" : "the best heuristic of the simulator", sums.known);
  fmt::print("\n\n");
}

bool read_arguments(int argc, char** argv, Settings* settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--points" && has_value)
      settings->points = std::max(2, std::atoi(argv[++i]));
    else if (argument == "--order" && has_value)
      settings->ordering = std::string(argv[++i]) == "auto" ? Ordering::automatic : Ordering::recorded;
    else if (argument == "--optima" && has_value)
      settings->optima = argv[++i];
    else if (argument.starts_with("--"))
      return false;
    else
      settings->graphs.push_back(argument);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (!read_arguments(argc, argv, &settings)) {
    fmt::print(stderr, "remat_bench [GRAPH...] [--points N] [--order recorded|auto] [--optima FILE.csv]\n");
    return 2;
  }
  if (settings.graphs.empty()) {
    for (const char* name : {"vgg16_b256_train", "unet_b32_train", "mobilenet_b512_train", "random_n100", "random_n250"})
      settings.graphs.push_back(fmt::format("{}/moccasin/{}.json", TAPEDECK_SHARED_DIR "/data", name));
    for (const char* name : {"resnet32_b56", "unet_b6", "transformer_b10"})
      settings.graphs.push_back(fmt::format("{}/simrd/{}.log.gz", TAPEDECK_SHARED_DIR "/data", name));
    for (int layers : {10, 12, 16, 20}) settings.graphs.push_back(fmt::format("chain:{}", layers));
  }
  const KnownByGraph known = read_known(settings.optima);
  for (const std::string& graph : settings.graphs) {
    if (!graph.starts_with("chain:") && !std::filesystem::exists(graph)) {
      fmt::print("{}: skipped, because there is no such file\n", graph);
      continue;
    }
    const auto at = settings.ordering == Ordering::recorded || is_trace(graph) ? known.find(name_of(graph)) : known.end();
    measure(name_of(graph), read_graph(graph), settings, at == known.end() ? KnownCosts{} : at->second);
  }
  return 0;
}
