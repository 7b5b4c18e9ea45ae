// The text of a value:
//
//     relu.2: f32[4,16], made by relu at node 17; 3 nodes ran again, 12.5 KiB (12,800 bytes) extra
//       min 0, max 2.5, mean 0.61, deviation 0.7; 31 of 64 are zero
//           0 .. 0.3125   ########################  31
//      0.3125 .. 0.625    ######                     8
//       [[0. ...
#include <tapedeck/capture/tool/reports/shown_value.h>

#include <tapedeck/capture/tool/files/sizes.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::tool {

namespace {

constexpr int kBins = 16, kBarWidth = 40;

std::string counts_text(const TensorStatistics& s) {
  std::string text;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count > 0)
      text += fmt::format("{}{} of {} {} {}", text.empty() ? "; " : ", ", count, s.elements, count == 1 ? "is" : "are", what);
  };
  add(s.zeros, "zero");
  add(s.nan, "NaN");
  add(s.infinite, "infinite");
  return text;
}

std::string histogram_text(const Histogram& h) {
  std::int64_t most = 0;
  for (const std::int64_t count : h.counts) most = std::max(most, count);
  std::string text;
  for (std::size_t bin = 0; bin < h.counts.size(); ++bin) {
    const double share = static_cast<double>(h.counts[bin]) / static_cast<double>(most);
    const auto bar = static_cast<std::size_t>(std::ceil(share * kBarWidth));
    text += fmt::format("  {:>12.5g} .. {:<12.5g} {:<{}} {}\n", h.edge(bin), h.edge(bin + 1), std::string(bar, '#'), kBarWidth,
                        h.counts[bin]);
  }
  return text;
}

std::string indented(const std::string& lines) {
  std::string text;
  for (const char c : lines) {
    if ((text.empty() || text.back() == '\n') && c != '\n') text += "  ";
    text += c;
  }
  return text + "\n";
}

std::string how_it_came(const ShownValue& v) {
  if (v.nodes_again == 0) return "its bytes are there";
  return fmt::format("computed again by {} node{} in {}", v.nodes_again, v.nodes_again == 1 ? "" : "s",
                     human_size(v.extra_bytes));
}

std::string statistics_text(const TensorStatistics& s) {
  if (s.elements == s.not_finite()) return fmt::format("  no element is finite{}\n", counts_text(s));
  return fmt::format("  min {:.6g}, max {:.6g}, mean {:.6g}, deviation {:.6g}{}\n", s.min, s.max, s.mean, s.deviation,
                     counts_text(s));
}

std::string text_of_value(const ShownValue& v) {
  const std::string maker = v.node == kNone ? v.op : fmt::format("made by {} at node {}", v.op, v.node);
  return fmt::format("{}: {}, {}; {}\n", v.name, to_string(v.type), maker, how_it_came(v)) + statistics_text(v.statistics) +
         histogram_text(v.histogram) + indented(v.numbers);
}

}  // namespace

ShownValue show_value(const Graph& graph, ValueId v, const std::string& name, const Inspected& seen) {
  ShownValue shown;
  shown.name = name;
  shown.node = graph.values[v].node;
  shown.op = shown.node != kNone ? graph.nodes[shown.node].op->name : graph.is_input(v) ? "input" : "state";
  shown.type = seen.value.type();
  shown.statistics = statistics(seen.value);
  shown.histogram = histogram(seen.value, kBins);
  shown.numbers = corner_text(seen.value);
  shown.nodes_again = seen.nodes;
  shown.extra_bytes = seen.extra_bytes;
  return shown;
}

std::string text_of_values(const std::vector<ShownValue>& values) {
  std::string text;
  for (const ShownValue& v : values) text += text_of_value(v);
  return text;
}

std::string text_of_stop(const ShownStop& stop) {
  if (stop.reason == StopReason::end) return fmt::format("the last step came to its end, {}", plural(stop.nodes, "node"));
  std::string text = fmt::format("the last step stopped behind node {}, with {} of {} nodes left: `{}`", stop.node,
                                 stop.nodes_left, stop.nodes, stop.node_text);
  if (stop.reason == StopReason::not_finite)
    text += fmt::format("; it made {} at element {} of '{}'", std::isnan(stop.number) ? "NaN" : "an infinity", stop.element,
                        stop.value);
  return text;
}

}  // namespace tapedeck::tool
