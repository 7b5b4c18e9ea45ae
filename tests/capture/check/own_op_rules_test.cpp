// Tests the checker with ops that a test registers: a join in two dimensions, whose parts the checker must tell apart, and
// rules of ops that turn wrong after the plan was made. The checker then stands between such a rule and the memory.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/value_named.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using Sentences = std::vector<std::string>;

Placement& placed(Plan& p, const char* name) { return p.values[testing::value_named(p.graph, name)]; }

// ---- test.quilt: four tiles of equal size, the right one of each row before the left one ----

struct Place {
  std::int64_t row = 0, column = 0;
};
Place place_of(std::size_t tile, std::int64_t rows, std::int64_t columns) {
  return {tile < 2 ? 0 : rows, tile % 2 == 0 ? columns : 0};
}

bool quilt_tells_lies = false;  // if true, the second tile has the place of the first

void places_in_quilt(std::span<const Type> tiles, const void*, const std::int64_t* strides, std::int64_t* offsets) {
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const Place at = place_of(i == 1 && quilt_tells_lies ? 0 : i, tiles[i].shape[0], tiles[i].shape[1]);
    offsets[i] = at.row * strides[0] + at.column * strides[1];
  }
}

void quilt(const KernelCall& call) {
  const View& to = call.outputs[0];
  for (std::size_t i = 0; i < 4; ++i) {
    const View& tile = call.inputs[i];
    const Place at = place_of(i, tile.sizes[0], tile.sizes[1]);
    for (std::int64_t r = 0; r < tile.sizes[0]; ++r)
      for (std::int64_t c = 0; c < tile.sizes[1]; ++c)
        to.as<float>()[(at.row + r) * to.strides[0] + (at.column + c) * to.strides[1]] =
            tile.as<float>()[r * tile.strides[0] + c * tile.strides[1]];
  }
}

// Registered once. Each of the tests below needs the op.
void register_quilt() {
  if (find_op("test.quilt")) return;
  Op op;
  op.name = "test.quilt";
  op.doc = "four tiles of equal size";
  op.traits = kAnyStrides;
  op.min_inputs = op.max_inputs = 4;
  op.infer = [](Infer& f) {
    const Shape& tile = f.inputs[0].shape;
    f.outputs.assign(1, {f.inputs[0].dtype, {2 * tile[0], 2 * tile[1]}});
  };
  op.part = places_in_quilt;
  op.kernels[0] = quilt;
  register_op(op);
}

Graph quilt_graph() {
  register_quilt();
  return parse(R"(graph g(%x: f32[2,3], %y: f32[2,3]) {
    %a: f32[2,3] = sin(%x)
    %b: f32[2,3] = cos(%x)
    %c: f32[2,3] = sin(%y)
    %d: f32[2,3] = cos(%y)
    %w: f32[4,6] = test.quilt(%a, %b, %c, %d)
    %r: f32[4] = sum(%w) {axes=[1]}
    return %r
  })");
}

TEST(OwnOpRules, PartsMayLieSideBySideInTwoDimensions) {
  const Graph graph = quilt_graph();
  Plan plan = make_plan(graph);
  for (const char* tile : {"a", "b", "c", "d"}) EXPECT_EQ(placed(plan, tile).reason, Reason::part) << tile;
  EXPECT_EQ(check_plan(plan), Sentences());
  check_replay(graph);
}

TEST(OwnOpRules, PartsThatLieInEachOtherAreRefused) {
  Plan plan = make_plan(quilt_graph());
  placed(plan, "b").offset = placed(plan, "a").offset;
  quilt_tells_lies = true;
  const Sentences found = check_plan(plan);
  quilt_tells_lies = false;
  EXPECT_EQ(found, Sentences{"%w joins parts that lie in each other"});
  EXPECT_EQ(check_plan(plan), Sentences{"%b is a part in the wrong place"});
}

// ---- test.window: four elements of eight ----

std::int64_t window_offset = 0, window_stride = 1;

bool window_of_eight(const Type&, const std::int64_t*, const void*, const Type&, std::int64_t* offset, std::int64_t* strides) {
  *offset = window_offset;
  strides[0] = window_stride;
  return true;
}

Graph window_graph() {
  if (!find_op("test.window")) {
    Op op;
    op.name = "test.window";
    op.doc = "four elements of eight";
    op.traits = kView | kAnyStrides;
    op.min_inputs = op.max_inputs = 1;
    op.infer = [](Infer& f) { f.outputs.assign(1, {f.inputs[0].dtype, {4}}); };
    op.view = window_of_eight;
    register_op(op);
  }
  return parse(R"(graph g(%x: f32[8]) {
    %b: f32[8] = opaque(%x) {us=1.0}
    %t: f32[4] = test.window(%b)
    %r: f32[] = sum(%t) {axes=[0]}
    return %r
  })");
}

// Checks a plan whose window begins at this element of %b and goes on by this stride, as the rule of the op says from now on.
Sentences check_window(std::int64_t offset, std::int64_t stride) {
  Plan plan = make_plan(window_graph());
  EXPECT_EQ(check_plan(plan), Sentences());
  Placement& t = placed(plan, "t");
  EXPECT_EQ(t.reason, Reason::alias);
  t.offset += offset * 4;
  t.dense = false;
  t.strides[0] = stride;
  window_offset = offset, window_stride = stride;
  const Sentences found = check_plan(plan);
  window_offset = 0, window_stride = 1;
  return found;
}

TEST(OwnOpRules, AWindowLiesInsideItsValue) {
  const Sentences beyond{"%t reaches beyond the bytes it is a window on"};
  for (std::int64_t offset = -3; offset <= 11; ++offset)
    for (const std::int64_t stride : {-2, -1, 0, 1, 2}) {
      const std::int64_t last = offset + 3 * stride;
      const bool inside = offset >= 0 && offset < 8 && last >= 0 && last < 8;
      EXPECT_EQ(check_window(offset, stride), inside ? Sentences() : beyond) << offset << " by " << stride;
    }
}

}  // namespace
}  // namespace tapedeck
