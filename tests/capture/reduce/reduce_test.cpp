// Tests reduce() on programs whose smallest interesting graph is known.
#include <tapedeck/capture/reduce/reduce.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/capture/planner_graphs.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

namespace tapedeck {
namespace {

int nodes_of_op(const Graph& g, const char* op) {
  int n = 0;
  for (const Node& node : g.nodes) n += node.op->name == std::string(op);
  return n;
}

bool reads(const Graph& g, const char* op, const char* operand) {
  for (const Node& node : g.nodes)
    for (ValueId v : g.inputs(node))
      if (node.op->name == std::string(op) && g.values[v].node != kNone &&
          g.nodes[g.values[v].node].op->name == std::string(operand))
        return true;
  return false;
}

TEST(Reduce, LeavesOneNodeOfALongProgram) {
  std::string text = "graph g(%x: f32[4,6]) state(%w: f32[6,6], %unread: f32[3]) {\n %v0: f32[4,6] = matmul(%x, %w)\n";
  for (int i = 1; i < 200; ++i)
    text += " %v" + std::to_string(i) + ": f32[4,6] = " +
            (i == 137 ? "sigmoid"
             : i % 2  ? "tanh"
                      : "exp") +
            "(%v" + std::to_string(i - 1) + ")\n";
  const Graph g = parse(text + " return %v199, %v3, %v77\n update %w = %w\n}\n");
  std::int64_t checks = 0;
  ReduceOptions options;
  options.progress = [&](const ReduceProgress& p) { checks = p.checks; };
  const Graph small = reduce(
      g, [](const Graph& c) { return nodes_of_op(c, "sigmoid") > 0; }, options);
  EXPECT_EQ(small.node_count(), 1) << print(small);
  EXPECT_EQ(small.n_inputs, 1);
  EXPECT_EQ(small.n_state, 0);
  EXPECT_EQ(small.values[0].type, (Type{DType::f32, {1, 1}})) << print(small);
  EXPECT_LT(checks, 100);
}

TEST(Reduce, KeepsWhatDependsOnEachOther) {
  const Graph g = parse(
      "graph g(%x: f32[4,6], %y: f32[4,6]) {\n %a: f32[4,6] = exp(%x)\n %b: f32[4,6] = neg(%a)\n %c: f32[24] = reshape(%b) "
      "{shape=[24]}\n"
      " %d: f32[24] = tanh(%c)\n %e: f32[2,12] = reshape(%d) {shape=[2,12]}\n %f: f32[12] = sum(%e) {axes=[0]}\n %g: f32[4,6] "
      "= add(%a, %y)\n"
      " return %f, %g\n}\n");
  const Graph small = reduce(g, [](const Graph& c) { return reads(c, "reshape", "neg") && nodes_of_op(c, "sum") == 1; });
  EXPECT_EQ(small.node_count(), 3) << print(small);  // neg, reshape and sum; the values of all other nodes became inputs
  EXPECT_EQ(small.outputs.size(), 1u) << print(small);
}

TEST(Reduce, RandomProgramsShrinkToTheOpAndStayInteresting) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Graph g = test::RandomProgram(seed, 60).graph();
    const auto interesting = [](const Graph& c) { return nodes_of_op(c, "matmul") > 0 || nodes_of_op(c, "opaque") > 1; };
    if (!interesting(g)) continue;
    const Graph small = reduce(g, interesting);
    EXPECT_NO_THROW(verify(small));
    EXPECT_TRUE(interesting(small));
    EXPECT_LE(small.node_count(), 2) << "seed " << seed << "\n" << print(small);
    EXPECT_EQ(print(small), print(reduce(g, interesting))) << "seed " << seed << ": the same twice";
  }
}

TEST(Reduce, DeadNodesStayWhereTheyMatter) {
  const Graph g = parse("graph g(%x: f32[4]) {\n %a: f32[4] = exp(%x)\n %dead: f32[4] = neg(%x)\n return %a\n}\n");
  const Graph small = reduce(g, [](const Graph& c) { return nodes_of_op(c, "neg") == 1; });
  EXPECT_EQ(nodes_of_op(small, "neg"), 1);
  EXPECT_EQ(small.node_count(), 1) << print(small);
}

TEST(Reduce, OperandsOfOpsThatTakeAnyNumberGo) {
  const Graph g = parse("graph g(%x: f32[4], %y: f32[4], %z: f32[4]) {\n %a: bool[] = all_finite(%x, %y, %z)\n return %a\n}\n");
  const Graph small = reduce(g, [](const Graph& c) { return nodes_of_op(c, "all_finite") == 1; });
  EXPECT_EQ(small.n_inputs, 1) << print(small);
}

int count_within(const Graph& g, const char* op) {
  int n = nodes_of_op(g, op);
  for (const Region& region : g.regions) n += count_within(*region, op);
  return n;
}

const char* const kLoop =
    "graph g(%x: f32[4,6], %w: f32[4,6]) {\n %s: f32[4,6] = tanh(%x)\n"
    " %y: f32[4,6] = scan(%s, %w) {carried=1, trips=3} (%i: i64[], %c: f32[4,6], %v: f32[4,6]) {\n"
    "  %a: f32[4,6] = exp(%v)\n  %b: f32[4,6] = sigmoid(%c)\n  %d: f32[4,6] = mul(%a, %b)\n  %e: f32[4,6] = neg(%d)\n  return "
    "%e\n }\n"
    " %z: f32[4,6] = neg(%y)\n return %z\n}\n";

TEST(Reduce, LoopsGoWhereTheirBodyIsWhatMatters) {
  const Graph small = reduce(parse(kLoop), [](const Graph& c) { return count_within(c, "sigmoid") > 0; });
  EXPECT_EQ(small.node_count(), 1) << print(small);
  EXPECT_EQ(nodes_of_op(small, "sigmoid"), 1) << print(small);
}

TEST(Reduce, BodiesShrinkWhereTheLoopMatters) {
  const Graph small =
      reduce(parse(kLoop), [](const Graph& c) { return nodes_of_op(c, "scan") == 1 && count_within(c, "sigmoid") == 1; });
  ASSERT_EQ(small.node_count(), 1) << print(small);
  EXPECT_EQ(small.regions[0]->node_count(), 1) << print(small);
  EXPECT_EQ(small.values[0].type, (Type{DType::f32, {1, 1}})) << print(small);
}

TEST(Reduce, SaysThatThereIsNothingToReduce) {
  const Graph g = parse("graph g(%x: f32[4]) {\n return %x\n}\n");
  EXPECT_THROW(reduce(g, [](const Graph&) { return false; }), UsageError);
}

TEST(Reduce, StopsWithTheBestSoFar) {
  const Graph g = test::RandomProgram(3, 60).graph();
  std::atomic<bool> cancel{false};
  ReduceOptions options;
  options.cancel = &cancel;
  int checks = 0;
  const auto interesting = [&](const Graph& c) {
    if (++checks == 6) cancel = true;
    return c.node_count() > 2;
  };
  const Graph some = reduce(g, interesting, options);
  EXPECT_LE(checks, 7);
  EXPECT_GT(some.node_count(), 2);
  EXPECT_LE(some.node_count(), g.node_count());
  options.cancel = nullptr;
  options.max_checks = 5;
  checks = 100;
  reduce(g, interesting, options);
  EXPECT_LE(checks, 105);
}

}  // namespace
}  // namespace tapedeck
