// Scans whose passes run in blocks, so that the stacks of one block live at a time: written by with_reruns() for every length
// of a block, and chosen by the planner. The oracle is eager code, bit for bit, and the observed peak is the planned one.
#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/planner/scans/rerun_scan.h>
#include <tapedeck/capture/planner/scans/scan_blocks.h>

#include <tapedeck/tests/capture/planner/loop_programs.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::testing {
namespace {

constexpr std::int64_t kSide = 16;

// A pass of random arithmetic on carried values, a slice and a weight: the carried values, and one value to be stacked.
Tensors pass_in_blocks(const Tensors& given, std::size_t carried, unsigned seed) {
  std::mt19937 random(seed);
  Tensors values = given;
  for (int k = 0; k < 7; ++k) {
    const Tensor a = values[random() % values.size()], b = values[random() % values.size()];
    switch (random() % 4) {
      case 0:
        values.push_back(tanh(a + b));
        break;
      case 1:
        values.push_back(a * b);
        break;
      case 2:
        values.push_back(tanh(matmul(a, b)));
        break;
      default:
        values.push_back(sigmoid(a) - b);
        break;
    }
  }
  Tensors results(values.end() - static_cast<std::ptrdiff_t>(carried), values.end());
  for (Tensor& t : results) t = tanh(t + given[0]);
  results.push_back(values[random() % values.size()] * 0.5);
  return results;
}

// A scan of `passes` passes, one way or the other, whose stacked values count too. The gradients of the start and of the
// weight.
Recorded scan_for_blocks(unsigned seed, std::int64_t passes) {
  const std::size_t carried = 1 + seed % 2;
  LoopOptions options;
  options.reverse = seed % 3 == 0;
  return recorded(
      [=](const Tensors& in) {
        const Tensor xs = in[2].detach();
        const auto pass = [&](const Tensors& c) {
          Tensors given = c;
          given.push_back(in[3]);
          return pass_in_blocks(given, carried, seed);
        };
        const Tensors start(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(carried));
        const LoopResult end = scan(pass, start, {xs}, {}, options);
        Tensor loss = sum(end.stacked[0] * end.stacked[0]) + sum(end.carried[0] * end.carried[0]);
        for (const Tensor& t : in) loss = loss + sum(t * t);
        Tensors results = gradients({loss}, {in[0], in[3]});
        results.push_back(loss);
        return results;
      },
      {numbers({kSide, kSide}, 1), numbers({kSide, kSide}, 2), numbers({passes, kSide, kSide}, 3), numbers({kSide, kSide}, 4)});
}

// Writes each pair of scans in blocks of each length and replays it. Returns the number of ways.
int expect_same_in_blocks(const Recorded& r) {
  PassRunner passes;
  const Graph graph = prepare(r.graph, &passes);
  int ways = 0;
  for (ScanPair& pair : find_scan_pairs(graph)) {
    EXPECT_EQ(why_values_stay(graph, pair), "");
    const RerunScan scan(graph, std::move(pair));
    const KeptStacks kept = scan.ladder().front();
    for (const std::int64_t block : block_lengths(scan)) {
      SCOPED_TRACE(block);
      EXPECT_EQ(scan.passes() % block, 0);
      const Rerun rerun{&scan, &kept, 0, block};
      const Graph written = with_reruns(graph, {&rerun, 1});
      verify(written);
      const Plan plan = make_plan(written);
      EXPECT_EQ(check_plan(plan), std::vector<std::string>());
      expect_replays(plan, r);
      ++ways;
    }
  }
  return ways;
}

class BlocksOfRandomScans : public ::testing::TestWithParam<unsigned> {};

TEST_P(BlocksOfRandomScans, HaveTheSameBits) { EXPECT_GT(expect_same_in_blocks(scan_for_blocks(GetParam(), 12)), 0); }
INSTANTIATE_TEST_SUITE_P(Seeds, BlocksOfRandomScans, ::testing::Range(0u, 12u));

TEST(ScanBlocks, ALengthDividesTheNumberOfPasses) {
  EXPECT_GT(expect_same_in_blocks(scan_for_blocks(1, 60)), 2);
  EXPECT_EQ(expect_same_in_blocks(scan_for_blocks(1, 13)), 0) << "a prime number of passes has no blocks";
}

// A recurrent net whose pass keeps much more than it carries: blocks hold one block's stacks at the price of one more forward.
Recorded deep_recurrence(std::int64_t passes) {
  LoopOptions options;
  options.max_trips = passes;
  return recorded(
      [=](const Tensors& in) {
        const auto pass = [&](const Tensors& c) {
          Tensor h = c[0];
          for (int layer = 0; layer < 3; ++layer) h = tanh(matmul(h, in[1]) * sigmoid(h));
          return Tensors{h};
        };
        return with_gradients(sum(scan(pass, {in[0]}, {}, {}, options).carried[0]), in);
      },
      {numbers({32, 32}, 1), numbers({32, 32}, 2)});
}

TEST(ScanBlocks, ThePlannerChoosesThemAndALargerBudgetNeverCostsMore) {
  EXPECT_GE(expect_good_at_all_budgets(deep_recurrence(64), "in blocks of", 9), 1u);
}

TEST(ScanBlocks, TheDecisionSaysWhatIsKept) {
  const Recorded r = deep_recurrence(64);
  const Plan keeps = make_plan(r.graph);
  std::int64_t found = 0;
  for (int percent = 20; percent <= 60; percent += 5) {
    const Plan plan = plan_for(r.graph, keeps.peak_bytes * percent / 100);
    if (!plan.feasible) continue;
    for (const Decision& d : plan.decisions) {
      if (d.reason.find("in blocks of") == std::string::npos) continue;
      ++found;
      EXPECT_GT(d.bytes, 0);
      EXPECT_GT(d.cost_us, 0);
      EXPECT_NEAR(plan.keep_all_cost_us, keeps.keep_all_cost_us, 1e-6 * keeps.keep_all_cost_us);
    }
  }
  EXPECT_GT(found, 0);
}

// A pass that reads its number runs as it was recorded.
TEST(ScanBlocks, APassThatReadsItsNumberStaysOutOfBlocks) {
  const Graph g = parse(R"(graph pair(%c: f32[64], %x: f32[8,64]) {
  %e: f32[64], %r: f32[8,64] = scan(%c, %x) {carried=1, scanned=1, trips=8} (%i: i64[], %c: f32[64], %x: f32[64]) {
    %n: f32[] = cast(%i) {dtype=f32}
    %a: f32[64] = mul(%c, %n)
    %d: f32[64] = add(%a, %x)
    return %d, %a
  }
  %g: f32[64] = scan(%e, %r) {carried=1, scanned=1, trips=8, reverse=true} [phase=backward] (%i: i64[], %d: f32[64], %a: f32[64]) {
    %t: f32[64] = mul(%d, %a)
    return %t
  }
  return %g
})",
                        "pair");
  std::vector<ScanPair> pairs = find_scan_pairs(g);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_TRUE(block_lengths(RerunScan(g, std::move(pairs[0]))).empty());
}

}  // namespace
}  // namespace tapedeck::testing
