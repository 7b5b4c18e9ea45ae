// Tests named dimensions: rules derived from recordings, graphs with types at other sizes, plans fitted to smaller sizes.
// The oracle is a capture made at the size itself, or the eager run.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/planner/fit_plan_to_sizes.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/sizes/dim_rules.h>
#include <tapedeck/capture/sizes/retype.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/capture/step/size_buckets.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/step/small_classifier.h>
#include <tapedeck/tests/capture/temporary_folder.h>
#include <tapedeck/tests/engine/messages.h>

#include <algorithm>
#include <random>
#include <set>

namespace tapedeck {
namespace {

using testing::message_of;

Tensor sample(const Shape& shape, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 512.0f;
  return from_vector(values, shape);
}

Tensor labels(std::int64_t n, int classes) {
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<std::int32_t>((i * 7 + 3) % classes));
  return from_vector(values, {n});
}

// A function of x, captured at one size.
using Program = std::function<Tensor(const Tensor&)>;

Captured captured(const Program& program, const Tensor& x) {
  Capture capture("f");
  const Tensor in = capture.input("x", x);
  capture.output("y", program(in));
  return capture.finish();
}

DimTable table_for(std::vector<DimRange> dims, std::vector<DimTable::Axis> axes) {
  DimTable table;
  table.dims = std::move(dims);
  table.axes = std::move(axes);
  return table;
}

// Derives rules from captures at the `recorded` sizes of x's first axis. At each of the `others`, retype() must give the
// graph of a capture at this size.
void expect_general(const Program& program, const std::vector<std::int64_t>& recorded, const std::vector<std::int64_t>& others,
                    const Shape& rest) {
  const auto at = [&](std::int64_t n) {
    Shape shape = rest;
    shape.sizes[0] = n;
    return captured(program, sample(shape, static_cast<int>(n))).graph;
  };
  std::vector<Graph> graphs;
  for (std::int64_t n : recorded) graphs.push_back(at(n));
  std::vector<DimSample> samples;
  for (std::size_t i = 0; i < graphs.size(); ++i) samples.push_back({&graphs[i], {recorded[i]}});
  DimTable table = table_for({{"b", 1, 1000}}, {{"x", 0, 0}});
  const DimFindings findings = find_rules(&table, samples);
  ASSERT_TRUE(findings.found) << findings.why;
  for (std::int64_t n : others) {
    PrintOptions bare;
    bare.notes = false;
    EXPECT_EQ(print(retype(graphs[0], table, {{"b", n}}), bare), print(at(n), bare)) << "at " << n;
  }
}

TEST(DimRules, AttributesThatFollowOneDimension) {
  expect_general([](const Tensor& x) { return relu(reshape(x, {x.size(0) * 10})); }, {4, 6}, {1, 4, 5, 100}, {0, 10});
  expect_general([](const Tensor& x) { return mul(full({x.size(0), 10}, 2), x); }, {4, 6}, {1, 9}, {0, 10});
  expect_general([](const Tensor& x) { return sum(x, {0}); }, {4, 6}, {1, 9}, {0, 10});
  expect_general([](const Tensor& x) { return mean(x); }, {4, 6}, {1, 9}, {0, 10});
  expect_general([](const Tensor& x) { return mul(sum(x), 1.0 / static_cast<double>(x.size(0))); }, {4, 6}, {3, 7, 11},
                 {0, 10});
  expect_general([](const Tensor& x) { return div(sum(x), static_cast<double>(x.size(0))); }, {4, 6}, {3, 7, 11}, {0, 10});
  expect_general([](const Tensor& x) { return concat({x, x}, 0); }, {4, 6}, {1, 9}, {0, 10});
}

TEST(DimRules, AffineRulesAskForAThirdRecording) {
  const Program tail = [](const Tensor& x) { return slice(x, {1, 0}, {x.size(0) - 1, 10}); };
  DimTable table = table_for({{"b", 3, 1000}}, {{"x", 0, 0}});
  const Graph a = captured(tail, sample({4, 10}, 1)).graph, b = captured(tail, sample({6, 10}, 1)).graph;
  const DimFindings two = find_rules(&table, {{&a, {4}}, {&b, {6}}});
  EXPECT_FALSE(two.found);
  EXPECT_TRUE(two.more);
  EXPECT_NE(two.why.find("one more size would confirm"), std::string::npos) << two.why;
  expect_general(tail, {4, 6, 9}, {3, 5, 100}, {0, 10});
}

TEST(DimRules, HalvesAreRulesThatNeedNotComeOutWhole) {
  const Program halves = [](const Tensor& x) { return reshape(x, {x.size(0) / 2, 2, 10}); };
  expect_general(halves, {4, 8}, {2, 6, 100}, {0, 10});
  DimTable table = table_for({{"b", 1, 1000}}, {{"x", 0, 0}});
  const Graph a = captured(halves, sample({4, 10}, 1)).graph, b = captured(halves, sample({8, 10}, 1)).graph;
  ASSERT_TRUE(find_rules(&table, {{&a, {4}}, {&b, {8}}}).found);
  const std::string odd = message_of<TypeError>([&] { retype(a, table, {{"b", 5}}); });
  EXPECT_NE(odd.find("no whole number"), std::string::npos) << odd;
  EXPECT_NE(odd.find("[reshape]"), std::string::npos) << odd;
  EXPECT_NE(odd.find("b=5"), std::string::npos) << odd;
}

// A batch norm multiplies its variance by n / (n - 1), where n counts the elements of a channel.
TEST(DimRules, TheUnbiasedVarianceOfABatchNormFollows) {
  struct Norm : Module {
    BatchNorm bn{*this, "bn", 3};
    Tensor operator()(const Tensor& x) { return bn(x); }
  };
  const auto at = [](std::int64_t b, std::int64_t s) {
    Norm norm;
    return captured([&](const Tensor& x) { return norm(x); }, sample({b, 3, s, 5}, 1)).graph;
  };
  const Graph p = at(2, 4), q = at(4, 8), r = at(4, 10), t = at(7, 4);
  DimTable table = table_for({{"b", 1, 64}, {"s", 1, 64}}, {{"x", 0, 0}, {"x", 2, 1}});
  const DimFindings findings = find_rules(&table, {{&p, {2, 4}}, {&q, {4, 8}}, {&r, {4, 10}}, {&t, {7, 4}}});
  ASSERT_TRUE(findings.found) << findings.why;
  ASSERT_EQ(table.entries.size(), 1u);
  EXPECT_EQ(rule_text(table, table.entries[0].rule), "single unbiased 5*b*s");
  EXPECT_EQ(dims_from_text(dims_text(table)), table);
  for (const auto& [b, s] : {std::pair{1, 1}, std::pair{3, 50}, std::pair{64, 64}})
    EXPECT_EQ(print(retype(p, table, {{"b", b}, {"s", s}})), print(at(b, s)));
}

TEST(DimRules, TwoDimensionsAreToldApart) {
  const auto at = [](std::int64_t b, std::int64_t s) {
    return captured([](const Tensor& x) { return reshape(x, {x.size(0) * x.size(1), 3}); }, sample({b, s, 3}, 1)).graph;
  };
  const Graph p = at(2, 4), q = at(4, 8), r = at(4, 10);
  DimTable table = table_for({{"b", 1, 64}, {"s", 1, 64}}, {{"x", 0, 0}, {"x", 1, 1}});
  const DimFindings two = find_rules(&table, {{&p, {2, 4}}, {&q, {4, 8}}});
  EXPECT_FALSE(two.found && table.entries.empty());
  ASSERT_TRUE(find_rules(&table, {{&p, {2, 4}}, {&q, {4, 8}}, {&r, {4, 10}}}).found);
  ASSERT_EQ(table.entries.size(), 1u);
  EXPECT_EQ(rule_text(table, table.entries[0].rule), "b*s");
  EXPECT_EQ(print(retype(p, table, {{"b", 3}, {"s", 5}})), print(at(3, 5)));
}

TEST(DimRules, WhatIsNoFunctionOfTheSizesIsRefusedWithItsPlace) {
  int call = 0;
  const Program changing = [&](const Tensor& x) { return mul(x, 0.3 + 0.17 * call++); };
  const Graph a = captured(changing, sample({4, 10}, 1)).graph, b = captured(changing, sample({6, 10}, 1)).graph;
  DimTable table = table_for({{"b", 1, 1000}}, {{"x", 0, 0}});
  const DimFindings findings = find_rules(&table, {{&a, {4}}, {&b, {6}}});
  EXPECT_FALSE(findings.found);
  EXPECT_NE(findings.why.find("pass it as an input"), std::string::npos) << findings.why;
  EXPECT_NE(findings.why.find("shapes_test.cpp"), std::string::npos) << findings.why;
}

TEST(DimRules, ABranchOnTheSizeIsAnotherProgram) {
  const Program branch = [](const Tensor& x) { return x.size(0) > 5 ? relu(x) : exp(x); };
  const Graph a = captured(branch, sample({4, 10}, 1)).graph, b = captured(branch, sample({6, 10}, 1)).graph;
  DimTable table = table_for({{"b", 1, 1000}}, {{"x", 0, 0}});
  const DimFindings findings = find_rules(&table, {{&a, {4}}, {&b, {6}}});
  EXPECT_FALSE(findings.found);
  EXPECT_FALSE(findings.more);
  EXPECT_NE(findings.why.find("exp"), std::string::npos) << findings.why;
  EXPECT_NE(findings.why.find("relu"), std::string::npos) << findings.why;
}

TEST(DimTable, TextRoundTrips) {
  const auto at = [](std::int64_t b, std::int64_t s) {
    return captured(
               [](const Tensor& x) {
                 const Tensor flat = reshape(x, {x.size(0) * x.size(1), 3});
                 return mul(sum(slice(flat, {1, 0}, {flat.size(0) - 1, 3})), 1.0 / static_cast<double>(x.size(1)));
               },
               sample({b, s, 3}, 1))
        .graph;
  };
  const Graph p = at(2, 4), q = at(4, 7), r = at(5, 10), t = at(7, 9);
  DimTable table = table_for({{"b", 1, 64}, {"s", 2, DimRange::kUnbounded}}, {{"x", 0, 0}, {"x", 1, 1}});
  const DimFindings findings = find_rules(&table, {{&p, {2, 4}}, {&q, {4, 7}}, {&r, {5, 10}}, {&t, {7, 9}}});
  ASSERT_TRUE(findings.found) << findings.why;
  const std::string text = print_with_dims(p, table);
  EXPECT_NE(text.find("dims=\"b=1..64, s=2.., x@0=b, x@1=s\""), std::string::npos) << text;
  EXPECT_EQ(parse_dims(text), table);
  EXPECT_EQ(print_with_dims(parse(text), parse_dims(text)), text);
  EXPECT_EQ(print(parse(text)), print(p)) << "erasing the notes changes nothing";
  EXPECT_EQ(dims_from_text(dims_text(table)), table);
  EXPECT_TRUE(parse_dims(print(p)).empty());
  for (const char* bad : {"b", "b=3", "b=1..x", "b=5..2", "b=1..4, b=1..4", "b=1..4, x@0=c", "b=1..4, x@99=b",
                          "b=1..4, h.shape.0=(b/2", "b=1..4, h.shape.0=(b)/0", "b=1..4, h.value=real x/b", "b=1..4, h=b"})
    EXPECT_THROW(dims_from_text(bad), ParseError) << bad;
}

struct SizedNet : Module {
  Linear fc1{*this, "fc1", 6, 16}, fc2{*this, "fc2", 16, 4};
  Dropout drop{*this, "drop", 0.5};
  Tensor operator()(const Tensor& x) { return fc2(drop(relu(fc1(x)))); }
};

struct Trainer {
  SizedNet net;
  AdamW optimizer{net.parameters(), {.lr = 0.01}};
  std::vector<Tensor> step(const std::vector<Tensor>& in) { return testing::train_classifier(net, optimizer, in); }
  Graph record(std::int64_t n) {
    Capture capture("step");
    const Tensor x = capture.input("x", sample({n, 6}, static_cast<int>(n))), y = capture.input("y", labels(n, 4));
    capture.output("loss", step({x, y})[0]);
    return capture.finish().graph;
  }
};

TEST(DimTable, SurvivesATapeFile) {
  Trainer trainer;
  const Graph a = trainer.record(4), b = trainer.record(6);
  DimTable table = table_for({{"b", 1, 32}}, {{"x", 0, 0}, {"y", 0, 0}});
  ASSERT_TRUE(find_rules(&table, {{&a, {4}}, {&b, {6}}}).found);
  const TemporaryFolder folder;
  TapeFile file;
  file.captured = a;
  file.metadata[kDimsKey] = dims_text(table);
  save_tape(folder.file("a.tape"), file);
  const TapeFile read = load_tape(folder.file("a.tape"));
  const DimTable again = dims_from_text(read.metadata.at(kDimsKey));
  EXPECT_EQ(again, table);
  EXPECT_EQ(print(retype(read.captured, again, {{"b", 9}})), print(retype(a, table, {{"b", 9}})));
}

TEST(Retype, T91_T100_WhatDoesNotFitNamesNodeAndDimensions) {
  const Graph g = captured(
                      [](const Tensor& x) {
                        return relu(matmul(x, reshape(sample({12}, 3), {4, 3})));
                      },
                      sample({2, 4}, 1))
                      .graph;
  const DimTable table = table_for({{"k", 1, 64}}, {{"x", 1, 0}});
  const std::string refused = message_of<TypeError>([&] { retype(g, table, {{"k", 5}}); });
  EXPECT_TRUE(testing::mentions(refused, "[matmul]")) << refused;
  EXPECT_TRUE(testing::mentions(refused, "k=5")) << refused;
  EXPECT_TRUE(testing::mentions(refused, "shapes_test.cpp")) << refused;
  EXPECT_THROW(retype(g, table, {{"nobody", 5}}), TypeError);
  EXPECT_THROW(retype(g, table, {{"k", 65}}), TypeError);
}

TEST(Retype, ByInferenceAloneNamesWhatStandsInTheWay) {
  const Graph plain = captured([](const Tensor& x) { return relu(matmul(x, sample({10, 3}, 2))); }, sample({4, 10}, 1)).graph;
  PrintOptions bare;
  bare.notes = false;
  EXPECT_EQ(print(retype(plain, {{"x", Type{DType::f32, {7, 10}}}}), bare),
            print(captured(
                      [](const Tensor& x) {
                        return relu(matmul(x, sample({10, 3}, 2)));
                      },
                      sample({7, 10}, 1))
                      .graph,
                  bare));
  const Graph flat = captured([](const Tensor& x) { return reshape(x, {40}); }, sample({4, 10}, 1)).graph;
  const std::string refused = message_of<TypeError>([&] { retype(flat, {{"x", Type{DType::f32, {7, 10}}}}); });
  EXPECT_NE(refused.find("[reshape]"), std::string::npos) << refused;
  EXPECT_NE(refused.find("shapes_test.cpp"), std::string::npos) << refused;
  // Inference alone would accept these graphs. One of them bakes in 1/n of the batch; the other bakes in a batch of ones,
  // which broadcasts.
  const Graph average = captured([](const Tensor& x) { return mul(sum(x), 1.0 / 4); }, sample({4, 10}, 1)).graph;
  EXPECT_NE(message_of<TypeError>([&] {
              retype(average, {{"x", Type{DType::f32, {7, 10}}}});
            }).find("holds 0.25"),
            std::string::npos);
  const Graph ones = captured([](const Tensor& x) { return add(x, full({4, 10}, 1)); }, sample({4, 10}, 1)).graph;
  EXPECT_NE(message_of<TypeError>([&] {
              retype(ones, {{"x", Type{DType::f32, {1, 10}}}});
            }).find("holds 4"),
            std::string::npos);
}

// ---- plans fitted to smaller sizes ----

Graph as_passes_leave(const Graph& g) {
  PassRunner passes;
  return prepare(g, &passes);
}

// Does the work of DimBuckets: derives rules from the graphs after the passes, and makes the plan at the largest size.
struct UpperBound {
  Graph base, largest;
  DimTable table;
  Plan plan;
};

UpperBound upper_bound(const Graph& a, std::int64_t at_a, const Graph& b, std::int64_t at_b, const DimTable& raw,
                       std::int64_t most) {
  UpperBound u;
  u.table = raw;
  EXPECT_TRUE(find_rules(&u.table, {{&a, {at_a}}, {&b, {at_b}}}).found);
  const Graph at_most = retype(a, u.table, {{"b", most}});
  u.plan = make_plan(at_most);
  u.base = as_passes_leave(a);
  u.largest = as_passes_leave(at_most);
  const Graph other = as_passes_leave(b);
  const DimFindings findings = find_rules(&u.table, {{&u.base, {at_a}}, {&other, {at_b}}, {&u.largest, {most}}});
  EXPECT_TRUE(findings.found) << findings.why;
  return u;
}

TEST(FitPlan, ATrainingStepIsOneGraphAndOnePlan) {
  Trainer trainer;
  const Graph a = trainer.record(4), b = trainer.record(6);
  const UpperBound u = upper_bound(a, 4, b, 6, table_for({{"b", 1, 32}}, {{"x", 0, 0}, {"y", 0, 0}}), 32);
  const Refit refit(u.base, u.table, u.largest, u.plan);
  ASSERT_EQ(refit.obstacle(), "");
  for (std::int64_t n : {1, 2, 5, 31, 32}) {
    std::string why;
    const std::optional<Plan> fitted = fit_plan(u.plan, refit.planned_graph(retype(u.base, u.table, {{"b", n}})), &why);
    ASSERT_TRUE(fitted) << why;
    EXPECT_TRUE(check_plan(*fitted).empty()) << check_plan(*fitted).front();
    EXPECT_TRUE(check_clones(*fitted).empty());
    EXPECT_LE(fitted->peak_bytes, u.plan.peak_bytes);
    EXPECT_EQ(fitted->arena_bytes, u.plan.arena_bytes);
  }
}

// At b = 16 both slices are [0:16] of the table, so CSE would merge them.
Tensor first_and_fixed(const Tensor& x) {
  const Tensor table = concat({x, x, x}, 0);  // longer than any slice of it
  return add(sum(slice(table, {0, 0}, {x.size(0), 4})), sum(slice(table, {0, 0}, {16, 4})));
}

TEST(FitPlan, WhatIsEqualOnlyAtTheLargestSizeIsNotMerged) {
  const Graph a = as_passes_leave(captured(first_and_fixed, sample({6, 4}, 1)).graph),
              b = as_passes_leave(captured(first_and_fixed, sample({8, 4}, 1)).graph);
  DimTable table = table_for({{"b", 6, 16}}, {{"x", 0, 0}});
  ASSERT_TRUE(find_rules(&table, {{&a, {6}}, {&b, {8}}}).found);
  const Graph largest = retype(a, table, {{"b", 16}});
  const Plan plan = make_plan(largest);
  EXPECT_NE(Refit(a, table, largest, plan).obstacle().find("largest size"), std::string::npos)
      << Refit(a, table, largest, plan).obstacle();
  EXPECT_EQ(Refit(a, table, a, make_plan(a)).obstacle(), "") << "at 6 they are two";
}

TEST(CapturedDims, WhereTheLargestSizeIsSpecialEverySizeIsPlanned) {
  CapturedStepOptions options;
  options.dims.ranges = {{"b", 6, 16}};
  options.dims.inputs = {{"in0", {"b", ""}}};
  CapturedStep step =
      capture([](const std::vector<Tensor>& in) { return std::vector<Tensor>{first_and_fixed(in[0])}; }, options);
  for (std::int64_t n : {6, 8, 7, 16, 15, 6})
    EXPECT_TRUE(bit_equal(step({sample({n, 4}, 1)})[0], first_and_fixed(sample({n, 4}, 1)))) << n;
  EXPECT_EQ(step.recordings(), 2);
  EXPECT_TRUE(testing::mentions(step.explain(), "a plan for each size")) << step.explain();
}

// ---- DimBuckets: one plan for a range of sizes ----

TEST(DimBuckets, PlanOnceFitAfter) {
  Trainer trainer;
  DimOptions dims;
  dims.ranges = {{"b", 1, 32}};
  dims.inputs = {{"x", {"b", ""}}, {"y", {"b"}}};
  dims.capacity = 2;
  DimBuckets buckets(dims, {}, {});
  EXPECT_EQ(buckets.find({{"b", 4}}), nullptr);
  buckets.add(trainer.record(4), {{"b", 4}});
  EXPECT_EQ(buckets.find({{"b", 4}}), nullptr);
  EXPECT_FALSE(buckets.general());
  buckets.add(trainer.record(6), {{"b", 6}});
  ASSERT_TRUE(buckets.general()) << buckets.explain();
  for (std::int64_t n : {4, 6, 4, 6, 9}) {
    const std::shared_ptr<Executor> executor = buckets.find({{"b", n}});
    ASSERT_NE(executor, nullptr) << buckets.explain();
    EXPECT_EQ(executor->plan().graph.values[0].type.shape[0], n);
  }
  EXPECT_EQ(buckets.stats().hits, 2);
  EXPECT_EQ(buckets.stats().misses, 3);
  EXPECT_EQ(buckets.stats().fitted, 3);
  EXPECT_EQ(buckets.stats().planned, 1);
  EXPECT_EQ(buckets.stats().evicted, 1);
  buckets.find({{"b", 6}});
  EXPECT_EQ(buckets.stats().hits, 3) << "6 was used after 4";
  buckets.find({{"b", 4}});
  EXPECT_EQ(buckets.stats().misses, 4);
  EXPECT_NE(buckets.explain().find("one plan of"), std::string::npos) << buckets.explain();
  EXPECT_NE(buckets.explain().find("b: 1 to 32; x axis 0, y axis 0"), std::string::npos) << buckets.explain();
}

TEST(DimBuckets, WithoutUpperBoundEverySizeIsPlanned) {
  Trainer trainer;
  DimOptions dims;
  dims.ranges = {{"b"}};
  dims.inputs = {{"x", {"b", ""}}, {"y", {"b"}}};
  DimBuckets buckets(dims, {}, {});
  for (std::int64_t n : {4, 6}) buckets.add(trainer.record(n), {{"b", n}});
  ASSERT_NE(buckets.find({{"b", 300}}), nullptr);
  ASSERT_NE(buckets.find({{"b", 5}}), nullptr);
  EXPECT_EQ(buckets.stats().planned, 2);
  EXPECT_NE(buckets.explain().find("no upper bound"), std::string::npos) << buckets.explain();
}

TEST(DimBuckets, RefusesWhatWasNotDeclared) {
  const auto buckets = [](std::vector<DimRange> ranges, InputDims inputs) {
    DimOptions dims;
    dims.ranges = std::move(ranges);
    dims.inputs = std::move(inputs);
    return DimBuckets(dims, {}, {});
  };
  EXPECT_THROW(buckets({}, {{"x", {"b"}}}), UsageError);
  EXPECT_THROW(buckets({{"b", 1, 4}, {"b", 1, 4}}, {{"x", {"b"}}}), UsageError);
  EXPECT_THROW(buckets({{"b", 4, 1}}, {{"x", {"b"}}}), UsageError);
  EXPECT_THROW(buckets({{"b", 1, 4}, {"s", 1, 4}}, {{"x", {"b"}}}), UsageError);
  EXPECT_THROW(buckets({{"4b", 1, 4}}, {{"x", {"4b"}}}), UsageError);
  const DimBuckets good = buckets({{"b", 2, 4}}, {{"x", {"b", ""}}, {"y", {"b"}}});
  const auto sizes = [&](std::int64_t x, std::int64_t y) {
    return message_of<TypeError>([&] { good.sizes_of({{"x", Type{DType::f32, {x, 3}}}, {"y", Type{DType::i32, {y}}}}); });
  };
  EXPECT_EQ(good.sizes_of({{"x", Type{DType::f32, {3, 3}}}, {"y", Type{DType::i32, {3}}}}), (Sizes{{"b", 3}}));
  EXPECT_NE(sizes(5, 5).find("dimension 'b' is 5 by axis 0 of 'x'; it was declared from 2 to 4"), std::string::npos)
      << sizes(5, 5);
  EXPECT_NE(sizes(1, 1).find("declared from 2 to 4"), std::string::npos);
  EXPECT_NE(sizes(3, 4).find("3 by axis 0 of 'x' and 4 by axis 0 of 'y'"), std::string::npos) << sizes(3, 4);
}

// ---- captured steps with named dimensions ----

CapturedStepOptions with_batch(std::int64_t max) {
  CapturedStepOptions options;
  options.input_names = {"x", "y"};
  options.dims.ranges = {{"b", 1, max}};
  options.dims.inputs = {{"x", {"b", ""}}, {"y", {"b"}}};
  return options;
}

// Trains over batches of these sizes, captured or eager. Returns all losses and parameters.
std::vector<Tensor> train(bool captured, const std::vector<std::int64_t>& batches, CapturedStepOptions options, int* recordings,
                          std::string* explained) {
  manual_seed(5);
  Trainer trainer;
  CapturedStep step = capture([&](const std::vector<Tensor>& in) { return trainer.step(in); }, std::move(options));
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const std::vector<Tensor> in{sample({batches[i], 6}, static_cast<int>(i)), labels(batches[i], 4)};
    results.push_back((captured ? step(in) : trainer.step(in))[0].detach());
  }
  for (const Tensor& p : trainer.net.parameters()) results.push_back(copy(p.detach()));
  *recordings = step.recordings();
  *explained = step.explain();
  return results;
}

TEST(CapturedDims, ANewSizeNeitherRecordsNorPlansAndEqualsEager) {
  const std::vector<std::int64_t> batches{4, 6, 5, 4, 6, 32, 1, 5, 17, 4};
  int recordings = 0, none = 0;
  std::string explained, unused;
  const std::vector<Tensor> eager = train(false, batches, with_batch(32), &none, &unused);
  const std::vector<Tensor> captured = train(true, batches, with_batch(32), &recordings, &explained);
  EXPECT_EQ(recordings, 2) << explained;
  ASSERT_EQ(eager.size(), captured.size());
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << i << "\n" << explained;
  EXPECT_TRUE(testing::mentions(explained, "(6 fitted, 1 planned, 0 evicted")) << explained;
  EXPECT_TRUE(testing::mentions(explained, "one graph for all sizes")) << explained;
  EXPECT_TRUE(testing::mentions(explained, "made from recordings at other sizes")) << explained;
}

// The factor that makes the running variance unbiased follows the batch, so a batch norm is one graph for all sizes.
TEST(CapturedDims, ABatchNormSettlesAfterTwoRecordings) {
  struct Normed : Module {
    Linear fc{*this, "fc", 6, 8};
    BatchNorm1d bn{*this, "bn", 8};
    Tensor operator()(const Tensor& x) { return bn(fc(x)); }
  };
  const auto run = [](bool with_capture, int* recordings, std::string* explained) {
    manual_seed(5);
    Normed net;
    Sgd optimizer(net.parameters(), {.lr = 0.1});
    const auto body = [&](const std::vector<Tensor>& in) {
      const Tensor loss = sum(square(net(in[0]) - 1));
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      return std::vector<Tensor>{loss};
    };
    CapturedStepOptions options;
    options.input_names = {"x"};
    options.dims.ranges = {{"b", 1, 64}};
    options.dims.inputs = {{"x", {"b", ""}}};
    CapturedStep step = capture(body, std::move(options));
    std::vector<Tensor> results;
    for (int i = 0; i < 24; ++i) {
      const std::vector<Tensor> in{sample({1 + (i * 7 + 3) % 40, 6}, i)};
      results.push_back((with_capture ? step(in) : body(in))[0].detach());
    }
    for (const Tensor& t : {net.bn.running_mean, net.bn.running_var, net.fc.weight}) results.push_back(copy(t.detach()));
    *recordings = step.recordings();
    *explained = step.explain();
    return results;
  };
  int recordings = 0, none = 0;
  std::string explained, unused;
  const std::vector<Tensor> eager = run(false, &none, &unused), captured = run(true, &recordings, &explained);
  EXPECT_EQ(recordings, 2) << explained;
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << i << "\n" << explained;
}

// With a batch of 0, the parts of the joined value have no bytes at all.
TEST(CapturedDims, ARangeMayBeginAtNothing) {
  Tensor k = sample({3, 2, 3, 3}, 1);
  k.role(Role::parameter);
  const auto joined = [k](const std::vector<Tensor>& in) {
    const NoGrad off;
    const Tensor y = relu(conv2d(in[0], k, ConvAttrs{.padding = {1, 1}}));
    return std::vector<Tensor>{sum(concat({y, in[0]}, 1), {0, 2, 3})};
  };
  CapturedStepOptions options;
  options.input_names = {"x"};
  options.dims.ranges = {{"b", 0, 8}};
  options.dims.inputs = {{"x", {"b", "", "", ""}}};
  CapturedStep step = capture(joined, options);
  for (const std::int64_t b : {2, 3, 4, 0, 4, 0, 8, 1}) {
    const std::vector<Tensor> in{sample({b, 2, 4, 4}, 7)};
    EXPECT_TRUE(bit_equal(step(in)[0], joined(in)[0])) << b << "\n" << step.explain();
  }
  EXPECT_EQ(step.recordings(), 2) << step.explain();
  EXPECT_TRUE(testing::mentions(step.explain(), "(4 fitted, 1 planned")) << step.explain();
}

TEST(CapturedDims, FewExecutorsAreKept) {
  std::vector<std::int64_t> batches{4, 6};
  for (int round = 0; round < 3; ++round)
    for (std::int64_t n = 1; n <= 8; ++n) batches.push_back(n);
  CapturedStepOptions options = with_batch(8);
  options.dims.capacity = 3;
  int recordings = 0;
  std::string explained;
  const std::vector<Tensor> eager = train(false, batches, with_batch(8), &recordings, &explained);
  const std::vector<Tensor> captured = train(true, batches, options, &recordings, &explained);
  EXPECT_EQ(recordings, 2);
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << i;
  EXPECT_TRUE(testing::mentions(explained, "buckets: 3 in use")) << explained;
}

TEST(CapturedDims, UnderABudgetTheLargestSizeSetsThePlan) {
  const std::vector<std::int64_t> batches{4, 6, 3, 12, 7};
  CapturedStepOptions options = with_batch(12);
  options.plan.budget_percent = 97;
  int recordings = 0;
  std::string explained;
  const std::vector<Tensor> eager = train(false, batches, with_batch(12), &recordings, &explained);
  const std::vector<Tensor> captured = train(true, batches, options, &recordings, &explained);
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << i << explained;
}

TEST(CapturedDims, ABranchOnTheSizeIsRecordedSizeBySize) {
  CapturedStepOptions options;
  options.dims.ranges = {{"b", 1, 16}};
  options.dims.inputs = {{"in0", {"b", ""}}};
  const StepFunction branch = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0].size(0) > 5 ? relu(in[0]) : exp(in[0])};
  };
  CapturedStep step = capture(branch, options);
  for (int round = 0; round < 3; ++round)
    for (std::int64_t n : {4, 6, 8, 3}) {
      const Tensor x = sample({n, 3}, round);
      EXPECT_TRUE(bit_equal(step({x})[0], branch({x})[0])) << n;
    }
  EXPECT_EQ(step.recordings(), 8) << "twice at each size";
  EXPECT_TRUE(testing::mentions(step.explain(), "not one graph for all sizes")) << step.explain();
}

TEST(CapturedDims, OutOfRangeIsAnErrorBeforeAnythingRuns) {
  int calls = 0;
  CapturedStepOptions options;
  options.dims.ranges = {{"b", 2, 8}};
  options.dims.inputs = {{"in0", {"b"}}};
  CapturedStep step = capture(
      [&](const std::vector<Tensor>& in) {
        ++calls;
        return std::vector<Tensor>{relu(in[0])};
      },
      options);
  EXPECT_TRUE(testing::mentions(message_of<TypeError>([&] { step({sample({9}, 1)}); }), "declared from 2 to 8"));
  EXPECT_EQ(calls, 0);
}

TEST(CapturedDims, CheckedModeComparesASizeThatWasNeverRecorded) {
  CapturedStepOptions options;
  options.dims.ranges = {{"b", 1, 64}};
  options.dims.inputs = {{"in0", {"b", ""}}};
  // The shape follows another rule above size 20, which two small recordings cannot show.
  CapturedStep step = capture(
      [](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{reshape(in[0], {in[0].size(0) * (in[0].size(0) > 20 ? 3 : 1), in[0].size(0) > 20 ? 1 : 3})};
      },
      options);
  step({sample({4, 3}, 1)});
  step({sample({6, 3}, 1)});
  EXPECT_EQ(step({sample({30, 3}, 1)})[0].shape(), (Shape{30, 3})) << "the declared range promises one program";
  step.set_mode(CaptureMode::checked);
  EXPECT_NO_THROW(step({sample({9, 3}, 1)}));
  EXPECT_TRUE(testing::mentions(message_of<CaptureError>([&] { step({sample({31, 3}, 1)}); }), "reshape"));
}

// A recurrent step over sequences of any length and batch. The types in the loop's body and in its gradient must follow the
// sizes.
TEST(CapturedDims, LoopsFollowBatchAndLength) {
  for (const std::int64_t keep : {0, 2}) {
    CapturedStepOptions options;
    options.dims.ranges = {{"s", 1, 12}, {"b", 1, 6}};
    options.dims.inputs = {{"in0", {"s", "b", ""}}};
    Tensor w = sample({3, 4}, 7), u = sample({4, 4}, 8);
    for (Tensor* t : {&w, &u}) t->role(Role::parameter).requires_grad(true);
    w.name("w");
    u.name("u");
    const StepFunction fn = [&, keep](const std::vector<Tensor>& in) {
      const Tensor h = zeros({in[0].size(1), 4});
      const LoopResult r = scan([&](const Tensors& t) { return Tensors{tanh(add(matmul(t[1], w), matmul(t[0], u)))}; }, {h},
                                {in[0]}, {}, {.checkpoint_every = keep});
      const Tensor loss = mean(mul(r.carried[0], r.carried[0]));
      w.set_grad(Tensor());
      u.set_grad(Tensor());
      backward(loss);
      return std::vector<Tensor>{loss, w.grad(), u.grad()};
    };
    CapturedStep step = capture(fn, options);
    const std::vector<std::pair<std::int64_t, std::int64_t>> calls{{4, 2}, {6, 2}, {6, 5}, {3, 3}, {12, 6}, {1, 1}, {5, 4}};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Tensor x = sample({calls[i].first, calls[i].second, 3}, static_cast<int>(i));
      const std::vector<Tensor> got = step({x}), want = fn({x});
      for (std::size_t k = 0; k < want.size(); ++k) EXPECT_TRUE(bit_equal(got[k], want[k])) << "call " << i << " result " << k;
    }
    EXPECT_LE(step.recordings(), 4) << step.explain();
    EXPECT_GE(step.replays(), 3) << step.explain();
  }
}

// MXNet's test: a convolution over images with batch 4 and then 2.
TEST(CapturedDims, T109_StaticMemorySwitching) {
  struct Images : Module {
    Conv2d conv{*this, "conv", 3, 8, 3};
    Linear fc{*this, "fc", 8, 10};
    Tensor operator()(const Tensor& x) { return fc(mean(relu(conv(x)), {2, 3})); }
  };
  for (const int mode : {0, 1, 2}) {  // 0: no dimension, 1: a dimension with an upper bound, 2: without
    CapturedStepOptions options;
    if (mode > 0) {
      options.dims.ranges = {{"b", 1, mode == 1 ? 8 : DimRange::kUnbounded}};
      options.dims.inputs = {{"in0", {"b", "", "", ""}}};
    }
    manual_seed(3);
    Images net;
    Sgd optimizer(net.parameters(), {.lr = 0.1});
    const StepFunction forward = [&](const std::vector<Tensor>& in) {
      const NoGrad no_grad;
      return std::vector<Tensor>{net(in[0])};
    };
    const StepFunction training = [&](const std::vector<Tensor>& in) {
      const Tensor loss = mean(net(in[0]));
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      return std::vector<Tensor>{loss};
    };
    CapturedStep plain = capture(forward, options), recorded = capture(training, options);
    for (int round = 0; round < 4; ++round)
      for (const std::int64_t n : {4, 2, 3}) {
        const Tensor x = sample({n, 3, 32, 32}, round);
        EXPECT_TRUE(bit_equal(plain({x})[0], forward({x})[0])) << mode << " " << n;
        std::vector<Tensor> before;
        for (const Tensor& p : net.parameters()) before.push_back(copy(p.detach()));
        const Tensor loss = recorded({x})[0].detach();
        std::vector<Tensor> after;
        for (Tensor p : net.parameters()) after.push_back(copy(p.detach()));
        {
          const NoGrad no_grad;
          for (std::size_t i = 0; i < before.size(); ++i) copy_(net.parameters()[i], before[i]);
        }
        EXPECT_TRUE(bit_equal(loss, training({x})[0].detach())) << mode << " " << n;
        for (std::size_t i = 0; i < after.size(); ++i)
          EXPECT_TRUE(bit_equal(after[i], net.parameters()[i].detach())) << mode << " parameter " << i;
      }
    EXPECT_EQ(recorded.recordings(), mode == 0 ? 6 : 2) << recorded.explain();
  }
}

// ---- the models of the zoo ----

Graph recorded_at(const Model& model, std::int64_t batch) {
  ModelOptions options;
  options.batch = batch;
  options.abstract = true;
  return record_model(model, options).graph;
}

// Names every input axis that differs between recordings with batch 2 and 3.
DimTable batch_table(const Graph& a, const Graph& b) {
  DimTable table;
  table.dims = {{"b", 1, 64}};
  for (ValueId v = 0; v < a.n_inputs; ++v)
    for (int axis = 0; axis < a.values[v].type.shape.rank; ++axis)
      if (a.values[v].type.shape[axis] != b.values[v].type.shape[axis]) table.axes.push_back({a.value_name(v), axis, 0});
  return table;
}

TEST(ZooDims, AModelIsOneGraphForEveryBatch) {
  // A language model that carries its hidden state is an exception: it has state of the batch's size, and state keeps its type.
  const std::set<std::string> carried_state{"lstm_lm", "lstm_lm_untied"};
  int general = 0;
  for (const Model& model : all_models()) {
    if (std::find(model.options.begin(), model.options.end(), "batch") == model.options.end()) continue;
    SCOPED_TRACE(model.name);
    std::vector<Graph> graphs{recorded_at(model, 2), recorded_at(model, 3)};
    DimTable table = batch_table(graphs[0], graphs[1]);
    DimFindings findings = find_rules(&table, {{&graphs[0], {2}}, {&graphs[1], {3}}});
    if (findings.more) {
      graphs.push_back(recorded_at(model, 4));
      findings = find_rules(&table, {{&graphs[0], {2}}, {&graphs[1], {3}}, {&graphs[2], {4}}});
    }
    if (!findings.found) {
      const bool expected = carried_state.count(model.name) && testing::mentions(findings.why, "slice");
      EXPECT_TRUE(expected) << findings.why;
      continue;
    }
    ++general;
    PrintOptions bare;
    bare.notes = false;
    EXPECT_EQ(print(retype(graphs[0], table, {{"b", 7}}), bare), print(recorded_at(model, 7), bare));
  }
  EXPECT_GT(general, 18);
}

// tests/bench/shape_bench measures the time of fitting.
TEST(ZooDims, PlansFitSmallerSizes) {
  for (const char* name : {"vgg16", "gpt2"}) {
    const Model* model = find_model(name);
    ASSERT_NE(model, nullptr) << name;
    const std::vector<Graph> graphs{recorded_at(*model, 2), recorded_at(*model, 3)};
    const UpperBound u = upper_bound(graphs[0], 2, graphs[1], 3, batch_table(graphs[0], graphs[1]), 64);
    const Plan& plan = u.plan;
    const Refit refit(u.base, u.table, u.largest, plan);
    std::string why;
    const std::optional<Plan> fitted = fit_plan(plan, refit.planned_graph(retype(u.base, u.table, {{"b", 37}})), &why);
    ASSERT_EQ(refit.obstacle(), "") << name;
    ASSERT_TRUE(fitted) << name << ": " << why;
    const std::vector<std::string> violations = check_plan(*fitted);
    EXPECT_TRUE(violations.empty()) << name << ": " << violations.front();
    EXPECT_LE(fitted->peak_bytes, plan.peak_bytes);
    EXPECT_EQ(fitted->arena_bytes, plan.arena_bytes) << name;
    EXPECT_EQ(fitted->values.size(), plan.values.size()) << name;
  }
}

}  // namespace
}  // namespace tapedeck
