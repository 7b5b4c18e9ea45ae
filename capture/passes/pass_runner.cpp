// The wrapper around every pass, in the order of a run: skip it if it is disabled, run it, look at the result (verify, live
// bytes), note the numbers, write a dump if the graph changed.
//     TAPEDECK_DEBUG=1      pass dead_code      120 ->     96 nodes      4096 ->     2048 bytes      0.40 ms
#include <tapedeck/capture/passes/pass_runner.h>

#include <tapedeck/capture/analysis/live_peak.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

namespace tapedeck {

namespace {

void verify_after(const char* name, const Graph& graph) {
  try {
    verify(graph);
  } catch (const InvalidGraphError& e) {
    throw InvalidGraphError(
        fmt::format("pass {} broke the graph: {} (TAPEDECK_DUMP=DIR keeps the graph before it)", name, e.what()));
  }
}

// Steps of the pipeline that are no passes of their own. All of them but `order` run even if they are disabled.
bool is_step(const std::string& name) { return name == "name_values" || name == "order" || name == "rematerialize"; }

}  // namespace

std::int64_t nodes_with_regions(const Graph& graph) {
  std::int64_t n = graph.node_count();
  for (const Region& region : graph.regions) n += nodes_with_regions(*region);
  return n;
}

PassRunner::PassRunner(PassOptions options, Looks looks)
    : options_(std::move(options)),
      settings_(settings_from_environment()),
      looks_(settings_.debug >= 1 ? Looks::at_each : looks) {
  for (std::string& name : settings_.disabled_passes) {
    if (is_step(name)) continue;
    try {
      name = pass_named(name).name;
    } catch (const UsageError& e) {
      throw UsageError(fmt::format("TAPEDECK_DISABLE_PASSES: {}", e.what()));
    }
  }
}

bool PassRunner::disabled(const std::string& name) const {
  return std::find(settings_.disabled_passes.begin(), settings_.disabled_passes.end(), name) != settings_.disabled_passes.end();
}

std::int64_t PassRunner::bytes_of(const Graph& graph) const { return looks_ == Looks::at_each ? live_peak(graph) : 0; }

void PassRunner::dump(const std::string& name, const std::string& text) {
  const std::string path = fmt::format("{}/{:02}-{}.graph", settings_.dump, ++dumped_, name);
  std::ofstream file(path);
  file << text;
  if (!file.flush()) fmt::print(stderr, "warning: cannot write {}\n", path);
}

void PassRunner::check_cancel() const {
  if (cancel_ && cancel_->load()) throw Cancelled("the passes were cancelled");
}

Graph PassRunner::run(const char* name, Graph graph) {
  const Pass& pass = pass_named(name);
  if (pass.level > options_.level && !pass.always) return graph;
  return run(
      pass.name, std::move(graph), [&](Graph g) { return run_pass(pass, std::move(g), options_); },
      pass.always ? Need::always : Need::optional);
}

Graph PassRunner::run(const char* name, Graph graph, const std::function<Graph(Graph)>& pass, Need need) {
  check_cancel();
  PassRecord record;
  record.name = name;
  record.nodes_before = record.nodes_after = nodes_with_regions(graph);
  record.bytes_before = record.bytes_after = bytes_of(graph);
  if (need == Need::optional && disabled(name)) {
    record.skipped = true;
    records_.push_back(record);
    return graph;
  }
  const std::string before = settings_.dump.empty() ? std::string() : print(graph);
  const auto start = std::chrono::steady_clock::now();
  Graph result = pass(std::move(graph));
  check_cancel();
  record.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (looks_ == Looks::at_each) verify_after(name, result);
  record.nodes_after = nodes_with_regions(result);
  record.bytes_after = bytes_of(result);
  if (!settings_.dump.empty()) {
    const std::string after = print(result);
    if (after != before) dump(name, after);
  }
  records_.push_back(record);
  if (seen_) seen_(name, result);
  if (settings_.debug >= 1)
    fmt::print(stderr, "pass {:<20} {:6} -> {:6} nodes  {:12} -> {:12} bytes  {:8.2f} ms\n", name, record.nodes_before,
               record.nodes_after, record.bytes_before, record.bytes_after, record.ms);
  return result;
}

}  // namespace tapedeck
