// One forged plan for each rule of the checker. It breaks that rule alone, so the checker must answer with one sentence, and
// with the sentence of that rule. The order of the table is the order of the rules: structure, regions, placements, lifetimes,
// order.
//
// Three sentences have no plan here, because other rules stand before them. "... and its constant differ in type": verify()
// compares the type of a constant with its node. "... reaches beyond the bytes it is a window on": a window in the right place
// does not. "... joins parts that lie in each other": concat and pad give each operand a place of its own.
// own_op_rules_test.cpp breaks the last two with ops whose rules are wrong.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/value_named.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace tapedeck::one_rule_test {
namespace {

using testing::mentions;

// ---- the plans before they are forged; each node is a segment of its own ----

constexpr const char* kStep = test::kStepWithState;

// %a and %b are written into their places in %w.
constexpr const char* kJoin = R"(graph g(%x: f32[4,6]) {
  %a: f32[2,6] = opaque(%x) {us=1.0}
  %b: f32[2,6] = opaque(%x) {us=1.0}
  %w: f32[4,6] = concat(%a, %b) {axis=0}
  %m: f32[4,6] = opaque(%w) {us=1.0}
  %r: u8[8] = opaque(%m) {us=1.0}
  return %r
})";

// The columns of %w cannot be written in place, because opaque writes no strides.
constexpr const char* kColumns = R"(graph g(%x: f32[4,6]) {
  %a: f32[4,2] = opaque(%x) {us=1.0}
  %w: f32[4,4] = concat(%a, %a) {axis=1}
  %r: u8[8] = opaque(%w) {us=1.0}
  return %r
})";

constexpr const char* kViews = R"(graph g(%x: f32[4,6]) {
  %b: f32[4,6] = opaque(%x) {us=1.0}
  %t: f32[6,4] = transpose(%b) {axes=[1,0]}
  %f: f32[24] = reshape(%t) {shape=[24]}
  %p: f32[6,6] = matmul(%t, %b)
  %r: u8[8] = opaque(%f, %p) {us=1.0}
  return %r
})";

// softmax takes no strides, so %t is a copy.
constexpr const char* kDense = R"(graph g(%x: f32[4,6]) {
  %b: f32[4,6] = opaque(%x) {us=1.0}
  %t: f32[6,4] = transpose(%b) {axes=[1,0]}
  %s: f32[6,4] = softmax(%t) {axis=1}
  %r: u8[8] = opaque(%s, %b) {us=1.0}
  return %r
})";

// %b and %c are of the size of %a. opaque overwrites no operand.
constexpr const char* kLine = R"(graph g(%x: u8[64]) {
  %a: u8[64] = opaque(%x) {us=1.0}
  %b: u8[64] = opaque(%a) {us=1.0}
  %c: u8[64] = opaque(%b, %a) {us=1.0}
  %r: u8[8] = opaque(%c) {us=1.0}
  return %r
})";

constexpr const char* kBranch = R"(graph g(%p: bool[], %x: f32[64]) {
  %y: f32[64] = cond(%p, %x) (%a: f32[64]) {
    %b: f32[64] = opaque(%a) {us=1.0}
    %c: f32[64] = opaque(%b) {us=1.0}
    return %c
  } (%a: f32[64]) {
    %b: f32[64] = sin(%a)
    return %b
  }
  return %y
})";

constexpr const char* kDynamic = R"(graph g(%x: f32[2]) {
  %y: f32[2] = dynamic(%x) (%a: f32[2]) {
    %z: f32[2] = exp(%a)
    return %z
  }
  return %y
})";

constexpr const char* kTwo = R"(graph g(%x: u8[64]) {
  %a: u8[64] = opaque(%x) {us=1.0}
  %b: u8[64] = opaque(%x) {us=1.0}
  return %a, %b
})";

constexpr const char* kCalls = R"(graph g(%x: u8[64]) {
  %s: u8[0], %a: u8[64] = on_host(%x) {name="first"}
  %t: u8[0], %b: u8[64] = on_host(%x) {name="second"}
  return %a, %b
})";

constexpr const char* kState = R"(graph g(%x: u8[64]) state(%w: u8[64]) {
  %r: u8[64] = opaque(%w) {us=1.0}
  %n: u8[64] = opaque(%x) {us=1.0}
  return %r
  update %w = %n
})";

// The new state is made of the first row of the old state.
constexpr const char* kRow = R"(graph g(%y: f32[4,256]) state(%w: f32[4,256]) {
  %r: f32[1,256] = slice(%w) {starts=[0,0], stops=[1,256]}
  %d: f32[4,256] = add(%r, %y)
  %n: f32[4,256] = copy(%d)
  return %y
  update %w = %n
})";

// %v may be computed in place of %a, but not through its first row %s.
constexpr const char* kFirstRow = R"(graph g(%in: f32[4,4], %y: f32[4,4]) {
  %a: f32[4,4] = exp(%in)
  %t: f32[4] = sum(%a) {axes=[0]}
  %s: f32[1,4] = slice(%a) {starts=[0,0], stops=[1,4]}
  %v: f32[4,4] = add(%s, %y)
  %r: f32[4,4] = exp(%v)
  return %t, %r
})";

// %a is a part of %w, and the operand %v shows it.
constexpr const char* kShownPart = R"(graph g(%x: f32[4,6]) {
  %a: f32[12] = opaque(%x) {us=1.0}
  %v: f32[2,6] = reshape(%a) {shape=[2,6]}
  %b: f32[2,6] = opaque(%x) {us=1.0}
  %w: f32[4,6] = concat(%v, %b) {axis=0}
  %r: u8[8] = opaque(%w) {us=1.0}
  return %r
})";

constexpr const char* kReturnedJoin = R"(graph g(%x: f32[4,6]) {
  %a: f32[2,6] = opaque(%x) {us=1.0}
  %b: f32[2,6] = opaque(%x) {us=1.0}
  %w: f32[4,6] = concat(%a, %b) {axis=0}
  %r: u8[8] = opaque(%x) {us=1.0}
  return %w, %r
})";

constexpr const char* kJoinedState = R"(graph g(%x: f32[4,6]) state(%s: f32[4,6]) {
  %a: f32[2,6] = opaque(%x) {us=1.0}
  %w: f32[4,6] = concat(%a, %a) {axis=0}
  %r: u8[8] = opaque(%x) {us=1.0}
  return %r
  update %s = %w
})";

constexpr const char* kTwoResults = R"(graph g(%x: f32[4,6]) {
  %a: f32[2,6], %b: f32[4,6] = opaque(%x) {us=1.0}
  %r: u8[8] = opaque(%a, %b) {us=1.0}
  return %r
})";

// The images of %a and %b lie side by side in %w.
constexpr const char* kImages = R"(graph g(%x: f32[2,3,4,4], %k: f32[5,3,1,1]) {
  %a: f32[2,5,4,4] = conv2d(%x, %k)
  %b: f32[2,5,4,4] = conv2d(%x, %k)
  %w: f32[2,10,4,4] = concat(%a, %b) {axis=1}
  %r: u8[8] = opaque(%w) {us=1.0}
  return %r
})";

// conv2d takes images that lie apart, but not parts of images, so %s is a copy.
constexpr const char* kCutImages = R"(graph g(%x: f32[2,3,4,8], %k: f32[5,3,1,1]) {
  %b: f32[2,3,4,8] = opaque(%x) {us=1.0}
  %s: f32[2,3,4,4] = slice(%b) {starts=[0,0,0,0], stops=[2,3,4,4]}
  %y: f32[2,5,4,4] = conv2d(%s, %k)
  %r: u8[8] = opaque(%y, %b) {us=1.0}
  return %r
})";

// own_gradient has further operands, so it is no window.
constexpr const char* kOwnGradient = R"(graph g(%x: f32[4,6]) {
  %b: f32[4,6] = opaque(%x) {us=1.0}
  %o: f32[4,6] = own_gradient(%b, %x)
  %r: u8[8] = opaque(%o) {us=1.0}
  return %r
})";

// %s has as many elements as %v, and half of the bytes of %a.
constexpr const char* kHalves = R"(graph g(%x: f32[4]) {
  %a: f16[8] = opaque(%x) {us=1.0}
  %s: f16[4] = slice(%a) {starts=[0], stops=[4]}
  %v: f32[4] = cast(%s) {dtype=f32}
  %r: u8[8] = opaque(%v) {us=1.0}
  return %r
})";

// sgd_momentum reads %a twice, add reads it also through a window.
constexpr const char* kReadTwice = R"(graph g(%x: f32[4,4], %lr: f32[]) {
  %a: f32[4,4] = opaque(%x) {us=1.0}
  %t: f32[4,4] = transpose(%a) {axes=[1,0]}
  %v: f32[4,4] = add(%a, %t)
  %b: f32[4,4] = opaque(%x) {us=1.0}
  %w: f32[4,4], %m: f32[4,4] = sgd_momentum(%b, %v, %b, %lr)
  %r: u8[8] = opaque(%w, %m) {us=1.0}
  return %r
})";

constexpr const char* kReturnedWindow = R"(graph g(%x: f32[4,6]) {
  %b: f32[4,6] = opaque(%x) {us=1.0}
  %t: f32[24] = reshape(%b) {shape=[24]}
  %r: u8[8] = opaque(%b) {us=1.0}
  return %t, %r
})";

constexpr const char* kTwoStates = R"(graph g(%x: u8[64]) state(%w: u8[64], %v: u8[64]) {
  %n: u8[64] = opaque(%x) {us=1.0}
  %m: u8[64] = opaque(%x) {us=1.0}
  %r: u8[8] = opaque(%x) {us=1.0}
  return %r
  update %w = %n, %v = %m
})";

constexpr const char* kTurnedState = R"(graph g(%x: u8[64]) state(%w: u8[8,8]) {
  %t: u8[8,8] = transpose(%w) {axes=[1,0]}
  %n: u8[8,8] = copy(%t)
  %r: u8[8] = opaque(%x) {us=1.0}
  return %r
  update %w = %n
})";

// As kRow, with the second row.
constexpr const char* kSecondRow = R"(graph g(%y: f32[4,256]) state(%w: f32[4,256]) {
  %r: f32[1,256] = slice(%w) {starts=[1,0], stops=[2,256]}
  %d: f32[4,256] = add(%r, %y)
  %n: f32[4,256] = copy(%d)
  return %y
  update %w = %n
})";

// ---- tools of a forger ----

ValueId value(const Plan& p, const char* name) { return testing::value_named(p.graph, name); }
Placement& placed(Plan& p, const char* name) { return p.values[value(p, name)]; }

void add_arena(Plan& p, std::int64_t bytes) {
  p.arena_bytes += bytes;
  p.peak_bytes += bytes;
}
void add_external(Plan& p, std::int64_t bytes) {
  p.external_bytes += bytes;
  p.peak_bytes += bytes;
  p.lower_bound_bytes += bytes;
}
void move_to(Placement& v, Where where, std::int32_t slot, std::int64_t offset = 0) {
  v.where = where;
  v.slot = slot;
  v.offset = offset;
}

// Says that the value is a part of another, at its start, with these strides.
void join(Plan& p, const char* part, const char* whole, std::initializer_list<std::int64_t> strides = {}) {
  Placement& v = placed(p, part);
  const Placement& w = placed(p, whole);
  v.reason = Reason::part;
  v.other = value(p, whole);
  move_to(v, w.where, w.slot, w.offset);
  v.dense = strides.size() == 0;
  std::copy(strides.begin(), strides.end(), v.strides);
}
// The same for a window and a takeover.
void show(Plan& p, const char* window, const char* base, std::initializer_list<std::int64_t> strides = {}) {
  join(p, window, base, strides);
  placed(p, window).reason = Reason::alias;
}
void take_over(Plan& p, const char* heir, const char* from) {
  join(p, heir, from);
  placed(p, heir).reason = Reason::in_place;
}
// Updates the state from another value. The value that was made for it moves into the arena.
void update_from(Plan& p, std::size_t update, ValueId other) {
  Placement& former = p.values[p.graph.updates[update].value];
  former.reason = Reason::temporary;
  move_to(former, Where::arena, kNone, p.arena_bytes);
  add_arena(p, 64);
  p.graph.updates[update].value = other;
}
// Updates the state from %d, of which the copy is made.
void update_without_copy(Plan& p) {
  const ValueId copied = p.graph.updates[0].value, made = value(p, "d");
  ASSERT_NE(copied, made);
  p.graph.updates[0].value = made;
  std::swap(p.values[copied].where, p.values[made].where);
  std::swap(p.values[copied].slot, p.values[made].slot);
  std::swap(p.values[copied].offset, p.values[made].offset);
}

// The segment of `to` no longer waits for the segment of `from`. Each node is a segment.
void drop_edge(Plan& p, const char* from, const char* to) {
  const auto segment_of = [&](const char* name) {
    const NodeId n = p.graph.values[value(p, name)].node;
    for (std::size_t s = 0; s < p.segments.size(); ++s)
      if (std::count(p.segments[s].nodes.begin(), p.segments[s].nodes.end(), n)) return static_cast<std::int32_t>(s);
    return kNone;
  };
  const std::int32_t next = segment_of(to);
  if (std::erase(p.segments[segment_of(from)].successors, next) > 0) --p.segments[next].n_predecessors;
  p.reuse_edges.clear();
}

// Gives region r another plan.
void forge_region(Plan& p, std::size_t r, void (*forge)(Plan&)) {
  Plan region = *p.region_plans[r];
  forge(region);
  p.region_plans[r] = std::make_shared<const Plan>(std::move(region));
}
void plan_region_again(Plan& p, std::size_t r, PlanOptions options) {
  options.strategy = Strategy::none;
  p.region_plans[r] = std::make_shared<const Plan>(make_plan(*p.graph.regions[r], options));
}

Scratch& workspace_of(Plan& p, const char* name) { return p.workspace[p.graph.values[value(p, name)].node]; }

struct Forgery {
  const char* graph;
  const char* sentence;
  void (*forge)(Plan&);
  std::int64_t chunk_bytes = 0;
};

// ---- the table ----

const Forgery kForgeries[] = {
    // structure
    {kStep, "invalid graph", [](Plan& p) { p.graph.nodes[0].first_output = -5; }},
    {kStep, "there is not one placement for each value", [](Plan& p) { p.values.pop_back(); }},
    {kStep, "there is not one workspace for each node", [](Plan& p) { p.workspace.pop_back(); }},
    {kStep, "there is not one plan, or its absence, for each region", [](Plan& p) { p.region_plans.push_back(nullptr); }},
    {kStep, "intra_op does not say", [](Plan& p) { p.intra_op.assign(1, true); }},
    {kStep, "the plan is for less than one thread", [](Plan& p) { p.threads = 0; }},
    {kStep, "an output slot has a bad type", [](Plan& p) { p.output_slots[0].dtype = static_cast<DType>(200); }},
    {kStep, "an output slot has a bad type", [](Plan& p) { p.output_slots[0].shape.sizes[0] = -8; }},
    {kStep, "there are more output slots than outputs",
     [](Plan& p) {
       p.output_slots.push_back({DType::u8, Shape{0}});
     }},
    {kStep, "%a lies nowhere", [](Plan& p) { placed(p, "a").where = Where::nowhere; }},
    {kStep, "%a lies nowhere", [](Plan& p) { placed(p, "a").reason = static_cast<Reason>(77); }},
    {kStep, "%w lies in a buffer that does not exist", [](Plan& p) { placed(p, "w").slot = 2; }},
    {kStep, "%t shares the bytes of no earlier value", [](Plan& p) { placed(p, "t").other = value(p, "t"); }},
    {kJoin, "%a is a part of no later value", [](Plan& p) { placed(p, "a").other = value(p, "x"); }},
    {kStep, "%a has a lifetime beyond the graph", [](Plan& p) { placed(p, "a").death = p.graph.node_count() + 1; }},
    {kStep, "%a has a lifetime beyond the graph", [](Plan& p) { placed(p, "a").reader = -2; }},
    {kStep, "chunk_bytes is -1", [](Plan& p) { p.chunk_bytes = -1; }},
    {kStep, "the arena is to be in chunks, and there are none", [](Plan& p) { p.chunk_bytes = 1 << 20; }},
    {kStep, "there are chunks, and the arena is to be one block", [](Plan& p) { p.chunks = {p.arena_bytes}; }},
    {kLine, "a chunk of 0 bytes holds nothing", [](Plan& p) { p.chunks.push_back(0); }, 64},
    {kLine, "the chunks are more than arena_bytes", [](Plan& p) { p.chunks.push_back(64); }, 64},
    {kLine, "the chunks are 64 bytes less than arena_bytes", [](Plan& p) { add_arena(p, 64); }, 64},
    {kStep, "external_bytes is", [](Plan& p) { add_external(p, 1); }},
    {kStep, "peak_bytes is 4611686018427387905, more than 2^62",
     [](Plan& p) { add_arena(p, (std::int64_t{1} << 62) + 1 - p.peak_bytes); }},
    {kStep, "is not external_bytes", [](Plan& p) { ++p.peak_bytes; }},
    {kStep, "the lower bound is negative or above the peak", [](Plan& p) { p.lower_bound_bytes = p.peak_bytes + 1; }},
    {kStep, "the lower bound is negative or above the peak", [](Plan& p) { p.lower_bound_bytes = -1; }},
    {kStep, "the floor or the keep-all peak is negative", [](Plan& p) { p.floor_bytes = -1; }},
    {kStep, "the floor or the keep-all peak is negative", [](Plan& p) { p.keep_all_peak_bytes = -1; }},
    {kStep, "the floor is above the peak", [](Plan& p) { p.floor_bytes = p.peak_bytes + 1; }},
    {kStep, "is over the budget", [](Plan& p) { p.budget_bytes = p.peak_bytes - 1; }},
    {kStep, "is not a power of two", [](Plan& p) { p.alignment = 48; }},
    {kStep, "is not a power of two", [](Plan& p) { p.alignment = std::int64_t{1} << 31; }},

    // regions
    {kDynamic, "has a plan, and runs without one", [](Plan& p) { plan_region_again(p, 0, {}); }},
    {kBranch, "region 1 of `%y: f32[64] = cond(%p, %x)` has no plan", [](Plan& p) { p.region_plans[1] = nullptr; }},
    {kBranch, "region 1 of `%y: f32[64] = cond(%p, %x)` has the plan of another program",
     [](Plan& p) { p.region_plans[1] = p.region_plans[0]; }},
    {kBranch, "has a plan that does not fit its budget",
     [](Plan& p) { forge_region(p, 0, [](Plan& r) { r.feasible = false; }); }},
    {kBranch, "has an arena in chunks", [](Plan& p) { plan_region_again(p, 0, {.chunk_bytes = 64}); }},
    {kBranch, "is aligned to 4096 bytes", [](Plan& p) { plan_region_again(p, 0, {.alignment = 4096}); }},
    {kBranch, "more than 2^50",
     [](Plan& p) { forge_region(p, 0, [](Plan& r) { add_arena(r, (std::int64_t{1} << 50) + 64); }); }},
    {kBranch, "has a bad plan: %b is not inside the arena",
     [](Plan& p) { forge_region(p, 0, [](Plan& r) { placed(r, "b").offset = -64; }); }},

    // placements
    {kStep, "%k has bytes of its own, so it must be dense",
     [](Plan& p) {
       Placement& k = placed(p, "k");
       k.dense = false;
       k.strides[0] = 6, k.strides[1] = 1;
     }},
    {kStep, "%x does not start where its buffer starts", [](Plan& p) { placed(p, "x").offset = 4; }},
    {kStep, "%k is in the wrong buffer", [](Plan& p) { move_to(placed(p, "k"), Where::input, 0); }},
    {kStep, "%k is in the wrong buffer", [](Plan& p) { move_to(placed(p, "k"), Where::state, 0); }},
    {kStep, "%q and its output slot differ in type",
     [](Plan& p) {
       p.output_slots[0] = {DType::u8, Shape{4, 2}};
     }},
    {kStep, "%o is not inside the arena", [](Plan& p) { placed(p, "o").offset = p.arena_bytes - 64; }},
    {kLine, "%c lies across a joint of two chunks", [](Plan& p) { placed(p, "c").offset = 32; }, 64},
    {kStep, "which is no multiple of 64",
     [](Plan& p) {
       placed(p, "o").offset += 4;
       add_arena(p, 64);
     }},
    {kStep, "%t is a window on a value that it is no view of",
     [](Plan& p) {
       placed(p, "t").other = value(p, "k");
       placed(p, "t").offset = placed(p, "k").offset;
     }},
    {kStep, "%lr is a window on a value that it is no view of",
     [](Plan& p) {
       placed(p, "lr").reason = Reason::alias;
       placed(p, "lr").other = value(p, "x");
     }},
    {kOwnGradient, "%o is a window on a value that it is no view of", [](Plan& p) { show(p, "o", "b"); }},
    {kStep, "%t is a window on a value in another buffer", [](Plan& p) { move_to(placed(p, "t"), Where::input, 0); }},
    {kViews, "%f is a window that strides cannot express",
     [](Plan& p) {
       Placement& f = placed(p, "f");
       f.reason = Reason::alias;
       f.other = value(p, "t");
       f.offset = placed(p, "t").offset;
     }},
    {kStep, "%t is a window in the wrong place", [](Plan& p) { placed(p, "t").offset += 4; }},
    {kStep, "%t is a window in the wrong place", [](Plan& p) { ++placed(p, "t").strides[1]; }},
    {kJoin, "%a is a part, and no node that runs once makes it",
     [](Plan& p) { p.graph.nodes[p.graph.values[value(p, "a")].node].origin.clone = true; }},
    {kStep, "%x is a part, and no node that runs once makes it",
     [](Plan& p) {
       placed(p, "x").reason = Reason::part;
       placed(p, "x").other = value(p, "a");
     }},
    {kStep, "%c is a part, and no node that runs once makes it",
     [](Plan& p) {
       placed(p, "c").reason = Reason::part;
       placed(p, "c").other = value(p, "p");
     }},
    {kJoin, "%a is a part of a value in another buffer", [](Plan& p) { move_to(placed(p, "a"), Where::output, 0); }},
    {kReturnedJoin, "%a is a part of a value in another buffer",
     [](Plan& p) {
       join(p, "a", "w");
       placed(p, "a").slot = 1;
     }},
    {kJoinedState, "%a is a part of a value in another buffer", [](Plan& p) { join(p, "a", "w"); }},
    {kTwoResults, "%a is a part of what joins nothing", [](Plan& p) { join(p, "a", "b"); }},
    {kJoin, "%a is a part of what joins nothing",
     [](Plan& p) {
       placed(p, "a").other = value(p, "m");
       placed(p, "a").offset = placed(p, "m").offset;
     }},
    {kColumns, "%a has strides that its maker does not write",
     [](Plan& p) {
       join(p, "a", "w", {4, 1});
     }},
    {kImages, "%a has strides that its maker does not write",
     [](Plan& p) {
       join(p, "a", "w", {160, 17, 4, 1});
     }},
    {kImages, "%a has strides that its maker does not write",
     [](Plan& p) {
       join(p, "a", "w", {40, 16, 4, 1});
     }},
    {kJoin, "%a is a part in the wrong place", [](Plan& p) { placed(p, "a").offset = placed(p, "b").offset; }},
    {kShownPart, "%a is a part in the wrong place", [](Plan& p) { placed(p, "a").offset = placed(p, "b").offset; }},
    {kDense, "%t has strides that `%s: f32[6,4] = softmax(%t)",
     [](Plan& p) {
       show(p, "t", "b", {1, 6});
     }},
    {kCutImages, "%s has strides that `%y: f32[2,5,4,4] = conv2d(%s, %k)",
     [](Plan& p) {
       show(p, "s", "b", {96, 32, 8, 1});
     }},
    {kStep, "%k takes over bytes that are not in the arena",
     [](Plan& p) {
       placed(p, "k").reason = Reason::in_place;
       placed(p, "k").other = value(p, "x");
     }},
    {kLine, "%c takes over bytes that are not exactly its own",
     [](Plan& p) {
       placed(p, "c").reason = Reason::in_place;
       placed(p, "c").other = value(p, "b");
     }},
    {kFirstRow, "%v takes over the 64 bytes of %a, but shows only 16 bytes, %s",
     [](Plan& p) {
       placed(p, "v").reason = Reason::in_place;
       placed(p, "v").other = value(p, "s");
       placed(p, "v").offset = placed(p, "s").offset;
       placed(p, "r").reason = Reason::output;
     }},
    {kHalves, "%v takes over the 16 bytes of %a, but shows only 8 bytes, %s", [](Plan& p) { take_over(p, "v", "s"); }},
    {kLine, "%c takes over bytes that its op may not overwrite", [](Plan& p) { take_over(p, "c", "b"); }},
    {kReadTwice, "%v takes over bytes that its op may not overwrite", [](Plan& p) { take_over(p, "v", "a"); }},
    {kReadTwice, "%w takes over bytes that its op may not overwrite", [](Plan& p) { take_over(p, "w", "b"); }},
    {kBranch, "has too little workspace", [](Plan& p) { --workspace_of(p, "y").bytes; }},
    {kBranch, "is not inside the arena", [](Plan& p) { workspace_of(p, "y").offset = 64; }},
    {kLine, "lies across a joint of two chunks",
     [](Plan& p) {
       workspace_of(p, "a") = {32, 64};
     },
     64},
    {kLine, "is not aligned",
     [](Plan& p) {
       workspace_of(p, "a") = {32, 32};
     }},
    {kLine, "has 128 bytes, more than 64 and than anything in it",
     [](Plan& p) {
       p.chunks.back() += 64;
       add_arena(p, 64);
     },
     64},
    {kStep, "%q is returned, but its bytes do not last", [](Plan& p) { move_to(placed(p, "q"), Where::arena, kNone); }},
    {kReturnedWindow, "%t is returned, but its bytes do not last", [](Plan& p) { show(p, "t", "b"); }},
    {kState, "%n is returned from a state buffer that is overwritten",
     [](Plan& p) {
       p.graph.outputs.push_back(value(p, "n"));
       p.graph.output_names.resize(2);
     }},
    {kStep, "%w is returned from a state buffer that is overwritten",
     [](Plan& p) {
       p.graph.outputs.push_back(value(p, "w"));
       p.graph.output_names.resize(2);
     }},
    {kStep, "%o is in an output slot and not returned",
     [](Plan& p) {
       p.graph.outputs.push_back(value(p, "q"));
       p.graph.output_names.resize(2);
       p.output_slots.push_back(p.graph.values[value(p, "o")].type);
       move_to(placed(p, "o"), Where::output, 1);
       add_external(p, 500);
     }},
    {kTwo, "%b shares an output slot with %a", [](Plan& p) { placed(p, "b").slot = placed(p, "a").slot; }},
    {kState, "%n is not made in the state it updates",
     [](Plan& p) {
       move_to(placed(p, "n"), Where::arena, kNone, p.arena_bytes);
       add_arena(p, 64);
     }},
    {kTwoStates, "%n is not made in the state it updates", [](Plan& p) { update_from(p, 1, value(p, "n")); }},
    {kTurnedState, "%t is not made in the state it updates", [](Plan& p) { update_from(p, 0, value(p, "t")); }},
    {kRow, "%d overwrites the state that its own op reads", update_without_copy},
    {kSecondRow, "%d overwrites the state that its own op reads", update_without_copy},

    // lifetimes
    {kStep, "%o is born at node", [](Plan& p) { ++placed(p, "o").birth; }},
    {kStep, "after its last use by node", [](Plan& p) { placed(p, "a").death = p.graph.node_count() - 1; }},
    {kStep, "before node", [](Plan& p) { --placed(p, "o").death; }},
    {kStep, "%o is kept for node 0, which does not read it", [](Plan& p) { placed(p, "o").reader = 0; }},
    {kStep, "%o has no reader, and node", [](Plan& p) { placed(p, "o").reader = kNone; }},
    {kStep, "bytes of the arena are alive at once", [](Plan& p) { --p.lower_bound_bytes; }},

    // order
    {kLine, "the nodes of segment 1 are not ascending, or not its own", [](Plan& p) { p.segments[1].nodes = {0}; }},
    {kLine, "segment 4 holds no nodes", [](Plan& p) { p.segments.emplace_back(); }},
    {kLine, "the successors of segment 2 are not later segments", [](Plan& p) { p.segments[2].successors = {1}; }},
    {kLine, "the segments do not hold every node once",
     [](Plan& p) {
       p.segments.pop_back();
       p.segments.back().successors.clear();
     }},
    {kLine, "segment 2 waits for the wrong number of segments", [](Plan& p) { ++p.segments[2].n_predecessors; }},
    {kLine, "a reuse edge is between no two nodes",
     [](Plan& p) {
       p.reuse_edges.push_back({2, 1});
     }},
    {kLine, "may run before %c is there", [](Plan& p) { drop_edge(p, "c", "r"); }},
    {kCalls, "and both have effects", [](Plan& p) { drop_edge(p, "a", "b"); }},
    {kTwo, "a reuse edge is not in the segment DAG",
     [](Plan& p) {
       p.reuse_edges.push_back({0, 1});
     }},
    {kState, "%w may be overwritten before `%r: u8[64] = opaque(%w)", [](Plan& p) { drop_edge(p, "r", "n"); }},
    {kLine, "%a and %b share bytes, and `%b: u8[64] = opaque(%a)",
     [](Plan& p) { placed(p, "b").offset = placed(p, "a").offset; }},
};

class OneRule : public ::testing::TestWithParam<std::size_t> {};

TEST_P(OneRule, IsBrokenAloneAndNamed) {
  const Forgery& forgery = kForgeries[GetParam()];
  PlanOptions options;
  options.segment_us = 0;
  options.chunk_bytes = forgery.chunk_bytes;
  Plan plan = make_plan(parse(forgery.graph, "rule"), options);
  ASSERT_EQ(check_plan(plan), std::vector<std::string>()) << print(plan.graph);
  forgery.forge(plan);
  const std::vector<std::string> found = check_plan(plan);
  ASSERT_EQ(found.size(), 1u) << forgery.sentence << "\n" << ::testing::PrintToString(found) << "\n" << print(plan.graph);
  EXPECT_TRUE(mentions(found[0], forgery.sentence)) << "wanted: " << forgery.sentence << "\ngot: " << found[0];
  EXPECT_THROW(Executor{plan}, InvalidGraphError) << "an executor takes the plan that the checker refuses";
}

INSTANTIATE_TEST_SUITE_P(All, OneRule, ::testing::Range(std::size_t{0}, std::size(kForgeries)));

}  // namespace
}  // namespace tapedeck::one_rule_test
