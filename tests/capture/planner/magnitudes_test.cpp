// Graphs of unusual size: views of up to 2^46 bytes, nodes with very many operands, very many regions, and values without
// elements. Each goes through the verifier, the printer and parser, every pass, the planner, the checker and the plan as JSON.
// Work that grew with the square of a count would take minutes here.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/file/plan_json.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/plan_equal.h>
#include <tapedeck/tests/capture/replay_check.h>

#include <fmt/format.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tapedeck {
namespace {

Plan through_everything(const std::string& text) {
  const Graph g = parse(text, "large");
  verify(g);
  EXPECT_TRUE(print(parse(print(g), "again")) == print(g));
  PlanOptions options;
  options.strategy = Strategy::none;
  options.place_work = 0;
  Plan plan = make_plan(g, options);
  EXPECT_EQ(check_plan(plan), std::vector<std::string>());
  const Plan back = parse_plan(plan_to_json(plan), plan.graph);
  EXPECT_EQ(back.peak_bytes, plan.peak_bytes);
  return plan;
}

// One byte, seen as `size` bytes.
TEST(Magnitudes, ViewsOfUpTo2To46Bytes) {
  for (const std::int64_t size : {(1LL << 31) - 1, 1LL << 31, (1LL << 31) + 1, 1LL << 32, 1LL << 46}) {
    const Plan plan = through_everything(fmt::format(R"(graph views(%x: u8[1]) {{
      %e: u8[1] = neg(%x)
      %v: u8[{0}] = broadcast_to(%e) {{shape=[{0}]}}
      %r: u8[1,{0}] = reshape(%v) {{shape=[1,{0}]}}
      %t: u8[{0},1] = transpose(%r) {{axes=[1,0]}}
      %s: u8[2,1] = slice(%t) {{starts=[{1},0], stops=[{0},1]}}
      %y: u8[2,1] = neg(%s)
      return %y
    }})",
                                                     size, size - 2));
    EXPECT_LE(plan.peak_bytes, 256) << size;
    Executor executor(plan, {.threads = 1});
    const Tensor x = full({1}, 3.0, DType::u8);
    executor.set_input(0, x);
    executor.run();
    EXPECT_TRUE(bit_equal(executor.outputs()[0], full({2, 1}, 3.0, DType::u8))) << size;
  }
}

// Values that no memory holds can still be planned, up to 2^60 bytes in all.
TEST(Magnitudes, ValuesOf2To46Bytes) {
  const Plan plan = through_everything(R"(graph large(%x: u8[70368744177664]) {
    %a: u8[70368744177664] = neg(%x)
    %b: u8[70368744177664] = opaque(%a) {us=1.0}
    %c: u8[70368744177664] = opaque(%b, %a) {us=1.0}
    return %c
  })");
  EXPECT_EQ(plan.arena_bytes, 2 * kMaxTypeBytes);
  EXPECT_EQ(plan.peak_bytes, 4 * kMaxTypeBytes);
  EXPECT_THROW(
      {
        Executor executor(plan, {.threads = 1});
        executor.run();
      },
      Error);
  std::string text = "graph sum(%x: u8[1]) {\n";
  for (int i = 0; i <= 1 << 14; ++i) text += fmt::format("%a{}: u8[70368744177664] = opaque(%x) {{us=1.0}}\n", i);
  EXPECT_THROW(parse(text + "return %x\n}", "sum"), Error);
}

TEST(Magnitudes, ANodeWith2To12Operands) {
  constexpr int kOperands = 1 << 12;
  std::string text = "graph wide(%x: f32[4]) {\n", operands;
  for (int i = 0; i < kOperands; ++i) {
    text += fmt::format("%a{}: f32[4] = opaque(%x) {{us=1.0}}\n", i);
    operands += fmt::format("{}%a{}", i ? ", " : "", i);
  }
  const Plan plan = through_everything(text + "%y: f32[4] = opaque(" + operands + ") {us=1.0}\nreturn %y\n}");
  EXPECT_EQ(plan.arena_bytes, (kOperands - 1) * std::int64_t{64} + 16);
}

TEST(Magnitudes, AJoinOf2To13MadeParts) {
  constexpr int kParts = 1 << 13;
  std::string text = "graph join(%x: f32[4]) {\n", operands;
  for (int i = 0; i < kParts; ++i) {
    text += fmt::format("%a{}: f32[4] = opaque(%x) {{us=1.0}}\n", i);
    operands += fmt::format("{}%a{}", i ? ", " : "", i);
  }
  text += fmt::format("%w: f32[{}] = concat({}) {{axis=0}}\n%y: u8[8] = opaque(%w) {{us=1.0}}\nreturn %y\n}}", 4 * kParts,
                      operands);
  const Plan plan = through_everything(text);
  EXPECT_EQ(plan.arena_bytes, kParts * std::int64_t{16}) << "every part is made in its place";
}

TEST(Magnitudes, ManyRegionsOfOneSize) {
  constexpr int kBranches = 1000;
  std::string text = "graph branches(%p: bool[], %x: f32[4]) {\n", results;
  for (int i = 0; i < kBranches; ++i) {
    text += fmt::format(R"(%y{0}: f32[4] = cond(%p, %x) (%a: f32[4]) {{
      %c: f32[4] = full() {{shape=[4], dtype=f32, value={1}.5}}
      %b: f32[4] = mul(%a, %c)
      return %b
    }} (%a: f32[4]) {{
      return %a
    }}
)",
                        i, i / 2);
    results += fmt::format("{}%y{}", i ? ", " : "", i);
  }
  const Plan plan = through_everything(text + "return " + results + "\n}");
  EXPECT_EQ(plan.graph.node_count(), kBranches / 2) << "every second branch is equal to the one before it";
}

TEST(Magnitudes, AStateWithManyUpdates) {
  constexpr int kValues = 4000;
  std::string states, text, updates;
  for (int i = 0; i < kValues; ++i) {
    states += fmt::format("{}%w{}: f32[4]", i ? ", " : "", i);
    text += fmt::format("%n{0}: f32[4] = add(%w{0}, %x)\n", i);
    updates += fmt::format("{}%w{} = %n{}", i ? ", " : "", i, i);
  }
  const Plan plan =
      through_everything("graph updates(%x: f32[4]) state(" + states + ") {\n" + text + "return %x\nupdate " + updates + "\n}");
  EXPECT_EQ(plan.arena_bytes, 0);
}

TEST(Magnitudes, NothingHasElements) {
  const Plan plan = through_everything(R"(graph empty(%x: f32[0,4], %p: bool[], %i: i64[0], %s: f32[0]) state(%w: f32[4,0]) {
    %a: f32[0,4] = exp(%x)
    %t: f32[4,0] = transpose(%a) {axes=[1,0]}
    %c: f32[0,8] = concat(%a, %x) {axis=1}
    %f: f32[0] = reshape(%c) {shape=[0]}
    %m: f32[4,4] = matmul(%t, %x)
    %z: f32[4,0] = matmul(%m, %t)
    %b: f32[0,4] = cond(%p, %a) (%u: f32[0,4]) {
      %v: f32[0,4] = neg(%u)
      return %v
    } (%u: f32[0,4]) {
      return %u
    }
    %k: f32[0], %ys: f32[0,0] = scan(%f, %c) {carried=1, scanned=1} (%n: i64[], %q: f32[0], %r: f32[8]) {
      %o: f32[0] = neg(%q)
      return %o, %q
    }
    %w2: f32[4,0] = add(%w, %z)
    return %f, %b, %k, %ys, %m
    update %w = %w2
  })");
  check_replay(parse(print(plan.graph), "again"));
}

}  // namespace
}  // namespace tapedeck
