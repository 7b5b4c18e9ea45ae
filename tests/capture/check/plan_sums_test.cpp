// Plans and graphs whose sizes are so large that their sums do not fit an i64. Sums that wrap would agree with forged figures.
#include <tapedeck/capture/analysis/live_peak.h>
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/kernels/checked_math.h>

#include <tapedeck/tests/engine/messages.h>

#include <fmt/format.h>

#include <gtest/gtest.h>

#include <limits>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

const Type kLargestType{DType::u8, Shape{kMaxTypeBytes}};

// A graph that returns one value many times, so that its plan may have as many output slots.
Plan plan_with_outputs(std::size_t n) {
  Graph g = parse("graph g(%x: f32[4]) {\n%y: f32[4] = exp(%x)\nreturn %y\n}", "outputs");
  g.outputs.resize(n, g.outputs[0]);
  g.output_names.clear();
  return make_plan(g);
}

void expect_refused(const Plan& plan, const std::string& words) {
  const std::vector<std::string> found = check_plan(plan);
  ASSERT_EQ(found.size(), 1u) << "wanted: " << words;
  EXPECT_TRUE(mentions(found[0], words)) << found[0];
}

// 2^18 slots of 2^46 bytes: their sum is 2^64, and 0 if it wraps.
TEST(PlanSums, OutputSlotsWhoseSumWrapsAreRefused) {
  Plan plan = plan_with_outputs((std::size_t{1} << 18) + 1);
  ASSERT_EQ(check_plan(plan), std::vector<std::string>());
  plan.output_slots.resize((std::size_t{1} << 18) + 1, kLargestType);
  expect_refused(plan, "inputs, state, constants and outputs hold more than 2^62 bytes");
  plan.output_slots.resize((std::size_t{1} << 16) + 2);
  expect_refused(plan, "hold more than 2^62 bytes");
}

TEST(PlanSums, AnArenaBeyondAnyMemoryIsRefused) {
  Plan plan = plan_with_outputs(1);
  for (const std::int64_t peak : {(std::int64_t{1} << 62) + 1, std::numeric_limits<std::int64_t>::max()}) {
    plan.peak_bytes = peak;
    plan.arena_bytes = peak - plan.external_bytes;
    expect_refused(plan, fmt::format("peak_bytes is {}, more than 2^62", peak));
  }
}

// An arena below the limit is refused by the memory, with an error that can be caught. (AddressSanitizer ends the program
// instead.)
#ifndef TAPEDECK_SANITIZED
TEST(PlanSums, AnArenaLargerThanTheMemoryIsAnErrorOfTheRun) {
  Plan plan = plan_with_outputs(1);
  plan.peak_bytes = std::int64_t{1} << 62;
  plan.arena_bytes = plan.peak_bytes - plan.external_bytes;
  ASSERT_EQ(check_plan(plan), std::vector<std::string>());
  for (const int poison : {0, 1}) {
    Settings with = settings();
    with.poison = poison;
    const ScopedSettings scope(with);
    EXPECT_THROW(
        {
          Executor executor(plan, {.threads = 1});
          executor.set_input(0, full({4}, 1.0));
          executor.run();
        },
        Error);
  }
}
#endif

TEST(PlanSums, AFrameIsAsLargeAsAnyNumberAtMost) {
  Plan region = plan_with_outputs(4);
  region.output_slots.assign(std::size_t{1} << 18, kLargestType);
  EXPECT_EQ(frame_bytes(region), kTooMany);
}

// Each level holds 2^60 bytes at once, and the levels are inside each other.
TEST(PlanSums, TheBytesOfNestedRegionsDoNotWrap) {
  const Op *full = find_op("full"), *opaque = find_op("opaque"), *cond = find_op("cond");
  const Graph least = parse(
      "graph g(%p: bool[]) {\n%w: u8[70368744177664] = full() {shape=[70368744177664], dtype=u8, value=1.0}\n"
      "%n: u8[1] = opaque(%w) {us=1.0}\n return %n\n}",
      "least");
  Region inner = std::make_shared<const Graph>(least);
  for (int level = 0; level < 9; ++level) {
    Graph g;
    const ValueId p = g.add_input("p", {DType::boolean, {}});
    std::vector<ValueId> wide;
    for (int i = 0; i < (1 << 14) - 1; ++i) {
      const NodeId n = g.add_node(*full, {}, least.attributes(least.nodes[0]), {&kLargestType, 1});
      wide.push_back(g.nodes[n].first_output);
    }
    const Type small{DType::u8, Shape{1}};
    const std::vector<Region> both{inner, std::make_shared<const Graph>(least)};
    const NodeId branch = g.add_node(*cond, std::vector<ValueId>{p, p}, nullptr, {&small, 1}, {}, {}, both);
    wide.push_back(g.nodes[branch].first_output);
    const NodeId last = g.add_node(*opaque, wide, least.attributes(least.nodes[1]), {&small, 1});
    g.outputs = {g.nodes[last].first_output};
    g.output_names.resize(1);
    inner = std::make_shared<const Graph>(std::move(g));
  }
  EXPECT_EQ(live_peak(*inner), kTooMany);
}

// A loop_grad node whose attributes are `attributes`, and whose tape has an entry of 64 bytes.
std::string loop_grad(const std::string& attributes) {
  return fmt::format(R"(graph g(%n: i64[], %c: f32[16], %d: f32[16]) {{
    %g: f32[16] = loop_grad(%n, %c, %d) {{carried=1, needs="1", {}}} (%i: i64[], %c0: f32[16]) {{
      %c1: f32[16] = exp(%c0)
      return %c1
    }} (%i: i64[], %c0: f32[16], %d0: f32[16]) {{
      %d1: f32[16] = mul(%d0, %c0)
      return %d1
    }}
    return %g
  }})",
                     attributes);
}

TEST(PlanSums, ATapeThatNoMemoryHoldsIsRefused) {
  for (const char* attributes :
       {"trips=9223372036854775807", "trips=9223372036854775807, checkpoint=9223372036854775807",
        "trips=9223372036854775807, checkpoint=4611686018427387905", "trips=4611686018427387905, checkpoint=1",
        "trips=4611686018427387904, checkpoint=4611686018427387904", "trips=70368744177664"}) {
    const std::string message = message_of<InvalidGraphError>([&] { make_plan(parse(loop_grad(attributes), "tape")); });
    EXPECT_TRUE(mentions(message, "the tape of `")) << attributes << ": " << message;
    EXPECT_TRUE(mentions(message, "would hold more than 2^50 bytes")) << message;
  }
}

TEST(PlanSums, ATapeHasNoMoreEntriesThanPasses) {
  const Plan one = make_plan(parse(loop_grad("trips=5"), "tape"));
  const Plan other = make_plan(parse(loop_grad("trips=5, checkpoint=9223372036854775807"), "tape"));
  EXPECT_EQ(one.peak_bytes, other.peak_bytes);
  const Plan root = make_plan(parse(loop_grad("trips=9223372036854775807, checkpoint=-1"), "tape"));
  EXPECT_GT(root.peak_bytes, 64 * 2 * 3037000499LL);
  EXPECT_EQ(check_plan(root), std::vector<std::string>());
}

// The checker does not ask where a value without elements lies, so the executor must not compute with these numbers.
TEST(PlanSums, AValueWithoutElementsMayLieAnywhere) {
  const Graph g = parse(R"(graph g(%x: f32[4,0], %b: f32[0,3]) {
    %a: f32[4,0] = exp(%x)
    %t: f32[0,4] = transpose(%a) {axes=[1,0]}
    %u: f32[4,0] = transpose(%t) {axes=[1,0]}
    %e: f32[4,0] = exp(%u)
    %z: f32[4,3] = matmul(%e, %b)
    return %z
  })",
                        "empty");
  Plan plan = make_plan(g);
  for (ValueId v = 0; v < plan.graph.value_count(); ++v) {
    Placement& p = plan.values[v];
    if (p.reason != Reason::alias) continue;
    p.offset = std::numeric_limits<std::int64_t>::max() - 3;
    p.dense = false;
    for (std::int64_t& stride : p.strides) stride = std::numeric_limits<std::int64_t>::max();
  }
  ASSERT_EQ(check_plan(plan), std::vector<std::string>());
  Executor executor(plan, {.threads = 1});
  executor.set_input(0, full({4, 0}, 1.0));
  executor.set_input(1, ones({0, 3}));
  executor.run();
  EXPECT_TRUE(bit_equal(executor.outputs()[0], zeros({4, 3})));
}

}  // namespace
}  // namespace tapedeck
