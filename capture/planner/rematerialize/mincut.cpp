// The minimum cut between forward and backward, as compilers of training steps partition them: of all sets of forward values
// from which backward can be had, keep the one with the fewest bytes, and compute the rest again.
//
//     %a = exp(%x) 4 MB; %b = sum(%a) 4 KB; %c = tanh(%b) 4 KB; backward reads %c and %b
//     source => sum => %b -> sink              keeps %b (4 KB), computes %c again
//
// A node is a vertex, and so is a value. The edge from a node to its value has the bytes of the value as its capacity: to cut
// it is to keep the value. Edges from values to their readers are unbounded. A value that a later phase reads leads to the
// sink. The source leads to every node that is not computed again:
//   - a node that must not run twice, or whose results lie outside of the arena;
//   - a node that is costly (costly_nodes.h);
//   - a node that ends a long chain of such nodes (cut_long_chains).
// What lies in inputs, state and constants is there for nothing. Of equal cuts the one closest to backward is taken, because it
// computes least again. The answer minimizes kept bytes, not the peak; it is one point, exact as all points are.
#include <tapedeck/capture/planner/rematerialize/costly_nodes.h>
#include <tapedeck/capture/planner/rematerialize/forward_part.h>
#include <tapedeck/capture/planner/solvers/max_flow.h>
#include <tapedeck/kernels/checked_math.h>

#include <fmt/format.h>

namespace tapedeck {

namespace {

constexpr std::int64_t kMostCutWork = 200'000'000;  // edges looked at: seconds
constexpr std::int32_t kSource = 0, kSink = 1, kFirstVertex = 2;

class MinCutChooser {
 public:
  MinCutChooser(const Facts& facts, const Watch& watch)
      : facts_(facts),
        watch_(watch),
        later_readers_(first_later_readers(facts)),
        flow_(vertex_of_value(facts.graph->value_count())) {}

  Choices choose() {
    const std::vector<char> computable = computable_again();
    for (NodeId n = 0; n < facts_.graph->node_count(); ++n) add_node(n, computable[n]);
    const std::int64_t kept = flow_.find(kSource, kSink, kMostCutWork, watch_);
    std::vector<char> chosen(facts_.graph->nodes.size(), 0);
    if (kept != MaxFlow::kGivenUp) {
      const std::vector<char> again = flow_.side_of_sink(kSink);
      for (NodeId n = 0; n < facts_.graph->node_count(); ++n) chosen[n] = computable[n] && again[vertex_of_node(n)];
    }
    return choose_one_more_run(facts_, watch_, chosen, [&](NodeId, NodeId stage) {
      return fmt::format("the minimum cut keeps {} bytes for backward, which reads {}, and makes it from these before `{}`",
                         kept, read_later_, facts_.graph->node_text(stage));
    });
  }

 private:
  std::int32_t vertex_of_node(NodeId n) const { return kFirstVertex + n; }
  std::int32_t vertex_of_value(ValueId v) const { return kFirstVertex + facts_.graph->node_count() + v; }

  void add_node(NodeId n, bool computable) {
    if (!computable) flow_.add_edge(kSource, vertex_of_node(n), MaxFlow::kUnbounded);
    for (ValueId root : facts_.reads(n))
      if (computable && facts_.in_arena(root)) flow_.add_edge(vertex_of_value(root), vertex_of_node(n), MaxFlow::kUnbounded);
    for (ValueId v : facts_.makes(n)) {
      if (!facts_.in_arena(v) || facts_.bytes[v] == 0) continue;
      flow_.add_edge(vertex_of_node(n), vertex_of_value(v), facts_.bytes[v]);
      if (!is_forward(facts_, n) || later_readers_[v] == Facts::kNever) continue;
      flow_.add_edge(vertex_of_value(v), kSink, MaxFlow::kUnbounded);
      read_later_ = limited_sum({read_later_, facts_.bytes[v]});
    }
  }

  std::vector<char> computable_again() const {
    std::vector<char> computable(facts_.graph->nodes.size(), 0);
    const std::vector<char> costly = costly_nodes(facts_);
    for (NodeId n = 0; n < facts_.graph->node_count(); ++n) computable[n] = may_run_again(facts_, n) && !costly[n];
    cut_long_chains(facts_, &computable);
    return computable;
  }

  const Facts& facts_;
  const Watch& watch_;
  std::vector<NodeId> later_readers_;  // by root
  MaxFlow flow_;
  std::int64_t read_later_ = 0;  // bytes of forward values that later phases read
};

const Strategy mincut_strategy = register_strategy({
    .name = "mincut",
    .doc = "keeps the fewest bytes of forward from which cheap nodes alone make what backward reads: a minimum cut",
    .choose = [](const Facts& facts, const Watch& watch) { return MinCutChooser(facts, watch).choose(); },
    .in_auto = InAuto::finished,
});

}  // namespace

}  // namespace tapedeck
