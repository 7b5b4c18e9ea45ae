#include <tapedeck/capture/planner/schedules/decisions.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

class DecisionReader {
 public:
  DecisionReader(const Facts& facts, const Changes& plan) : facts_(facts), graph_(*facts.graph), plan_(plan), schedule_(facts) {
    for (const Step& step : plan)
      if (!step.added) moved_.push_back(step.node);
  }

  std::vector<Decision> read() {
    std::vector<Decision> decisions;
    for (auto first = plan_.begin(); first != plan_.end();) {
      const NodeId stage = first->stage;
      const auto last = std::find_if(first, plan_.end(), [&](const Step& step) { return step.stage != stage; });
      std::vector<Step> runs;
      std::copy_if(first, last, std::back_inserter(runs), [](const Step& step) { return step.added; });
      if (!runs.empty()) decisions.push_back(decision(runs));
      first = last;
    }
    return decisions;
  }

 private:
  Decision decision(const std::vector<Step>& runs) {
    const NodeId stage = runs.front().stage;
    const ValueId value = leading_value(runs);
    Decision d;
    d.value = graph_.value_name(value);
    d.bytes = facts_.bytes[value];
    const NodeId previous = schedule_.presence(value, stage).previous;
    d.span = previous == kNone ? 0 : stage - previous - 1;
    bool only_moved = true;
    for (const Step& run : runs) {
      const bool moved = make(run);
      only_moved = only_moved && moved;
      d.clones += moved ? 0 : 1;
      d.cost_us += moved ? 0 : facts_.cost[run.node];
    }
    schedule_.refresh();
    d.live_peak_bytes = facts_.external_bytes + schedule_.peak().bytes;
    d.reason = only_moved ? fmt::format("nobody reads it before `{}`, so it is made just before it", graph_.node_text(stage))
                          : fmt::format("kept for {} steps otherwise; {} runs again before `{}` cost the least for these bytes",
                                        d.span, d.clones, graph_.node_text(stage));
    return d;
  }

  // Returns the largest value that the runs make and the stage's own node reads; if the node reads none, the largest of all.
  ValueId leading_value(const std::vector<Step>& runs) const {
    const auto reads = facts_.reads(runs.front().stage);
    ValueId leading = kNone;
    bool leading_is_read = false;
    for (const Step& run : runs)
      for (ValueId v : facts_.makes(run.node)) {
        const bool is_read = std::find(reads.begin(), reads.end(), v) != reads.end();
        const bool leads = leading == kNone || is_read > leading_is_read ||
                           (is_read == leading_is_read && facts_.bytes[v] > facts_.bytes[leading]);
        if (!leads) continue;
        leading = v;
        leading_is_read = is_read;
      }
    return leading != kNone ? leading : graph_.nodes[runs.front().node].first_output;
  }

  // Whether it is the node's first run, which then leaves its own stage.
  bool make(const Step& run) {
    schedule_.add_run(run.stage, run.node);
    const auto moved = std::find(moved_.begin(), moved_.end(), run.node);
    if (moved == moved_.end()) return false;
    moved_.erase(moved);
    schedule_.remove_run(run.node, run.node);
    return true;
  }

  const Facts& facts_;
  const Graph& graph_;
  const Changes& plan_;
  Schedule schedule_;
  std::vector<NodeId> moved_;  // nodes that leave their own stage, and whose first run has not been met
};

}  // namespace

void count_runs(const Schedule& schedule, std::size_t first, const Facts& facts, Decision* decision) {
  for (std::size_t i = first; i < schedule.journal().size(); ++i) {
    const Step& step = schedule.journal()[i];
    decision->clones += step.added ? 1 : -1;
    decision->cost_us += step.added ? facts.cost[step.node] : -facts.cost[step.node];
  }
}

std::vector<Decision> decisions_of(const Facts& facts, const Changes& plan) { return DecisionReader(facts, plan).read(); }

}  // namespace tapedeck
