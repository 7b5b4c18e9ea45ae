// The monitors of an executor, and the nodes that they watch. Segments without a watched node run as if there were no monitors.
#pragma once

#include <tapedeck/capture/replay/monitor_inputs.h>
#include <tapedeck/capture/replay/run_options.h>
#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::replay {

// '*' stands for any characters, '?' for one character, every other character for itself.
bool matches(std::string_view pattern, std::string_view text);

class Monitors {
 public:
  explicit Monitors(const Graph& graph) : graph_(graph) {}

  // Whether add() would find a node to watch.
  static bool any_match(const Graph& graph, const std::string& pattern, const MonitorOptions& options);

  // The node's op, module path or result has a name that matches.
  static bool is_named(const Graph& graph, NodeId n, const std::string& pattern);

  // Watches the nodes whose op, module path or result has a name that matches, and with `operands` also the nodes that read
  // such a value. Throws UsageError if there are none.
  std::int32_t add(const std::string& pattern, MonitorFunction fn, const MonitorOptions& options);
  void remove(std::int32_t id);  // UsageError if there is no such monitor
  bool watches(NodeId n) const { return !watched_.empty() && watched_[n]; }
  bool any() const { return !watched_.empty(); }

  // Shows the operands of a node before it runs, or its results after, to the monitors that watch it; `read` gives a copy of a
  // value. Throws the exceptions of the monitors.
  template <class Read>
  void show_operands(NodeId n, const Read& read) {
    const auto operands = graph_.inputs(graph_.nodes[n]);
    for (const Monitor& m : monitors_) {
      std::string before;
      for (std::int32_t i = 0; i < static_cast<std::int32_t>(operands.size()); ++i) {
        const ValueId v = operands[i];
        if (!(m.nodes[n] & kAllOperands || (m.nodes[n] & kSomeOperands && matches(m.pattern, graph_.value_name(v))))) continue;
        const std::string name = m.names_inputs ? input_name(graph_, n, i) : graph_.value_name(v);
        if (name != before) call(m, {name, n, true, read(v)});
        before = name;
      }
    }
  }
  template <class Read>
  void show_results(NodeId n, const Read& read) {
    const Node& node = graph_.nodes[n];
    for (const Monitor& m : monitors_)
      for (ValueId v = node.first_output; m.nodes[n] & kResults && v < node.first_output + node.n_outputs; ++v)
        call(m, {graph_.value_name(v), n, false, read(v)});
  }

 private:
  enum : std::uint8_t { kNothing = 0, kResults = 1, kAllOperands = 2, kSomeOperands = 4 };
  struct Monitor {
    std::int32_t id;
    std::string pattern;
    MonitorFunction fn;
    bool names_inputs;                // operands have the names of input_name()
    std::vector<std::uint8_t> nodes;  // by node: which of its values are shown
  };

  static std::uint8_t shown(const Graph& graph, NodeId n, const std::string& pattern, const MonitorOptions& options);
  void call(const Monitor& m, const Monitored& seen);
  void find_watched();

  const Graph& graph_;
  std::vector<Monitor> monitors_;
  std::vector<bool> watched_;  // by node; empty if there are no monitors
  std::int32_t next_ = 0;
  std::mutex calling_;
};

}  // namespace tapedeck::replay
