// Tests the harness itself: each test plants a wrong pass of a kind that real passes have been wrong in. The harness must
// find a difference and shrink the program that shows it.
#include <tapedeck/tests/agree/shrink.h>

#include <tapedeck/engine/ops/ops.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tapedeck::agree {
namespace {

// A wrong pass: it turns `a - b` into `b - a`.
Graph swap_operands_of_sub(const Graph& g) {
  Graph result = g;
  for (const Node& n : result.nodes)
    if (n.op == &ops::sub) std::swap(result.refs[n.first_input], result.refs[static_cast<std::size_t>(n.first_input) + 1]);
  return result;
}

// A wrong pass: it merges two clamps of one value even if their bounds differ, like a cse that ignores attributes.
Graph merge_clamps(const Graph& g) {
  Rewriter r(g);
  std::map<ValueId, ValueId> seen;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    const auto before = node.op == &ops::clamp ? seen.find(g.inputs(node)[0]) : seen.end();
    if (before != seen.end()) {
      r.replace(node.first_output, r.at(before->second));
      continue;
    }
    if (node.op == &ops::clamp) seen[g.inputs(node)[0]] = node.first_output;
    r.copy(n);
  }
  return r.finish();
}

// A wrong pass: it drops the last update, so that this state keeps its old value.
Graph forget_the_last_update(const Graph& g) {
  Graph result = g;
  if (result.updates.size() > 1) result.updates.back().value = result.updates.back().state;
  return result;
}

struct Planted {
  const char* name;
  Graph (*run)(const Graph&);
  int most_lines;            // most lines that the shrunk program may have
  const char* must_mention;  // a word that the shrunk program's text must contain; empty for none
};

class Mutation : public ::testing::TestWithParam<Planted> {};

TEST_P(Mutation, IsCaughtAndShrunk) {
  Harness harness{.orders = 0, .files = false, .plans = false};
  harness.planted.push_back({GetParam().name, GetParam().run});
  const Fails caught = [&](const RandomProgram& p) {
    const Verdict verdict = check_agreement(builder_of(p), harness);
    return verdict.kind == Verdict::Kind::differs && verdict.way == std::string("pass ") + GetParam().name;
  };
  // Shrinking stops where no single step makes the program smaller, which need not be the smallest failing program. So this
  // test shrinks several failing programs and looks at the smallest result.
  constexpr int kPrograms = 4;
  int found = 0, fewest = 1 << 30;
  for (std::uint64_t seed = 1; seed <= 400 && found < kPrograms; ++seed) {
    harness.seed = seed;
    const RandomProgram program = random_program(seed);
    if (line_count(program) < 8 || !caught(program)) continue;
    const RandomProgram small = shrunk(program, caught);
    EXPECT_TRUE(caught(small));
    EXPECT_LT(line_count(small), line_count(program)) << text_of(small);
    EXPECT_NE(text_of(small).find(GetParam().must_mention), std::string::npos) << text_of(small);
    fewest = std::min(fewest, line_count(small));
    ++found;
  }
  EXPECT_EQ(found, kPrograms) << "too few random programs noticed " << GetParam().name;
  EXPECT_LE(fewest, GetParam().most_lines);
}

INSTANTIATE_TEST_SUITE_P(Passes, Mutation,
                         ::testing::Values(Planted{"swap_operands_of_sub", swap_operands_of_sub, 5, ""},
                                           Planted{"merge_clamps", merge_clamps, 5, "clamp"},
                                           Planted{"forget_the_last_update", forget_the_last_update, 1, ""}),
                         [](const auto& info) { return info.param.name; });

// Without a planted pass the same programs agree. So the differences above come from the planted passes.
TEST(MutationControl, TheSameProgramsAgreeWithoutIt) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_TRUE(check_agreement(builder_of(random_program(seed)), {.seed = seed, .orders = 0, .files = false}).agrees())
        << seed;
}

}  // namespace
}  // namespace tapedeck::agree
