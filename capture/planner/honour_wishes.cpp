#include <tapedeck/capture/planner/honour_wishes.h>

#include <tapedeck/capture/analysis/phases.h>
#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/engine/ir/error.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

namespace {

// By node: it runs in a phase after forward. Empty if the graph has no backward: copies of new states make no phase.
std::vector<char> nodes_after_forward(const Graph& graph) {
  std::vector<char> later;
  const auto is_backward = [](const Node& n) { return n.origin.phase == Phase::backward; };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_backward)) return later;
  for (const Phase phase : run_phases(graph)) later.push_back(phase != Phase::forward);
  return later;
}

}  // namespace

void note_wishes(const std::vector<Wish>& wishes, Facts* facts) {
  if (wishes.empty()) return;
  const Graph& graph = *facts->graph;
  const WishedValues wished = find_wished(graph, wishes);
  facts->kept_node.assign(graph.nodes.size(), 0);
  std::vector<char> given_up(graph.values.size(), 0);
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const ValueId viewed = facts->windows[v].viewed;
    if (wished.wish_of[v] == kNone || graph.values[viewed].node == kNone) continue;
    if (wishes[wished.wish_of[v]].kind == WishKind::keep)
      facts->kept_node[graph.values[viewed].node] = 1;
    else
      given_up[viewed] = 1;
  }
  for (ValueId v = 0; v < graph.value_count(); ++v)
    given_up[v] = given_up[v] && facts->in_arena(v) && facts->can_repeat(graph.values[v].node);
  if (std::find(given_up.begin(), given_up.end(), 1) == given_up.end()) return;
  facts->given_up = std::move(given_up);
  facts->runs_later = nodes_after_forward(graph);
}

void check_wishes_name_something(const std::vector<Wish>& wishes, const Graph& captured, const Graph& prepared) {
  if (wishes.empty()) return;
  const WishedValues here = find_wished(prepared, wishes), before = find_wished(captured, wishes);
  for (std::size_t w = 0; w < wishes.size(); ++w)
    if (here.named[w] == 0 && before.named[w] == 0) throw UsageError(describe_unmatched(prepared, wishes[w]));
}

}  // namespace tapedeck
