#include <tapedeck/capture/planner/rematerialize/forward_line.h>

#include <tapedeck/capture/planner/rematerialize/forward_part.h>

#include <algorithm>

namespace tapedeck {

namespace {

constexpr std::int64_t kSmall = 64;  // times smaller than the mean value of forward

void count_crossing(const Facts& facts, ForwardLine* line) {
  std::vector<std::int64_t> bytes(line->nodes.size() + 1, 0);  // by position: what begins to cross less what ends
  std::vector<std::int32_t> values(line->nodes.size() + 1, 0);
  for (std::size_t i = 0; i < line->nodes.size(); ++i) {
    for (ValueId v : facts.makes(line->nodes[i])) {
      if (!facts.in_arena(v) || facts.bytes[v] == 0 || line->last_reader[v] <= i) continue;
      bytes[i] += facts.bytes[v];
      bytes[line->last_reader[v]] -= facts.bytes[v];
      if (facts.bytes[v] < line->least_counted) continue;
      ++values[i];
      --values[line->last_reader[v]];
    }
  }
  std::int64_t bytes_now = 0;
  std::int32_t values_now = 0;
  for (std::size_t i = 0; i < line->nodes.size(); ++i) {
    line->crossing.push_back(bytes_now += bytes[i]);
    line->crossing_values.push_back(values_now += values[i]);
  }
}

// The first position by which this many bytes are made.
std::size_t position_of(const ForwardLine& line, double bytes) {
  const auto found = std::lower_bound(line.bytes_until.begin(), line.bytes_until.end(), bytes,
                                      [](std::int64_t until, double wanted) { return static_cast<double>(until) < wanted; });
  return std::min(static_cast<std::size_t>(found - line.bytes_until.begin()), line.nodes.size() - 1);
}

}  // namespace

ForwardLine forward_line(const Facts& facts) {
  ForwardLine line;
  line.last_reader.assign(facts.graph->values.size(), 0);
  std::int64_t until = 0;
  for (NodeId n = 0; n < facts.graph->node_count(); ++n) {
    if (!is_forward(facts, n)) continue;
    for (ValueId root : facts.reads(n)) line.last_reader[root] = line.nodes.size();
    line.nodes.push_back(n);
    line.bytes_until.push_back(until += bytes_made(facts, n));
  }
  if (!line.nodes.empty())
    line.least_counted = std::max(until / (kSmall * static_cast<std::int64_t>(line.nodes.size())), line.least_counted);
  count_crossing(facts, &line);
  return line;
}

std::vector<std::size_t> cut_evenly(const ForwardLine& line, std::int64_t segments) {
  const double share = static_cast<double>(line.bytes_until.back()) / static_cast<double>(segments);
  std::vector<std::size_t> cuts;
  std::size_t from = 0;
  for (std::int64_t s = 1; s < segments && from + 1 < line.nodes.size(); ++s) {
    const auto at = static_cast<double>(s);
    const std::size_t first = std::max(position_of(line, (at - 0.25) * share), from);
    const std::size_t last = std::max(position_of(line, (at + 0.25) * share), first);
    std::size_t best = std::clamp(position_of(line, at * share), first, last);
    for (std::size_t i = first; i <= last; ++i)
      if (line.crossing[i] < line.crossing[best]) best = i;
    cuts.push_back(best);
    from = best + 1;
  }
  return cuts;
}

}  // namespace tapedeck
