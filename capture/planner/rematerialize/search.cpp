// The strategy `search`: a ladder of bounds between the floor and the peak of keeping all, and for each bound a local search
// for the cheapest plan within it (plan_improver.h). All plans found go into one archive, and the points are the plans of the
// archive:
//
//     bounds      |----|----|----|----|----|----|----|      fixed by the graph; a budget only picks a point
//                 floor                             keep all
//
// The floor is looked for first, in a call with every node at the same cost, so that it does not depend on where microseconds
// come from. The plans found there are among those that the search for budgets begins with.
// Blocks of bounds are searched on several threads, each with an archive of its own, so that the outcome does not depend on the
// number of threads.
#include <tapedeck/capture/planner/rematerialize/cost_bound.h>
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
constexpr std::int64_t kMostProven = 80;     // nodes of a graph in which a bound is left once its plan is proven the cheapest
// Work is counted by PlanImprover::work(). A hundred of it take about 10 microseconds.
constexpr std::int64_t kFloorWorkOfNode = 6'000, kMostFloorWork = 3'000'000;
constexpr std::int64_t kRungWorkOfNode = 4'000, kMostRungWork = 300'000;
constexpr std::int64_t kMostClosingWork = 4'000'000;

std::int64_t work_of(const Facts& facts, std::int64_t work_of_node, std::int64_t most) {
  return std::min(work_of_node * facts.graph->node_count(), most);
}

PlanArchive empty_archive(const Facts& facts) { return PlanArchive(1e-9 * (facts.keep_all_cost + 1e-9)); }

class Search {
 public:
  Search(const Facts& facts, const Watch& watch) : facts_(facts), watch_(watch), archive_(empty_archive(facts)) {}

  void add_known(const Choices& known) {
    Schedule schedule(facts_);
    std::size_t done = 0;
    for (const ChoicePoint& point : known.points) {
      make_steps({known.journal.begin() + static_cast<std::ptrdiff_t>(done),
                  known.journal.begin() + static_cast<std::ptrdiff_t>(point.journal)},
                 &schedule);
      done = point.journal;
      keep_all_ = std::max(keep_all_, point.live_peak);
      Changes changes = changes_of(schedule);
      const double cost = cost_of(changes, facts_);
      archive_.offer(point.live_peak, {cost, std::move(changes)});
    }
  }

  // Begins where the choices of greedy end.
  void lower_floor(const Choices& greedy) {
    PlanImprover improver(facts_, 1, &archive_);
    improver.go_to(changes_after(facts_, greedy.journal, greedy.points.back().journal));
    improver.clean_up(improver.live_peak());
    watch_.check();
    improver.lower_peak(work_of(facts_, kFloorWorkOfNode, kMostFloorWork));
  }

  void search_rungs() {
    floor_ = archive_.plans().begin()->first;
    std::vector<PlanArchive> found(kBlocks, archive_);
    kernels::parallel_for(kBlocks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t block = first; block < last; ++block) search_block(block, &found[static_cast<std::size_t>(block)]);
    });
    watch_.check();
    for (const PlanArchive& archive : found) archive_.offer_all(archive);
    close_archive();
  }

  Choices choices(LookFor look_for) const {
    Choices choices;
    Changes last;
    for (auto plan = archive_.plans().rbegin(); plan != archive_.plans().rend(); ++plan) {
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

  const Facts& facts_;
  const Watch& watch_;
  PlanArchive archive_;
  std::int64_t keep_all_ = 0, floor_ = 0;
};

Choices improve(const Facts& facts, const std::vector<const Choices*>& known, LookFor look_for, const Watch& watch) {
  const Choices& greedy = *known.front();
  if (facts.graph->node_count() > kMostNodes || greedy.points.size() < 2) return greedy;
  Search search(facts, watch);
  for (const Choices* choices : known) search.add_known(*choices);
  if (look_for == LookFor::floor)
    search.lower_floor(greedy);
  else
    search.search_rungs();
  return search.choices(look_for);
}

const Strategy registered = register_strategy({
    .name = "search",
    .doc = "improves the choices of greedy by a local search for the cheapest plan of every budget",
    .improve = improve,
});

}  // namespace

}  // namespace tapedeck
