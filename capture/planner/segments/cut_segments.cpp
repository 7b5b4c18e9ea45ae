// Cuts the nodes in several ways and grains, runs each cut on the simulated clock, and chooses:
//
//     way       grain       segments    done after
//     walk      50 us              3      130.0 us
//     graph     15 us              4      105.4 us    taken: it is done first
//     lanes     15 us              5      108.1 us
#include <tapedeck/capture/planner/segments/cut_segments.h>

#include <tapedeck/capture/planner/segments/segment_pieces.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace tapedeck {

namespace {

constexpr double kShareOfDispatch = 0.02;  // of a segment's time, at most
constexpr double kAsGood = 1.01;           // of the shortest makespan: fewer segments count for more
constexpr double kWorthThreads = 0.95;     // of the serial time: a critical path above it leaves threads nothing to win

class Cutter {
 public:
  Cutter(const Graph& graph, const std::vector<double>& node_cost, const std::vector<Edge>& reuse_edges,
         const PlanOptions& options)
      : graph_(graph),
        cost_(node_cost),
        options_(options),
        precedence_(graph, reuse_edges),
        machine_{options.threads, options.dispatch_us} {
    rule_.dispatch_us = options.dispatch_us;
    rule_.most_us = options.segment_us;
    rule_.least_us = std::min(options.dispatch_us / kShareOfDispatch, options.segment_us);
    rule_.split_phases = options.split_phases;
    rule_.serial_us = std::accumulate(cost_.begin(), cost_.end(), 0.0);
    rule_.critical_path_us = critical_path(precedence_, cost_);
    most_threads_ = most_threads_of(graph, cost_, options.threads);
  }

  Cut cut() {
    try_all();
    return choose([](const Cut&) { return true; });
  }

  std::vector<Cut> cut_each_way() {
    try_all();
    std::vector<Cut> best;
    for (const char* shape : {"walk", "graph", "lanes"}) {
      const auto of_shape = [&](const Cut& c) { return c.rule.shape == shape; };
      if (std::any_of(cuts_.begin(), cuts_.end(), of_shape)) best.push_back(choose(of_shape));
    }
    std::stable_sort(best.begin(), best.end(),
                     [](const Cut& a, const Cut& b) { return a.rule.makespan_us < b.rule.makespan_us; });
    return best;
  }

  std::optional<Cut> recut(const Cut& from) {
    std::vector<SegmentPiece> pieces;
    for (const Segment& s : from.segments) pieces.push_back({s.nodes, s.cost_us, s.end, Phase::forward, false});
    try_pieces(pieces, from.rule.shape.c_str(), from.rule.grain_us);
    return cuts_.empty() ? std::nullopt : std::optional<Cut>(std::move(cuts_[0]));
  }

 private:
  void try_all() {
    try_pieces(walk_pieces(graph_, cost_, piece_rule(options_.segment_us)), "walk", options_.segment_us);
    if (options_.threads == 1 || options_.segment_us == 0 || rule_.critical_path_us >= kWorthThreads * rule_.serial_us) return;
    for (double grain : grains()) {
      try_pieces(grow_pieces(graph_, cost_, precedence_, piece_rule(grain)), "graph", grain);
      try_pieces(lane_pieces(graph_, cost_, precedence_, piece_rule(grain), options_.threads), "lanes", grain);
    }
    drop_too_fine();
  }

  PieceRule piece_rule(double grain) const { return {rule_.least_us, grain, options_.split_phases}; }

  // From twice the least to the bound, not beyond what each thread's share of the work would be.
  std::vector<double> grains() const {
    constexpr std::size_t kMost = 5;
    const double share = rule_.serial_us / options_.threads;
    std::vector<double> grains;
    for (double grain = 2 * rule_.least_us; grain > 0 && grain < std::min(rule_.most_us, share) && grains.size() < kMost;
         grain *= 2)
      grains.push_back(grain);
    grains.push_back(rule_.most_us);
    return grains;
  }

  void try_pieces(const std::vector<SegmentPiece>& pieces, const char* shape, double grain) {
    std::optional<std::vector<Segment>> segments = make_segments(precedence_, pieces);
    if (!segments) return;
    Cut cut;
    cut.run = simulate(*segments, cost_, most_threads_, machine_);
    cut.segments = std::move(*segments);
    cut.rule = rule_;
    cut.rule.shape = shape;
    cut.rule.grain_us = grain;
    cut.rule.makespan_us = cut.run.makespan_us;
    cuts_.push_back(std::move(cut));
  }

  // Many tiny segments may look good to the clock, which knows dispatch alone; the bound on its share holds all the same,
  // unless the caller asks for tiny ones. The walk keeps it by construction.
  void drop_too_fine() {
    if (options_.segment_us < rule_.dispatch_us / kShareOfDispatch) return;
    std::erase_if(cuts_, [&](const Cut& c) {
      return c.rule.shape != "walk" &&
             static_cast<double>(c.segments.size()) * rule_.dispatch_us > kShareOfDispatch * rule_.serial_us;
    });
  }

  // REQUIRES: one at least is allowed.
  template <class Allowed>
  Cut choose(Allowed allowed) {
    double shortest = std::numeric_limits<double>::infinity();
    for (const Cut& c : cuts_)
      if (allowed(c)) shortest = std::min(shortest, c.rule.makespan_us);
    Cut* best = nullptr;
    for (Cut& c : cuts_)
      if (allowed(c) && c.rule.makespan_us <= shortest * kAsGood && (!best || c.segments.size() < best->segments.size()))
        best = &c;
    return std::move(*best);
  }

  const Graph& graph_;
  const std::vector<double>& cost_;
  const PlanOptions& options_;
  const Precedence precedence_;
  const SimulatedMachine machine_;
  SegmentRule rule_;
  std::vector<std::int32_t> most_threads_;  // by node
  std::vector<Cut> cuts_;
};

}  // namespace

Cut cut_segments(const Graph& graph, const std::vector<double>& node_cost, const std::vector<Edge>& reuse_edges,
                 const PlanOptions& options) {
  return Cutter(graph, node_cost, reuse_edges, options).cut();
}

std::vector<Cut> cut_each_way(const Graph& graph, const std::vector<double>& node_cost, const std::vector<Edge>& reuse_edges,
                              const PlanOptions& options) {
  return Cutter(graph, node_cost, reuse_edges, options).cut_each_way();
}

std::optional<Cut> with_reuse_edges(const Cut& cut, const Graph& graph, const std::vector<double>& node_cost,
                                    const std::vector<Edge>& reuse_edges, const PlanOptions& options) {
  return Cutter(graph, node_cost, reuse_edges, options).recut(cut);
}

std::vector<bool> choose_intra_op(const Cut& cut, const PlanOptions& options) {
  const std::vector<bool>& crowded = cut.run.crowded;
  if (options.threads == 1 || std::find(crowded.begin(), crowded.end(), true) == crowded.end()) return {};
  std::vector<bool> may = crowded;
  may.flip();
  return may;
}

}  // namespace tapedeck
