// Tests the strategy `echo`: its groups against a slow model, the cases of Echo's own tests, and the weaknesses that it must
// not have: walks that visit a node many times, clones that read what they should have made again, a peak above that of keeping
// all.
#include <tapedeck/tests/capture/planner/rematerialize/strategy_checks.h>

#include <tapedeck/capture/planner/rematerialize/forward_part.h>
#include <tapedeck/capture/planner/rematerialize/frontier_groups.h>
#include <tapedeck/capture/record/model_registry.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

std::vector<std::string> mirrored(const Graph& graph) {
  const test::Chosen c(graph, "echo");
  std::set<std::string> names;
  const ClonedGraph cloned = c.graph_at(c.choices.points.back());
  for (NodeId n = 0; n < cloned.graph.node_count(); ++n)
    if (cloned.graph.nodes[n].origin.clone) names.insert(c.graph.value_name(c.graph.nodes[cloned.source[n]].first_output));
  return {names.begin(), names.end()};
}

// ---- groups of the frontier ----

struct Frontier {
  const Facts& facts;
  const std::vector<NodeId> later = first_later_readers(facts);
  std::vector<char> mirrored;

  bool is_in(NodeId n) const {
    for (ValueId root : facts.reads(n))
      if (facts.in_arena(root) && mirrored[facts.graph->values[root].node]) return false;
    return mirrored[n];
  }
  bool read_again(ValueId v) const {
    for (NodeId n = 0; n < facts.graph->node_count(); ++n)
      for (ValueId root : facts.reads(n))
        if (root == v && mirrored[n]) return true;
    return later[v] != Facts::kNever;
  }
  bool share(NodeId a, NodeId b) const {
    for (ValueId x : facts.reads(a))
      for (ValueId y : facts.reads(b))
        if (x == y && facts.in_arena(x)) return true;
    return false;
  }
  // The frontier nodes that share operands with n, directly or through others.
  std::vector<NodeId> group_of(NodeId n) const {
    std::vector<NodeId> group{n};
    for (std::size_t i = 0; i < group.size(); ++i)
      for (NodeId m = 0; m < facts.graph->node_count(); ++m)
        if (is_in(m) && share(group[i], m) && std::find(group.begin(), group.end(), m) == group.end()) group.push_back(m);
    return group;
  }
  bool is_released(ValueId root, const std::vector<NodeId>& group) const {
    if (!facts.in_arena(root) || later[root] != Facts::kNever) return false;
    for (NodeId n = 0; n < facts.graph->node_count(); ++n)
      for (ValueId read : facts.reads(n))
        if (read == root && mirrored[n] && std::find(group.begin(), group.end(), n) == group.end()) return false;
    return true;
  }
  // Bytes allocated less bytes released, were the group stored.
  std::int64_t price(const std::vector<NodeId>& group) const {
    std::int64_t bytes = 0;
    std::set<ValueId> operands;
    for (NodeId n : group) {
      for (ValueId v : facts.makes(n))
        if (facts.in_arena(v) && read_again(v)) bytes += facts.bytes[v];
      for (ValueId root : facts.reads(n)) operands.insert(root);
    }
    for (ValueId root : operands)
      if (is_released(root, group)) bytes -= facts.bytes[root];
    return bytes;
  }
};

TEST(FrontierGroups, NoneIsLeftThatIsNoDearerToStore) {
  int left = 0, stored = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    PassRunner passes;
    const Graph graph = prepare(seed % 2 ? test::RandomProgram(seed).graph() : test::random_training(seed, 20), &passes);
    const Facts facts = collect_facts(graph);
    Frontier frontier{.facts = facts, .mirrored = std::vector<char>(graph.nodes.size(), 0)};
    for (NodeId n = 0; n < graph.node_count(); ++n)
      frontier.mirrored[n] = may_run_again(facts, n) && facts.makes(n).size() == 1 && frontier.read_again(facts.makes(n)[0]);
    const std::vector<char> before = frontier.mirrored;
    store_groups_without_gain(facts, frontier.later, &frontier.mirrored);
    for (NodeId n = 0; n < graph.node_count(); ++n) {
      ASSERT_LE(frontier.mirrored[n], before[n]);
      stored += before[n] && !frontier.mirrored[n];
      if (!frontier.is_in(n)) continue;
      ++left;
      ASSERT_GT(frontier.price(frontier.group_of(n)), 0) << "seed " << seed << ", " << graph.node_text(n);
    }
  }
  EXPECT_GT(left, 50);
  EXPECT_GT(stored, 50);
}

// ---- the cases of the paper's code ----

// T92: tanh of two products. To compute the sum or its tanh again, both products would have to be stored.
TEST(Echo, T92TanhOfTwoProductsIsStored) {
  const Graph graph =
      parse(R"(graph cell(%x: f32[64,64], %h: f32[64,64], %d: f32[64,64]) state(%w: f32[64,64], %u: f32[64,64]) {
    %p: f32[64,64] = matmul(%x, %w)
    %q: f32[64,64] = matmul(%h, %u)
    %sum: f32[64,64] = add(%p, %q)
    %y: f32[64,64] = tanh(%sum)
    %next: f32[64,64] = matmul(%y, %w)
    %g0: f32[64,64] = mul(%next, %d) [phase=backward]
    %g1: f32[64,64] = tanh_grad(%y, %g0) [phase=backward]
    %g2: f32[64,64] = matmul(%g1, %u) [phase=backward]
    return %g2
  })",
            "cell");
  EXPECT_EQ(mirrored(graph), std::vector<std::string>());
  const test::Chosen c(graph, "echo");
  std::vector<char> groups{0, 0, 1, 1, 0, 0, 0, 0};  // by node: the sum and its tanh
  store_groups_without_gain(c.facts, first_later_readers(c.facts), &groups);
  EXPECT_EQ(groups, std::vector<char>(8, 0)) << "whatever the peak is";
}

TEST(Echo, T92OnTheModel) {
  const std::vector<std::string> names = mirrored(record_model(*find_model("rnn_cell"), {.abstract = true}).graph);
  for (const char* stored : {"tanh", "add", "of_state.add", "of_input.add"})
    EXPECT_EQ(std::count(names.begin(), names.end(), stored), 0) << stored;
}

// T95: planned bytes of ResNet-152, batch 32 of 3x224x224, with recomputation and without: less than 0.6.
TEST(Echo, T95ResNet152PlansInLessThanSixTenths) {
  test::Chosen c(record_model(*find_model("resnet152"), {.batch = 32, .image = 224, .abstract = true}).graph, "echo");
  const auto planned_at = [&](const ChoicePoint& point) { return finish_plan(c.facts, c.graph_at(point), 0, {}, &c.passes); };
  const Plan kept = planned_at(c.choices.points.front()), recomputed = planned_at(c.choices.points.back());
  EXPECT_EQ(kept.recomputed_nodes, 0);
  EXPECT_LT(static_cast<double>(recomputed.peak_bytes), 0.6 * static_cast<double>(kept.peak_bytes));
  EXPECT_LT(c.cost_at(c.choices.points.back()), 1.05 * c.facts.keep_all_cost);
}

// ---- what must not occur ----

// EW1: a node that is read twice by each of its readers is looked at once.
TEST(Echo, EW1SquaresOfSquaresTakeOneWalk) {
  for (const int layers : {40, 10'000}) {
    std::string text = "graph squares(%x: f32[4]) {\n  %v0: f32[4] = neg(%x)\n";
    for (int i = 1; i <= layers; ++i) text += fmt::format("  %v{0}: f32[4] = mul(%v{1}, %v{1})\n", i, i - 1);
    text += fmt::format("  %g{0}: f32[4] = neg(%v{0}) [phase=backward]\n", layers);
    for (int i = layers; i >= 1; --i) text += fmt::format("  %g{0}: f32[4] = mul(%g{1}, %v{0}) [phase=backward]\n", i - 1, i);
    PassRunner passes;
    const Graph graph = prepare(parse(text + "  return %g0\n}\n", "squares"), &passes);
    const Facts facts = collect_facts(graph);
    const Choices choices = strategy_entry("echo").choose(facts, {});
    EXPECT_LT(choices.points.back().live_peak, choices.points.front().live_peak / 2) << layers;
  }
}

// EW2: the clone of %f1 reads the clone of %c. Were the first %c kept for it, nothing would be saved.
TEST(Echo, EW2ClonesReadClonesOfWhatIsMirrored) {
  const Graph graph = parse(R"(graph residual(%x: f32[64,64], %d: f32[64,64]) state(%w: f32[64,64]) {
    %p: f32[64,64] = matmul(%x, %w)
    %c: f32[64,64] = tanh(%p)
    %f1: f32[64,64] = sigmoid(%c)
    %f2: f32[64,64] = tanh(%f1)
    %f3: f32[64,64] = sigmoid(%f2)
    %y: f32[64,64] = add(%c, %f3)
    %z: f32[64,64] = matmul(%y, %w)
    %large: u8[200000] = opaque(%z) {us=1.0}
    %z2: f32[1] = opaque(%large) {us=1.0}
    %g0: f32[64,64] = mul(%d, %z2) [phase=backward]
    %g1: f32[64,64] = matmul(%g0, %y) [phase=backward]
    %g2: f32[64,64] = mul(%g1, %f3) [phase=backward]
    %g3: f32[64,64] = mul(%g2, %f2) [phase=backward]
    %g4: f32[64,64] = mul(%g3, %f1) [phase=backward]
    %g5: f32[64,64] = mul(%g4, %c) [phase=backward]
    %g6: f32[64,64] = matmul(%g5, %p) [phase=backward]
    return %g6
  })",
                            "residual");
  const test::Chosen c(graph, "echo");
  EXPECT_EQ(mirrored(graph), (std::vector<std::string>{"c", "f1", "f2", "f3", "y"}));
  const Graph cloned = c.graph_at(c.choices.points.back()).graph;
  for (const Node& node : cloned.nodes) {
    if (!node.origin.clone) continue;
    for (ValueId v : cloned.inputs(node)) {
      const std::string name = cloned.value_name(v);
      EXPECT_TRUE(name == "p" || cloned.nodes[cloned.values[v].node].origin.clone) << name << " is kept for a clone";
    }
  }
}

// EW3: every point lowers the peak.
TEST(Echo, EW3EveryPointLowersThePeak) {
  int points = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const test::Chosen c(seed % 2 ? test::RandomProgram(seed).graph() : test::random_training(seed, 40), "echo");
    for (std::size_t i = 1; i < c.choices.points.size(); ++i, ++points)
      EXPECT_LT(c.choices.points[i].live_peak, c.choices.points[i - 1].live_peak) << "seed " << seed;
    for (const Decision& d : c.choices.decisions) EXPECT_LE(d.live_peak_bytes, c.facts.external_bytes + c.keep_all_peak());
  }
  EXPECT_GT(points, 30);
}

// EW7: a random node is mirrored like others, by its trait, and draws the same numbers; no list of names has a part in it.
TEST(Echo, EW7RandomNodesDrawTheSameAgain) {
  const Graph graph = parse(R"(graph drop(%x: f32[64,64], %d: f32[64,64]) state(%w: f32[64,64], %rng: i64[2] [role=rng]) {
    %p: f32[64,64] = matmul(%x, %w)
    %r: f32[64,64] = dropout(%p, %rng) {p=0.5, path="drop"}
    %q: f32[64,64] = matmul(%r, %w)
    %q2: f32[64,64] = matmul(%q, %w)
    %g0: f32[64,64] = matmul(%q2, %d) [phase=backward]
    %g1: f32[64,64] = matmul(%g0, %q) [phase=backward]
    %g2: f32[64,64] = mul(%g1, %r) [phase=backward]
    %g3: f32[64,64] = mul(%g2, %p) [phase=backward]
    %next: i64[2] = rng_next(%rng) [phase=update]
    return %g3
    update %rng = %next
  })",
                            "drop");
  EXPECT_EQ(mirrored(graph), std::vector<std::string>{"r"});
  EXPECT_GT(test::expect_equal_replays(graph, "echo"), 0);
}

}  // namespace
}  // namespace tapedeck
