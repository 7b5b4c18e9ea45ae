// The planner writes scans without checkpoints anew, so that they keep less for their backward. Whatever it chooses, the bits
// are those of eager code, the observed peak is the planned one, and a larger budget never costs more.
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/planner/loop_intervals.h>
#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/ops/control.h>

#include <tapedeck/tests/capture/planner/loop_programs.h>
#include <tapedeck/tests/engine/seeds.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::testing {
namespace {

constexpr std::int64_t kPasses = 24, kBatch = 16, kWidth = 32;

bool rewrites_a_scan(const Plan& plan) { return !reasons_with(plan, "this scan").empty(); }

// A recurrent layer with a gate: xs [passes,batch,width], a state and two weights.
LoopResult gated(const Tensor& h, const Tensor& xs, const Tensor& w, const Tensor& u, const LoopOptions& options = {}) {
  return scan(
      [&](const Tensors& c) {
        const Tensor z = sigmoid(matmul(c[0], w) + c[1]), n = tanh(matmul(c[0] * z, u) + c[1]);
        const Tensor next = z * c[0] + (1.0 - z) * n;
        return Tensors{next, next * 0.5};
      },
      {h}, {xs}, {}, options);
}

Recorded one_layer(const LoopOptions& options = {}) {
  return recorded(
      [=](const Tensors& in) {
        const LoopResult r = gated(in[0], in[1], in[2], in[3], options);
        return with_gradients(sum(r.stacked[0] * r.stacked[0]) + sum(r.carried[0]), in);
      },
      {numbers({kBatch, kWidth}, 1), numbers({kPasses, kBatch, kWidth}, 2), numbers({kWidth, kWidth}, 3),
       numbers({kWidth, kWidth}, 4)});
}

TEST(ScanReruns, BudgetsAreMetBitForBitAndALargerOneNeverCostsMore) {
  EXPECT_GE(expect_good_at_all_budgets(one_layer(), "this scan", 9), 3u) << "what the scan keeps hardly follows the budget";
}

// What the recorded loop needs for its stacks goes down to what is alive outside of the loop.
TEST(ScanReruns, TheFloorHardlyGrowsWithThePasses) {
  const auto layer = [](std::int64_t passes) {
    LoopOptions options;
    options.max_trips = passes;
    return recorded(
               [=](const Tensors& in) {
                 const auto pass = [&](const Tensors& c) { return Tensors{tanh(matmul(c[0], in[1]) * sigmoid(c[0]))}; };
                 return with_gradients(sum(scan(pass, {in[0]}, {}, {}, options).carried[0]), in);
               },
               {numbers({kBatch, kWidth}, 1), numbers({kWidth, kWidth}, 2)})
        .graph;
  };
  const Plan shorter = plan_for(layer(16), 1), longer = plan_for(layer(64), 1);
  EXPECT_GT(longer.keep_all_peak_bytes, 3 * shorter.keep_all_peak_bytes);
  EXPECT_LE(longer.floor_bytes, shorter.floor_bytes + 2 * 64 + 2 * kBatch * kWidth * 4);
}

TEST(ScanReruns, TheDecisionSaysWhatItSavesAndCosts) {
  const Recorded r = one_layer();
  const Plan keeps = make_plan(r.graph);
  const Plan plan = plan_for(r.graph, keeps.peak_bytes * 3 / 4);
  ASSERT_EQ(plan.decisions.size(), 1u);
  const Decision& d = plan.decisions[0];
  EXPECT_NE(d.reason.find("this scan keeps 2 stacked values for its backward, not 5 stacked values"), std::string::npos)
      << d.reason;
  EXPECT_EQ(d.bytes, 3 * kPasses * kBatch * kWidth * 4);
  EXPECT_EQ(d.clones, 0);
  EXPECT_NEAR(d.cost_us, plan.cost_us - plan.keep_all_cost_us, 1e-6);
  EXPECT_EQ(plan.recomputed_nodes, 0);
}

TEST(ScanReruns, AStoredPlanReplays) {
  const Recorded r = one_layer();
  const Plan keeps = make_plan(r.graph);
  const std::int64_t floor = plan_for(r.graph, 1).floor_bytes;
  for (const std::int64_t budget : {floor, keeps.peak_bytes * 3 / 4}) {
    const Plan plan = plan_for(r.graph, budget);
    ASSERT_TRUE(rewrites_a_scan(plan));
    PrintOptions all;
    all.max_inline_constant = 1 << 20;
    const Plan back = parse_plan(plan_to_json(plan), parse(print(plan.graph, all)));
    EXPECT_EQ(back.peak_bytes, plan.peak_bytes);
    expect_replays(back, r);
  }
}

TEST(ScanReruns, ALoopThatRunsBackwardsAndCountsItsPasses) {
  LoopOptions options;
  options.reverse = true;
  const Recorded r = recorded(
      [=](const Tensors& in) {
        const auto pass = [&](const Tensors& c) {
          return Tensors{c[0] + 1, tanh(matmul(c[1], in[2]) + c[2] * cast(c[0], DType::f32))};
        };
        const LoopResult end = scan(pass, {scalar(0.0, DType::i64), in[0]}, {in[1]}, {}, options);
        return with_gradients(sum(end.carried[1] * end.carried[1]), in);
      },
      {numbers({kBatch, kWidth}, 1), numbers({kPasses, kBatch, kWidth}, 2), numbers({kWidth, kWidth}, 3)});
  EXPECT_GE(expect_good_at_all_budgets(r, "this scan"), 2u);
}

// The stacked values of the first layer go into the second one. Both stacks are alive at once.
TEST(ScanReruns, LayersWithDropoutKeepLessOneByOneOrAll) {
  const Recorded r = recorded(
      [](const Tensors& in) {
        const auto layer = [&](const Tensor& xs, const Tensor& w) {
          const auto pass = [&](const Tensors& c) {
            const Tensor h = tanh(matmul(dropout(c[0], 0.25), w) + c[1]);
            return Tensors{h, sigmoid(h)};
          };
          return scan(pass, {in[0]}, {xs}).stacked[0];
        };
        return with_gradients(sum(layer(layer(layer(in[1], in[2]), in[3]), in[2])), in);
      },
      {numbers({kBatch, kWidth}, 1), numbers({kPasses, kBatch, kWidth}, 2), numbers({kWidth, kWidth}, 3),
       numbers({kWidth, kWidth}, 4)});
  EXPECT_GE(expect_good_at_all_budgets(r, "this scan"), 3u);
}

// Nothing is carried, so nothing but the slices is needed to run a pass again.
TEST(ScanReruns, AMapComputesItsPassesAgain) {
  const Recorded r = recorded(
      [](const Tensors& in) {
        const Tensors y = map([&](const Tensors& x) { return Tensors{tanh(matmul(sigmoid(x[0]), in[1])) * x[0]}; }, {in[0]});
        return with_gradients(sum(y[0]), in);
      },
      {numbers({kPasses, kBatch, kWidth}, 1), numbers({kWidth, kWidth}, 2)});
  EXPECT_GE(expect_good_at_all_budgets(r, "this scan"), 2u);
}

TEST(ScanReruns, AScanWithAScanInItsBody) {
  LoopOptions inner;
  inner.max_trips = 3;
  const Recorded r = recorded(
      [=](const Tensors& in) {
        const auto pass = [&](const Tensors& c) {
          const auto step = [&](const Tensors& d) { return Tensors{tanh(matmul(d[0], in[2]) + c[1])}; };
          return Tensors{scan(step, {c[0]}, {}, {}, inner).carried[0]};
        };
        return with_gradients(sum(scan(pass, {in[0]}, {in[1]}).carried[0]), in);
      },
      {numbers({kBatch, kWidth}, 1), numbers({8, kBatch, kWidth}, 2), numbers({kWidth, kWidth}, 3)});
  EXPECT_GE(expect_good_at_all_budgets(r, "this scan"), 2u);
}

// A step with an optimizer: the weights that the loop reads are overwritten after its backward.
TEST(ScanReruns, ATrainingStepUnderABudgetHasTheBitsOfEagerCode) {
  const auto train = [](std::int64_t percent) {
    manual_seed(5);
    Tensor w = numbers({kWidth, kWidth}, 3), h = numbers({kBatch, kWidth}, 1), xs = numbers({kPasses, kBatch, kWidth}, 2);
    w.name("w").role(Role::parameter);
    const auto step = [&](const Tensors& in) {
      const auto pass = [&](const Tensors& c) { return Tensors{tanh(matmul(dropout(c[0], 0.1), w) + c[1])}; };
      const Tensor end = scan(pass, {in[0]}, {in[1]}).carried[0];
      const Tensor loss = mean(end * end), d = gradients({loss}, {w})[0];
      const NoGrad no_grad;
      apply_in_place(ops::add, std::vector<Tensor>{w, d * -0.5}, nullptr, {});
      next_step();
      return Tensors{loss};
    };
    std::vector<Tensor> losses;
    if (percent == 0) {
      for (int i = 0; i < 4; ++i) losses.push_back(step({h.detach(), xs.detach()})[0].detach());
      return losses;
    }
    CapturedStepOptions options;
    options.plan.budget_percent = static_cast<double>(percent);
    CapturedStep captured = capture(step, options);
    for (int i = 0; i < 4; ++i) losses.push_back(copy(captured({h.detach(), xs.detach()})[0].detach()));
    EXPECT_GE(captured.replays(), 2);
    EXPECT_TRUE(rewrites_a_scan(*captured.plan()));
    return losses;
  };
  const std::vector<Tensor> eager = train(0);
  for (const std::int64_t percent : {75, 60}) expect_same(train(percent), eager, "replayed under a budget");
}

// A pass of random arithmetic on one or two carried values, slices and weights.
Tensors random_pass(const Tensors& given, int carried, std::mt19937* random) {
  Tensors values = given;
  const auto any = [&] { return values[(*random)() % values.size()]; };
  for (int k = 0; k < 8; ++k) {
    const Tensor a = any(), b = any();
    switch ((*random)() % 6) {
      case 0:
        values.push_back(tanh(a + b));
        break;
      case 1:
        values.push_back(a * b);
        break;
      case 2:
        values.push_back(sigmoid(a) - b);
        break;
      case 3:
        values.push_back(tanh(matmul(a, b)));
        break;
      case 4:
        values.push_back(sin(a));
        break;
      default:
        values.push_back(transpose(a, {1, 0}));
        break;
    }
  }
  Tensors results(values.end() - carried, values.end());
  for (Tensor& t : results) t = tanh(t);
  results.push_back(any() * 0.5);
  return results;
}

// The graph of the program, and its results without any plan.
Recorded captured(const Program& program, Tensors inputs) {
  Recorded r;
  r.inputs = std::move(inputs);
  Capture capture("program");
  Tensors inside, given;
  for (std::size_t i = 0; i < r.inputs.size(); ++i) inside.push_back(capture.input("x" + std::to_string(i), r.inputs[i]));
  const Tensors results = program(inside);
  for (std::size_t i = 0; i < results.size(); ++i) capture.output("y" + std::to_string(i), results[i]);
  r.graph = capture.finish().graph;
  for (const Tensor& t : r.inputs) given.push_back(t.detach());
  r.wanted = copies(run_eagerly(r.graph, given, {}).outputs);
  return r;
}

class RandomScans : public ::testing::TestWithParam<int> {};

TEST_P(RandomScans, HaveTheSameBitsUnderEveryBudget) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const int carried = 1 + static_cast<int>(random() % 2);
  LoopOptions options;
  options.reverse = random() % 2 == 0;
  const unsigned seed = random();
  const Recorded r = captured(
      [=](const Tensors& in) {
        const auto pass = [&](const Tensors& c) {
          std::mt19937 same(seed);
          Tensors given = c;
          given.push_back(in[3]);
          given.push_back(in[4]);
          return random_pass(given, carried, &same);
        };
        const Tensors start(in.begin(), in.begin() + carried);
        const LoopResult end = scan(pass, start, {in[2]}, {}, options);
        Tensor loss = sum(end.stacked[0]) + sum(end.carried[0] * end.carried[0]);
        for (const Tensor& t : in) loss = loss + sum(t * t);
        return with_gradients(loss, in);
      },
      {numbers({kWidth, kWidth}, 1), numbers({kWidth, kWidth}, 2), numbers({12, kWidth, kWidth}, 3),
       numbers({kWidth, kWidth}, 4), numbers({kWidth, kWidth}, 5)});
  expect_good_at_all_budgets(r, "this scan", 5);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomScans, ::testing::Range(0, test::seeds(12)));

std::vector<std::string> reasons_to_stay(const Graph& g) {
  std::vector<std::string> reasons;
  for (NodeId n = 0; n < g.node_count(); ++n)
    if (std::string why = why_interval_stays(g, n); !why.empty()) reasons.push_back(std::move(why));
  return reasons;
}

// A forward and its backward over PASSES slices. The words in capitals are put in by one_scan().
const char* const kPair = R"(graph pair(%c: f32[64], %x: f32[PASSES,64]) state(%s: f32[64]) {
  %e: f32[64], %r: f32[PASSES,64], %q: f32[PASSES,64] = scan(%c, %x, %s) {carried=1, scanned=1, trips=PASSES} (%i: i64[],
    %c: f32[64], %x: f32[64], %s: f32[64]) {
    %a: f32[64] = mul(%c, %s)
    %b: f32[64] = exp(%a)
    %d: f32[64] = add(%b, %x)EFFECT
    return %d, %a, %b
  }
  %u: f32[64] = exp(%e)
  %g: f32[64], %h: f32[PASSES,64] = scan(%e, %r, %q, %x) {carried=1, scanned=3, trips=PASSES, reverse=true} [phase=backward] (%i: i64[],
    %d: f32[64], %a: f32[64], %b: f32[64], %x: f32[64]) {
    %t: f32[64] = mul(%d, %a)
    %z: f32[64] = mul(%t, %b)
    return %z, %t
  }
  return %g, %hUPDATE
})";

Graph one_scan(const std::string& passes, const std::string& effect = "", const std::string& update = "") {
  std::string text = kPair;
  const auto put = [&text](const std::string& what, const std::string& by) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what)) text.replace(at, what.size(), by);
  };
  put("PASSES", passes);
  put("EFFECT", effect);
  put("UPDATE", update);
  return parse(text, "pair");
}

TEST(ScanReruns, AScanThatCannotBeWrittenAnewSaysWhy) {
  EXPECT_EQ(reasons_to_stay(one_scan("8")), std::vector<std::string>());
  EXPECT_TRUE(rewrites_a_scan(plan_for(one_scan("8"), 1)));
  const Graph effect = one_scan("8", "\n    %p: u8[0] = on_host(%d)"), few = one_scan("2"),
              overwritten = one_scan("8", "", "\n  update %s = %u");
  const auto expect_stays = [](const Graph& g, const char* why) {
    const std::vector<std::string> reasons = reasons_to_stay(g);
    ASSERT_EQ(reasons.size(), 1u);
    EXPECT_NE(reasons[0].find(why), std::string::npos) << reasons[0];
    EXPECT_FALSE(rewrites_a_scan(plan_for(g, 1)));
  };
  expect_stays(effect, "has an effect");
  expect_stays(few, "too few passes");
  expect_stays(overwritten, "overwrites a state");
}

TEST(ScanReruns, AWishToKeepWhatTheScanMakesIsHonoured) {
  const Graph g = one_scan("8");
  PlanOptions options;
  options.budget = 1;
  options.wishes = {{WishKind::keep, "r"}};
  EXPECT_FALSE(rewrites_a_scan(make_plan(g, options)));
}

TEST(ScanReruns, StrategiesThatWorkForNoBudgetLeaveScansAlone) {
  const Graph g = one_layer().graph;
  const std::int64_t half = make_plan(g).peak_bytes / 2;
  for (const Strategy strategy : {Strategy::none, Strategy::regions})
    EXPECT_FALSE(rewrites_a_scan(plan_for(g, half, strategy)));
}

}  // namespace
}  // namespace tapedeck::testing
