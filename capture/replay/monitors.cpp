#include <tapedeck/capture/replay/monitors.h>

#include <tapedeck/engine/control/dispatch_regions.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <algorithm>

namespace tapedeck::replay {

// Greedy: a mismatch goes back to the last star only. Linear, except for patterns of many stars.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

bool Monitors::is_named(const Graph& graph, NodeId n, const std::string& pattern) {
  const Node& node = graph.nodes[n];
  bool named = matches(pattern, node.op->name) || (!node.origin.path.empty() && matches(pattern, node.origin.path.view()));
  for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
    named |= matches(pattern, graph.value_name(v));
  return named;
}

std::uint8_t Monitors::shown(const Graph& graph, NodeId n, const std::string& pattern, const MonitorOptions& options) {
  const auto named = [&](ValueId v) { return matches(pattern, graph.value_name(v)); };
  if (is_named(graph, n, pattern)) return options.operands ? kResults | kAllOperands : kResults;
  const auto operands = graph.inputs(graph.nodes[n]);
  return options.operands && std::any_of(operands.begin(), operands.end(), named) ? kSomeOperands : kNothing;
}

bool Monitors::any_match(const Graph& graph, const std::string& pattern, const MonitorOptions& options) {
  for (NodeId n = 0; n < graph.node_count(); ++n)
    if (shown(graph, n, pattern, options) != kNothing) return true;
  return false;
}

std::int32_t Monitors::add(const std::string& pattern, MonitorFunction fn, const MonitorOptions& options) {
  if (!fn) throw UsageError("monitor: there is no function to call");
  const bool names_inputs = has_input_names(fn);
  Monitor m{next_, pattern, std::move(fn), names_inputs, {}};
  for (NodeId n = 0; n < graph_.node_count(); ++n) m.nodes.push_back(shown(graph_, n, pattern, options));
  if (std::count(m.nodes.begin(), m.nodes.end(), kNothing) == static_cast<std::ptrdiff_t>(m.nodes.size()))
    throw UsageError(fmt::format("monitor: no node's op, module path or result is named like '{}'{}", pattern,
                                 options.operands ? ", and no operand" : ""));
  monitors_.push_back(std::move(m));
  find_watched();
  return next_++;
}

void Monitors::remove(std::int32_t id) {
  if (std::erase_if(monitors_, [&](const Monitor& m) { return m.id == id; }) == 0)
    throw UsageError(fmt::format("there is no monitor {}", id));
  find_watched();
}

void Monitors::find_watched() {
  watched_.assign(monitors_.empty() ? 0 : graph_.nodes.size(), false);
  for (const Monitor& m : monitors_)
    for (std::size_t n = 0; n < m.nodes.size(); ++n) watched_[n] = watched_[n] || m.nodes[n] != kNothing;
}

// Eager ops that the function calls are not recorded.
void Monitors::call(const Monitor& m, const Monitored& seen) {
  const std::lock_guard lock(calling_);
  const Unrecorded unrecorded;
  m.fn(seen);
}

}  // namespace tapedeck::replay
