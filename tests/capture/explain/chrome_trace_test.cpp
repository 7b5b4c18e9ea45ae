// Tests the Chrome trace by reading it back with the rules of trace viewers: slices of one thread nest, arrows end in
// slices, and the memory counter never exceeds the peak.
#include <tapedeck/capture/explain/chrome_trace.h>

#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/planner/planner.h>

#include <tapedeck/tests/capture/sample_tape.h>
#include <tapedeck/tests/capture/timelines.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

struct Event {
  std::string phase, name, category;
  // in nanoseconds, as a viewer that truncates has them
  std::int64_t track = 0, start = 0, end = 0, id = 0, bytes = 0, node = kNone;
  std::string text, path, site;
};

std::int64_t cut_ns(const JsonValue& v) { return static_cast<std::int64_t>(v.as_real() * 1000.0); }

std::vector<Event> events_of(const std::string& trace) {
  const JsonDocument document(trace);
  const auto text = [](const JsonValue& from, const char* key) {
    return from.find(key) ? std::string(from.find(key)->as_string()) : std::string();
  };
  std::vector<Event> events;
  for (const JsonValue& j : document.root().find("traceEvents")->items()) {
    Event e;
    e.phase = text(j, "ph");
    e.name = text(j, "name");
    e.category = text(j, "cat");
    e.track = j.find("tid")->as_integer();
    e.start = cut_ns(*j.find("ts"));
    EXPECT_EQ(j.find("pid")->as_integer(), 1);
    e.end = e.start + (j.find("dur") ? cut_ns(*j.find("dur")) : 0);
    if (j.find("id")) e.id = j.find("id")->as_integer();
    if (const auto args = j.find("args")) {
      if (args->find("bytes")) e.bytes = args->find("bytes")->as_integer();
      if (args->find("id")) e.node = static_cast<NodeId>(args->find("id")->as_integer());
      e.text = text(*args, e.phase == "M" ? "name" : "node");
      e.path = text(*args, "path");
      e.site = text(*args, "site");
    }
    events.push_back(std::move(e));
  }
  return events;
}

// Any two slices of a track are disjoint, or one contains the other.
void expect_nesting(const std::vector<Event>& events) {
  for (const Event& a : events)
    for (const Event& b : events) {
      if (&a == &b || a.phase != "X" || b.phase != "X" || a.track != b.track) continue;
      const bool apart = a.end <= b.start || b.end <= a.start;
      const bool inside = a.start <= b.start && b.end <= a.end, around = b.start <= a.start && a.end <= b.end;
      EXPECT_TRUE(apart || inside || around) << a.name << " and " << b.name;
    }
}

// The innermost slice at a moment. An arrow attaches to this slice.
const Event* slice_at(const std::vector<Event>& events, std::int64_t track, std::int64_t at) {
  const Event* found = nullptr;
  for (const Event& e : events)
    if (e.phase == "X" && e.track == track && e.start <= at && at <= e.end &&
        (!found || e.end - e.start < found->end - found->start))
      found = &e;
  return found;
}

bool reads_output_of(const Plan& plan, NodeId reader, NodeId maker) {
  const auto inputs = plan.graph.inputs(plan.graph.nodes[reader]);
  return std::any_of(inputs.begin(), inputs.end(), [&](ValueId v) {
    while (plan.values[v].reason == Reason::alias) v = plan.values[v].other;
    return plan.graph.values[v].node == maker;
  });
}

Plan plan_with_clones() {
  Plan plan = make_plan(parse(R"(graph net(%x: f32[64,64]) {
    %a: f32[64,64] = exp(%x)       [path="fc1", site="train.cpp:12"]
    %b: f32[64,64] = tanh(%a)      [path="fc2"]
    %c: f32[64,64] = sigmoid(%b)
    %d: f32[64,64] = tanh(%c)
    %l: f32[] = sum(%d) {axes=[0,1]}
    %g4: f32[64,64] = mul(%d, %c)  [phase=backward]
    %g3: f32[64,64] = mul(%g4, %b) [phase=backward]
    %g2: f32[64,64] = mul(%g3, %a) [phase=backward]
    return %l, %g2
  })"),
                        {.budget_percent = 85});
  EXPECT_TRUE(plan.feasible) << plan.infeasible_reason;
  EXPECT_GT(plan.recomputed_nodes, 0);
  return plan;
}

TEST(ChromeTrace, ThreadsNestAndEveryNodeStandsOnce) {
  for (const Plan& plan : {plan_with_clones(), make_plan(sample_graph())})
    for (const int threads : {1, 2}) {
      const Timeline run = test::replay_timeline(plan, threads);
      const std::vector<Event> events = events_of(chrome_trace(plan, {&run, 1}));
      expect_nesting(events);
      std::map<std::int64_t, int> seen;
      for (const Event& e : events)
        if (e.phase == "X" && e.node != kNone) ++seen[e.node];
      EXPECT_EQ(seen.size(), run.slices.size());
      for (const Slice& s : run.slices) EXPECT_EQ(seen[s.node], 1) << s.node;
      for (const Event& e : events)
        if (e.phase == "X" && e.node != kNone) {
          EXPECT_EQ(e.text, plan.graph.node_text(static_cast<NodeId>(e.node)));
          const Event* around = nullptr;
          for (const Event& s : events)
            if (s.category == "segment" && s.track == e.track && s.start <= e.start && e.end <= s.end) around = &s;
          EXPECT_NE(around, nullptr) << e.text;
        }
    }
}

TEST(ChromeTrace, SaysWhereANodeComesFrom) {
  const Plan plan = plan_with_clones();
  const Timeline run = test::serial_timeline(plan);
  int found = 0;
  for (const Event& e : events_of(chrome_trace(plan, {&run, 1})))
    if (e.name == "exp" && e.phase == "X" && e.category == "forward") {
      EXPECT_EQ(e.path, "fc1");
      EXPECT_EQ(e.site, "train.cpp:12");
      ++found;
    }
  EXPECT_EQ(found, 1);
}

TEST(ChromeTrace, ArrowsLeadFromClonesToTheirReaders) {
  const Plan plan = plan_with_clones();
  for (const int threads : {1, 2}) {
    const Timeline run = test::replay_timeline(plan, threads);
    const std::vector<Event> events = events_of(chrome_trace(plan, {&run, 1}));
    std::map<std::int64_t, const Event*> from, to;
    for (const Event& e : events) {
      if (e.phase == "s" || e.phase == "f") {
        EXPECT_TRUE((e.phase == "s" ? from : to).emplace(e.id, &e).second);
      }
    }
    EXPECT_GE(static_cast<int>(from.size()), plan.recomputed_nodes);
    ASSERT_EQ(from.size(), to.size());
    for (const auto& [id, s] : from) {
      ASSERT_TRUE(to.count(id));
      const Event* maker = slice_at(events, s->track, s->start);
      const Event* reader = slice_at(events, to[id]->track, to[id]->start);
      ASSERT_TRUE(maker && reader);
      EXPECT_EQ(maker->category, "recompute");
      EXPECT_LE(s->start, to[id]->start);
      EXPECT_TRUE(reads_output_of(plan, static_cast<NodeId>(reader->node), static_cast<NodeId>(maker->node)))
          << maker->text << " -> " << reader->text;
    }
  }
}

TEST(ChromeTrace, TheCounterReadsAsThePeak) {
  const Plan plan = plan_with_clones();
  for (const int threads : {1, 2}) {
    const Timeline run = test::replay_timeline(plan, threads);
    std::int64_t highest = 0, lowest = plan.peak_bytes, last = 0;
    for (const Event& e : events_of(chrome_trace(plan, {&run, 1}))) {
      if (e.phase != "C") continue;
      EXPECT_EQ(e.name, "live bytes");
      highest = std::max(highest, e.bytes);
      lowest = std::min(lowest, e.bytes);
      last = e.bytes;
    }
    EXPECT_LE(highest, plan.peak_bytes);
    if (threads == 1) {
      EXPECT_EQ(highest, plan.lower_bound_bytes);
    }
    EXPECT_EQ(lowest, plan.external_bytes);
    EXPECT_EQ(last, plan.external_bytes);
  }
}

TEST(ChromeTrace, RunsStandOneAfterTheOther) {
  const Plan plan = plan_with_clones();
  const std::vector<Timeline> runs = {test::serial_timeline(plan, 0), test::serial_timeline(plan, 994),
                                      test::serial_timeline(plan)};
  const std::vector<Event> events = events_of(chrome_trace(plan, runs));
  expect_nesting(events);
  std::vector<const Event*> steps;
  std::vector<std::string> tracks;
  for (const Event& e : events) {
    if (e.category == "step") steps.push_back(&e);
    if (e.name == "thread_name") tracks.push_back(e.text);
  }
  ASSERT_EQ(steps.size(), 3u);
  std::int64_t origin = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(steps[i]->start, origin);  // exact to the nanosecond, although the file counts in microseconds
    EXPECT_EQ(steps[i]->end - steps[i]->start, runs[i].run_ns);
    origin += runs[i].run_ns;
  }
  EXPECT_EQ(tracks, (std::vector<std::string>{"steps", "thread 0"}));
}

TEST(ChromeTrace, NamesMayHoldAnything) {
  Plan plan = plan_with_clones();
  plan.graph.name = Name("q\"\\\n\x01\xff");
  for (Node& node : plan.graph.nodes) {
    node.origin.path = Name("p\"\t\xc3");
    node.origin.site = Name("C:\\x\"y.cpp:3");
  }
  const Timeline run = test::serial_timeline(plan);
  const std::vector<Event> events = events_of(chrome_trace(plan, {&run, 1}));
  EXPECT_TRUE(std::any_of(events.begin(), events.end(),
                          [](const Event& e) { return e.site == "C:\\x\"y.cpp:3" && e.path == "p\"\t\xEF\xBF\xBD"; }));
}

}  // namespace
}  // namespace tapedeck
