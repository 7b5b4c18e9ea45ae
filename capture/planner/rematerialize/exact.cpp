// The strategy `exact`: the cheapest plan for one budget, and the proof that no other is cheaper, by an integer program
// (recompute_program.h). It is the judge of the other strategies on small graphs.
//
//     cheapest plan that the others know          1,000 us more than keep-all
//     the bound of cost_bound.h                     940 us          equal: proven without a program
//     program: is there a plan of 995 us or less?   no: the plan is proven;  yes: here it is;  the search ended: a gap is left
//
// The relaxation of the program, in which a node may run by half, answers first: it takes a fraction of a second, and often
// costs more than the known plan.
// A node that costs more than the cheapest plan known does not run again, so a good plan makes the program small.
#include <tapedeck/capture/planner/rematerialize/cost_bound.h>
#include <tapedeck/capture/planner/rematerialize/recompute_program.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tapedeck {

namespace {

constexpr std::size_t kMostExactNodes = 128;
constexpr std::int64_t kWork = 20'000'000;  // nodes of the tree x rows of the program
constexpr double kSame = 1e-6;              // of the cost of keep-all: plans that differ by less are as good

void check_size(const Graph& graph) {
  require_program_solver();
  if (graph.nodes.size() > kMostExactNodes)
    throw UsageError(fmt::format("strategy exact plans graphs of at most {} nodes, and this one has {}; `auto` plans any graph",
                                 kMostExactNodes, graph.nodes.size()));
}

// The largest step of costs, in whole nanoseconds; 0 if costs are no whole nanoseconds.
double step_of_costs(const Facts& facts) {
  constexpr double kSteps = 1000;
  std::int64_t common = 0;
  for (const double cost : facts.cost) {
    const double steps = std::round(cost * kSteps);
    if (std::abs(cost * kSteps - steps) > 1e-6 || steps > 1e12) return 0;
    common = std::gcd(common, static_cast<std::int64_t>(steps));
  }
  return static_cast<double>(common) / kSteps;
}

class Exact {
 public:
  Exact(const Facts& facts, std::int64_t live_bytes, double known, const Watch& watch)
      : facts_(facts), live_bytes_(live_bytes), known_(known), watch_(watch), step_(step_of_costs(facts)) {}

  Solved solve() {
    check_size(*facts_.graph);
    const CostBound bound = CostBounds(facts_, watch_).at(live_bytes_ + facts_.external_bytes);
    if (!bound.may_fit || known_ <= bound.extra_us * (1 + 1e-12)) return {{}, bound.extra_us, ""};
    const RecomputeProgram program(facts_, live_bytes_, worth(), cost_unit());
    const double relaxed = least_of(relaxed_cost(program.program(), watch_));
    if (relaxed == kNoLimit || relaxed > worth() + 1e-3 * margin())
      return {{}, std::max(bound.extra_us, nothing_better()), how("relaxation of the integer program", nothing_better())};
    const ProgramAnswer answer = tapedeck::solve(program.program(), limits(program.program()), watch_);
    const char* from = answer.is_proven ? "integer program" : "integer program, whose search ended early,";
    const double least = std::min(nothing_better(), least_of(answer.least_cost));
    Solved solved = {{}, std::max({bound.extra_us, relaxed, least}), how(from, least)};
    if (!answer.columns.empty()) add_point(program.changes(answer.columns), &solved.choices);
    return solved;
  }

 private:
  double margin() const { return step_ > 0 ? step_ : kSame * facts_.keep_all_cost; }
  double cost_unit() const { return step_ > 0 ? step_ : std::max(facts_.keep_all_cost * 1e-4, 1e-9); }
  double worth() const { return known_ - margin(); }  // a plan that costs more than this is no better than the known plan

  ProgramLimits limits(const IntegerProgram& program) const {
    ProgramLimits limits;
    limits.worth = (worth() + 1e-3 * margin()) / cost_unit();
    limits.least_step = step_ > 0 ? 1 : 0;
    limits.nodes = std::max<std::int64_t>(1, kWork / std::max<std::int64_t>(1, static_cast<std::int64_t>(program.rows.size())));
    return limits;
  }

  // The bound that is proven when the program has no answer of at most worth(): with costs in whole steps the known plan is the
  // cheapest, otherwise no plan costs less than worth().
  double nothing_better() const { return step_ > 0 ? known_ : worth(); }

  // The microseconds of a bound on the cost of the program. Costs of plans are whole numbers of steps.
  double least_of(double cost) const {
    if (cost == kNoLimit) return kNoLimit;
    return step_ > 0 ? std::ceil(cost - 1e-4) * step_ : cost * cost_unit() * (1 - 1e-9);
  }

  std::string how(const char* from, double least) const {
    return fmt::format("{}{} for the recorded order of first runs", least == kNoLimit ? "no plan fits: " : "", from);
  }

  // The schedule checks the answer of the solver again, and the user's wishes may forbid values that the answer keeps.
  void add_point(const Changes& changes, Choices* choices) const {
    Schedule schedule(facts_);
    make_steps(changes, &schedule);
    const bool keeps_what_it_may = std::all_of(schedule.gaps().begin(), schedule.gaps().end(), [&](const Gap& gap) {
      return gap.value == kNone || facts_.may_keep(gap.value, gap.from, gap.to);
    });
    if (!keeps_what_it_may || schedule.peak().bytes > live_bytes_ || cost_of(changes, facts_) > known_) return;
    choices->journal = changes;
    choices->points.push_back({kNone, changes.size(), schedule.peak().bytes, true});
  }

  const Facts& facts_;
  const std::int64_t live_bytes_;
  const double known_;
  const Watch& watch_;
  const double step_;
};

Solved solve_exactly(const Facts& facts, std::int64_t live_bytes, double known_extra_us, const Watch& watch) {
  return Exact(facts, live_bytes, known_extra_us, watch).solve();
}

const Strategy exact_strategy = register_strategy({
    .name = "exact",
    .doc = "proves the cheapest plan for a budget, for graphs of up to 128 nodes (needs CBC)",
    .solve = solve_exactly,
    .check = check_size,
    .in_auto = InAuto::never,
});

}  // namespace

}  // namespace tapedeck
