// Measures orders of nodes for every zoo model's training step. It prints the live peak (state, inputs and outputs included) of
// the recorded order, of the list schedules (breadth first, depth first, least peak memory first) and of the order search.
//
//   order_bench [--only NAME] [--batch N]...        default: batch 1 and 32
//
// The last row is a random graph of 5,000 nodes whose recorded order is far from good.
#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/order/find_order.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;

struct Sum {
  double logs = 0;
  int models = 0;
};

// Each node reads one to three earlier nodes, mostly recent ones. The largest value is about a thousand times as large as
// the smallest.
Graph random_graph(int nodes) {
  std::mt19937 random(17);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::string text = "graph random(%x: u8[8]) {\n";
  for (int n = 0; n < nodes; ++n) {
    const int bytes = 10 << below(10);
    text += fmt::format("  %v{}: u8[{}] = opaque(%x", n, bytes);
    for (int k = below(3); k >= 0 && n > 0; --k)
      text += fmt::format(", %v{}", std::max(0, n - 1 - below(below(8) == 0 ? n : 40)));
    text += ")\n";
  }
  return parse(text + fmt::format("  return %v{}\n}}\n", nodes - 1), "random");
}

Graph model_graph(const Model& model, std::int64_t batch) {
  ModelOptions options;
  options.batch = batch;
  options.abstract = true;
  PassRunner passes;
  return prepare(record_model(model, options).graph, &passes);
}

void measure(const std::string& name, std::int64_t batch, const Graph& graph, Sum* sum) {
  const Facts facts = collect_facts(graph);
  const std::vector<NodeId> source = own_sources(graph);
  const std::vector<NodeOrder> lists = find_list_orders(facts, graph, source);
  const auto start = std::chrono::steady_clock::now();
  const NodeOrder found = find_order(facts, graph, source);
  const auto end = std::chrono::steady_clock::now();
  const auto ms = [](auto from, auto to) { return std::chrono::duration<double, std::milli>(to - from).count(); };
  const auto mb = [&](std::int64_t arena) { return static_cast<double>(facts.external_bytes + arena) / 1e6; };
  std::string text = fmt::format("{:<21} {:>5} {:>6} {:>10.3f}", name, batch, graph.node_count(),
                                 static_cast<double>(facts.external_bytes) / 1e6);
  for (const NodeOrder& list : lists) text += fmt::format(" {:>10.3f}", mb(list.live_peak));
  const double ratio = mb(found.live_peak) / mb(lists[0].live_peak);
  fmt::print("{} {:>10.3f}{} {:>6.3f} {:>6.3f} {:>8.1f}  {}\n", text, mb(found.live_peak), found.optimal ? '*' : ' ', ratio,
             static_cast<double>(found.live_peak) / static_cast<double>(lists[0].live_peak), ms(start, end), found.name);
  sum->logs += std::log(ratio);
  ++sum->models;
}

}  // namespace

int main(int argc, char** argv) {
  std::string only;
  std::vector<std::int64_t> batches;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--only") == 0)
      only = argv[i + 1];
    else if (std::strcmp(argv[i], "--batch") == 0)
      batches.push_back(std::atoll(argv[i + 1]));
    else
      return fmt::print(stderr, "order_bench [--only NAME] [--batch N]...\n"), 2;
  }
  if (batches.empty()) batches = {1, 32};
  fmt::print(
      "MB; * = no order has a lower peak; ratios: of the peak, of its arena\n{:<21} {:>5} {:>6} {:>10} {:>10} {:>10} {:>10} "
      "{:>10} {:>10} {:>10} {:>10} {:>11} {:>6} {:>6} {:>8}\n",
      "model", "batch", "nodes", "external", "recorded", "breadth", "depth", "lpmf", "demand", "ahead", "reversed", "ours",
      "peak", "arena", "ms");
  Sum sum;
  for (const Model& model : all_models()) {
    if (!only.empty() && model.name != only) continue;
    for (std::int64_t batch : batches) {
      try {
        measure(model.name, batch, model_graph(model, batch), &sum);
      } catch (const std::exception& e) {
        fmt::print("{:<16} {:>5} {}\n", model.name, batch, e.what());
      }
    }
  }
  Sum unnamed;
  for (int nodes : {500, 5000})
    if (only.empty() || only == "random") measure("random", 0, random_graph(nodes), &unnamed);
  if (sum.models > 0) fmt::print("geometric mean of {}: {:.4f}\n", sum.models, std::exp(sum.logs / sum.models));
  return 0;
}
