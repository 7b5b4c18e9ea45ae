// Tests the explanations of a plan's memory against counts of the tests' own: live bytes, occupation byte by byte, and a
// small graph worked out by hand.
#include <tapedeck/tests/capture/large_plan.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/engine/seeds.h>

#include <tapedeck/capture/explain/explain_memory.h>
#include <tapedeck/capture/explain/memory_map.h>
#include <tapedeck/capture/explain/memory_svg.h>
#include <tapedeck/capture/explain/plan_csv.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/planner/place/place.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace tapedeck {
namespace {

std::vector<Plan> some_plans() {
  std::vector<Plan> plans;
  for (unsigned seed = 1; seed <= test::seeds(60); ++seed) {
    PlanOptions options;
    options.find_floor = false;
    if (seed % 3 == 0) options.budget_percent = 70;
    options.threads = 1 + static_cast<int>(seed % 2);
    plans.push_back(make_plan(test::RandomProgram(seed).graph(), options));
    plans.push_back(make_plan(test::RandomGraph(seed).make(30), options));
  }
  for (const char* model : {"unet", "lstm_lm", "mlp"}) {
    ModelOptions options;
    options.batch = 2;
    options.abstract = true;
    plans.push_back(make_plan(record_model(*find_model(model), options).graph, {.find_floor = false}));
  }
  return plans;
}

// ---- map_memory ----

TEST(MemoryMap, BoxesAddUpToTheLiveBytes) {
  for (const Plan& plan : some_plans()) {
    const MemoryMap map = map_memory(plan);
    std::vector<std::int64_t> sum(plan.graph.nodes.size(), plan.external_bytes);
    for (const MemoryBox& box : map.arena)
      for (NodeId n = box.first; n <= box.last; ++n) sum[n] += box.bytes;
    EXPECT_EQ(sum, live_bytes(plan)) << print(plan.graph);
    std::int64_t external = 0;
    for (const MemoryBox& box : map.external) {
      EXPECT_EQ(box.offset, external);
      external += box.bytes;
    }
    EXPECT_EQ(external, plan.external_bytes);
  }
}

TEST(MemoryMap, BoxesDoNotOverlap) {
  for (const Plan& plan : some_plans()) {
    const std::vector<MemoryBox> boxes = map_memory(plan).arena;
    for (std::size_t i = 0; i < boxes.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const MemoryBox &a = boxes[i], &b = boxes[j];
        const bool in_time = a.first <= b.last && b.first <= a.last;
        const bool in_space = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        EXPECT_FALSE(in_time && in_space) << box_name(plan, a) << " and " << box_name(plan, b) << "\n" << print(plan.graph);
      }
  }
}

// ---- explain_peak, on a graph worked out by hand ----

// While %big runs, 1000 + 400 + 3000 bytes are alive. %a can be computed again cheaply, and %s could have been read earlier.
Plan handmade() {
  return make_plan(parse(R"(graph hand(%x: u8[200]) {
    %a: u8[1000] = opaque(%x) {us=7.0} [site="train.cpp:3"]
    %s: u8[400] = opaque(%x) {us=1.0}
    %big: u8[3000] = opaque(%x) {us=50.0} [path="fc1", site="train.cpp:5"]
    %c: u8[8] = opaque(%big) {us=1.0}
    %d: u8[8] = opaque(%s) {us=1.0}
    %e: u8[8] = opaque(%a, %c, %d) {us=1.0} [site="train.cpp:8"]
    return %e
  })",
                         "hand"),
                   {.ordering = Ordering::recorded});
}

const PeakTenant& tenant(const PeakExplanation& e, const std::string& name) {
  for (const PeakTenant& t : e.alive)
    if (t.name == name) return t;
  ADD_FAILURE() << "no " << name;
  return e.alive.front();
}

TEST(ExplainPeak, SaysWhatLivesThereAndWhatWouldLowerIt) {
  const Plan plan = handmade();
  const PeakExplanation e = explain_peak(plan, {7, 1, 50, 1, 1, 1});
  EXPECT_EQ(e.live_bytes, 208 + 1000 + 400 + 3000 + 8);
  EXPECT_EQ(e.text, "%c: u8[8] = opaque(%big) {us=1.0}");
  ASSERT_EQ(e.alive.size(), 4u);
  EXPECT_EQ(e.alive[0].name, "%big");
  EXPECT_TRUE(e.alive[0].used_at_peak);
  EXPECT_EQ(e.alive[0].made_at, "train.cpp:5");
  EXPECT_EQ(e.alive[0].module, "fc1");
  const PeakTenant& a = tenant(e, "%a");
  EXPECT_TRUE(a.recomputable);
  EXPECT_EQ(a.rerun, std::vector<NodeId>{0});
  EXPECT_EQ(a.recompute_us, 7);
  EXPECT_EQ(a.peak_after, e.live_bytes - 1000);
  EXPECT_EQ(a.read_at, "train.cpp:8");
  EXPECT_FALSE(a.order_helps);  // the reader of %a waits for %c
  EXPECT_TRUE(tenant(e, "%s").order_helps);
  const std::string text = to_text(e);
  for (const char* words : {"%big", "train.cpp:5", "made again from 1 node (7.0 us)", "1000 less",
                            "another order would free it", "--order auto", "placement"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
}

TEST(ExplainPeak, NodesThatBindReachTheBoundByThemselves) {
  const Plan plan = make_plan(parse(R"(graph g(%x: u8[100]) {
    %a: u8[5000] = opaque(%x) {us=1.0}
    %b: u8[5000] = opaque(%a) {us=1.0}
    %c: u8[10] = opaque(%b) {us=1.0}
    return %c
  })",
                                    "g"));
  const PeakExplanation e = explain_peak(plan, {});
  EXPECT_EQ(e.binding[0].own_bytes, 100 + 10 + 10000);
  EXPECT_EQ(e.binding[0].node, 1);
  EXPECT_TRUE(e.binding[0].binds);
  EXPECT_FALSE(e.binding[1].binds);
}

// If %e runs before %d, %d can be computed in place of %c, so this node does not bind the peak.
TEST(ExplainPeak, WhatAnotherOrderComputesInPlaceDoesNotBind) {
  const Graph g = parse(R"(graph g(%y: f32[1024]) {
    %c: f32[1024] = mul(%y, %y)
    %d: f32[1024] = exp(%c)
    %f: f32[] = sum(%d) {axes=[0], keepdims=false}
    %e: f32[] = sum(%c) {axes=[0], keepdims=false}
    return %e, %f
  })",
                        "g");
  const Plan recorded = make_plan(g, {.ordering = Ordering::recorded});
  ASSERT_EQ(recorded.lower_bound_bytes, 12296);
  ASSERT_EQ(make_plan(g).lower_bound_bytes, 8200);
  for (const BindingNode& b : explain_peak(recorded, {}).binding) {
    EXPECT_FALSE(b.binds) << b.text;
    EXPECT_LE(b.own_bytes, 8200) << b.text;
  }
}

// The bound that the explanation names is never above the peak that the planner reaches with all its means.
TEST(ExplainPeak, NoPlanGetsBelowWhatBinds) {
  int bind = 0;
  for (unsigned seed = 1; seed <= 80; ++seed)
    for (const Graph& g : {test::RandomProgram(seed).graph(), test::RandomGraph(seed).make(20)}) {
      const std::int64_t least = make_plan(g).floor_bytes;
      for (const BindingNode& b :
           explain_peak(make_plan(g, {.ordering = Ordering::recorded, .find_floor = false}), {}).binding) {
        EXPECT_LE(b.own_bytes, least) << b.text << "\n" << print(g);
        bind += b.binds;
      }
    }
  EXPECT_GT(bind, 20);
}

// The plan keeps bytes apart for several threads. Then a better placement would not close the gap to the bound.
TEST(ExplainPeak, SaysWhatKeepingBytesApartCosts) {
  ModelOptions model;
  model.abstract = true;
  model.batch = 1;
  const Graph g = record_model(*find_model("mlp"), model).graph;
  PlanOptions options;
  options.threads = 4;
  const Plan apart = make_plan(g, options);
  ASSERT_EQ(apart.segment_rule.placement, "apart");
  ASSERT_GT(apart.peak_bytes, apart.segment_rule.tight_peak_bytes);
  const PeakExplanation e = explain_peak(apart, {});
  EXPECT_EQ(e.apart_bytes, apart.peak_bytes - apart.segment_rule.tight_peak_bytes);
  const std::string tight = std::to_string(apart.segment_rule.tight_peak_bytes);
  for (const char* words : {"kept apart", tight.c_str(), "--threads 1", "--parallel-peak 1", "--budget"})
    EXPECT_NE(e.gap_reason.find(words), std::string::npos) << e.gap_reason;
  EXPECT_EQ(e.gap_reason.find("not known"), std::string::npos) << e.gap_reason;
  EXPECT_NE(to_text(explain_memory(apart)).find("keeping bytes apart for 4 threads"), std::string::npos);
  options.parallel_peak = 1;  // each cure that the explanation names must lower the peak
  EXPECT_LE(make_plan(g, options).peak_bytes, apart.segment_rule.tight_peak_bytes);
  options.parallel_peak = 1.15;
  options.budget = apart.segment_rule.tight_peak_bytes;
  EXPECT_LE(make_plan(g, options).peak_bytes, apart.segment_rule.tight_peak_bytes);
}

// A node that reads one part needs the bytes of this part alone, and not the bytes of the whole join.
TEST(ExplainPeak, APartCountsForItselfAlone) {
  const Plan plan = make_plan(parse(R"(graph g(%x: f32[4]) {
    %p: f32[100] = opaque(%x) {us=1.0}
    %q: f32[300] = opaque(%p) {us=1.0}
    %w: f32[400] = concat(%p, %q) {axis=0}
    %e: f32[1] = opaque(%w) {us=1.0}
    return %e
  })",
                                    "g"),
                              {.ordering = Ordering::recorded});
  ASSERT_TRUE(std::any_of(plan.values.begin(), plan.values.end(), [](const Placement& p) { return p.reason == Reason::part; }));
  std::map<std::string, std::int64_t> own;
  for (const BindingNode& b : explain_peak(plan, {}).binding) own[b.text.substr(0, 2)] = b.own_bytes - plan.external_bytes;
  EXPECT_EQ(own["%p"], 400);
  EXPECT_EQ(own["%q"], 400 + 1200);
  EXPECT_EQ(own["%w"], 1600);
  EXPECT_EQ(own["%e"], 1600);
}

// The explanation says why the peak is above the bound: it gives a proven reason, or it says that the reason is not known.
TEST(ExplainPeak, SaysOfTheGapWhatIsKnown) {
  const auto reason = [](const std::string& text) {
    return explain_peak(make_plan(parse(text, "g"), {.ordering = Ordering::recorded}), {}).gap_reason;
  };
  const std::string two =
      "graph g(%x: u8[64]) {\n%a: u8[65] = opaque(%x) {us=1.0}\n%b: u8[65] = opaque(%a) {us=1.0}\n%c: u8[1] = opaque(%b) "
      "{us=1.0}\nreturn %c\n}";
  EXPECT_EQ(reason(two), "all of it is sizes rounded up to 64 bytes: no placement of this order is smaller");
  EXPECT_EQ(reason("graph g(%x: u8[64]) {\n%a: u8[128] = opaque(%x) {us=1.0}\n%b: u8[64] = opaque(%a) {us=1.0}\n%c: u8[1] = "
                   "opaque(%b) {us=1.0}\nreturn %c\n}"),
            "the arena ends where the most bytes are alive: no placement of this order is smaller");
  Plan loose = make_plan(parse(two, "g"), {.ordering = Ordering::recorded});
  for (Placement& p : loose.values)
    if (p.where == Where::arena && p.offset > 0) p.offset += 64;
  loose.arena_bytes += 64;
  loose.peak_bytes += 64;
  EXPECT_NE(explain_peak(loose, {}).gap_reason.find("whether a placement of this order is smaller is not known"),
            std::string::npos);
}

TEST(ExplainPeak, SaysWhyAResultIsNotInPlace) {
  const Plan plan = make_plan(parse(R"(graph g(%x: f32[1000]) {
    %a: f32[1000] = opaque(%x) {us=1.0}
    %b: f32[1000] = exp(%a)
    %c: f32[1000] = opaque(%a, %b) {us=1.0}
    %d: f32[] = sum(%c) {axes=[0], keepdims=false}
    return %d
  })",
                                    "g"));
  const PeakExplanation e = explain_peak(plan, {});
  std::string all;
  for (const PeakTenant& t : e.alive) all += t.advice + "\n";
  const bool at_exp = e.text.find("exp") != std::string::npos;
  EXPECT_NE(all.find(at_exp ? "still reads it" : "opaque cannot work in place"), std::string::npos) << all;
}

// The explanation proposes recomputing only for values that the node at the peak does not read. recompute_cost_test.cpp
// tests the peak that would be left.
TEST(ExplainPeak, HoldsForAnyPlan) {
  for (const Plan& plan : some_plans()) {
    const PeakExplanation e = explain_peak(plan, {});
    const std::vector<std::int64_t> live = live_bytes(plan);
    EXPECT_EQ(e.live_bytes, *std::max_element(live.begin(), live.end()));
    std::int64_t sum = e.external_bytes;
    for (const PeakTenant& t : e.alive) {
      sum += t.bytes;
      EXPECT_TRUE(!t.recomputable || t.peak_after >= e.live_bytes - t.bytes);
      EXPECT_FALSE(t.recomputable && t.used_at_peak);
    }
    EXPECT_EQ(sum, e.live_bytes);
    for (const BindingNode& b : e.binding) EXPECT_LE(b.own_bytes, live[b.node]) << b.text << "\n" << print(plan.graph);
    const std::string text = to_text(e);
    EXPECT_FALSE(text.empty());
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 150u) << line;
    EXPECT_FALSE(to_text(explain_memory(plan)).empty());
  }
}

TEST(ExplainMemory, TotalsAddUp) {
  for (const Plan& plan : some_plans()) {
    const MemoryExplanation e = explain_memory(plan);
    const std::vector<std::int64_t> live = live_bytes(plan);
    for (const auto* totals : {&e.roles, &e.reasons}) {
      std::int64_t all = 0, at_peak = 0;
      for (const MemoryTotal& t : *totals) all += t.bytes, at_peak += t.peak_bytes;
      EXPECT_EQ(all, e.unshared_bytes);
      EXPECT_EQ(at_peak, *std::max_element(live.begin(), live.end()));
    }
    EXPECT_EQ(e.gap_bytes, e.peak_bytes - e.lower_bound_bytes);
    const auto workspace = [](const std::vector<MemoryTotal>& totals) {
      for (const MemoryTotal& t : totals)
        if (t.name == "workspace") return t.bytes;
      return std::int64_t{0};
    };
    EXPECT_EQ(workspace(e.unruled), workspace(e.roles));
  }
}

// No sharing rule governs the bytes of loops. They have a named row of their own.
TEST(ExplainMemory, NamesWhatLoopsTake) {
  const auto row = [](const MemoryExplanation& e, const std::string& name) {
    const auto it = std::find_if(e.unruled.begin(), e.unruled.end(), [&](const MemoryTotal& t) { return t.name == name; });
    return it == e.unruled.end() ? MemoryTotal{} : *it;
  };
  const auto explained = [](std::int64_t every) {
    Tensor start = full({2, 3}, 0.5);
    start.requires_grad(true);
    const Tensor slices = full({7, 2, 3}, 0.25);
    Capture capture("loop");
    const Tensor h = capture.input("h", start), x = capture.input("x", slices);
    LoopOptions options;
    options.checkpoint_every = every;
    const LoopResult r = scan([](const Tensors& c) { return Tensors{tanh(c[0] * c[1])}; }, {h}, {x}, {}, options);
    capture.output("g", gradients({sum(r.carried[0])}, {h})[0]);
    return explain_memory(make_plan(capture.finish().graph));
  };
  const MemoryExplanation kept = explained(0), again = explained(kCheckpointSqrt);
  EXPECT_GT(row(kept, "loop residuals").bytes, 0);
  EXPECT_EQ(row(kept, "loop tapes").count, 0);
  EXPECT_GT(row(kept, "loops").bytes, 0);
  EXPECT_EQ(row(again, "loop residuals").count, 0);
  EXPECT_EQ(row(again, "loop tapes").count, 1);
  EXPECT_GE(row(again, "loops").bytes, row(again, "loop tapes").bytes);
  EXPECT_EQ(row(again, "loop tapes").bytes % (2 * 3 * 4), 0);
}

// ---- the list of buffers as CSV ----

std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row(1);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && text[i + 1] == '"')
      row.back() += text[i++];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      row.emplace_back();
    else if (c == '\n' && !quoted)
      rows.push_back(std::exchange(row, std::vector<std::string>(1)));
    else
      row.back() += c;
  }
  return rows;
}

TEST(PlanCsv, RowsAreTheBuffersOfTheArena) {
  for (const Plan& plan : some_plans()) {
    const auto rows = read_csv(plan_csv(plan));
    ASSERT_EQ(rows[0].size(), 14u);
    std::vector<Tenant> tenants;
    std::vector<std::int64_t> offsets;
    std::int64_t end = 0;
    for (std::size_t i = 1; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i].size(), 14u) << rows[i][0];
      const auto number = [&](int column) -> std::int64_t { return std::stoll(rows[i][column]); };
      EXPECT_EQ(number(0), static_cast<std::int64_t>(i) - 1);
      EXPECT_EQ(number(4) % number(5), 0);
      tenants.push_back({number(3), number(5), static_cast<std::int32_t>(number(1)), static_cast<std::int32_t>(number(2)) - 1});
      offsets.push_back(number(4));
      end = std::max(end, number(4) + number(3));
    }
    EXPECT_EQ(end, plan.arena_bytes) << print(plan.graph);
    for (std::size_t i = 0; i < tenants.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const bool in_time = tenants[i].birth <= tenants[j].death && tenants[j].birth <= tenants[i].death;
        const bool in_space = offsets[i] < offsets[j] + tenants[j].bytes && offsets[j] < offsets[i] + tenants[i].bytes;
        EXPECT_FALSE(in_time && in_space) << rows[i + 1][6] << " and " << rows[j + 1][6] << "\n" << print(plan.graph);
      }
    EXPECT_EQ(place(tenants).bound, plan.lower_bound_bytes - plan.external_bytes) << print(plan.graph);
  }
}

// ---- the SVG picture of the arena ----

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + word.size())) ++n;
  return n;
}

TEST(MemorySvg, ShowsValuesLinesAndLegend) {
  const Plan plan = handmade();
  const std::string svg = memory_svg(plan, {.title = "a <small> & plain one"});
  EXPECT_EQ(svg.find("<svg"), 0u);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  for (const char* words : {"%big 3000 bytes, u8[3000]", "nodes 2..3", "train.cpp:5", "peak", "temporary", "input", "output",
                            "schedule", "a &lt;small&gt; &amp; plain one"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  for (const char* tag : {"g", "text", "title", "defs", "pattern", "svg"})
    EXPECT_EQ(count_of(svg, std::string("<") + tag + " ") + count_of(svg, std::string("<") + tag + ">"),
              count_of(svg, std::string("</") + tag + ">"))
        << tag;
  PlanOptions tight;
  tight.budget_percent = 60;
  const std::string with_budget = memory_svg(make_plan(test::chain(12, 1000), tight));
  EXPECT_NE(with_budget.find(">budget<"), std::string::npos);
  EXPECT_NE(with_budget.find("url(#hatch)"), std::string::npos);
}

// The file stays small enough for a browser, however many values the plan has.
TEST(MemorySvg, ManyValuesStayASmallFile) {
  for (const int lanes : {1, 4}) {  // with 4 lanes nearly all boxes are larger than a pixel
    const std::string svg = memory_svg(test::large_plan(60000, lanes, 8));
    EXPECT_LT(svg.size(), 1200u << 10) << lanes;
    EXPECT_GT(count_of(svg, "<path"), 3u);
    if (lanes == 4) {
      EXPECT_GE(count_of(svg, "<title>"), 3500u) << "the largest are drawn by themselves";
    }
  }
}

// A call site may contain any bytes, but XML must be valid UTF-8.
TEST(MemorySvg, IsUtf8WhateverTheNames) {
  Plan plan = handmade();
  for (Node& node : plan.graph.nodes) node.origin.site = Name("tr\xff\xe4in.cpp:3");
  const std::string svg = memory_svg(plan, {.title = "\xc3\xa4 and \xc3"});
  EXPECT_TRUE(valid_utf8(svg));
  EXPECT_NE(svg.find("tr\xEF\xBF\xBD\xEF\xBF\xBDin.cpp:3"), std::string::npos);
  EXPECT_NE(svg.find("\xc3\xa4 and \xEF\xBF\xBD"), std::string::npos);
}

TEST(MemorySvg, RefusesSizesThatAreNone) {
  EXPECT_THROW(memory_svg(handmade(), {.width = 10}), UsageError);
  EXPECT_THROW(memory_svg(handmade(), {.height = 1 << 20}), UsageError);
}

}  // namespace
}  // namespace tapedeck
