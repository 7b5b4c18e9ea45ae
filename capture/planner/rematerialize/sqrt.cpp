// Sublinear memory (Chen 2016): the forward part is cut into about as many segments as the square root of its length. Values
// that cross a cut are kept. The others are dropped after forward and made again, segment by segment, each as late as backward
// needs it. The last segment is kept, because backward begins there.
//
//     | a1 a2 a3 | a4 a5 a6 | a7 a8 a9 |  g9 g8 g7 g6 | a4 a5  g5 g4 g3 | a1 a2  g2 g1
//            kept       kept  kept                      again             again
//
// A chain of n equal values then peaks at about 2 sqrt(n) of them instead of n, for at most one more forward.
//
// Segments have about equal bytes and end where little crosses (forward_line.h). The points are cuts into 2, 3, 4, 6, 8, 12,
// ... segments, up to twice the square root. Few segments cost least, because the last one is free. Each cut is one choice,
// which takes the place of the cut before, and is made if its peak is lower.
#include <tapedeck/capture/planner/rematerialize/forward_line.h>
#include <tapedeck/capture/planner/rematerialize/forward_part.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {

namespace {

constexpr std::int64_t kMostSqrtWork = 25'000'000;  // RepeatedRuns::work(): seconds

class SqrtChooser {
 public:
  SqrtChooser(const Facts& facts, const Watch& watch)
      : facts_(facts), watch_(watch), runs_(facts), line_(forward_line(facts)) {}

  Choices choose() {
    choices_.points.push_back(runs_.point_after(0));
    const double most = 2 * std::sqrt(static_cast<double>(values_with_bytes()));
    for (double k = 2; k <= most && runs_.work() < kMostSqrtWork; k = std::max(k + 1, k * std::sqrt(2.0))) {
      watch_.check();
      try_cuts(cut_evenly(line_, static_cast<std::int64_t>(k)));
      watch_.report(std::log(k) / std::log(most));
    }
    choices_.journal = runs_.journal();
    return std::move(choices_);
  }

 private:
  std::int64_t values_with_bytes() const {
    return std::count_if(line_.nodes.begin(), line_.nodes.end(), [&](NodeId n) { return bytes_made(facts_, n) > 0; });
  }

  // By node: it lies before the last cut, and no result of it crosses a cut.
  std::vector<char> dropped(const std::vector<std::size_t>& cuts) const {
    std::vector<char> dropped(facts_.graph->nodes.size(), 0);
    std::size_t next = 0;
    for (std::size_t i = 0; i < line_.nodes.size(); ++i) {
      while (next < cuts.size() && cuts[next] < i) ++next;
      if (next == cuts.size()) break;
      const auto makes = facts_.makes(line_.nodes[i]);
      dropped[line_.nodes[i]] =
          may_run_again(facts_, line_.nodes[i]) &&
          std::none_of(makes.begin(), makes.end(), [&](ValueId v) { return line_.last_reader[v] > cuts[next]; });
    }
    return dropped;
  }

  void try_cuts(const std::vector<std::size_t>& cuts) {
    const std::size_t before = runs_.journal().size();
    const std::vector<NodeId> stages = stages_of_one_more_run(facts_, dropped(cuts));
    runs_.switch_to(runs_in(stages));
    if (runs_.live_peak() >= choices_.points.back().live_peak) {
      runs_.take_back(before);
      return;
    }
    note_decision(stages, cuts, before);
    choices_.points.push_back(runs_.point_after(choices_.decisions.size()));
  }

  void note_decision(const std::vector<NodeId>& stages, const std::vector<std::size_t>& cuts, std::size_t before) {
    Decision d = runs_.decision_since(before);
    std::int64_t nodes = 0, kept = 0;
    for (NodeId n : line_.nodes) {
      if (stages[n] == kNone || !runs_.has_run(stages[n], n)) continue;
      if (nodes++ == 0) d.value = named_result(facts_, n);
      d.bytes += bytes_made(facts_, n);
      d.span = std::max(d.span, stages[n] - n - 1);
    }
    for (std::size_t cut : cuts) kept = std::max(kept, line_.crossing[cut]);
    d.reason =
        fmt::format("{} segments of forward: {} nodes run again, segment by segment; at most {} bytes cross a cut and stay",
                    cuts.size() + 1, nodes, kept);
    choices_.decisions.push_back(std::move(d));
  }

  const Facts& facts_;
  const Watch& watch_;
  RepeatedRuns runs_;
  ForwardLine line_;
  Choices choices_;
};

const Strategy sqrt_strategy = register_strategy({
    .name = "sqrt",
    .doc =
        "cuts forward into segments, up to about the square root of its length, and recomputes all but what crosses the cuts",
    .choose = [](const Facts& facts, const Watch& watch) { return SqrtChooser(facts, watch).choose(); },
    .in_auto = InAuto::finished,
    .reads_costs = false,
});

}  // namespace

}  // namespace tapedeck
