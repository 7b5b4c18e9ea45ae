// The harness can fail: wrong passes, of kinds that real ones have been wrong in, are planted, found, and their programs
// shrunk.
#include <tapedeck/tests/agree/shrink.h>

#include <tapedeck/engine/ops/ops.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tapedeck::agree {
namespace {

// `a - b` becomes `b - a`.
Graph swap_operands_of_sub(const Graph& g) {
  Graph result = g;
  for (const Node& n : result.nodes)
    if (n.op == &ops::sub) std::swap(result.refs[n.first_input], result.refs[static_cast<std::size_t>(n.first_input) + 1]);
  return result;
}

// Takes two clamps of one value for equal, whatever their bounds: a cse that forgets attributes.
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

// A state value that keeps what it had.
Graph forget_the_last_update(const Graph& g) {
  Graph result = g;
  if (result.updates.size() > 1) result.updates.back().value = result.updates.back().state;
  return result;
}

struct Planted {
  const char* name;
  Graph (*run)(const Graph&);
  int most_lines;            // of the shrunk program
  const char* must_mention;  // in its text; empty if nothing
};

class Mutation : public ::testing::TestWithParam<Planted> {};

TEST_P(Mutation, IsCaughtAndShrunk) {
  Harness harness{.orders = 0, .files = false};
  harness.planted.push_back({GetParam().name, GetParam().run});
  const Fails caught = [&](const RandomProgram& p) {
    const Verdict verdict = check_agreement(builder_of(p), harness);
    return verdict.kind == Verdict::Kind::differs && verdict.way == std::string("pass ") + GetParam().name;
  };
  // Shrinking ends where no single step goes further, so that one of a few programs may stay larger than the smallest that
  // fails.
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

// Left alone, the same programs agree: what is found above is the planted pass.
TEST(MutationControl, TheSameProgramsAgreeWithoutIt) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_TRUE(check_agreement(builder_of(random_program(seed)), {.seed = seed, .orders = 0, .files = false}).agrees())
        << seed;
}

}  // namespace
}  // namespace tapedeck::agree
