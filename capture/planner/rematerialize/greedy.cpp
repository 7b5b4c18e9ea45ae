// The greedy strategy. While something helps: of the values kept across the peak without being read there, give up the one with
// the best bytes x span for the cost of computing it again, and run its node again just before its next reader.
//
// If nobody reads the value before that, the run that made it goes: it was moved.
//
// What the clone reads must be there: give_up.h says how. A value may be given up again in another stretch, so in the end one
// tensor may be computed several times.
//
// Live bytes are exact after every choice. A choice counts only if it lowers the peak, or the number of stages at the peak;
// others are taken back and the next best is tried. So the sequence ends, and since it never looks at a budget, the first of
// its prefixes that fits a budget is monotone in the budget. Cost: a few touched stages per choice, and a walk over all gaps,
// which in a large graph serves many choices.
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/schedules/decisions.h>
#include <tapedeck/capture/planner/schedules/give_up.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>

namespace tapedeck {

namespace {

constexpr int kGreedyTrials = 48;        // choices tried at a peak, per way of getting operands, before it counts as stuck
constexpr std::size_t kEstimates = 128;  // choices costed at a peak
constexpr std::size_t kRemembered = 64;  // choices for which the cost of an option is believed before it is worked out again
constexpr std::int64_t kMostGreedyWork = 25'000'000;  // Schedule::work() and clones costed: seconds
constexpr double kImpossible = std::numeric_limits<double>::infinity();
constexpr NodeId kLarge = 5000;             // beyond so many nodes one walk over the gaps serves many choices
constexpr std::size_t kWalks = 64;          // ... of which each takes at most this part of the options that the walk found
constexpr std::int64_t kPointSteps = 1000;  // each point lowers the peak by at least 1/1000 of the peak with everything kept

// What giving up a gap was last found to cost, and after how many choices that was.
struct Remembered {
  NodeId from = kNone, to = kNone;
  double cost = 0;
  std::size_t when = 0;
};

class GreedyChooser {
 public:
  GreedyChooser(const Facts& facts, const Watch& watch)
      : facts_(facts),
        graph_(*facts.graph),
        watch_(watch),
        schedule_(facts),
        give_up_(facts, &schedule_),
        remembered_(graph_.values.size()) {
    const std::int64_t n = graph_.node_count();
    most_clones_ = std::max(4 * n, std::min<std::int64_t>(n * n / 2, 4096));
    if (is_large()) schedule_.index_gaps();
  }

  Choices choose() {
    const std::int64_t keep_all = schedule_.peak().bytes;
    choices_.points.push_back({0, 0, keep_all});
    while (schedule_.clone_count() < most_clones_ && schedule_.work() + give_up_.costed() < kMostGreedyWork) {
      watch_.check();
      peak_ = schedule_.peak();
      watch_.report(keep_all > 0 ? 1.0 - static_cast<double>(peak_.bytes) / static_cast<double>(keep_all) : 1.0);
      if (!improve()) break;
      const std::int64_t now = schedule_.peak().bytes;
      if (choices_.points.back().live_peak - now > keep_all / kPointSteps) record(now);
    }
    const std::int64_t last = schedule_.peak().bytes;
    if (last < choices_.points.back().live_peak) record(last);
    choices_.journal = schedule_.journal();
    return std::move(choices_);
  }

 private:
  void record(std::int64_t live_peak) {
    choices_.points.push_back({static_cast<std::int32_t>(choices_.decisions.size()), schedule_.journal().size(), live_peak});
  }

  // ---- one choice ----

  double score(const Gap& gap, std::int64_t bytes, double cost) const {
    const double tiny = 1e-9 + facts_.keep_all_cost * 1e-9;
    return static_cast<double>(bytes) * (gap.to - gap.from) / (std::max(cost, 0.0) + tiny);
  }

  std::vector<GapOption> options_at_peak() const {
    std::vector<GapOption> options;
    const auto add = [&](const Gap& gap) {
      if (gap.to - gap.from < 2 || !give_up_.may_give_up(gap)) return;
      const Remembered& r = remembered_[gap.value];
      const bool known = r.from == gap.from && r.to == gap.to && choices_.decisions.size() - r.when < kRemembered;
      const double cost = known ? r.cost : give_up_.cost_of_first(gap);
      if (cost != kImpossible) options.push_back({score(gap, facts_.bytes[gap.value], cost), gap, false});
    };
    if (is_large()) {
      schedule_.each_gap_across(peak_.stage, add);
      return options;
    }
    for (const Gap& gap : schedule_.gaps())
      if (gap.from <= peak_.stage && gap.to > peak_.stage) add(gap);
    return options;
  }

  bool is_large() const { return graph_.node_count() > kLarge; }

  // In a large graph the queue of one walk serves the next choices, too: a walk for each would take quadratic time.
  bool improve() {
    if (choices_left_ > 0 && try_options(*kWays)) return --choices_left_, true;
    const std::vector<GapOption> options = options_at_peak();
    for (const Ways& ways : kWays) {
      queue_ = std::priority_queue<GapOption>(options.begin(), options.end());
      choices_left_ = is_large() ? options.size() / kWalks : 0;
      estimates_left_ = kEstimates * (1 + choices_left_);
      if (try_options(ways)) return true;
    }
    choices_left_ = 0;
    return false;
  }

  // A choice after the walk may have closed the gap, or may have moved the peak out of it.
  bool is_at_peak(const Gap& gap) const {
    if (gap.from > peak_.stage || gap.to <= peak_.stage) return false;
    const Schedule::Presence p = schedule_.presence(gap.value, gap.from);
    return p.here && p.next == gap.to && !p.next_makes;
  }

  // Best first. A score that counts only the value's own node is too high at worst, so an option is costed when its turn comes,
  // and tried when it still leads after that.
  bool try_options(const Ways& ways) {
    Recipe recipe;
    int trials = 0;
    while (!queue_.empty() && trials < kGreedyTrials && estimates_left_ > 0) {
      GapOption option = queue_.top();
      queue_.pop();
      if (is_large() && !is_at_peak(option.gap)) continue;
      const bool found = give_up_.find(option.gap, ways, {peak_.stage, peak_.bytes}, &recipe);
      if (!option.exact) {
        --estimates_left_;
        if (&ways == kWays) remember(option.gap, found ? recipe.cost : kImpossible);
      }
      if (!found) continue;
      if (!option.exact) {
        const std::int64_t gain = facts_.bytes[option.gap.value] - recipe.kept_across_limit;
        if (gain <= 0) continue;
        option = {score(option.gap, gain, recipe.cost), option.gap, true};
        if (!queue_.empty() && option < queue_.top()) {
          queue_.push(option);
          continue;
        }
      }
      ++trials;
      if (try_recipe(option.gap, recipe)) return true;
    }
    return false;
  }

  // Notes what it costs to give up this gap in the first of kWays, which is the cheapest one. For some of the next choices the
  // gap is ordered by this cost, because no other way costs less.
  void remember(const Gap& gap, double cost) { remembered_[gap.value] = {gap.from, gap.to, cost, choices_.decisions.size()}; }

  bool try_recipe(const Gap& gap, const Recipe& recipe) {
    const std::size_t before = schedule_.journal().size();
    give_up_.apply(gap, recipe);
    const LiveTree::Peak now = schedule_.peak();
    if (now.bytes < peak_.bytes || (now.bytes == peak_.bytes && now.stages < peak_.stages)) {
      note_decision(gap, before, now.bytes);
      return true;
    }
    schedule_.undo_to(before);
    schedule_.refresh();
    return false;
  }

  void note_decision(const Gap& gap, std::size_t journal_before, std::int64_t live_peak) {
    Decision d;
    d.value = graph_.value_name(gap.value);
    d.bytes = facts_.bytes[gap.value];
    d.span = gap.to - gap.from - 1;
    count_runs(schedule_, journal_before, facts_, &d);
    d.live_peak_bytes = facts_.external_bytes + live_peak;
    d.reason = fmt::format("kept for {} steps across the peak at `{}`, cheap to compute again before `{}`", d.span,
                           graph_.node_text(peak_.stage), graph_.node_text(gap.to));
    choices_.decisions.push_back(std::move(d));
  }

  const Facts& facts_;
  const Graph& graph_;
  const Watch& watch_;
  Schedule schedule_;
  LiveTree::Peak peak_;
  GiveUp give_up_;
  std::vector<Remembered> remembered_;    // by value
  std::priority_queue<GapOption> queue_;  // the options not tried yet
  std::size_t choices_left_ = 0;          // that may still come out of queue_
  std::size_t estimates_left_ = 0;        // for them
  std::int64_t most_clones_ = 0;
  Choices choices_;
};

}  // namespace

namespace {
const Strategy greedy_strategy = register_strategy({
    .name = "greedy",
    .doc = "recomputes, again and again, the value that frees the most bytes for its cost, as far as a budget needs it",
    .choose = [](const Facts& facts, const Watch& watch) { return GreedyChooser(facts, watch).choose(); },
});
}  // namespace

}  // namespace tapedeck
