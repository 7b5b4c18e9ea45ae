// For each candidate that no other beats, tries the plans that lack one of its repeated runs. If no candidate beats such a
// plan, the plan becomes a candidate and is tried in turn, until no new candidate is found. Only plans that are not beaten by
// their live bytes and cost are placed. If the first offsets leave such a plan beaten, better offsets are searched, as they are
// for the plan that a budget takes: so a plan is not passed over for want of a search.
#include <tapedeck/capture/planner/close_candidates.h>

#include <tapedeck/capture/planner/planning.h>
#include <tapedeck/capture/planner/schedules/changes.h>
#include <tapedeck/capture/planner/schedules/take_back.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::size_t kMostClosedNodes = 80;   // of a graph whose candidates are closed: placing larger ones takes too long
constexpr std::int64_t kMostPlaced = 100'000;  // values that are given offsets
constexpr int kMostSearchedPlans = 64;         // plans whose offsets are searched

// An order, the schedule on which runs are taken back, and the plans that were found in this order.
struct Tried {
  const Order* order = nullptr;
  Schedule schedule;
  StrategyChoices* found = nullptr;
  Changes last;  // the last of `found`
};

class Closing {
 public:
  Closing(const Limits& limits, Planning* p)
      : floor_(limits.floor), p_(*p), tolerance_(1e-9 * (p->recorded().facts.keep_all_cost + 1e-9)) {}

  void close() {
    std::vector<Candidate*> known;
    for (Candidate& c : p_.candidates)
      if (!c.strategy || p_.is_in_auto(*c.strategy)) known.push_back(&c);
    std::stable_sort(known.begin(), known.end(), [](const Candidate* a, const Candidate* b) { return a->cost < b->cost; });
    for (Candidate* c : known) offer(c);
    while (!waiting_.empty() && may_go_on()) {
      Candidate* c = waiting_.back();
      waiting_.pop_back();
      if (is_unbeaten(*c)) take_back_each(*c);
    }
  }

 private:
  bool may_go_on() const { return placed_ < kMostPlaced; }

  // Whether some candidate has at most this peak and at most this cost.
  bool is_beaten(std::int64_t peak, double cost) const {
    const auto above = unbeaten_.upper_bound(peak);
    return above != unbeaten_.begin() && std::prev(above)->second->cost < cost + tolerance_;
  }

  bool is_unbeaten(const Candidate& c) const {
    const auto at = unbeaten_.find(c.peak);
    return at != unbeaten_.end() && at->second == &c;
  }

  // A plan below the floor is never taken (choose_candidate.cpp).
  void offer(Candidate* c) {
    if (is_beaten(c->live_peak, c->cost) || !may_go_on()) return;
    if (c->peak < 0) placed_ += static_cast<std::int64_t>(c->order->graph.values.size());
    const std::int64_t peak = peak_of(c);
    if (peak < floor_ || is_beaten(peak, c->cost)) return;
    const auto first = unbeaten_.lower_bound(peak);
    auto last = first;
    while (last != unbeaten_.end() && last->second->cost >= c->cost) ++last;
    unbeaten_.erase(first, last);
    unbeaten_.emplace(peak, c);
    waiting_.push_back(c);
  }

  std::int64_t peak_of(Candidate* c) {
    const std::int64_t peak = p_.layouts.peak(*c);
    if (peak == c->live_peak || !is_beaten(peak, c->cost) || searched_ == kMostSearchedPlans) return peak;
    ++searched_;
    return p_.layouts.searched_peak(*c);
  }

  // Of a candidate whose clones were moved among the nodes, the runs are tried where its order has them.
  void take_back_each(const Candidate& c) {
    if (c.keeps_all()) return;
    Tried& tried = tried_in(*c.order);
    const Facts& facts = c.order->facts;
    Schedule& schedule = tried.schedule;
    make_steps(steps_between(changes_of(schedule), changes_after(facts, c.choices->journal, c.point.journal)), &schedule);
    for (const Step& run : repeated_runs(facts, schedule)) {
      p_.watch.check();
      const std::size_t before = schedule.journal().size();
      take_back(run, &schedule);
      add(changes_of(schedule), schedule.peak().bytes, &tried);
      schedule.undo_to(before);
      schedule.refresh();
    }
  }

  void add(const Changes& changes, std::int64_t live_bytes, Tried* tried) {
    const Facts& facts = tried->order->facts;
    const std::int64_t live_peak = facts.external_bytes + live_bytes;
    if (is_beaten(live_peak, facts.keep_all_cost + cost_of(changes, facts)) || !may_go_on()) return;
    Choices& choices = tried->found->choices;
    const std::vector<Step> steps = steps_between(tried->last, changes);
    choices.journal.insert(choices.journal.end(), steps.begin(), steps.end());
    tried->last = changes;
    const ChoicePoint point{kNone, choices.journal.size(), live_bytes, true};
    choices.points.push_back(point);
    const double cost = schedule_cost(facts, runs_after(facts, choices.journal, point.journal));
    p_.candidates.push_back({tried->found->strategy, tried->order, &choices, point, cost, live_peak, -1, p_.candidates.size()});
    offer(&p_.candidates.back());
  }

  Tried& tried_in(const Order& order) {
    std::unique_ptr<Tried>& tried = tried_[&order];
    if (tried) return *tried;
    for (const std::unique_ptr<Order>& own : p_.orders) {
      if (own.get() != &order) continue;
      own->improved.push_back({&strategy_entry("search"), {}});
      tried = std::make_unique<Tried>(Tried{own.get(), Schedule(own->facts), &own->improved.back(), {}});
    }
    return *tried;
  }

  const std::int64_t floor_;
  Planning& p_;
  const double tolerance_;
  std::map<std::int64_t, Candidate*> unbeaten_;           // by placed peak; costs descend
  std::vector<Candidate*> waiting_;                       // those whose runs were not looked at yet
  std::map<const Order*, std::unique_ptr<Tried>> tried_;  // used for lookups alone
  std::int64_t placed_ = 0;
  int searched_ = 0;
};

}  // namespace

bool closes_candidates(const Planning& p) {
  return p.look_for == LookFor::budgets && p.recorded().graph.nodes.size() <= kMostClosedNodes;
}

void close_candidates(const Limits& limits, Planning* p) {
  if (closes_candidates(*p)) Closing(limits, p).close();
}

}  // namespace tapedeck
