// Tests profiles: exact medians of made-up timelines, text that is read back unchanged, and damaged text that is refused.
#include <tapedeck/capture/cost/profile.h>
#include <tapedeck/capture/planner/planner.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/sample_tape.h>
#include <tapedeck/tests/capture/sealed_tape.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace tapedeck {
namespace {

Graph three_nodes() {
  return parse(R"(graph g(%x: f32[4]) {
    %a: f32[4] = exp(%x)
    %b: f32[4] = tanh(%a)
    %a2: f32[4] = exp(%x) [of=%a]
    %c: f32[4] = add(%b, %a2)
    return %c
  })",
               "three");
}

NodeId node_named(const Graph& g, const std::string& name) {
  for (NodeId n = 0; n < g.node_count(); ++n)
    if (g.value_name(g.nodes[n].first_output) == name) return n;
  ADD_FAILURE() << "no node %" << name;
  return kNone;
}

Slice slice(const Graph& g, const std::string& name, std::int64_t start, std::int64_t ns) {
  Slice s;
  s.node = node_named(g, name);
  s.start_ns = start;
  s.end_ns = start + ns;
  return s;
}

double us_of(const Profile& profile, const std::string& name) {
  for (const NodeTime& t : profile.nodes)
    if (t.name == name) return t.us;
  ADD_FAILURE() << "no time of " << name;
  return -1;
}

TEST(Profile, MediansOfStepsAreExact) {
  const Graph g = three_nodes();
  ProfileBuilder builder(g);
  const std::int64_t b_ns[] = {7000, 1000, 5000, 3000, 100000};
  for (std::int64_t ns : b_ns) {
    Timeline step;
    step.slices = {slice(g, "b", 40, ns), slice(g, "c", 10, 250)};
    step.run_ns = 2 * ns;
    builder.add(step);
  }
  const Profile profile = builder.finish();
  EXPECT_EQ(profile.steps, 5);
  EXPECT_EQ(us_of(profile, "b"), 5.0);
  EXPECT_EQ(us_of(profile, "c"), 0.25);
  EXPECT_EQ(profile.run_us, 10.0);
  EXPECT_EQ(profile.nodes.size(), 2u) << "nodes that never ran have no time";
  EXPECT_EQ(profile.nodes[0].op, "tanh");
  EXPECT_EQ(profile.machine, machine_name());
}

TEST(Profile, OfAnEvenNumberOfStepsItIsTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median({1, 2, 4, 100}), 3.0);
  EXPECT_EQ(median({9}), 9.0);
  std::mt19937 random(3);
  for (std::size_t n = 1; n < 40; ++n) {
    std::vector<double> numbers(n);
    for (double& x : numbers) x = static_cast<double>(random() % 50);
    std::vector<double> sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(median(numbers), n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2);
  }
}

TEST(Profile, ClonesAreRunsOfTheirOriginalAndTheClockIsTakenOff) {
  const Graph g = three_nodes();
  ASSERT_TRUE(g.nodes[2].origin.clone);
  ProfileBuilder builder(g, 20);
  Timeline step;
  step.slices = {slice(g, "a", 0, 1020), slice(g, "a2", 5000, 3020), slice(g, "b", 9000, 10), Slice{}};
  builder.add(step);
  const Profile profile = builder.finish();
  EXPECT_EQ(us_of(profile, "a"), 2.0);
  EXPECT_EQ(us_of(profile, "b"), 0.0) << "never below nothing";
  EXPECT_EQ(profile.nodes.size(), 2u);
}

TEST(Profile, NeedsAStep) {
  const Graph g = three_nodes();
  EXPECT_THROW(ProfileBuilder(g).finish(), UsageError);
}

// The profile holds every kernel call of a real replay. A clone counts under the name of its original, because any other
// plan of the graph has this name too.
TEST(Profile, NamesOfAReplayAreThoseOfEveryPlan) {
  const Graph captured = sample_graph();
  Executor executor(make_plan(captured, {.budget_percent = 85}));
  ASSERT_GT(executor.plan().recomputed_nodes, 0);
  for (ValueId v = 0; v < captured.n_inputs; ++v) executor.set_input(v, default_value(captured.values[v].type, 1, "x"));
  const std::vector<std::string> states = executor.state_names();
  for (std::int32_t i = 0; i < captured.n_state; ++i)
    executor.set_state(states[i], default_value(captured.values[captured.n_inputs + i].type, 2, "s"));
  ProfileBuilder builder(executor.plan().graph);
  Timeline timeline;
  for (int s = 0; s < 3; ++s) {
    executor.run(&timeline);
    builder.add(timeline);
  }
  const Profile profile = builder.finish();
  EXPECT_GT(profile.nodes.size(), 5u);
  const Plan other = make_plan(captured, {.strategy = Strategy::none});
  for (const NodeTime& t : profile.nodes) EXPECT_EQ(other.graph.nodes[node_named(other.graph, t.name)].op->name, t.op);
}

// ---- profiles as text ----

Profile sample_profile() {
  Profile p;
  p.machine = "some \"processor\" x 2";
  p.threads = 1;
  p.steps = 20;
  p.run_us = 1234.5;
  p.peak_bytes = 65536;
  p.nodes = {{"h", "matmul", 51.25}, {"odd name", "exp", 0}, {"größer", "tanh", 1e-7}, {"e", "add", 1e15}};
  return p;
}

TEST(Profile, TextComesBack) {
  EXPECT_EQ(parse_profile(profile_to_json(sample_profile())), sample_profile());
  Profile empty;
  empty.steps = 1;
  EXPECT_EQ(parse_profile(profile_to_json(empty)), empty);
}

TEST(Profile, WhatNoProfileCanBeIsRefused) {
  const std::string good = profile_to_json(sample_profile());
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& why) {
    std::string bad = good;
    const std::size_t at = bad.find(from);
    ASSERT_NE(at, bad.npos) << from;
    bad.replace(at, from.size(), to);
    const std::string message = message_of<FileError>([&] { parse_profile(bad); });
    EXPECT_NE(message.find(why), message.npos) << message;
  };
  refused("\"us\":51.25", "\"us\":-1", "node \"h\": us is -1");
  refused("\"us\":51.25", "\"us\":\"nan\"", "node \"h\": us is nan");
  refused("\"us\":51.25", "\"us\":\"inf\"", "us is inf");
  refused("\"us\":51.25", "\"us\":1e300", "no time can be");
  refused("\"us\":51.25", "\"ms\":51.25", "there is no us");
  refused("\"us\":51.25", "\"us\":\"long\"", "");
  refused("odd name", "h", "stands there twice");
  refused("\"steps\":20", "\"steps\":0", "steps is 0");
  refused("\"steps\":20", "\"steps\":99999999999", "steps is 99999999999");
  refused("\"threads\":1", "\"threads\":-5", "threads is -5");
  refused("\"peak_bytes\":65536", "\"peak_bytes\":-1", "peak_bytes is -1");
  refused("tapedeck.profile/1", "tapedeck.profile/2", "schema");
  refused("\"nodes\":", "\"knots\":", "there is no nodes");
  refused("{", "[", "not JSON");
}

// ---- profiles in a .tape file ----

TEST(Profile, StandsInTheTape) {
  const TemporaryFolder folder;
  TapeFile tape = sample_tape(85);
  tape.profile = sample_profile();
  save_tape(folder.file("t.tape"), tape);
  for (const Check check : {Check::structure, Check::all})
    EXPECT_EQ(load_tape(folder.file("t.tape"), check).profile, sample_profile());
  const std::string bytes = read_all(folder.file("t.tape"));
  save_tape(folder.file("t.tape"), load_tape(folder.file("t.tape")));
  EXPECT_EQ(read_all(folder.file("t.tape")), bytes);
}

TEST(Profile, DamagedInTheTapeItIsRefused) {
  const TemporaryFolder folder;
  TapeFile tape = sample_tape();
  tape.profile = sample_profile();
  save_tape(folder.file("t.tape"), tape);
  const std::string bytes = read_all(folder.file("t.tape"));

  std::string torn = bytes;
  torn[torn.find("51.25")] = '9';
  const auto read = [&](const std::string& b) {
    return message_of<FileError>([&] { read_tape(bytes_of(b), "t.tape", Check::structure); });
  };
  EXPECT_NE(read(torn).find("profile\" is damaged (wrong checksum)"), std::string::npos) << read(torn);

  SealedTape forged(bytes);
  forged.set_text("profile", "{\"schema\":\"tapedeck.profile/1\"}");
  EXPECT_NE(read(forged.seal()).find("t.tape: not a readable profile: there is no machine"), std::string::npos)
      << read(forged.seal());
  forged.tensors["profile"] = {{DType::f64, {1}}, std::string(8, '\0')};
  EXPECT_NE(read(forged.seal()).find("should be text in u8"), std::string::npos);
}

}  // namespace
}  // namespace tapedeck
