// Strategies of rematerialization: the form of a strategy, and the registry that knows all of them.
//
// A strategy is one file that ends with one registered entry. It reads the facts of a graph in one order of nodes, and answers
// with a sequence of decisions. Points on the way are candidates for the plan:
//
//     point 0            decision 1: give up %h         point 1             decision 2: give up %t         point 2
//     keeps all                                         12,292 bytes                                       9,004 bytes
//
// A strategy does not look at a budget. The planner takes the first point whose plan fits. The exception is `exact`, which
// proves the cheapest plan for one budget (StrategyEntry::solve).
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/schedules/schedule.h>
#include <tapedeck/capture/planner/solvers/cancel_and_progress.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

// A point in a strategy's sequence of decisions that is worth placing.
struct ChoicePoint {
  std::int32_t decisions = 0;  // the number of decisions made; kNone: decisions_of() reads them off the runs (decisions.h)
  std::size_t journal = 0;     // the number of steps of the journal that lead here
  std::int64_t live_peak = 0;  // arena bytes
  bool for_budget = false;     // looked for only where a budget is asked for, or by real costs: it must not lower the floor
};

struct Choices {
  std::vector<Step> journal;
  std::vector<Decision> decisions;
  std::vector<ChoicePoint> points;  // ascending in steps of the journal; the first point of `choose` keeps all
};

// Why a plan takes the choices of a strategy.
enum class TakenFor : std::uint8_t {
  wishes,  // the user's program marks them as checkpoint regions: the plan takes all of them, with or without a budget
  budget,  // for a budget: of the sequence of choices the plan takes only as many as it needs to fit; without a budget, none
};

// How far a strategy that improves others is to look.
enum class LookFor : std::uint8_t {
  draft,    // a first plan for every budget: nothing is improved, and offsets are not searched
  floor,    // the least peak that it can reach
  budgets,  // and the cheapest plans for every budget above it
};

// What a strategy that improves others knows. It is asked twice in an order, the second time with `others`.
struct KnownChoices {
  std::vector<const Choices*> first;   // those of `greedy`, its own for the floor, and those of the first time
  std::vector<const Choices*> others;  // those of the other strategies; empty: the first time, which does not depend on them
};

// What a strategy that looks at one budget found in one order of nodes.
struct Solved {
  Choices choices;            // its point is a plan that is cheaper than the plans known before; no point: it found none
  double least_extra_us = 0;  // no plan that fits, whose first runs are in this order, costs less beyond keep-all
  std::string proof;          // how that is known
};

// Which plans by `auto` take the choices of a strategy.
enum class InAuto : std::uint8_t {
  always,    // every plan
  finished,  // every plan of a graph of up to kMostNodesForAll nodes, but for drafts
  never,     // only a plan that names the strategy asks it
};

// Of a larger graph, one strategy alone may take seconds in each order of its nodes, and few of its candidates are placed.
inline constexpr std::size_t kMostNodesForAll = 5000;

struct StrategyEntry {
  const char* name = "";
  const char* doc = "";  // one sentence
  Choices (*choose)(const Facts& facts, const Watch& watch) = nullptr;
  // Improves choices that are known in the same order. The floor is looked for at unit costs (facts/unit_costs.h), and what was
  // found there is known when budgets are. Null: the strategy does not improve others. It has one of the three.
  Choices (*improve)(const Facts& facts, const KnownChoices& known, LookFor look_for, const Watch& watch) = nullptr;
  // Looks for a plan with at most `live_bytes` in the arena that costs less than `known_extra_us` beyond keep-all, which the
  // plans of the other strategies cost; infinity: none of them fits. Such a strategy is never in `auto`. Each budget has an
  // answer of its own, so that a larger budget costs no more only where answers are proven.
  Solved (*solve)(const Facts& facts, std::int64_t live_bytes, double known_extra_us, const Watch& watch) = nullptr;
  // Throws UsageError where the strategy cannot plan this graph, or not in this build. Null: it always can.
  void (*check)(const Graph& graph) = nullptr;
  TakenFor taken_for = TakenFor::budget;
  InAuto in_auto = InAuto::always;
  bool reads_costs = true;  // false: `choose` makes the same choices whatever nodes cost, so `auto` asks it once
};

// Returns the value that PlanOptions::strategy takes for this strategy. Entries live for the whole process. Registering happens
// at start-up; reading is thread safe. Throws UsageError if the name is taken.
Strategy register_strategy(StrategyEntry entry);

std::vector<const StrategyEntry*> all_strategies();          // sorted by name
const StrategyEntry* find_strategy(Strategy strategy);       // null for none and automatic
Strategy strategy_named(std::string_view name);              // throws UsageError that lists all names with their sentences
const StrategyEntry& strategy_entry(std::string_view name);  // throws as strategy_named, for none and auto too

// Whether a plan by `auto` takes its choices. `nodes`: of the prepared graph.
bool is_in_auto(const StrategyEntry& strategy, std::size_t nodes, LookFor look_for);

// One line for each value of `--strategy`: the name and one sentence.
std::string list_strategies();

}  // namespace TAPEDECK_API
