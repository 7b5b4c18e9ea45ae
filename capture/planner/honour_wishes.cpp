#include <tapedeck/capture/planner/honour_wishes.h>

#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/engine/ir/error.h>

namespace tapedeck {

void note_wishes(const std::vector<Wish>& wishes, Facts* facts) {
  if (wishes.empty()) return;
  const Graph& graph = *facts->graph;
  const WishedValues wished = find_wished(graph, wishes);
  facts->kept_node.assign(graph.nodes.size(), 0);
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const NodeId maker = graph.values[facts->windows[v].viewed].node;
    if (maker != kNone && wished.wish_of[v] != kNone && wishes[wished.wish_of[v]].kind == WishKind::keep)
      facts->kept_node[maker] = 1;
  }
}

void check_wishes_name_something(const std::vector<Wish>& wishes, const Graph& captured, const Graph& prepared) {
  if (wishes.empty()) return;
  const WishedValues here = find_wished(prepared, wishes), before = find_wished(captured, wishes);
  for (std::size_t w = 0; w < wishes.size(); ++w)
    if (here.named[w] == 0 && before.named[w] == 0) throw UsageError(describe_unmatched(prepared, wishes[w]));
}

}  // namespace tapedeck
