#include <tapedeck/capture/passes/pass.h>

#include <tapedeck/engine/settings.h>
#include <tapedeck/engine/text.h>

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

}  // namespace

PassRunner::PassRunner() : settings_(settings_from_environment()) {}

bool PassRunner::disabled(const std::string& name) const {
  return std::find(settings_.disabled_passes.begin(), settings_.disabled_passes.end(), name) != settings_.disabled_passes.end();
}

void PassRunner::dump(const std::string& name, const std::string& text) {
  const std::string path = fmt::format("{}/{:02}-{}.graph", settings_.dump, ++dumped_, name);
  std::ofstream file(path);
  file << text;
  if (!file.flush()) fmt::print(stderr, "warning: cannot write {}\n", path);
}

Graph PassRunner::run(const char* name, Graph graph, const std::function<Graph(Graph)>& pass, Need need) {
  PassRecord record{name, 0, graph.node_count(), graph.node_count(), false};
  if (need == Need::optional && disabled(name)) {
    record.skipped = true;
    records_.push_back(record);
    return graph;
  }
  const std::string before = settings_.dump.empty() ? std::string() : print(graph);
  const auto start = std::chrono::steady_clock::now();
  Graph result = pass(std::move(graph));
  record.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  verify_after(name, result);
  record.nodes_after = result.node_count();
  records_.push_back(record);
  if (!settings_.dump.empty()) {
    const std::string after = print(result);
    if (after != before) dump(name, after);
  }
  if (settings_.debug >= 1)
    fmt::print(stderr, "pass {:<14} {:6} -> {:6} nodes  {:8.2f} ms\n", name, record.nodes_before, record.nodes_after,
               record.ms);
  return result;
}

}  // namespace tapedeck
