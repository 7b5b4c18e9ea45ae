// The strategy `search`: a ladder of bounds between the floor and the peak of keeping all, and for each bound a local search
// for the cheapest plan within it (plan_improver.h). All plans found go into one archive, and the points are the plans of the
// archive:
//
//     bounds      |----|----|----|----|----|----|----|      fixed by the graph; a budget only picks a point
//                 floor                             keep all
//
// The search begins with the choices of greedy. The plans of the other strategies are offered to the archive at the end, and
// where one of them is cheaper than all others within a bound, the local search goes on from there.
//
// The floor is looked for first, in a call with every node at the same cost, so that it does not depend on where microseconds
// come from. The plans found there are among those that the search for budgets begins with.
// Blocks of bounds are searched on several threads, each with an archive of its own, so that the outcome does not depend on the
// number of threads.
#include <tapedeck/capture/planner/rematerialize/cost_bound.h>
#include <tapedeck/capture/planner/rematerialize/plan_improver.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/schedules/take_back.h>

#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::int64_t kRungs = 64, kBlocks = 4, kRungsOfBlock = kRungs / kBlocks;
constexpr std::int64_t kMostNodes = 20'000;  // larger graphs are left to `greedy`
constexpr std::int64_t kMostProven = 80;     // nodes of a graph in which a bound is left once its plan is proven the cheapest
// Work is counted by PlanImprover::work(). A hundred of it take about 10 microseconds.
constexpr std::int64_t kFloorWorkOfNode = 6'000, kMostFloorWork = 3'000'000, kFloorWalks = 4;
constexpr std::int64_t kRungWorkOfNode = 4'000, kMostRungWork = 200'000;
constexpr std::int64_t kShareOfOthers = 4;  // plans of other strategies get this part of the work of a bound
constexpr std::int64_t kMostClosingWork = 2'000'000;

std::int64_t work_of(const Facts& facts, std::int64_t work_of_node, std::int64_t most) {
  return std::min(work_of_node * facts.graph->node_count(), most);
}

// Whether the archive has a plan of this peak and cost.
bool holds(const PlanArchive& archive, const std::pair<const std::int64_t, ArchivedPlan>& plan) {
  const auto found = archive.plans().find(plan.first);
  return found != archive.plans().end() && found->second.cost == plan.second.cost;
}

PlanArchive empty_archive(const Facts& facts) { return PlanArchive(1e-9 * (facts.keep_all_cost + 1e-9)); }

class Search {
 public:
  Search(const Facts& facts, const Watch& watch)
      : facts_(facts), watch_(watch), archive_(empty_archive(facts)), before_(archive_) {}

  // Returns whether the archive took in any of the plans.
  bool add_known(const Choices& known) {
    Schedule schedule(facts_);
    std::size_t done = 0;
    bool any = false;
    for (const ChoicePoint& point : known.points) {
      make_steps({known.journal.begin() + static_cast<std::ptrdiff_t>(done),
                  known.journal.begin() + static_cast<std::ptrdiff_t>(point.journal)},
                 &schedule);
      done = point.journal;
      keep_all_ = std::max(keep_all_, point.live_peak);
      Changes changes = changes_of(schedule);
      const double cost = cost_of(changes, facts_);
      any |= archive_.offer(point.live_peak, {cost, std::move(changes)});
    }
    return any;
  }

  // Begins with the lowest plan that is known, several times: how low one walk comes is a matter of luck.
  void lower_floor() {
    const Changes lowest = archive_.plans().begin()->second.changes;
    std::int64_t left = kFloorWalks * work_of(facts_, kFloorWorkOfNode, kMostFloorWork / kFloorWalks);
    for (std::uint64_t seed = 1; seed <= kFloorWalks && left > 0; ++seed) {
      PlanImprover improver(facts_, seed, &archive_);
      improver.go_to(lowest);
      improver.clean_up(improver.live_peak());
      watch_.check();
      improver.lower_peak(left);
      left -= improver.work();
    }
  }

  void search_rungs() {
    floor_ = archive_.plans().begin()->first;
    std::vector<PlanArchive> found(kBlocks, archive_);
    kernels::parallel_for(kBlocks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t block = first; block < last; ++block) search_block(block, &found[static_cast<std::size_t>(block)]);
    });
    watch_.check();
    for (const PlanArchive& archive : found) archive_.offer_all(archive);
    close_archive(kMostClosingWork);
  }

  // The same as lower_floor(), where the plans of other strategies are lower than all that was found before.
  void lower_floor_of(const std::vector<const Choices*>& others) {
    before_ = archive_;
    for (const Choices* choices : others) add_known(*choices);
    if (archive_.plans().begin()->first < before_.plans().begin()->first) lower_floor();
  }

  // For each bound within which the plans of other strategies are cheaper than what was found before.
  void improve_others(const std::vector<const Choices*>& others) {
    before_ = archive_;
    bool any = false;
    for (const Choices* choices : others) any |= add_known(*choices);
    if (!any) return;
    floor_ = archive_.plans().begin()->first;
    std::vector<PlanArchive> found(kBlocks, archive_);
    kernels::parallel_for(kBlocks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t block = first; block < last; ++block)
        search_block_of_others(block, &found[static_cast<std::size_t>(block)]);
    });
    watch_.check();
    for (const PlanArchive& archive : found) archive_.offer_all(archive);
    close_archive(kMostClosingWork / kShareOfOthers);
  }

  // The plans of the archive, but for those that were known before other strategies were asked.
  Choices choices(LookFor look_for) const {
    Choices choices;
    Changes last;
    for (auto plan = archive_.plans().rbegin(); plan != archive_.plans().rend(); ++plan) {
      if (holds(before_, *plan)) continue;
      const std::vector<Step> steps = steps_between(last, plan->second.changes);
      choices.journal.insert(choices.journal.end(), steps.begin(), steps.end());
      last = plan->second.changes;
      choices.points.push_back({kNone, choices.journal.size(), plan->first, look_for == LookFor::budgets});
    }
    return choices;
  }

 private:
  bool is_cancelled() const { return watch_.cancel && watch_.cancel->load(); }

  std::int64_t bound(std::int64_t rung) const {
    const std::int64_t above_floor = keep_all_ - floor_;
    return floor_ + above_floor / kRungs * rung + above_floor % kRungs * rung / kRungs;
  }

  // What every plan within the bound costs at least. In larger graphs the proof is seldom reached and takes longer than it
  // saves.
  double least_cost(std::int64_t live_bytes, CostBounds* cost_bounds) const {
    if (facts_.graph->node_count() > kMostProven) return 0;
    return cost_bounds->at(facts_.external_bytes + live_bytes).extra_us;
  }

  // From the highest bound down, so that each plan can begin where the one above it ended. A bound that the plan above keeps
  // too has nothing cheaper to offer.
  void search_block(std::int64_t block, PlanArchive* found) {
    PlanImprover improver(facts_, static_cast<std::uint64_t>(block) + 2, found);
    CostBounds cost_bounds(facts_, watch_);
    std::int64_t cheapest_peak = keep_all_;  // within the bound before
    const std::int64_t work = work_of(facts_, kRungWorkOfNode, kMostRungWork);
    for (std::int64_t rung = (block + 1) * kRungsOfBlock - 1; rung >= block * kRungsOfBlock && !is_cancelled(); --rung) {
      const std::int64_t live_bytes = bound(rung);
      if (live_bytes >= cheapest_peak && rung + 1 < (block + 1) * kRungsOfBlock) continue;
      if (improver.lower_to(live_bytes, 0)) improver.clean_up(live_bytes);
      improver.go_to(found->cheapest_within(live_bytes)->changes);
      improver.clean_up(live_bytes);
      improver.improve(live_bytes, work, least_cost(live_bytes, &cost_bounds));
      cheapest_peak = found->peak_of_cheapest_within(live_bytes);
    }
  }

  void search_block_of_others(std::int64_t block, PlanArchive* found) {
    PlanImprover improver(facts_, static_cast<std::uint64_t>(kBlocks + block) + 2, found);
    CostBounds cost_bounds(facts_, watch_);
    const std::int64_t work = work_of(facts_, kRungWorkOfNode, kMostRungWork) / kShareOfOthers;
    for (std::int64_t rung = (block + 1) * kRungsOfBlock - 1; rung >= block * kRungsOfBlock && !is_cancelled(); --rung) {
      const std::int64_t live_bytes = bound(rung);
      const ArchivedPlan *known = before_.cheapest_within(live_bytes), *cheapest = found->cheapest_within(live_bytes);
      if (known && known->cost <= cheapest->cost) continue;
      improver.go_to(cheapest->changes);
      improver.clean_up(live_bytes);
      improver.improve(live_bytes, work, least_cost(live_bytes, &cost_bounds));
    }
  }

  // Whatever can be taken back from a plan of the archive gives a plan that is in the archive too, or is beaten there: so no
  // budget gets a plan with a run that it has room to do without. This is known of the plans before.
  void close_archive(std::int64_t most_work) {
    Schedule schedule(facts_);
    std::vector<std::int64_t> waiting;
    for (const auto& plan : archive_.plans())
      if (!holds(before_, plan)) waiting.push_back(plan.first);
    std::int64_t left = most_work;
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
    const double plan_cost = cost_of(plan, facts_);
    for (const Step& run : repeated_runs(facts_, *schedule)) {
      const Schedule::Without least = schedule->least_without(run.stage, run.node);
      if (least.bytes > 0 && archive_.is_beaten(least.bytes, plan_cost - least.saved_us)) continue;
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

  const Facts& facts_;
  const Watch& watch_;
  PlanArchive archive_;
  PlanArchive before_;  // other strategies were asked; empty: they were not
  std::int64_t keep_all_ = 0, floor_ = 0;
};

Choices improve(const Facts& facts, const KnownChoices& known, LookFor look_for, const Watch& watch) {
  const Choices& greedy = *known.first.front();
  const bool for_others = !known.others.empty();
  if (facts.graph->node_count() > kMostNodes) return for_others ? Choices{} : greedy;
  if (!for_others && greedy.points.size() < 2) return greedy;
  Search search(facts, watch);
  for (const Choices* choices : known.first) search.add_known(*choices);
  if (look_for == LookFor::floor)
    for_others ? search.lower_floor_of(known.others) : search.lower_floor();
  else
    for_others ? search.improve_others(known.others) : search.search_rungs();
  return search.choices(look_for);
}

const Strategy search_strategy = register_strategy({
    .name = "search",
    .doc = "improves the choices of the other strategies by a local search for the cheapest plan of every budget",
    .improve = improve,
});

}  // namespace

}  // namespace tapedeck
