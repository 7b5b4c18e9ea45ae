// Tests parts: values written straight into their place in the result of a join. The tests compare exact bytes, count the
// kernel calls that fall away, and expect the bits of an eager run.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/schedules/write_clones.h>
#include <tapedeck/tests/capture/byte_simulation.h>
#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/seeds.h>
#include <tapedeck/tests/engine/value_named.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/explain/sharing_bounds.h>
#include <tapedeck/capture/planner/finish_plan.h>
#include <tapedeck/capture/planner/joins/join_choice.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/text/example.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace tapedeck {
namespace {

std::string complaints(const Plan& plan) { return fmt::format("{}", fmt::join(check_plan(plan), "\n")); }

Plan sound_plan(const Graph& graph, PlanOptions options = {}) {
  options.alignment = 1;
  const Plan plan = make_plan(graph, options);
  EXPECT_EQ(complaints(plan), "");
  for (unsigned seed = 0; seed < 3; ++seed) EXPECT_EQ(test::ByteSimulation(plan).run(seed), "");
  return plan;
}

// The ops whose kernels a replay of the plan calls.
std::multiset<std::string> calls(const Plan& plan) {
  Executor executor(plan);
  set_all(executor, stand_ins(plan.graph, 0, plan.graph.n_inputs, 0),
          stand_ins(plan.graph, plan.graph.n_inputs, plan.graph.n_state, 7));
  Timeline timeline;
  executor.run(&timeline);
  std::multiset<std::string> ops;
  for (const Slice& s : timeline.slices) ops.insert(plan.graph.nodes[s.node].op->name);
  return ops;
}

// Each layer computes four channels from the last four of the block and joins them to the block.
Graph growing(int layers, int batch, bool lists) {
  const auto type = [&](int channels) { return fmt::format("f32[{},{},3,5]", batch, channels); };
  std::string text = fmt::format("graph g(%x: {}) {{\n  %y0: {} = tanh(%x)\n", type(4), type(4)), all = "%y0";
  for (int i = 1; i <= layers; ++i) {
    const int channels = 4 * i;
    const std::string so_far = i == 1 ? "%y0" : fmt::format("%c{}", i - 1);
    text += fmt::format("  %s{}: {} = slice({}) {{starts=[0,{},0,0], stops=[{},{},3,5]}}\n", i, type(4), so_far, channels - 4,
                        batch, channels);
    text += fmt::format("  %y{0}: {1} = tanh(%s{0})\n", i, type(4));
    all += fmt::format(", %y{}", i);
    text += fmt::format("  %c{}: {} = concat({}) {{axis=1}}\n", i, type(channels + 4),
                        lists ? all : fmt::format("{}, %y{}", so_far, i));
  }
  return parse(text + fmt::format("  %r: f32[] = sum(%c{}) {{axes=[0,1,2,3]}}\n  return %r\n}}", layers));
}

std::int64_t workspace_of(const Plan& plan) {
  std::int64_t most = 0;
  for (const Scratch& s : plan.workspace) most = std::max(most, s.bytes);
  return most;
}

// ---- chains of joins ----

TEST(Parts, AChainOfFiftyJoinsTakesTheBytesOfItsLast) {
  for (const int batch : {1, 4})
    for (const bool lists : {false, true}) {
      SCOPED_TRACE(fmt::format("batch {}, {}", batch, lists ? "lists" : "chain"));
      const Graph g = growing(50, batch, lists);
      const Plan plan = sound_plan(g);
      const std::int64_t whole = std::int64_t{batch} * 4 * (1 + 50) * 3 * 5 * 4;
      EXPECT_EQ(plan.arena_bytes, whole + workspace_of(plan));
      EXPECT_EQ(calls(plan).count("concat"), 0u);
      EXPECT_EQ(calls(plan).count("tanh"), 51u);
      check_replay(g);
    }
}

TEST(Parts, WithoutThemAChainCopiesAtEachJoin) {
  PlanOptions options;
  options.sharing = Sharing::all & ~Sharing::parts;
  const Plan plan = sound_plan(growing(50, 1, false), options);
  EXPECT_EQ(calls(plan).count("concat"), 50u);
  for (const Placement& p : plan.values) EXPECT_NE(p.reason, Reason::part);
}

// The gradient of a layer is a window on the gradient of the whole block. Only the last layer's gradient, which one node
// reads, is joined from values that exist already.
TEST(Parts, TheGradientOfAChainCopiesNothingOfItsLayers) {
  for (const int batch : {1, 4}) {
    const int layers = batch == 1 ? 50 : 20;
    const Graph g = growing(layers, batch, true);
    const ValueId wrt[] = {0};
    GraphGradient made = gradient(g, g.outputs, wrt);
    made.graph.outputs = made.gradients;
    made.graph.output_names.clear();
    const Plan plan = sound_plan(made.graph);
    const std::multiset<std::string> ops = calls(plan);
    EXPECT_LE(ops.count("concat") + ops.count("slice") + ops.count("copy"), 1u) << batch << ": of " << layers << " layers";
    check_replay(made.graph, {}, 1);
  }
}

// Convolutions that each read the whole block: the core of a DenseNet block.
Graph dense_block(int layers, int batch) {
  std::string state, body = fmt::format("  %c0: f32[{0},8,6,6] = relu(%x)\n", batch);
  for (int i = 1; i <= layers; ++i) {
    const int channels = 8 + 4 * (i - 1);
    state += fmt::format("{}%w{}: f32[4,{},3,3]", i == 1 ? "" : ", ", i, channels);
    body += fmt::format("  %y{0}: f32[{1},4,6,6] = conv2d(%c{2}, %w{0}) {{padding=[1,1]}}\n", i, batch, i - 1);
    body += fmt::format("  %c{0}: f32[{1},{2},6,6] = concat(%c{3}, %y{0}) {{axis=1}}\n", i, batch, channels + 4, i - 1);
  }
  return parse(
      fmt::format("graph g(%x: f32[{},8,6,6]) state({}) {{\n{}  %r: f32[] = sum(%c{}) {{axes=[0,1,2,3]}}\n  return %r\n}}",
                  batch, state, body, layers));
}

TEST(Parts, ConvolutionsWriteIntoTheBlock) {
  for (const int batch : {1, 3}) {
    const Graph g = dense_block(12, batch);
    const Plan plan = sound_plan(g);
    EXPECT_EQ(calls(plan).count("concat"), 0u);
    EXPECT_EQ(plan.lower_bound_bytes - plan.external_bytes, std::int64_t{batch} * (8 + 4 * 12) * 36 * 4 + workspace_of(plan));
    check_replay(g);
  }
}

// A DenseNet block (norm, relu, convolution, and a join with all values before) and the transition to the next block.
Graph densenet(int layers, int batch) {
  const auto type = [&](int channels, int size = 6) { return fmt::format("f32[{},{},{},{}]", batch, channels, size, size); };
  std::string state, body = fmt::format("  %y0: {} = relu(%x)\n", type(8)), all = "%y0";
  const auto norm = [&](int i, const std::string& x, int channels) {
    state += fmt::format("%g{0}: f32[{1}], %b{0}: f32[{1}], ", i, channels);
    body += fmt::format("  %n{0}: {1}, %m{0}: f32[{2}], %v{0}: f32[{2}] = batch_norm({3}, %g{0}, %b{0})\n", i, type(channels),
                        channels, x);
    body += fmt::format("  %a{0}: {1} = relu(%n{0})\n", i, type(channels));
  };
  for (int i = 1; i <= layers; ++i) {
    const int channels = 8 + 4 * (i - 1);
    norm(i, i == 1 ? "%y0" : fmt::format("%c{}", i - 1), channels);
    state += fmt::format("%w{}: f32[4,{},3,3], ", i, channels);
    body += fmt::format("  %y{0}: {1} = conv2d(%a{0}, %w{0}) {{padding=[1,1]}}\n", i, type(4));
    all += fmt::format(", %y{}", i);
    body += fmt::format("  %c{}: {} = concat({}) {{axis=1}}\n", i, type(channels + 4), all);
  }
  const int last = layers + 1, channels = 8 + 4 * layers;
  norm(last, fmt::format("%c{}", layers), channels);
  state += fmt::format("%w{}: f32[4,{},1,1]", last, channels);
  body += fmt::format("  %y{0}: {1} = conv2d(%a{0}, %w{0})\n  %p: {2} = avg_pool2d(%y{0})\n", last, type(4), type(4, 3));
  body += "  %q: " + type(4, 3) + " = tanh(%p)\n  %r: f32[] = sum(%q) {axes=[0,1,2,3]}\n";
  return parse("graph g(%x: " + type(8) + ") state(" + state + ") {\n" + body + "  return %r\n}");
}

Graph with_gradients(const Graph& g) {
  std::vector<ValueId> wrt;
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) wrt.push_back(v);
  GraphGradient made = gradient(g, g.outputs, wrt);
  made.graph.outputs = made.gradients;
  made.graph.output_names.clear();
  return made.graph;
}

std::size_t copies(const Plan& plan) {
  const std::multiset<std::string> ops = calls(plan);
  std::size_t n = 0;
  for (const char* op : {"concat", "slice", "copy", "contiguous", "pad", "reshape"}) n += ops.count(op);
  return n;
}

TEST(Parts, ADenseNetBlockCopiesNothing) {
  for (const int batch : {1, 4}) {
    SCOPED_TRACE(fmt::format("batch {}", batch));
    std::vector<std::int64_t> bytes;
    for (const int layers : {4, 8, 12}) {
      const Plan plan = sound_plan(densenet(layers, batch));
      EXPECT_EQ(copies(plan), 0u);
      bytes.push_back(plan.lower_bound_bytes - plan.external_bytes - workspace_of(plan));
    }
    EXPECT_EQ(bytes[2] - bytes[1], bytes[1] - bytes[0]) << "linear in the number of layers";
    check_replay(densenet(6, batch));
  }
}

TEST(Parts, ADenseNetBlockCopiesNothingInItsGradient) {
  for (const int batch : {1, 4}) {
    SCOPED_TRACE(fmt::format("batch {}", batch));
    for (const int layers : {4, 12}) {
      const Plan plan = sound_plan(with_gradients(densenet(layers, batch)));
      EXPECT_EQ(copies(plan), 0u) << layers << " layers";
    }
    check_replay(with_gradients(densenet(6, batch)), {}, 1);
  }
}

// ---- values that may be parts, and values that may not ----

TEST(Parts, OfOneThingTwiceOnlyTheFirst) {
  const Plan plan = sound_plan(parse(R"(graph g(%x: f32[2,3]) {
    %a: f32[2,3] = exp(%x)
    %c: f32[4,3] = concat(%a, %a) {axis=0}
    %d: f32[6,3] = concat(%c, %a) {axis=0}
    %r: f32[6,3] = neg(%d)
    return %r
  })"));
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "a")].reason, Reason::part);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "a")].other, testing::value_named(plan.graph, "c"));
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "c")].reason, Reason::part);
  EXPECT_EQ(calls(plan).count("concat"), 2u) << "each has a copy of a to make";
  check_replay(plan.graph);
}

TEST(Parts, OfAnOutputLieInItsSlot) {
  const Plan plan = sound_plan(parse(R"(graph g(%x: f32[2,3]) {
    %a: f32[2,3] = exp(%x)
    %b: f32[2,3] = tanh(%x)
    %c: f32[2,6] = concat(%a, %b) {axis=1}
    return %c
  })"));
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "b")].where, Where::output);
  EXPECT_EQ(calls(plan).count("concat"), 0u);
  check_replay(plan.graph);
}

TEST(Parts, AStackIsAJoinOfViews) {
  for (const int axis : {0, 1, 2}) {
    const std::string piece = axis == 0 ? "[1,4,3]" : axis == 1 ? "[4,1,3]" : "[4,3,1]";
    const std::string whole = axis == 0 ? "[2,4,3]" : axis == 1 ? "[4,2,3]" : "[4,3,2]";
    const Graph g = parse(fmt::format(R"(graph g(%x: f32[4,3]) {{
      %a: f32[4,3] = exp(%x)
      %b: f32[4,3] = tanh(%x)
      %u: f32{0} = reshape(%a) {{shape={0}}}
      %v: f32{0} = reshape(%b) {{shape={0}}}
      %c: f32{1} = concat(%u, %v) {{axis={2}}}
      %r: f32[] = sum(%c) {{axes=[0,1,2]}}
      return %r
    }})",
                                      piece, whole, axis));
    const Plan plan = sound_plan(g);
    EXPECT_EQ(calls(plan).count("concat"), 0u) << "axis " << axis;
    EXPECT_EQ(plan.arena_bytes, 2 * 48 + workspace_of(plan));
    check_replay(g);
  }
}

TEST(Parts, WhatIsPaddedLiesWithinTheZeros) {
  const Graph g = parse(R"(graph g(%x: f32[2,3]) {
    %a: f32[2,3] = exp(%x)
    %p: f32[5,7] = pad(%a) {before=[1,3], after=[2,1]}
    %r: f32[5,7] = mul(%p, %p)
    return %r
  })");
  const Plan plan = sound_plan(g);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "a")].reason, Reason::part);
  EXPECT_EQ(plan.arena_bytes, 5 * 7 * 4);
  check_replay(g);
}

// These values must not be parts: inputs, state, constants, outputs, updates, and values whose reader needs a dense operand.
TEST(Parts, WhoHasBytesElsewhereIsCopied) {
  const Graph g = parse(R"(graph g(%x: f32[2,3]) state(%s: f32[2,3]) {
    %k: f32[2,3] = constant() {value=[1.0,2.0,3.0,4.0,5.0,6.0]}
    %a: f32[2,3] = exp(%x)
    %t: f32[2,3] = tanh(%s)
    %m: f32[2,3] = neg(%a)
    %q: f32[2,3] = softmax(%m) {axis=1}
    %c: f32[2,15] = concat(%x, %k, %a, %t, %m) {axis=1}
    %r: f32[] = sum(%c) {axes=[0,1]}
    return %r, %a, %q
    update %s = %t
  })");
  const Plan plan = sound_plan(g);
  for (const char* name : {"x", "s", "k", "a", "t"})
    EXPECT_NE(plan.values[testing::value_named(plan.graph, name)].reason, Reason::part) << name;
  check_replay(g);
}

// Convolutions can read and write images with gaps between them, so their images can be parts. Softmax needs one dense
// block. The checker knows both.
TEST(Parts, ImagesApartAreForThoseWhoDeclareThem) {
  PlanOptions recorded;
  recorded.ordering = Ordering::recorded;
  const auto plan_of = [&](const char* maker, const char* reader) {
    return sound_plan(parse(fmt::format(R"(graph g(%x: f32[2,4,3,3]) state(%w: f32[4,4,1,1]) {{
      %a: f32[2,4,3,3] = tanh(%x)
      %b: f32[2,4,3,3] = {}
      %c: f32[2,8,3,3] = concat(%a, %b) {{axis=1}}
      %d: f32[2,4,3,3] = {}
      %e: f32[2,8,3,3] = neg(%c)
      return %d, %e
    }})",
                                        maker, reader)),
                      recorded);
  };
  const Plan good = plan_of("conv2d(%x, %w)", "conv2d(%b, %w)");
  EXPECT_EQ(good.values[testing::value_named(good.graph, "b")].reason, Reason::part);
  EXPECT_FALSE(good.values[testing::value_named(good.graph, "b")].dense);
  for (const auto& [other, complaint] : {std::pair(plan_of("softmax(%x) {axis=1}", "conv2d(%b, %w)"), "does not write"),
                                         std::pair(plan_of("conv2d(%x, %w)", "softmax(%b) {axis=1}"), "does not take")}) {
    EXPECT_NE(other.values[testing::value_named(other.graph, "b")].reason, Reason::part) << complaint;
    Plan forced = good;
    forced.graph = other.graph;
    EXPECT_NE(complaints(forced).find(complaint), std::string::npos) << complaints(forced);
  }
}

// If %early were a part, the join would hold its bytes during a long wait. So only late values are written into the join.
TEST(Parts, TheJoinIsNotBornTooEarly) {
  const Graph g = parse(R"(graph g(%x: f32[100]) {
    %early: f32[100] = exp(%x)
    %big: u8[9000] = opaque(%early) {us=1.0}
    %mid: f32[2000] = opaque(%big) {us=1.0}
    %late: f32[2000] = tanh(%mid)
    %c: f32[2100] = concat(%early, %late) {axis=0}
    %r: f32[] = sum(%c) {axes=[0]}
    return %r
  })");
  const Plan plan = sound_plan(g);
  PlanOptions without;
  without.sharing = Sharing::all & ~Sharing::parts;
  EXPECT_NE(plan.values[testing::value_named(plan.graph, "early")].reason, Reason::part);
  EXPECT_EQ(plan.values[testing::value_named(plan.graph, "late")].reason, Reason::part);
  EXPECT_LE(plan.lower_bound_bytes, sound_plan(g, without).lower_bound_bytes);
}

// ---- sums of gradient pieces ----

// A thousand nodes read one weight. Each piece of its gradient is added to the sum as soon as it is computed.
TEST(Parts, AThousandPiecesTakeTheBytesOfTheSum) {
  std::string text = "graph g(%x: f32[1000,8], %d: f32[1000,6]) {\n";
  for (int i = 0; i < 1000; ++i) {
    text += fmt::format(
        "  %a{0}: f32[1,8] = slice(%x) {{starts=[{0},0], stops=[{1},8]}}\n  %t{0}: f32[8,1] = transpose(%a{0}) "
        "{{axes=[1,0]}}\n",
        i, i + 1);
    text += fmt::format("  %b{0}: f32[1,6] = slice(%d) {{starts=[{0},0], stops=[{1},6]}}\n", i, i + 1);
    text += fmt::format("  %p{0}: f32[8,6] = matmul(%t{0}, %b{0}) [phase=backward]\n", i);
    if (i > 0)
      text +=
          fmt::format("  %s{0}: f32[8,6] = add({1}, %p{0}) [phase=backward]\n", i, i == 1 ? "%p0" : fmt::format("%s{}", i - 1));
  }
  const Graph g = parse(text + "  %r: f32[8,6] = neg(%s999)\n  return %r\n}");
  const Plan plan = make_plan(g);  // CTest has checked this plan already; simulating it byte by byte would take minutes
  EXPECT_EQ(check_plan(plan), std::vector<std::string>{});
  EXPECT_EQ(plan.arena_bytes, 8 * 6 * 4);
  PlanOptions without;
  without.sharing = Sharing::all & ~Sharing::add_to;
  EXPECT_EQ(make_plan(g, without).arena_bytes, 2 * 8 * 6 * 4) << "the sum and a piece";
  check_replay(g, {}, 1);
}

// ---- bytes that each sharing rule saves ----

TEST(SharingBounds, SayWhatEachRuleEarns) {
  PlanOptions options;
  options.ordering = Ordering::recorded;
  options.alignment = 1;
  // Two layers share one weight, so two gradients add up; there are also a view, a join and an update.
  const Graph g = parse(R"(graph g(%x: f32[8,8]) state(%w: f32[8,8]) {
    %h: f32[8,8] = matmul(%x, %w)
    %a: f32[8,8] = relu(%h)
    %k: f32[8,8] = matmul(%a, %w)
    %b: f32[8,8] = exp(%k)
    %c: f32[8,16] = concat(%a, %b) {axis=1}
    %u: f32[16,8] = transpose(%c) {axes=[1,0]}
    %p: f32[16,8] = matmul(%u, %x) [phase=backward]
    %d1: f32[8,8] = slice(%p) {starts=[0,0], stops=[8,8]} [phase=backward]
    %d2: f32[8,8] = matmul(%x, %x) [phase=backward]
    %s: f32[8,8] = add(%d1, %d2) [phase=backward]
    %w2: f32[8,8] = sub(%w, %s) [phase=update]
    %r: f32[] = sum(%c) {axes=[0,1]}
    return %r
    update %w = %w2
  })");
  const std::vector<SharingBound> bounds = sharing_bounds(g, options);
  ASSERT_EQ(bounds.size(), 7u);
  const char* const names[] = {
      "all", "without windows", "without in_place", "without add_to", "without parts", "without updates", "none"};
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    EXPECT_EQ(bounds[i].rules, names[i]);
    EXPECT_GE(bounds[i].lower_bound_bytes, bounds[0].lower_bound_bytes) << names[i];
    EXPECT_GE(bounds[i].peak_bytes, bounds[i].lower_bound_bytes) << names[i];
    PlanOptions each = options;
    each.sharing = bounds[i].sharing;
    EXPECT_EQ(make_plan(g, each).lower_bound_bytes, bounds[i].lower_bound_bytes) << names[i];
    check_replay(g, each);
  }
  EXPECT_GT(bounds.back().lower_bound_bytes, bounds[0].lower_bound_bytes);
  EXPECT_STREQ(sharing_name(Sharing::add_to), "add_to");
}

// With parts a block of joins takes the bytes of its last join. Without parts it also takes the bytes of the copied values.
TEST(SharingBounds, PartsEarnTheOtherHalfOfABlock) {
  const std::vector<SharingBound> bounds = sharing_bounds(growing(10, 2, true));
  for (const SharingBound& b : bounds) {
    const bool parts = has(b.sharing, Sharing::parts);
    EXPECT_TRUE(parts || b.lower_bound_bytes >= bounds[0].lower_bound_bytes + 2 * 40 * 15 * 4) << b.rules;
  }
}

// ---- windows that ops declare for their operands ----

// For every example of every op that declares windows for its operands: the windows do not overlap and contain the operands'
// elements.
TEST(Parts, DeclarationsHoldOnTheExamples) {
  std::vector<const Op*> joining;
  for (const Op* op : all_ops())
    if (op->part) joining.push_back(op);
  ASSERT_FALSE(joining.empty());
  for (const Op* op : joining)
    for (const char* text : op->examples) {
      SCOPED_TRACE(text);
      const ParsedExample example = parse_example(*op, text);
      const std::vector<Type> types = example.types();
      std::vector<Tensor> operands;
      for (std::size_t i = 0; i < types.size(); ++i) operands.push_back(default_value(types[i], i + 1, "x"));
      const Tensor whole = apply_all(*op, operands, example.attrs(), {__builtin_FILE(), __builtin_LINE()})[0];
      const auto item = static_cast<std::int64_t>(dtype_size(whole.dtype()));
      std::int64_t around[kMaxRank] = {};
      dense_strides(whole.shape(), around);
      std::set<std::int64_t> taken;
      std::vector<std::int64_t> offsets(operands.size());
      op->part(types, example.attrs(), around, offsets.data());
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const Shape& shape = types[i].shape;
        for (std::int64_t k = 0; k < shape.numel(); ++k) {
          std::int64_t at = offsets[i], rest = k;
          for (int d = shape.rank; d-- > 0; rest /= shape[d]) at += rest % shape[d] * around[d];
          EXPECT_TRUE(taken.insert(at).second) << "operand " << i << ", element " << k;
          const char *there = static_cast<const char*>(whole.data()) + at * item,
                     *here = static_cast<const char*>(operands[i].data()) + k * item;
          EXPECT_EQ(std::memcmp(there, here, static_cast<std::size_t>(item)), 0) << "operand " << i << ", element " << k;
        }
      }
      if (!op->joins_in_turn || operands.size() < 2) continue;
      const std::vector<Tensor> first(operands.begin(), operands.end() - 1);
      const Tensor begun = apply_all(*op, first, example.attrs(), {__builtin_FILE(), __builtin_LINE()})[0];
      const std::vector<Tensor> rest = {begun, operands.back()};
      const Tensor again = apply_all(*op, rest, example.attrs(), {__builtin_FILE(), __builtin_LINE()})[0];
      EXPECT_TRUE(bit_equal(again, whole));
    }
}

// ---- random programs ----

// Random programs with joins of joins, of slices, of values that are read, returned or recomputed, planned for several
// threads and under budgets.
Graph random_joins(std::uint64_t seed) {
  test::Dice dice{seed * 0x9E3779B97F4A7C15u + 3};
  struct Known {
    std::string name;
    std::int64_t rows, columns;
  };
  std::vector<Known> known = {{"x", 2, 4}, {"s", 2, 4}};
  std::string body;
  const auto define = [&](std::int64_t rows, std::int64_t columns, const std::string& text) {
    const Known k{fmt::format("v{}", known.size()), rows, columns};
    const bool backward = known.size() > 24;
    body += fmt::format("  %{}: f32[{},{}] = {}{}\n", k.name, rows, columns, text, backward ? " [phase=backward]" : "");
    known.push_back(k);
  };
  for (int i = 0; i < 45; ++i) {
    const auto n = static_cast<std::int64_t>(known.size());
    const auto any = [&] { return known[dice.below(3) ? n - 1 - dice.below(std::min<std::int64_t>(n, 5)) : dice.below(n)]; };
    const Known a = any();
    switch (dice.below(8)) {
      case 0:
        define(a.rows, a.columns, fmt::format("tanh(%{})", a.name));
        break;
      case 1:
        define(a.rows, a.columns, fmt::format("mul(%{0}, %{0})", a.name));
        break;
      case 2:
        define(a.rows, a.columns, fmt::format("softmax(%{}) {{axis=1}}", a.name));
        break;
      case 3: {
        const std::int64_t from = dice.below(a.columns), to = from + 1 + dice.below(a.columns - from);
        define(a.rows, to - from, fmt::format("slice(%{}) {{starts=[0,{}], stops=[{},{}]}}", a.name, from, a.rows, to));
        break;
      }
      case 4:
        define(a.columns, a.rows, fmt::format("transpose(%{}) {{axes=[1,0]}}", a.name));
        break;
      default: {
        const auto axis = dice.below(2);
        std::string operands = "%" + a.name;
        std::int64_t rows = a.rows, columns = a.columns;
        for (int tries = 0; tries < 9; ++tries) {
          const Known b = any();
          if ((axis == 0 ? b.columns != columns : b.rows != rows) || rows * columns > 600) continue;
          operands += ", %" + b.name;
          (axis == 0 ? rows : columns) += axis == 0 ? b.rows : b.columns;
        }
        define(rows, columns, fmt::format("concat({}) {{axis={}}}", operands, axis));
      }
    }
  }
  std::string ending = "  return %" + known.back().name + ", %" + known[known.size() / 2].name + "\n";
  for (std::size_t i = known.size(); i-- > 2;)
    if (known[i].rows == 2 && known[i].columns == 4) {
      ending += "  update %s = %" + known[i].name + "\n";
      break;
    }
  return parse("graph random(%x: f32[2,4]) state(%s: f32[2,4]) {\n" + body + ending + "}\n", "random");
}

class RandomJoins : public ::testing::TestWithParam<int> {};

TEST_P(RandomJoins, ReplayEagerBits) {
  std::int64_t parts = 0;
  for (int k = 0; k < 20; ++k) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * 20 + k);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph g = random_joins(seed);
    PlanOptions options;
    options.threads = 1 + k % 3;
    options.segment_us = k % 2 ? 0 : 5;
    options.parallel_peak = 10;
    options.find_floor = false;
    if (k % 4 == 1) options.budget_percent = 85;
    if (k % 4 == 2) options.budget_percent = 100;
    const Plan plan = sound_plan(g, options);
    for (const Placement& p : plan.values) parts += p.reason == Reason::part;
    if (plan.feasible) check_replay(g, options, 2);
  }
  EXPECT_GT(parts, 20) << "joins are what this is about";
}

// Random programs with joins of images along the channels. Some ops read and write images with gaps between them, others
// need dense images.
Graph random_image_joins(std::uint64_t seed) {
  test::Dice dice{seed * 0x9E3779B97F4A7C15u + 11};
  std::vector<std::int64_t> channels = {4};
  std::set<std::int64_t> convolved;
  std::string body;
  const auto type = [](std::int64_t c) { return fmt::format("f32[3,{},4,4]", c); };
  const auto define = [&](std::int64_t c, const std::string& text) {
    const bool backward = channels.size() > 16;
    body += fmt::format("  %v{}: {} = {}{}\n", channels.size(), type(c), text, backward ? " [phase=backward]" : "");
    channels.push_back(c);
  };
  for (int i = 0; i < 30; ++i) {
    const auto n = static_cast<std::int64_t>(channels.size());
    const auto any = [&] { return dice.below(3) ? n - 1 - dice.below(std::min<std::int64_t>(n, 4)) : dice.below(n); };
    const std::int64_t a = any(), c = channels[a];
    switch (dice.below(9)) {
      case 0:
        define(c, fmt::format("relu(%v{})", a));
        break;
      case 1:
        define(c, fmt::format("softmax(%v{}) {{axis=1}}", a));
        break;
      case 2:
        define(c, fmt::format("max_pool2d(%v{}) {{window=[3], stride=[1], padding=[1]}}", a));
        break;
      case 3:
        body += fmt::format("  %v{0}: {1}, %m{0}: f32[{2}], %s{0}: f32[{2}] = batch_norm(%v{3})\n", n, type(c), c, a);
        channels.push_back(c);
        break;
      case 4:
      case 5:
        convolved.insert(c);
        define(4, fmt::format("conv2d(%v{}, %w{}) {{padding=[1]}}", a, c));
        break;
      case 6: {
        const std::int64_t from = dice.below(c), to = from + 1 + dice.below(c - from);
        define(to - from, fmt::format("slice(%v{}) {{starts=[0,{},0,0], stops=[3,{},4,4]}}", a, from, to));
        break;
      }
      default: {
        std::string operands = fmt::format("%v{}", a);
        std::int64_t all = c;
        for (int tries = 0; tries < 4 && all < 24; ++tries) {
          const std::int64_t b = any();
          operands += fmt::format(", %v{}", b);
          all += channels[b];
        }
        define(all, fmt::format("concat({}) {{axis=1}}", operands));
      }
    }
  }
  std::string state = "%s: " + type(4);
  for (std::int64_t c : convolved) state += fmt::format(", %w{0}: f32[4,{0},3,3]", c);
  const std::size_t last = channels.size() - 1;
  return parse(
      fmt::format("graph random(%v0: {}) state({}) {{\n{}  return %v{}, %v{}\n}}\n", type(4), state, body, last, last / 2),
      "random");
}

TEST_P(RandomJoins, OfImagesReplayEagerBits) {
  std::int64_t apart = 0;
  for (int k = 0; k < 10; ++k) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * 10 + k);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph g = random_image_joins(seed);
    PlanOptions options;
    options.threads = 1 + k % 3;
    options.segment_us = k % 2 ? 0 : 5;
    if (k % 3 == 1) options.budget_percent = 85;
    const Plan plan = sound_plan(g, options);
    for (const Placement& p : plan.values) apart += p.reason == Reason::part && !p.dense;
    if (plan.feasible) check_replay(g, options, 2);
  }
  EXPECT_GT(apart, 5) << "images apart are what this is about";
}

// The strategies count live bytes after each choice. The count must equal, to the byte, the need of the finished plan.
TEST_P(RandomJoins, LiveBytesOfEveryChoiceAreExact) {
  for (int k = 0; k < 8; ++k) {
    PassRunner passes;
    const Graph graph = prepare(random_joins(static_cast<std::uint64_t>(500 + GetParam() * 8 + k)), &passes);
    Facts facts = collect_facts(graph);
    share_parts(Readers(graph), &facts);
    PlanOptions options;
    options.alignment = 1;
    const Choices choices = strategy_entry("greedy").choose(facts, {});
    for (const ChoicePoint& point : choices.points) {
      const RunLists runs = runs_after(facts, choices.journal, point.journal);
      const Plan plan = finish_plan(facts, clone_graph(facts, runs), schedule_cost(facts, runs), options, &passes);
      ASSERT_EQ(plan.lower_bound_bytes, facts.external_bytes + point.live_peak) << print(plan.graph);
      ASSERT_EQ(complaints(plan), "");
    }
  }
}

// Most plans have no clone. Their peak can be found without making a schedule.
TEST_P(RandomJoins, OneWalkFindsThePeakOfAScheduleWithoutClones) {
  for (int k = 0; k < 8; ++k) {
    PassRunner passes;
    const Graph graph = prepare(random_joins(static_cast<std::uint64_t>(900 + GetParam() * 8 + k)), &passes);
    Facts facts = collect_facts(graph);
    ASSERT_EQ(peak_without_clones(facts), Schedule(facts).peak().bytes) << print(graph);
    share_parts(Readers(graph), &facts);
    ASSERT_EQ(peak_without_clones(facts), Schedule(facts).peak().bytes) << print(graph);
  }
}

// Each sharing rule can be switched off.
TEST_P(RandomJoins, EveryRuleCanBeLeftOut) {
  for (int k = 0; k < 10; ++k) {
    const Graph g = random_joins(static_cast<std::uint64_t>(1000 + GetParam() * 10 + k));
    const Plan all = sound_plan(g);
    for (const Sharing off :
         {Sharing::windows, Sharing::in_place, Sharing::add_to, Sharing::parts, Sharing::updates, Sharing::all}) {
      PlanOptions options;
      options.sharing = Sharing::all & ~off;
      const Plan plan = sound_plan(g, options);
      // Only switching off parts must not lower the peak. Another rule may cost bytes: a window on a small piece keeps the
      // whole base alive.
      EXPECT_TRUE(off != Sharing::parts || plan.peak_bytes >= all.peak_bytes);
      for (const Placement& p : plan.values) {
        EXPECT_FALSE(p.reason == Reason::part && off == Sharing::parts);
        EXPECT_FALSE(p.reason == Reason::alias && off == Sharing::windows);
        EXPECT_FALSE(p.reason == Reason::in_place && off == Sharing::in_place);
      }
      check_replay(g, options, 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomJoins, ::testing::Range(0, test::seeds(8)));

}  // namespace
}  // namespace tapedeck
