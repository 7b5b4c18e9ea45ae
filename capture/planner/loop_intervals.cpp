// For each loop the ways to keep fewer bytes for backward are listed, from the cheapest to the one with the fewest bytes. The
// ways of several loops are combined by a limit on the bytes of one loop: each loop takes its cheapest way below the limit. The
// tapes of two loops are never alive at once, so the peak asks only for the largest one. The stacks of scans are, so further
// settings change only some of the scans.
#include <tapedeck/capture/planner/loop_intervals.h>

#include <tapedeck/capture/analysis/traits.h>
#include <tapedeck/capture/cost/control_cost.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/capture/planner/planning.h>
#include <tapedeck/capture/planner/scans/rerun_scan.h>
#include <tapedeck/capture/planner/scans/scan_blocks.h>
#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/control/loop_checkpoints.h>
#include <tapedeck/engine/ops/control.h>
#include <tapedeck/kernels/checked_math.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::size_t kMostLimits = 12;     // settings of the loops that are tried in one order
constexpr std::size_t kMostScansAlone = 3;  // further settings, in which only the first scans keep less

struct Way {
  std::int64_t bytes = 0;  // of the tape, or of the stacks that the backward reads
  double work = 0;         // by which ways of one loop are compared: passes run again, or microseconds
  std::int64_t checkpoint = 0;
  double again = 0;                        // passes that a loop_grad runs again
  std::shared_ptr<const KeptStacks> kept;  // of a scan without checkpoints that stays one, else null
  std::int64_t block = 0;                  // the passes of a block, within which `kept` is kept; 0: no blocks
};

struct Loop {
  NodeId node = kNone;  // the loop_grad, or the backward of a pair of scans
  std::int64_t trips = 0;
  std::vector<Way> ways;  // the recorded one first; then ascending in work and descending in bytes
  std::shared_ptr<const RerunScan> scan;
};

using Setting = std::vector<const Way*>;  // by loop

const LoopGradAttrs& attributes_of(const Graph& g, NodeId n) {
  return *static_cast<const LoopGradAttrs*>(g.attributes(g.nodes[n]));
}

std::vector<std::int64_t> intervals_for(std::int64_t trips) {
  std::vector<std::int64_t> all{kCheckpointSqrt};
  for (std::int64_t n = 2; n < trips && n <= trips / 2; n *= 2) all.push_back(n);
  if (trips <= kMostCountedTrips) all.push_back(kCheckpointLog);
  return all;
}

// The first way, and those of the others that keep fewer bytes than every cheaper one.
std::vector<Way> sorted_ways(Way first, std::vector<Way> others) {
  std::stable_sort(others.begin(), others.end(),
                   [](const Way& a, const Way& b) { return a.work != b.work ? a.work < b.work : a.bytes < b.bytes; });
  std::vector<Way> ways{std::move(first)};
  for (Way& w : others)
    if (w.bytes < ways.back().bytes) ways.push_back(std::move(w));
  return ways;
}

// Only ways with a smaller tape than the recorded one, that are no cheaper: the recorded interval is the user's choice for
// plans that have the bytes.
std::vector<Way> ways_of(std::int64_t trips, std::int64_t recorded, std::int64_t entry_bytes) {
  const auto way = [&](std::int64_t checkpoint) {
    Way w;
    w.checkpoint = checkpoint;
    w.bytes = limited_product({entry_bytes, tape_entries(trips, checkpoint)});
    w.work = w.again = passes_run_again(trips, checkpoint);
    return w;
  };
  const Way first = way(recorded);
  std::vector<Way> others;
  if (trips <= 2) return {first};
  for (const std::int64_t checkpoint : intervals_for(trips))
    if (Way w = way(checkpoint); w.again >= first.again) others.push_back(std::move(w));
  return sorted_ways(first, std::move(others));
}

// Each pass runs once more. The stacks of one block live while the backward walks back over it.
Way way_in_blocks(const RerunScan& scan, const std::shared_ptr<const KeptStacks>& kept, std::int64_t block) {
  Way w;
  w.block = block;
  w.kept = kept;
  w.bytes = limited_product({scan.entry_bytes(), scan.passes() / block}) + kept->bytes / scan.passes() * block;
  w.again = static_cast<double>(scan.passes());
  w.work = w.again * scan.pass_us();
  return w;
}

// A loop_grad runs all passes but the last to fill its tape, some of them again, and each pass once more with its gradient.
std::vector<Way> ways_of(const RerunScan& scan) {
  const std::int64_t trips = scan.passes();
  const auto passes = static_cast<double>(trips);
  std::vector<Way> all;
  for (KeptStacks& kept : scan.ladder()) {
    Way w;
    w.bytes = kept.bytes;
    w.work = passes * kept.again_us;
    w.kept = std::make_shared<const KeptStacks>(std::move(kept));
    all.push_back(std::move(w));
  }
  const Way first = all.front();
  all.erase(all.begin());
  for (const std::int64_t block : block_lengths(scan)) all.push_back(way_in_blocks(scan, first.kept, block));
  if (!scan.loop_grad().possible) return sorted_ways(first, std::move(all));
  std::vector<std::int64_t> intervals = intervals_for(trips);
  intervals.push_back(1);
  for (const std::int64_t checkpoint : intervals) {
    Way w;
    w.checkpoint = checkpoint;
    w.bytes = limited_product({scan.entry_bytes(), tape_entries(trips, checkpoint)});
    w.again = passes - 1 + passes_run_again(trips, checkpoint);
    w.work = w.again * scan.advance_us() + passes * scan.least().again_us;
    all.push_back(std::move(w));
  }
  return sorted_ways(first, std::move(all));
}

std::int64_t passes_of(const Graph& g, NodeId n) { return most_passes(attributes_of(g, n), g.input_types(g.nodes[n])); }

// REQUIRES: the passes are bounded.
std::vector<Way> ways_in(const Graph& g, NodeId n) {
  return ways_of(passes_of(g, n), attributes_of(g, n).checkpoint, loop_tape(g, g.nodes[n]).entry_bytes);
}

bool has_name(const Graph& g, NodeId n) { return g.nodes[n].n_outputs > 0 && !g.values[g.nodes[n].first_output].name.empty(); }

// Nodes are found again by name after a pair is written anew.
bool may_change(const Order& order, const ScanPair& pair) {
  const Graph& g = order.graph;
  return has_name(g, pair.forward) && has_name(g, pair.backward) && !order.facts.is_kept(pair.forward) &&
         why_values_stay(g, pair).empty();
}

// The loops that have more than one way.
std::vector<Loop> loops_of(const Order& order) {
  const Graph& g = order.graph;
  std::vector<Loop> loops;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    if (g.nodes[n].op != &ops::loop_grad || !why_interval_stays(g, n).empty()) continue;
    loops.push_back({n, passes_of(g, n), ways_in(g, n), nullptr});
  }
  if (!std::all_of(loops.begin(), loops.end(), [&](const Loop& loop) { return has_name(g, loop.node); })) return loops;
  for (ScanPair& pair : find_scan_pairs(g)) {
    if (!may_change(order, pair)) continue;
    auto scan = std::make_shared<const RerunScan>(g, std::move(pair));
    std::vector<Way> ways = ways_of(*scan);
    if (ways.size() > 1) loops.push_back({scan->pair().backward, scan->passes(), std::move(ways), scan});
  }
  return loops;
}

// Limits on the bytes of a tape, descending; the smallest tapes are always among them.
std::vector<std::int64_t> limits_for(const std::vector<Loop>& loops) {
  std::set<std::int64_t, std::greater<>> sizes;
  for (const Loop& loop : loops)
    for (std::size_t w = 1; w < loop.ways.size(); ++w) sizes.insert(loop.ways[w].bytes);
  const std::vector<std::int64_t> all(sizes.begin(), sizes.end());
  if (all.size() <= kMostLimits) return all;
  std::vector<std::int64_t> limits;
  for (std::size_t i = 1; i <= kMostLimits; ++i) limits.push_back(all[i * all.size() / kMostLimits - 1]);
  return limits;
}

const Way& way_below(const Loop& loop, std::int64_t limit) {
  for (const Way& w : loop.ways)
    if (w.bytes <= limit) return w;
  return loop.ways.back();
}

std::string words_for(std::int64_t checkpoint) {
  if (checkpoint == kCheckpointSqrt) return "of about the square root of its passes";
  if (checkpoint == kCheckpointLog) return "of about the logarithm of its passes";
  return checkpoint <= 1 ? "of every pass" : fmt::format("of one pass in {}", checkpoint);
}

std::string stacked_values(std::size_t n) { return fmt::format("{} stacked value{}", n, n == 1 ? "" : "s"); }

std::string words_for(const Loop& loop, const Way& way) {
  if (!loop.scan)
    return fmt::format("the backward of this loop keeps the carried values {}, not {}: of {} passes it runs {:.0f} again",
                       words_for(way.checkpoint), words_for(loop.ways[0].checkpoint), loop.trips, way.again);
  const std::string before = stacked_values(loop.ways[0].kept->stacks.size());
  if (way.block > 0)
    return fmt::format(
        "this scan keeps the carried values of one pass in {} for its backward, not {}: the backward runs each of {} passes "
        "again, in blocks of {}, and keeps the stacked values of one block",
        way.block, before, loop.trips, way.block);
  if (!way.kept)
    return fmt::format(
        "this scan keeps nothing for its backward, not {}: the backward runs {:.0f} passes again to walk back over {}, "
        "and keeps the carried values {}",
        before, way.again, loop.trips, words_for(way.checkpoint));
  return fmt::format(
      "this scan keeps {} for its backward, not {}: the backward computes the others again, in each of {} passes",
      stacked_values(way.kept->stacks.size() + way.kept->carried.size()), before, loop.trips);
}

Decision decision_for(const Graph& g, const Loop& loop, const Way& way, double extra_us) {
  const Node& node = g.nodes[loop.node];
  Decision d;
  d.value = node.n_outputs > 0 ? g.value_name(node.first_output) : fmt::format("node {}", loop.node);
  d.bytes = loop.ways[0].bytes - way.bytes;
  d.cost_us = extra_us;
  d.reason = words_for(loop, way);
  return d;
}

// REQUIRES: the graph owns its attributes alone, which each node has for itself.
void set_checkpoint(Graph* g, NodeId n, std::int64_t checkpoint) {
  const_cast<LoopGradAttrs&>(attributes_of(*g, n)).checkpoint = checkpoint;
}

// The graph of `base` with each loop in its way of the setting.
Graph written(const Graph& base, const std::vector<Loop>& loops, const Setting& setting) {
  Graph graph = base;
  std::vector<Rerun> reruns;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (!loops[i].scan)
      set_checkpoint(&graph, loops[i].node, setting[i]->checkpoint);
    else if (setting[i] != &loops[i].ways[0])
      reruns.push_back({loops[i].scan.get(), setting[i]->kept.get(), setting[i]->checkpoint, setting[i]->block});
  }
  return reruns.empty() ? graph : with_reruns(graph, reruns);
}

// The nodes of a graph by the names of their first results.
class NamedNodes {
 public:
  explicit NamedNodes(const Graph& g) {
    for (NodeId n = 0; n < g.node_count(); ++n)
      if (g.nodes[n].n_outputs > 0) nodes_.emplace(g.value_name(g.nodes[n].first_output), n);
  }
  NodeId of(const std::string& name) const { return nodes_.at(name); }

 private:
  std::unordered_map<std::string, NodeId> nodes_;
};

void set_cost(Facts* facts, NodeId n, double us) { facts->cost[n] = facts->kernel_cost[n] = us; }

// What the way costs over the recorded one, and sets the costs of its nodes. A measured cost is that of the recorded form, so
// the model only says by how much it grows.
double note_extra(const Order& base, const Loop& loop, Order* order) {
  const NamedNodes nodes(order->graph);
  const auto now = [&](NodeId n) { return nodes.of(base.graph.value_name(base.graph.nodes[n].first_output)); };
  const auto model = [](const Graph& g, NodeId n) { return control_cost_us(g, g.nodes[n]); };
  std::vector<NodeId> parts{loop.node};
  if (loop.scan) parts.push_back(loop.scan->pair().forward);
  double before = 0, after = 0, cost = 0;
  for (NodeId n : parts) {
    before += model(base.graph, n);
    after += model(order->graph, now(n));
    cost += base.facts.cost[n];
    set_cost(&order->facts, now(n), base.facts.cost[n]);
  }
  const double extra = before > 0 ? cost * std::max(after / before - 1, 0.0) : 0;
  set_cost(&order->facts, now(loop.node), base.facts.cost[loop.node] + extra);
  const Node& node = order->graph.nodes[now(loop.node)];
  if (!loop.scan || node.op != &ops::loop_grad) return extra;
  return extra + order->facts.cost[order->graph.values[order->graph.inputs(node)[0]].node];  // of the number of passes
}

std::unique_ptr<Order> with_setting(const Order& base, const std::vector<Loop>& loops, const Setting& setting,
                                    const Planning& p) {
  auto order = make_order(base.name, written(base.graph, loops, setting), p.options);
  if (order->graph.nodes.size() == base.graph.nodes.size()) order->nodes = base.nodes;
  order->recorded_cost = order->facts.keep_all_cost = base.facts.keep_all_cost;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (setting[i] == &loops[i].ways[0]) continue;
    const double extra = note_extra(base, loops[i], order.get());
    order->facts.keep_all_cost += extra;
    order->loops.push_back(decision_for(base.graph, loops[i], *setting[i], extra));
  }
  for (Decision& d : order->loops) d.live_peak_bytes = order->live_peak;
  return order;
}

// The setting in which each loop takes its cheapest way below the limit.
Setting setting_below(const std::vector<Loop>& loops, std::int64_t limit) {
  Setting setting;
  for (const Loop& loop : loops) setting.push_back(&way_below(loop, limit));
  return setting;
}

// The settings that are tried: by limits, and with the first scans alone without the stacks that their passes can compute
// again.
std::vector<Setting> settings_for(const std::vector<Loop>& loops) {
  std::vector<Setting> settings;
  for (const std::int64_t limit : limits_for(loops)) settings.push_back(setting_below(loops, limit));
  const auto is_scan = [](const Loop& loop) { return loop.scan != nullptr; };
  const auto scans = static_cast<std::size_t>(std::count_if(loops.begin(), loops.end(), is_scan));
  Setting setting;
  for (const Loop& loop : loops) setting.push_back(&loop.ways[0]);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < loops.size() && changed + 1 < scans && changed < kMostScansAlone; ++i) {
    if (!loops[i].scan) continue;
    for (const Way& w : loops[i].ways)
      if (w.kept && w.block == 0) setting[i] = &w;
    if (setting[i] == &loops[i].ways[0]) setting[i] = &loops[i].ways[1];
    settings.push_back(setting);
    ++changed;
  }
  return settings;
}

std::string why_scan_stays(const Graph& g, NodeId n) {
  for (ScanPair& pair : find_scan_pairs(g)) {
    if (pair.backward != n) continue;
    if (std::string why = why_values_stay(g, pair); !why.empty()) return why;
    return ways_of(RerunScan(g, std::move(pair))).size() > 1 ? "" : "keeps its recorded values: no other way keeps fewer bytes";
  }
  return "";
}

}  // namespace

std::string why_interval_stays(const Graph& g, NodeId n) {
  const Node& node = g.nodes[n];
  if (node.op == &ops::scan) return why_scan_stays(g, n);
  if (node.op != &ops::loop_grad) return "";
  if ((traits_within(g, node) & kEffect) != 0)
    return "keeps its recorded interval: its body has an effect outside of the graph";
  if (passes_of(g, n) < 0) return "keeps its recorded interval: nothing bounds the number of its passes";
  return ways_in(g, n).size() > 1 ? "" : "keeps its recorded interval: no other one has a smaller tape";
}

void add_loop_intervals(Planning* p) {
  for (const Order* base : orders_to_vary(*p)) {
    const std::vector<Loop> loops = loops_of(*base);
    for (const Setting& setting : settings_for(loops)) {
      p->watch.check();
      add_order(with_setting(*base, loops, setting, *p), p);
    }
  }
}

}  // namespace tapedeck
