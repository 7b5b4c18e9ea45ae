#include <tapedeck/capture/planner/segments/arrange_for_threads.h>

#include <tapedeck/capture/planner/layout/reuse_edges.h>

#include <cmath>
#include <optional>

namespace tapedeck {

namespace {

constexpr double kWorthBytes = 0.95;  // of the makespan: less is no gain

class Arranger {
 public:
  Arranger(const Facts& facts, const ClonedGraph& cloned, const std::vector<double>& node_cost, const PlanOptions& options)
      : facts_(facts), cloned_(cloned), cost_(node_cost), options_(options) {}

  Arrangement arrange(std::optional<Layout> laid_out) {
    Arrangement tight = place_tightly(std::move(laid_out));
    std::optional<Arrangement> apart;
    if (options_.threads > 1) apart = place_apart(tight);
    Arrangement& chosen = apart ? *apart : tight;
    chosen.cut.rule.tight_makespan_us = tight.cut.rule.makespan_us;
    chosen.cut.rule.tight_peak_bytes = facts_.external_bytes + tight.layout.arena_bytes;
    return std::move(chosen);
  }

 private:
  Arrangement place_tightly(std::optional<Layout> laid_out) const {
    Layout layout = laid_out ? std::move(*laid_out) : lay_out(facts_, cloned_, placing());
    std::vector<Edge> edges = find_reuse_edges(cloned_.graph, layout);
    Cut cut = cut_segments(cloned_.graph, cost_, edges, options_);
    return {std::move(layout), std::move(edges), std::move(cut)};
  }

  // Were no bytes used again, segments could be cut in more than one good way; they differ in the bytes that placing them apart
  // takes.
  std::optional<Arrangement> place_apart(const Arrangement& tight) const {
    std::optional<Arrangement> best;
    for (const Cut& free : cut_each_way(cloned_.graph, cost_, find_update_edges(cloned_.graph, tight.layout), options_)) {
      const Cut& to_beat = best ? best->cut : tight.cut;
      if (!gains(free, to_beat) || (options_.cancel && options_.cancel->load())) break;
      if (std::optional<Arrangement> apart = place_apart(free, tight); apart && gains(apart->cut, to_beat))
        best = std::move(apart);
    }
    return best;
  }

  std::optional<Arrangement> place_apart(const Cut& free, const Arrangement& tight) const {
    Layout layout = lay_out_apart(facts_, cloned_, placing(), times_of(free));
    if (layout.arena_bytes < 0 || !affordable(layout, tight.layout)) return std::nullopt;
    std::vector<Edge> edges = find_reuse_edges(cloned_.graph, layout);
    std::optional<Cut> cut = with_reuse_edges(free, cloned_.graph, cost_, edges, options_);
    if (!cut) return std::nullopt;
    cut->rule.placement = "apart";
    return Arrangement{std::move(layout), std::move(edges), std::move(*cut)};
  }

  static bool gains(const Cut& cut, const Cut& over) { return cut.rule.makespan_us <= kWorthBytes * over.rule.makespan_us; }

  bool affordable(const Layout& layout, const Layout& tight) const {
    const std::int64_t peak = facts_.external_bytes + layout.arena_bytes,
                       tight_peak = facts_.external_bytes + tight.arena_bytes;
    if (options_.budget >= 0 && peak > options_.budget) return false;
    return static_cast<double>(peak) <= std::floor(options_.parallel_peak * static_cast<double>(tight_peak));
  }

  Placing placing() const {
    return {.alignment = alignment_of(options_), .chunk_bytes = options_.chunk_bytes, .cancel = options_.cancel};
  }

  SegmentTimes times_of(const Cut& cut) const {
    SegmentTimes times{std::vector<std::int32_t>(cloned_.graph.nodes.size(), kNone), cut.run.began, cut.run.ended};
    for (std::size_t s = 0; s < cut.segments.size(); ++s)
      for (NodeId n : cut.segments[s].nodes) times.segment_of[n] = static_cast<std::int32_t>(s);
    return times;
  }

  const Facts& facts_;
  const ClonedGraph& cloned_;
  const std::vector<double>& cost_;
  const PlanOptions& options_;
};

}  // namespace

Arrangement arrange(const Facts& facts, const ClonedGraph& cloned, const std::vector<double>& node_cost,
                    const PlanOptions& options, std::optional<Layout> tight) {
  return Arranger(facts, cloned, node_cost, options).arrange(std::move(tight));
}

}  // namespace tapedeck
