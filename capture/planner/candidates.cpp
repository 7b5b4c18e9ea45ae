#include <tapedeck/capture/planner/candidates.h>

#include <tapedeck/capture/planner/joins/join_choice.h>
#include <tapedeck/capture/planner/order/find_order.h>
#include <tapedeck/capture/planner/pipeline.h>
#include <tapedeck/capture/planner/region_plans.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace tapedeck {

std::unique_ptr<Line> make_line(std::string order, Graph graph, const PlanOptions& options, double keep_all_cost) {
  auto line = std::make_unique<Line>();
  line->order = std::move(order);
  line->graph = std::move(graph);
  line->facts =
      collect_facts(line->graph, node_workspaces(line->graph), options.costs.get(), options.sharing & ~Sharing::parts);
  if (keep_all_cost >= 0) line->facts.keep_all_cost = keep_all_cost;
  return line;
}

// Summed by size, so that equal copies saved are equal costs in every order.
static double saved_by_parts(const Facts& apart, const Facts& joined) {
  std::vector<double> saved;
  for (std::size_t n = 0; n < apart.cost.size(); ++n)
    if (apart.cost[n] != joined.cost[n]) saved.push_back(apart.cost[n] - joined.cost[n]);
  std::sort(saved.begin(), saved.end());
  return std::accumulate(saved.begin(), saved.end(), 0.0);
}

std::unique_ptr<Line> with_parts(const Line& apart, int join_trials, const PartChoice& first) {
  if (!may_share_parts(apart.facts)) return nullptr;
  auto line = std::make_unique<Line>();
  line->facts = apart.facts;
  share_parts(Readers(apart.graph), &line->facts, join_trials, first);
  if (!line->facts.has_parts) return nullptr;
  line->order = apart.order;
  line->graph = apart.graph;
  line->nodes = apart.nodes;
  line->facts.graph = &line->graph;
  line->facts.keep_all_cost = apart.facts.keep_all_cost - saved_by_parts(apart.facts, line->facts);
  return line;
}

// Of the candidates first..last-1.
static void append_offers(Strategy strategy, const Line& line, const Choices& choices, std::size_t first, std::size_t last,
                          std::deque<Offer>* offers) {
  RunLists runs = runs_as_recorded(line.facts);
  std::size_t done = 0;
  for (std::size_t i = first; i < last; ++i) {
    const Candidate& candidate = choices.candidates[i];
    apply_steps(choices.journal, done, candidate.journal, &runs);
    done = candidate.journal;
    const double cost = schedule_cost(line.facts, runs);
    offers->push_back(
        {strategy, &line, &choices, candidate, cost, line.facts.external_bytes + candidate.live_peak, -1, offers->size()});
  }
}

void add_offers(Line* line, bool looks_for_floor, const Watch& watch, std::deque<Offer>* offers) {
  line->regions = choose_regions(line->facts);
  line->has_regions = line->regions.candidates.back().journal > 0;
  if (looks_for_floor) {
    line->greedy = choose_greedily(line->facts, watch);
    append_offers(Strategy::greedy, *line, line->greedy, 0, line->greedy.candidates.size(), offers);
  } else {
    append_offers(Strategy::greedy, *line, line->regions, 0, 1, offers);  // keep all is the first of both
  }
  if (line->has_regions) append_offers(Strategy::regions, *line, line->regions, 1, line->regions.candidates.size(), offers);
}

ClonedGraph graph_of(const Offer& offer) {
  ClonedGraph cloned =
      clone_graph(offer.line->facts, runs_after(offer.line->facts, offer.choices->journal, offer.candidate.journal));
  return offer.moved.empty() ? cloned : reorder(cloned, offer.moved);
}

Graph without_clones(const Line& line, const ClonedGraph& cloned) {
  std::vector<char> seen(line.graph.nodes.size(), 0);
  std::vector<NodeId> nodes;
  for (NodeId source : cloned.source)
    if (!std::exchange(seen[source], 1)) nodes.push_back(source);
  return reorder(line.graph, nodes);
}

}  // namespace tapedeck
