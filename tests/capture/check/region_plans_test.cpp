// Tests the plans of regions, which are part of the plan of the graph: the planner makes them, the file keeps them, the
// checker judges them and the executor runs by them. Broken plans must be refused, and replays must equal eager runs.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/plan_equal.h>
#include <tapedeck/tests/capture/temporary_folder.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/value_named.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

// A graph with a scan over rows, whose body contains a branch, and the gradient of this scan.
Graph looped() {
  manual_seed(3);
  const Tensor six = ones({6, 8}), one = ones({8}).requires_grad(true);
  Capture capture("looped");
  const Tensor rows = capture.input("rows", six), start = capture.input("start", one);
  const LoopResult r = scan(
      [](const Tensors& t) {
        const Tensor mixed = tanh(exp(t[0] * 0.5) + exp(t[1]) * 0.25);
        return Tensors{cond(
            less(sum(mixed), 4.0), [&](const Tensors&) { return Tensors{exp(exp(mixed)) * 0.5}; },
            [&](const Tensors&) { return Tensors{exp(mixed)}; })[0]};
      },
      {start}, {rows});
  const Tensor last = r.carried[0];
  capture.output("last", last);
  capture.output("gradient", gradients({sum(last)}, {start})[0]);
  return capture.finish().graph;
}

const Plan& good() {
  static const Plan plan = make_plan(looped());
  return plan;
}

// Calls f(plan, region, plan of the region) for each region of the plan, at any depth.
void each_region(const Plan& plan, const std::function<void(const Plan&, const Graph&, const Plan*)>& f) {
  for (std::size_t r = 0; r < plan.region_plans.size(); ++r) {
    f(plan, *plan.graph.regions[r], plan.region_plans[r].get());
    if (plan.region_plans[r]) each_region(*plan.region_plans[r], f);
  }
}

// Returns the plan with `change` applied to the plan of one region. `path` leads through the regions to this region. Every
// region on the path shows the changed graph.
Plan with_region(const Plan& plan, std::vector<std::size_t> path, const std::function<void(Plan&)>& change) {
  Plan changed = plan;
  if (path.empty()) {
    change(changed);
    return changed;
  }
  const std::size_t r = path.front();
  path.erase(path.begin());
  const auto inner = std::make_shared<const Plan>(with_region(*plan.region_plans.at(r), path, change));
  changed.region_plans[r] = inner;
  if (!path.empty()) changed.graph.regions[r] = Region(inner, &inner->graph);
  return changed;
}

// The path to each region of the plan.
std::vector<std::vector<std::size_t>> paths(const Plan& plan) {
  std::vector<std::vector<std::size_t>> all;
  for (std::size_t r = 0; r < plan.region_plans.size(); ++r) {
    if (!plan.region_plans[r]) continue;
    all.push_back({r});
    for (std::vector<std::size_t> path : paths(*plan.region_plans[r])) {
      path.insert(path.begin(), r);
      all.push_back(std::move(path));
    }
  }
  return all;
}

void expect_first_violation(const Plan& plan, const std::string& words) {
  const std::vector<std::string> violations = check_plan(plan);
  ASSERT_FALSE(violations.empty()) << "not noticed: " << words;
  EXPECT_TRUE(mentions(violations.front(), words)) << "wanted: " << words << "\ngot: " << violations.front();
  EXPECT_THROW(Executor{plan}, InvalidGraphError);
}

TEST(RegionPlans, EveryRegionHasOneAndItsGraphIsTheRegion) {
  EXPECT_EQ(check_plan(good()), std::vector<std::string>());
  int seen = 0, nested = 0;
  each_region(good(), [&](const Plan& around, const Graph& region, const Plan* plan) {
    ASSERT_EQ(around.region_plans.size(), around.graph.regions.size());
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(&plan->graph, &region) << "not a copy";
    ++seen;
    nested += &around != &good();
  });
  EXPECT_GE(seen, 4);
  EXPECT_GE(nested, 2) << "the branches in the body";
}

TEST(RegionPlans, WorkspacesFollowFromThePlanAlone) {
  for (NodeId n = 0; n < good().graph.node_count(); ++n) EXPECT_EQ(needed_workspace(good(), n), good().workspace[n].bytes);
}

TEST(RegionPlans, PlanningAPlannedGraphAgainFindsTheSamePlans) {
  const Plan again = make_plan(good().graph);
  EXPECT_EQ(again.peak_bytes, good().peak_bytes);
  EXPECT_EQ(check_plan(again), std::vector<std::string>());
}

// ---- broken plans that the checker must refuse ----

TEST(RegionPlans, TheCheckerWantsAPlanForEachRegion) {
  Plan plan = good();
  plan.region_plans.clear();
  expect_first_violation(plan, "for each region");
  for (std::size_t r = 0; r < good().region_plans.size(); ++r) {
    plan = good();
    plan.region_plans[r] = nullptr;
    expect_first_violation(plan, "has no plan");
  }
}

TEST(RegionPlans, TheCheckerFindsWhatOverlapsInARegion) {
  int moved = 0;
  for (const std::vector<std::size_t>& path : paths(good()))
    with_region(good(), path, [&](Plan& region) {
      const Plan whole = region;
      for (std::size_t v = 0; v < whole.values.size(); ++v)
        for (std::size_t w = 0; w < v; ++w) {
          const Placement &p = whole.values[v], &q = whole.values[w];
          const bool own = p.where == Where::arena && q.where == Where::arena && p.reason != Reason::alias &&
                           q.reason != Reason::alias && p.reason != Reason::in_place;
          if (!own || p.birth > q.death || q.birth > p.death || p.offset == q.offset) continue;
          const Plan spoilt = with_region(good(), path, [&](Plan& r) { r.values[v].offset = q.offset; });
          EXPECT_FALSE(check_plan(spoilt).empty())
              << whole.graph.value_name(static_cast<ValueId>(v)) << " at " << whole.graph.value_name(static_cast<ValueId>(w));
          expect_first_violation(spoilt, "has a bad plan");
          ++moved;
        }
    });
  EXPECT_GT(moved, 2);
}

TEST(RegionPlans, TheCheckerFindsARegionThatLeavesItsArena) {
  int shrunk = 0;
  for (const std::vector<std::size_t>& path : paths(good()))
    with_region(good(), path, [&](Plan& region) {
      if (region.arena_bytes == 0) return;
      const Plan spoilt = with_region(good(), path, [](Plan& r) {
        for (std::int64_t* bytes : {&r.peak_bytes, &r.lower_bound_bytes, &r.floor_bytes}) *bytes -= r.arena_bytes;
        r.arena_bytes = 0;
      });
      expect_first_violation(spoilt, "has a bad plan");
      ++shrunk;
    });
  EXPECT_GT(shrunk, 2);
}

TEST(RegionPlans, TheCheckerFindsAWorkspaceThatHoldsNoFrame) {
  int nodes = 0;
  for (NodeId n = 0; n < good().graph.node_count(); ++n) {
    if (good().graph.nodes[n].n_regions == 0) continue;
    Plan plan = good();
    plan.workspace[n].bytes -= 1;
    expect_first_violation(plan, "has too little workspace");
    ++nodes;
  }
  EXPECT_EQ(nodes, 2);
  // The plan of the region is correct, but its arena is larger than the workspace of the loop's node.
  for (const std::vector<std::size_t>& path : paths(good()))
    expect_first_violation(with_region(good(), path,
                                       [](Plan& r) {
                                         r.arena_bytes += 1 << 20;
                                         r.peak_bytes += 1 << 20;
                                       }),
                           "has too little workspace");
}

TEST(RegionPlans, TheCheckerFindsThePlanOfAnotherProgram) {
  for (const std::vector<std::size_t>& path : paths(good())) {
    const Plan& here = good();
    with_region(here, path, [&](Plan& region) {
      // Another op with the same types.
      std::string text = print(region.graph);
      const std::size_t at = text.find("exp(");
      if (at != std::string::npos) {
        const Plan other = make_plan(parse(text.replace(at, 4, "sin("), "other"), {.strategy = Strategy::none});
        expect_first_violation(with_region(here, path, [&](Plan& r) { r = other; }), "has the plan of another program");
      }
      // The same program with another attribute or constant.
      for (std::size_t c = 0; c < region.graph.constants.size(); ++c) {
        if (!region.graph.constants[c].data || region.graph.constants[c].type.bytes() == 0) continue;
        expect_first_violation(with_region(here, path,
                                           [&](Plan& r) {
                                             Literal& literal = r.graph.constants[c];
                                             const auto bytes = static_cast<std::size_t>(literal.type.bytes());
                                             const std::shared_ptr<unsigned char[]> copy(new unsigned char[bytes]);
                                             std::copy_n(static_cast<const unsigned char*>(literal.data.get()), bytes,
                                                         copy.get());
                                             copy[0] ^= 1;
                                             literal.data = std::shared_ptr<const void>(copy, copy.get());
                                           }),
                               "has the plan of another program");
      }
      // The plan of an unrelated graph.
      const Plan stranger = make_plan(parse("graph g(%x: f32[4]) {\n%y: f32[4] = neg(%x)\nreturn %y\n}", "stranger"));
      expect_first_violation(with_region(here, path, [&](Plan& r) { r = stranger; }), "has the plan of another program");
    });
  }
}

TEST(RegionPlans, AnEqualCopyOfTheRegionIsTheSameProgram) {
  for (const std::vector<std::size_t>& path : paths(good()))
    EXPECT_EQ(check_plan(with_region(good(), path, [](Plan&) {})), std::vector<std::string>());
}

TEST(RegionPlans, TheCheckerFindsWhatAFrameCannotHold) {
  const std::vector<std::size_t> path = paths(good()).front();
  const Graph& region = *good().graph.regions[path.front()];
  const auto with_options = [&](const PlanOptions& options) {
    return with_region(good(), {path.front()}, [&](Plan& r) { r = make_plan(region, options); });
  };
  expect_first_violation(with_options({.strategy = Strategy::none, .alignment = 4096}), "is aligned to 4096 bytes");
  expect_first_violation(with_options({.strategy = Strategy::none, .chunk_bytes = 64}), "in chunks");
  const std::int64_t huge = std::int64_t{1} << 60;
  expect_first_violation(with_region(good(), path, [&](Plan& r) { r.arena_bytes += huge, r.peak_bytes += huge; }),
                         "more than 2^50");
}

// ---- how the executor runs regions ----

// The test leaves a gap at the start of the region's arena, so the region needs a larger frame. An executor that planned the
// regions itself would refuse this plan.
TEST(RegionPlans, TheExecutorRunsTheRegionsByTheirPlans) {
  constexpr std::int64_t kGap = 4096;
  for (std::size_t r = 0; r < good().region_plans.size(); ++r) {
    Plan plan = with_region(good(), {r}, [&](Plan& region) {
      for (Placement& p : region.values)
        if (p.where == Where::arena) p.offset += kGap;
      for (Scratch& s : region.workspace)
        if (s.bytes > 0) s.offset += kGap;
      region.arena_bytes += kGap;
      region.peak_bytes += kGap;
    });
    for (NodeId n = 0; n < plan.graph.node_count(); ++n) {
      Scratch& scratch = plan.workspace[n];
      const std::int64_t needed = needed_workspace(plan, n);
      if (needed == scratch.bytes) continue;
      scratch = {framed(plan.arena_bytes), needed};  // behind all other bytes of the arena
      plan.arena_bytes = scratch.offset + needed;
      plan.peak_bytes = plan.external_bytes + plan.arena_bytes;
    }
    const std::vector<std::int64_t> live = live_bytes(plan);
    plan.lower_bound_bytes = *std::max_element(live.begin(), live.end());
    Executor usual(good()), changed(plan);
    for (Executor* e : {&usual, &changed}) {
      e->set_input("rows", full({6, 8}, 0.25));
      e->set_input("start", full({8}, -0.5));
      e->run();
    }
    const Tensors want = usual.outputs(), got = changed.outputs();
    for (std::size_t k = 0; k < want.size(); ++k) EXPECT_TRUE(bit_equal(want[k], got[k])) << "region " << r << ", result " << k;
    EXPECT_EQ(changed.observed_peak_bytes(), plan.peak_bytes);
    EXPECT_GT(plan.peak_bytes, good().peak_bytes);
  }
}

// ---- plans of regions in files ----

Plan through_file(const Plan& plan) {
  const TemporaryFolder folder;
  TapeFile tape;
  tape.captured = looped();
  tape.plan = plan;
  save_tape(folder.file("t.tape"), tape);
  return *load_tape(folder.file("t.tape")).plan;
}

// Under the least budget the planner runs a loop twice, because its stack of results is large and only backward reads it
// again.
Plan with_clones() {
  const Tensor rows = ones({64, 8}), one = ones({8}).requires_grad(true);
  Capture capture("clones");
  const Tensor in = capture.input("rows", rows), start = capture.input("start", one);
  const Tensor scale = tanh(start);
  Tensor deep = scan([](const Tensors& t) { return Tensors{t[0] * 0.5, exp(t[0]) + t[1]}; }, {scale.detach()}, {in}).stacked[0];
  for (int layer = 0; layer < 12; ++layer) deep = tanh(deep * scale);
  capture.output("gradient", gradients({sum(deep)}, {start})[0]);
  return make_plan(capture.finish().graph, {.budget_percent = 0, .strategy = Strategy::greedy});
}

TEST(RegionPlans, ClonesOfANodeShareThem) {
  const Plan plan = with_clones();
  EXPECT_EQ(check_plan(plan), std::vector<std::string>());
  const Node* clone = nullptr;
  for (const Node& node : plan.graph.nodes)
    if (node.origin.clone && node.n_regions > 0) clone = &node;
  ASSERT_NE(clone, nullptr) << print(plan.graph);
  const Plan back = parse_plan(plan_to_json(plan), parse(print(plan.graph), "clones"));
  for (const Plan* p : {&plan, &back}) {
    int shared = 0;
    for (const Node& node : p->graph.nodes)
      if (!node.origin.clone && node.op == clone->op && node.n_regions > 0)
        shared += p->region_plans_of(node)[0] == p->region_plans_of(p->graph.nodes[clone - plan.graph.nodes.data()])[0];
    EXPECT_EQ(shared, 1);
  }
  expect_same_plan(plan, back);
}

TEST(RegionPlans, AFileKeepsThem) {
  const Plan back = through_file(good());
  expect_same_plan(back, good());
  EXPECT_EQ(print(back.graph), print(good().graph));
  each_region(back, [](const Plan&, const Graph& region, const Plan* plan) { EXPECT_EQ(&plan->graph, &region); });
  EXPECT_EQ(plan_to_json(back), plan_to_json(good()));
}

TEST(RegionPlans, ReplaysFromTheFileHaveTheSameBits) {
  Executor fresh(good()), loaded(through_file(good()));
  for (Executor* e : {&fresh, &loaded}) {
    e->set_input("rows", full({6, 8}, 0.25));
    e->set_input("start", full({8}, -0.5));
    e->run();
  }
  const Tensors a = fresh.outputs(), b = loaded.outputs();
  for (std::size_t k = 0; k < a.size(); ++k) EXPECT_TRUE(bit_equal(a[k], b[k])) << "result " << k;
  EXPECT_EQ(loaded.observed_peak_bytes(), good().peak_bytes);
}

// The JSON as older versions wrote it, without the plans of regions.
std::string without_regions(std::string json) {
  const std::size_t at = json.find(",\"region_plans\":");
  return at == std::string::npos ? json : json.substr(0, at) + "}\n";
}

TEST(RegionPlans, APlanFromBeforeGetsThemAsItIsRead) {
  const std::string json = without_regions(plan_to_json(good()));
  ASSERT_FALSE(mentions(json, "region_plans"));
  expect_same_plan(parse_plan(json, good().graph), good());
  expect_same_plan(parse_plan(json, parse(print(good().graph), "parsed")), good());
}

// A plan of an older version shows the regions as they were before planning.
TEST(RegionPlans, RegionsFromBeforeAreReplacedWithPlannedOnes) {
  const Tensor half = full({8}, 0.5);
  Capture capture("branch");
  const Tensor x = capture.input("x", half);
  const Tensors taken = cond(
      less(sum(x), 5.0),
      [&](const Tensors&) {
        return Tensors{copy(exp(copy(x))), x};
      },
      [&](const Tensors&) {
        return Tensors{x, tanh(x)};
      });
  capture.output("y", taken[0]);
  const Graph captured = capture.finish().graph;
  const Plan plan = make_plan(captured);
  Graph former = plan.graph;
  ASSERT_EQ(former.regions.size(), captured.regions.size());
  former.regions = captured.regions;
  ASSERT_NE(print(former), print(plan.graph));
  const Plan read = parse_plan(without_regions(plan_to_json(plan)), former);
  for (std::size_t r = 0; r < former.regions.size(); ++r)
    EXPECT_EQ(read.graph.regions[r]->nodes.size(), plan.graph.regions[r]->nodes.size()) << "copies are dropped";
  expect_same_plan(read, plan);
  Executor e(read);
  e.set_input("x", half);
  e.run();
  EXPECT_TRUE(bit_equal(e.outputs()[0], exp(half)));
}

// The plan of a region must show the program of the region. Each of these programs differs from it in one thing.
TEST(RegionPlans, AProgramThatDiffersInOneThingIsAnother) {
  const auto branch = [](const std::string& head, const std::string& first, const std::string& last,
                         const std::string& result) {
    return head + "{\n" + first + " = opaque(%a, %k) {us=1.0}\n" + last + "\nreturn " + result + "\n}";
  };
  const std::string head = "(%a: f32[8], %k: f32[8]) ", first = "%b: f32[8], %c: f32[8]",
                    last = "%d: f32[8] = opaque(%b) {us=1.0}\n%e: f32[8] = exp(%d)";
  const std::string own = branch(head, first, last, "%e");
  const Plan plan = make_plan(parse(
      "graph g(%p: bool[], %x: f32[8], %y: f32[8]) {\n%z: f32[8] = cond(%p, %x, %y) " + own + own + "\nreturn %z\n}", "g"));
  ASSERT_TRUE(check_plan(plan).empty()) << check_plan(plan)[0];
  const auto with = [&](const std::string& program) {
    Plan changed = plan;
    changed.region_plans[0] = std::make_shared<const Plan>(make_plan(parse("graph r" + program, "r")));
    return changed;
  };
  EXPECT_TRUE(check_plan(with(own)).empty()) << "the same program, parsed again";
  const std::string others[] = {
      branch("(%a: f32[8], %k: f32[8], %l: f32[8]) ", first, last, "%e"),
      branch("(%a: f32[8], %k: f32[8]) state(%s: f32[8]) ", first, last, "%e"),
      branch(head, "%b: f32[8], %c: f32[9]", last, "%e"),
      branch(head, "%b: f32[8]", "%c: f32[8], %d: f32[8] = opaque(%b) {us=1.0}\n%e: f32[8] = exp(%d)", "%e"),
      branch(head, first, "%d: f32[8] = opaque(%c) {us=1.0}\n%e: f32[8] = exp(%d)", "%e"),
      branch(head, first, "%d: f32[8] = opaque(%b) {us=1.0} [after=%c]\n%e: f32[8] = exp(%d)", "%e"),
      branch(head, first, "%d: f32[8] = opaque(%b) {us=2.0}\n%e: f32[8] = exp(%d)", "%e"),
      branch(head, first, "%d: f32[8] = opaque(%b) {us=1.0}\n%e: f32[8] = sin(%d)", "%e"),
      branch(head, first, last + "\n%f: f32[8] = exp(%e)", "%f"),
      branch(head, first, last, "%d"),
  };
  for (const std::string& other : others) {
    SCOPED_TRACE(other);
    expect_first_violation(with(other), "has the plan of another program");
  }
  const auto forged = [&](void (*forge)(Graph&)) {
    Plan region = *plan.region_plans[0], changed = plan;
    forge(region.graph);
    changed.region_plans[0] = std::make_shared<const Plan>(std::move(region));
    return changed;
  };
  expect_first_violation(forged([](Graph& g) { g.outputs[0] = testing::value_named(g, "d"); }),
                         "has the plan of another program");
  expect_first_violation(forged([](Graph& g) { g.nodes[0].first_output = -5; }), "has the plan of another program");
}

// Each of the four regions is wrong in sixty places.
TEST(RegionPlans, TheCheckerStopsAfterAHundredSentences) {
  std::string body = "(%a: u8[64]) {\n", all = "%a";
  for (int i = 0; i < 60; ++i) {
    const std::string name = "%b" + std::to_string(i);
    body += name + ": u8[64] = opaque(%a) {us=1.0}\n";
    all += ", " + name;
  }
  body += "%z: u8[64] = opaque(" + all + ") {us=1.0}\nreturn %z\n}";
  Plan plan = make_plan(parse("graph g(%p: bool[], %x: u8[64]) {\n%y: u8[64] = cond(%p, %x) " + body + body +
                                  "\n%z: u8[64] = cond(%p, %y) " + body + body + "\nreturn %z\n}",
                              "g"));
  ASSERT_EQ(check_plan(plan), std::vector<std::string>());
  for (std::shared_ptr<const Plan>& one : plan.region_plans) {
    Plan region = *one;
    for (Placement& p : region.values)
      if (p.where == Where::arena) p.offset = -64;
    one = std::make_shared<const Plan>(std::move(region));
  }
  const std::vector<std::string> found = check_plan(plan);
  ASSERT_EQ(found.size(), 100u);
  EXPECT_TRUE(mentions(found.front(), "region 0 of `%y: u8[64] = cond(%p, %x)` has a bad plan: %b0 is not inside the arena"));
  EXPECT_TRUE(mentions(found.back(), "region 1 of `%y: u8[64] = cond(%p, %x)` has a bad plan"));
}

TEST(RegionPlans, AForgedFileIsRefused) {
  const std::string json = plan_to_json(good());
  const std::size_t table = json.find("\"region_plans\"");
  ASSERT_NE(table, std::string::npos);
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string forged = json;
    std::size_t at = forged.find(from, table);
    EXPECT_NE(at, std::string::npos) << from;
    forged.replace(at, from.size(), to);
    return message_of<InvalidGraphError>([&] { parse_plan(forged, good().graph); });
  };
  EXPECT_TRUE(mentions(refusal("\"arena_bytes\":", "\"arena_bytes\":1"), "the plan is invalid"));
  EXPECT_TRUE(mentions(refusal("\"regions\":[", "\"regions\":[99,"), "no earlier plan of a region"));
  EXPECT_TRUE(mentions(refusal("\"regions\":[", "\"regions\":[-2,"), "no earlier plan of a region"));
  EXPECT_TRUE(mentions(refusal("\"regions\":[", "\"regions\":[0,"), "the plan says which plans"));

  // Gives each region the plan of each other region.
  const std::size_t list = json.rfind("\"regions\":[");
  const std::string head = json.substr(0, list);
  const std::size_t n = good().region_plans.size();
  for (std::int64_t same : {-1, 0}) {
    std::string forged = head + "\"regions\":[";
    for (std::size_t r = 0; r < n; ++r) forged += (r ? "," : "") + std::to_string(same);
    EXPECT_THROW(parse_plan(forged + "]}", good().graph), InvalidGraphError) << same;
  }
}

}  // namespace
}  // namespace tapedeck
