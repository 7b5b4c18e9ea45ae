// The strategy `search`: a ladder of bounds between the floor and the peak of keeping all, and for each bound a local search
// for the cheapest plan within it (plan_improver.h). All plans found go into one archive, and the points are the plans of the
// archive:
//
//     bounds      |----|----|----|----|----|----|----|      fixed by the graph; a budget only picks a point
//                 floor                             keep all
//
// The floor is looked for first, with every node at the same cost, so that it does not depend on where microseconds come from.
// Blocks of bounds are searched on several threads, each with an archive of its own, so that the outcome does not depend on the
// number of threads.
#include <tapedeck/capture/planner/rematerialize/plan_improver.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/rematerialize/take_back.h>

#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::int64_t kRungs = 64, kBlocks = 4, kRungsOfBlock = kRungs / kBlocks;
constexpr std::int64_t kMostNodes = 20'000;  // larger graphs are left to `greedy`
// Work is counted by PlanImprover::work(). A hundred of it take about 10 microseconds.
constexpr std::int64_t kFloorWorkOfNode = 6'000, kMostFloorWork = 3'000'000;
constexpr std::int64_t kRungWorkOfNode = 4'000, kMostRungWork = 300'000;
constexpr std::int64_t kMostClosingWork = 4'000'000;

std::int64_t work_of(const Facts& facts, std::int64_t work_of_node, std::int64_t most) {
  return std::min(work_of_node * facts.graph->node_count(), most);
}

// The same graph with every node at the same cost.
Facts at_unit_costs(const Facts& facts) {
  Facts unit = facts;
  std::fill(unit.cost.begin(), unit.cost.end(), 1.0);
  unit.keep_all_cost = static_cast<double>(unit.cost.size());
  return unit;
}

PlanArchive empty_archive(const Facts& facts) { return PlanArchive(1e-9 * (facts.keep_all_cost + 1e-9)); }

class Search {
 public:
  Search(const Facts& facts, const Watch& watch) : facts_(facts), watch_(watch), archive_(empty_archive(facts)) {}

  void add_greedy(const Choices& greedy) {
    Schedule schedule(facts_);
    std::size_t done = 0;
    for (const ChoicePoint& point : greedy.points) {
      make_steps({greedy.journal.begin() + static_cast<std::ptrdiff_t>(done),
                  greedy.journal.begin() + static_cast<std::ptrdiff_t>(point.journal)},
                 &schedule);
      done = point.journal;
      keep_all_ = std::max(keep_all_, point.live_peak);
      Changes changes = changes_of(schedule);
      const double cost = cost_of(changes, facts_);
      archive_.offer(point.live_peak, {cost, std::move(changes)});
    }
  }

  // What it finds is a matter of bytes alone.
  void lower_floor() {
    const Facts unit = at_unit_costs(facts_);
    const Choices greedy = strategy_entry("greedy").choose(unit, {watch_.cancel, {}});
    PlanArchive found = empty_archive(unit);
    PlanImprover improver(unit, 1, &found);
    improver.go_to(changes_after(unit, greedy.journal, greedy.points.back().journal));
    improver.clean_up(improver.live_peak());
    watch_.check();
    improver.lower_peak(work_of(facts_, kFloorWorkOfNode, kMostFloorWork));
    for (const auto& [peak, plan] : found.plans()) archive_.offer(peak, {cost_of(plan.changes, facts_), plan.changes});
    floor_ = archive_.plans().begin()->first;
    floor_plans_ = archive_;
  }

  void search_rungs() {
    std::vector<PlanArchive> found(kBlocks, archive_);
    kernels::parallel_for(kBlocks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t block = first; block < last; ++block) search_block(block, &found[static_cast<std::size_t>(block)]);
    });
    watch_.check();
    for (const PlanArchive& archive : found) archive_.offer_all(archive);
    close_archive();
  }

  // The plans found for the floor come first, as they were: where bounds are searched too, the floor stays the same.
  Choices choices() const {
    Choices choices;
    Changes last;
    add_points(floor_plans_, false, &last, &choices);
    add_points(archive_, true, &last, &choices);
    return choices;
  }

 private:
  bool is_cancelled() const { return watch_.cancel && watch_.cancel->load(); }

  std::int64_t bound(std::int64_t rung) const {
    const std::int64_t above_floor = keep_all_ - floor_;
    return floor_ + above_floor / kRungs * rung + above_floor % kRungs * rung / kRungs;
  }

  // From the highest bound down, so that each plan can begin where the one above it ended. A bound that the plan above keeps
  // too has nothing cheaper to offer.
  void search_block(std::int64_t block, PlanArchive* found) {
    PlanImprover improver(facts_, static_cast<std::uint64_t>(block) + 2, found);
    std::int64_t cheapest_peak = keep_all_;  // within the bound before
    const std::int64_t work = work_of(facts_, kRungWorkOfNode, kMostRungWork);
    for (std::int64_t rung = (block + 1) * kRungsOfBlock - 1; rung >= block * kRungsOfBlock && !is_cancelled(); --rung) {
      const std::int64_t live_bytes = bound(rung);
      if (live_bytes >= cheapest_peak && rung + 1 < (block + 1) * kRungsOfBlock) continue;
      if (improver.lower_to(live_bytes, 0)) improver.clean_up(live_bytes);
      improver.go_to(found->cheapest_within(live_bytes)->changes);
      improver.clean_up(live_bytes);
      improver.improve(live_bytes, work);
      cheapest_peak = found->peak_of_cheapest_within(live_bytes);
    }
  }

  // Whatever can be taken back from a plan of the archive gives a plan that is in the archive too, or is beaten there: so no
  // budget gets a plan with a run that it has room to do without.
  void close_archive() {
    Schedule schedule(facts_);
    std::vector<std::int64_t> waiting;
    for (const auto& [peak, plan] : archive_.plans()) waiting.push_back(peak);
    std::int64_t left = kMostClosingWork;
    while (!waiting.empty() && left > 0) {
      const std::int64_t before = schedule.work();
      const auto plan = archive_.plans().find(waiting.back());
      waiting.pop_back();
      if (plan != archive_.plans().end()) take_back_each(plan->second.changes, &schedule, &waiting);
      left -= schedule.work() - before;
      watch_.check();
    }
  }

  void take_back_each(const Changes& plan, Schedule* schedule, std::vector<std::int64_t>* waiting) {
    make_steps(steps_between(changes_of(*schedule), plan), schedule);
    for (const Step& run : repeated_runs(facts_, *schedule)) {
      const std::size_t before = schedule->journal().size();
      take_back(run, schedule);
      Changes changes = changes_of(*schedule);
      const double cost = cost_of(changes, facts_);
      const std::int64_t peak = schedule->peak().bytes;
      if (archive_.offer(peak, {cost, std::move(changes)})) waiting->push_back(peak);
      schedule->undo_to(before);
      schedule->refresh();
    }
  }

  bool is_known_for_floor(std::int64_t peak, const ArchivedPlan& plan) const {
    const auto known = floor_plans_.plans().find(peak);
    return known != floor_plans_.plans().end() && known->second.changes == plan.changes;
  }

  void add_points(const PlanArchive& archive, bool for_budget, Changes* last, Choices* choices) const {
    for (auto plan = archive.plans().rbegin(); plan != archive.plans().rend(); ++plan) {
      if (for_budget && is_known_for_floor(plan->first, plan->second)) continue;
      const std::vector<Step> steps = steps_between(*last, plan->second.changes);
      choices->journal.insert(choices->journal.end(), steps.begin(), steps.end());
      *last = plan->second.changes;
      choices->points.push_back({kNone, choices->journal.size(), plan->first, for_budget});
    }
  }

  const Facts& facts_;
  const Watch& watch_;
  PlanArchive archive_;
  PlanArchive floor_plans_{0};  // those found before the bounds were searched
  std::int64_t keep_all_ = 0, floor_ = 0;
};

Choices improve(const Facts& facts, const Choices& greedy, LookFor look_for, const Watch& watch) {
  if (facts.graph->node_count() > kMostNodes || greedy.points.size() < 2) return greedy;
  Search search(facts, watch);
  search.add_greedy(greedy);
  search.lower_floor();
  if (look_for == LookFor::budgets) search.search_rungs();
  return search.choices();
}

const Strategy registered = register_strategy({
    .name = "search",
    .doc = "improves the choices of greedy by a local search for the cheapest plan of every budget",
    .improve = improve,
});

}  // namespace

}  // namespace tapedeck
