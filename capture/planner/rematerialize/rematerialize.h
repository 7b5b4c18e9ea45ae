// Strategies of rematerialization, one file each, and the graph that a schedule with clones stands for.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/planner/rematerialize/schedule.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tapedeck {

// By stage, ascending: the nodes that run in it (schedule.h).
using RunLists = std::vector<std::vector<NodeId>>;

// A graph with clones in place, and the node of the original graph that each of its nodes is or repeats.
struct ClonedGraph {
  Graph graph;
  std::vector<NodeId> source;
  std::vector<char> late = {};  // by node: the first run of its source, and later than where the source stands; empty: none is
};

// Writes the runs out: the first of a node's is the node itself, under its name, the others are clones of it. Windows are
// re-made where their root was made again. Who runs later than recorded, clones too, gets an order edge to the node before its
// stage, so that it runs just in time and not as soon as its operands allow.
ClonedGraph clone_graph(const Facts& facts, const RunLists& runs);

// A point in a strategy's sequence of choices that is worth placing.
struct Candidate {
  std::int32_t decisions = 0;  // how many choices were made
  std::size_t journal = 0;     // steps of the journal that lead here
  std::int64_t live_peak = 0;  // arena bytes
};

struct Choices {
  std::vector<Step> journal;
  std::vector<Decision> decisions;
  std::vector<Candidate> candidates;  // ascending in decisions; the first is "keep all"
};

struct Watch {
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(double)> progress;
  void check() const;  // throws Cancelled
  void report(double done) const;
};

// Honours the user's checkpoint regions: what a region makes and backward reads is made again, once per region, just before its
// first backward reader. One decision per region.
Choices choose_regions(const Facts& facts);

// Recomputes whatever is kept across the peak and gives the most bytes x span for its cost, until nothing helps. Never looks at
// a budget.
Choices choose_greedily(const Facts& facts, const Watch& watch);

// Applies steps first..last-1 of a journal to the lists.
void apply_steps(const std::vector<Step>& journal, std::size_t first, std::size_t last, RunLists* runs);

// What runs where before any step: every node in its own stage.
RunLists runs_as_recorded(const Facts& facts);

// What runs where after the first `steps` steps of a journal.
RunLists runs_after(const Facts& facts, const std::vector<Step>& journal, std::size_t steps);

}  // namespace tapedeck
