// The order of nodes of every zoo model's training step: live peaks (state, inputs and outputs included) as recorded, breadth first, depth
// first, by least peak memory first, and what order search makes of it.
//
//   order_bench [--only NAME] [--batch N]...        default: batch 1 and 32
#include <tapedeck/capture/analysis/facts.h>
#include <tapedeck/capture/models.h>
#include <tapedeck/capture/order/order.h>
#include <tapedeck/capture/pipeline.h>

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;

struct Sum {
  double logs = 0;
  int models = 0;
};

void measure(const Model& model, std::int64_t batch, Sum* sum) {
  ModelOptions options;
  options.batch = batch;
  options.abstract = true;
  const auto begin = std::chrono::steady_clock::now();
  const Captured captured = record_model(model, options);
  const auto recorded = std::chrono::steady_clock::now();
  PassRunner passes;
  const Graph graph = prepare(captured.graph, &passes);
  const Facts facts = collect_facts(graph);
  const std::vector<NodeId> source = own_sources(graph);
  const std::vector<NodeOrder> lists = find_list_orders(facts, graph, source);
  const auto start = std::chrono::steady_clock::now();
  const NodeOrder found = find_order(facts, graph, source);
  const auto end = std::chrono::steady_clock::now();
  const auto ms = [](auto from, auto to) { return std::chrono::duration<double, std::milli>(to - from).count(); };
  const auto mb = [&](std::int64_t arena) { return static_cast<double>(facts.external_bytes + arena) / 1e6; };
  std::string text = fmt::format("{:<16} {:>5} {:>6} {:>10.3f}", model.name, batch, graph.node_count(), static_cast<double>(facts.external_bytes) / 1e6);
  for (const NodeOrder& list : lists) text += fmt::format(" {:>10.3f}", mb(list.live_peak));
  const double ratio = mb(found.live_peak) / mb(lists[0].live_peak);
  fmt::print("{} {:>10.3f}{} {:>6.3f} {:>6.3f} {:>8.1f} {:>8.1f}  {}\n", text, mb(found.live_peak), found.optimal ? '*' : ' ', ratio,
             static_cast<double>(found.live_peak) / static_cast<double>(lists[0].live_peak), ms(begin, recorded), ms(start, end), found.name);
  sum->logs += std::log(ratio);
  ++sum->models;
}

}  // namespace

int main(int argc, char** argv) {
  std::string only;
  std::vector<std::int64_t> batches;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
    else if (std::strcmp(argv[i], "--batch") == 0) batches.push_back(std::atoll(argv[i + 1]));
    else return fmt::print(stderr, "order_bench [--only NAME] [--batch N]...\n"), 2;
  }
  if (batches.empty()) batches = {1, 32};
  fmt::print("MB; * = no order has a lower peak; ratios: of the peak, of its arena\n{:<16} {:>5} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>11} {:>6} {:>6} {:>8} {:>8}\n",
             "model", "batch", "nodes", "external", "recorded", "breadth", "depth", "lpmf", "demand", "ahead", "reversed", "ours", "peak", "arena", "rec ms", "ms");
  Sum sum;
  for (const Model& model : all_models()) {
    if (!only.empty() && model.name != only) continue;
    for (std::int64_t batch : batches) {
      try {
        measure(model, batch, &sum);
      } catch (const std::exception& e) {
        fmt::print("{:<16} {:>5} {}\n", model.name, batch, e.what());
      }
    }
  }
  if (sum.models > 0) fmt::print("geometric mean of {}: {:.4f}\n", sum.models, std::exp(sum.logs / sum.models));
  return 0;
}
