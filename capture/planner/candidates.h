// What a plan is chosen from: points in a strategy's sequence of choices (*offers*), each in an order of the graph's nodes (a
// *line*). None of them depends on the budget.
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/rematerialize/rematerialize.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck {

// An order of the graph's nodes, and what the strategies choose in it. Offers and facts point into it: it stays where it is.
struct Line {
  std::string order = "recorded";  // Plan::order
  Graph graph;
  std::vector<NodeId> nodes;  // where they stand as recorded; empty: as here
  Facts facts;
  Choices regions, greedy;
  bool has_regions = false;  // there is something to honour
};

// Facts as of options.costs and options.sharing, but for parts. `keep_all_cost` >= 0: that of the same nodes in another order,
// which is the cost in this one, too: no other sum for the order of its terms.
std::unique_ptr<Line> make_line(std::string order, Graph graph, const PlanOptions& options, double keep_all_cost = -1);

// The same order with parts in what joins them (analysis/parts.h), found in so many trials, `first` before all; null if there
// are none. They cannot be made again, so that both lines have something to offer.
std::unique_ptr<Line> with_parts(const Line& apart, int join_trials, const PartChoice& first = {});

// A candidate of any strategy, placed when first asked (candidate_layouts.h).
struct Offer {
  Strategy strategy = Strategy::none;
  const Line* line = nullptr;
  const Choices* choices = nullptr;
  Candidate candidate;
  double cost = 0;
  std::int64_t live_peak = 0;      // a bound on `peak`
  std::int64_t peak = -1;          // -1: not placed yet
  std::size_t number = 0;          // ties go to the first
  bool searched = false;           // for offsets, beyond greedy placement
  std::vector<NodeId> moved = {};  // its nodes, clones included, in another order; empty: in the line's

  bool keeps_all() const { return candidate.journal == 0; }
};

// Lets every strategy choose in the line and appends what it offers; of the greedy one only where the floor is looked for.
// References to offers stay good. The first offer of a line keeps all.
void add_offers(Line* line, bool looks_for_floor, const Watch& watch, std::deque<Offer>* offers);

// The graph that the offer stands for, its clones written out.
ClonedGraph graph_of(const Offer& offer);

// The line's own nodes in the order in which they stand among clones.
Graph without_clones(const Line& line, const ClonedGraph& cloned);

}  // namespace tapedeck
