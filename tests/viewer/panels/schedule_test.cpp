// Tests schedules against slow oracles, and their panel with real events.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/panels/schedule.h>
#include <tapedeck/viewer/plan/schedule.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>

namespace tapedeck::viewer {
namespace {

// Nodes that read one or two random values before them.
std::string wide_graph(unsigned seed, int nodes) {
  std::mt19937 random(seed);
  std::string text = "graph wide(%x: f32[64]) {\n";
  std::string returned;
  for (int i = 0; i < nodes; ++i) {
    const auto operand = [&] {
      const int n = static_cast<int>(random() % static_cast<unsigned>(i + 1));
      return n == 0 ? std::string("%x") : "%n" + std::to_string(n - 1);
    };
    const std::string us = std::to_string(random() % 4 == 0 ? 0 : 5 + random() % 60);
    text += "  %n" + std::to_string(i) + ": f32[64] = opaque(" + operand() + ", " + operand() + ") {us=" + us + ".0}\n";
    returned += (i == 0 ? "%n" : ", %n") + std::to_string(i);
  }
  return text + "  return " + returned + "\n}\n";
}

std::shared_ptr<const PlanModel> planned(const std::string& text, int threads) {
  PlanOptions options;
  options.threads = threads;
  return PlanModel::of(make_plan(parse(text), options));
}

double longest_chain(const Plan& plan, const std::vector<double>& us, std::size_t s) {
  double longest = 0;
  for (const std::int32_t next : plan.segments[s].successors)
    longest = std::max(longest, longest_chain(plan, us, static_cast<std::size_t>(next)));
  return us[s] + longest;
}

void check(const Schedule& schedule, const PlanModel& model) {
  const Plan& plan = model.plan();
  std::vector<double> us(plan.segments.size(), 0);
  double busy = 0;
  std::vector<int> times(static_cast<std::size_t>(model.nodes()), 0);
  for (const ScheduleLane& lane : schedule.lanes()) {
    double end = 0, lane_busy = 0;
    for (const ScheduleBox& box : lane.boxes) {
      EXPECT_GE(box.start_us, end - 1e-9) << "boxes of a lane overlap";
      EXPECT_LE(box.end_us, schedule.length_us() + 1e-9);
      end = box.end_us;
      lane_busy += box.us();
      if (box.segment == kNone) {  // help with a kernel that runs elsewhere at that time
        const auto [other, index] = schedule.place_of(box.node);
        ASSERT_NE(other, kNone);
        const ScheduleBox& kernel = schedule.lanes()[static_cast<std::size_t>(other)].boxes[static_cast<std::size_t>(index)];
        EXPECT_NE(&schedule.lanes()[static_cast<std::size_t>(other)], &lane);
        EXPECT_GE(box.start_us, kernel.start_us - 1e-9);
        EXPECT_LE(box.end_us, kernel.end_us + 1e-9);
        continue;
      }
      us[static_cast<std::size_t>(box.segment)] += box.us();
      if (box.node != kNone) ++times[static_cast<std::size_t>(box.node)];
    }
    EXPECT_NEAR(lane.busy_us, lane_busy, 1e-6);
    busy += lane_busy;
  }
  EXPECT_NEAR(schedule.busy_us() + schedule.idle_us(), schedule.length_us() * schedule.threads(), 1e-6);
  EXPECT_NEAR(schedule.busy_us(), busy, 1e-6);
  for (NodeId n = 0; n < model.nodes(); ++n)
    EXPECT_EQ(times[static_cast<std::size_t>(n)], model.values().node_us(n) > 0 ? 1 : 0) << n;
  double longest = 0, on_path = 0;
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    const SegmentTimes& segment = schedule.segment(static_cast<std::int32_t>(s));
    longest = std::max(longest, longest_chain(plan, us, s));
    if (segment.is_critical) on_path += us[s];
    for (const std::int32_t next : plan.segments[s].successors)
      EXPECT_LE(segment.end_us, schedule.segment(next).start_us + 1e-9) << "a segment begins before one that it waits for";
  }
  EXPECT_NEAR(schedule.critical_us(), longest, 1e-6);
  EXPECT_NEAR(on_path, longest, 1e-6) << "the marked segments are one longest chain";
  EXPECT_LE(schedule.critical_us(), schedule.length_us() + 1e-6);
}

TEST(Schedule, KeepsTheRulesOfTheExecutor) {
  for (unsigned seed = 0; seed < 12; ++seed)
    for (const int threads : {1, 2, 3}) {
      const auto model = planned(wide_graph(seed, 18), threads);
      const Schedule schedule = Schedule::planned(*model, threads);
      check(schedule, *model);
      check(Schedule::planned(*model, 5), *model);  // another number than the plan was cut for
      if (model->plan().intra_op.empty()) {
        EXPECT_NEAR(schedule.length_us(), model->plan().segment_rule.makespan_us, 1e-6) << "what the planner worked out";
      }
    }
}

TEST(Schedule, OneThreadHasNoGapAndItsSlackIsKnown) {
  const auto model = planned(wide_graph(3, 12), 1);
  const Schedule schedule = Schedule::planned(*model, 1);
  EXPECT_NEAR(schedule.idle_us(), 0, 1e-6);
  EXPECT_NEAR(schedule.busy_share(), 1, 1e-9);
  for (std::int32_t s = 0; s < schedule.segments(); ++s) {
    EXPECT_GE(schedule.segment(s).slack_us, 0);
    if (schedule.segment(s).is_critical) {
      EXPECT_EQ(schedule.segment(s).slack_us, 0);
    }
  }
}

TEST(Schedule, TheAxisNeverGoesBack) {
  const auto model = planned(wide_graph(5, 30), 2);
  const Schedule schedule = Schedule::planned(*model, 2);
  double before = 0;
  for (NodeId n = 0; n <= model->nodes(); ++n) {
    EXPECT_GE(schedule.axis().at(n), before);
    before = schedule.axis().at(n);
    if (n == model->nodes()) break;
    const auto [lane, box] = schedule.place_of(n);
    if (lane == kNone) continue;
    const ScheduleLane& all = schedule.lanes()[static_cast<std::size_t>(lane)];
    EXPECT_LE(schedule.axis().at(n), all.boxes[static_cast<std::size_t>(box)].start_us + 1e-9);
  }
  EXPECT_NEAR(before, schedule.length_us(), 1e-9);
}

TEST(Schedule, AMeasuredStepIsShownAsItRan) {
  const auto model = planned(wide_graph(4, 6), 2);
  Timeline step;
  step.run_ns = 9000;
  const Plan& plan = model->plan();
  std::int64_t at = 1000;
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (const NodeId n : plan.segments[s].nodes) {
      step.slices.push_back({n, static_cast<std::int32_t>(s), static_cast<std::int32_t>(s % 2), at, at + 500});
      at += 700;
    }
  step.slices.push_back({999, 0, 0, 0, 5});  // of another plan: left out
  step.slices.push_back({0, 0, 7, 0, 5});
  const Schedule schedule = Schedule::measured(*model, step, 2);
  EXPECT_TRUE(schedule.is_measured());
  EXPECT_EQ(schedule.length_us(), 9);
  EXPECT_NEAR(schedule.busy_us(), 0.5 * model->nodes(), 1e-9);
  const std::string csv = schedule_csv(schedule, *model);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), model->nodes() + 1);
  EXPECT_EQ(Schedule::measured(*model, {}, 2).busy_share(), 0);
}

TEST(Schedule, SentencesSayWhatWaitsForWhat) {
  // Two chains meet: the short one leaves its thread idle until the long one is done.
  const auto model = planned(R"(graph two(%x: f32[4]) {
  %a: f32[4] = opaque(%x) {us=30.0}
  %b: f32[4] = opaque(%x) {us=25.0}
  %c: f32[4] = opaque(%a) {us=30.0}
  %d: f32[4] = opaque(%b) {us=25.0}
  %e: f32[4] = opaque(%c, %d) {us=20.0}
  return %e
})",
                             2);
  const Schedule schedule = Schedule::planned(*model, 2);
  EXPECT_NEAR(schedule.length_us(), 105.4, 0.1);  // as the README of the segments has it
  std::string all;
  for (std::int32_t lane = 0; lane < 2; ++lane) {
    for (std::size_t i = 0; i < schedule.lanes()[static_cast<std::size_t>(lane)].boxes.size(); ++i)
      for (const std::string& sentence : box_sentences(schedule, *model, lane, static_cast<std::int32_t>(i)))
        all += sentence + "\n";
    for (const std::string& sentence : gap_sentences(schedule, *model, lane, schedule.length_us() - 0.01))
      all += sentence + "\n";
  }
  EXPECT_NE(all.find("makes %e"), std::string::npos) << all;
  EXPECT_NE(all.find("critical path: the step cannot end sooner"), std::string::npos) << all;
  EXPECT_NE(all.find("No segment is left for it until the step ends."), std::string::npos) << all;
}

class ScheduleWindow : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    window.show_panel("schedule");
    settle_schedule();
  }
  Canvas& canvas() { return *window.panel("schedule").canvas; }
  SchedulePanel& panel() { return window.schedule(); }
  void settle_schedule() {
    canvas().refresh();
    ASSERT_TRUE(spin_until([&] { return panel().settled(); }));
    settle(canvas());
  }
};

TEST_F(ScheduleWindow, AClickSelectsTheNodeEverywhere) {
  const NodeId n = graph().values[static_cast<std::size_t>(value("h9"))].node;
  click(canvas(), panel().place_of(n));
  expect_selected_everywhere(value("h9"));
}

TEST_F(ScheduleWindow, TheWheelZoomsAllPicturesAndTheyZoomIt) {
  const Range whole = panel().view();
  const NodeId n = graph().values[static_cast<std::size_t>(value("h9"))].node;
  const ImVec2 at = panel().place_of(n);
  wheel(canvas(), at, 4);
  EXPECT_LT(panel().view().size(), whole.size() / 2);
  EXPECT_NEAR(panel().place_of(n).x, at.x, 4) << "the place under the mouse stays";
  const Range nodes = window.session().view.time;
  EXPECT_LT(nodes.size(), window.session().home().time.size());
  EXPECT_LE(nodes.low, n);
  EXPECT_GE(nodes.high, n);
  window.session().fit_all();
  settle(canvas());
  EXPECT_NEAR(panel().view().size(), panel().schedule()->length_us(), 1e-6);
}

TEST_F(ScheduleWindow, ADragMovesTheTime) {
  wheel(canvas(), panel().place_at(0, panel().schedule()->length_us() / 2), 5);
  const Range before = panel().view();
  const ImVec2 from = panel().place_at(0, before.at(0.7)), to = panel().place_at(0, before.at(0.4));
  send_mouse(canvas(), QEvent::MouseMove, from);
  send_mouse(canvas(), QEvent::MouseButtonPress, from, Qt::LeftButton);
  settle(canvas());
  send_mouse(canvas(), QEvent::MouseMove, to);
  settle(canvas());
  send_mouse(canvas(), QEvent::MouseButtonRelease, to, Qt::LeftButton);
  settle(canvas());
  EXPECT_NEAR(panel().view().low, before.low + 0.3 * before.size(), before.size() * 0.02);
}

TEST_F(ScheduleWindow, MoreThreadsAreMoreLanes) {
  const double one = panel().schedule()->length_us();
  EXPECT_EQ(panel().schedule()->threads(), 1);
  panel().set_threads(2);
  settle_schedule();
  EXPECT_EQ(panel().schedule()->threads(), 2);
  EXPECT_LE(panel().schedule()->length_us(), one + 1e-6);
  panel().set_threads(0);
  EXPECT_EQ(panel().threads(), 1);
  panel().set_threads(1000000);
  EXPECT_EQ(panel().threads(), SchedulePanel::kMostThreads);
}

TEST_F(ScheduleWindow, AMeasuredStepReplacesThePlannedOne) {
  window.open(folder.write("real.graph", R"(graph g(%x: f32[64,64]) {
  %a: f32[64,64] = tanh(%x)
  %b: f32[64,64] = matmul(%a, %x)
  %c: f32[64,64] = exp(%b)
  return %c
})"));
  window.wait_for_plan();
  settle_schedule();
  EXPECT_FALSE(panel().schedule()->is_measured());
  window.replays().set_effort({.warm_up_s = 0, .steps_s = 0, .timelines_s = 0});
  window.measure();
  window.wait_for_measuring();
  window.show_panel("schedule");  // the panel of the live bytes came to the front
  settle_schedule();
  EXPECT_TRUE(panel().schedule()->is_measured());
  EXPECT_EQ(window.measuring_error(), "");
  EXPECT_GT(panel().schedule()->busy_us(), 0);
  std::size_t boxes = 0;
  for (const ScheduleLane& lane : panel().schedule()->lanes()) boxes += lane.boxes.size();
  EXPECT_EQ(boxes, static_cast<std::size_t>(graph().node_count()));  // each is a call
  panel().show_measured(false);
  settle_schedule();
  EXPECT_FALSE(panel().schedule()->is_measured());
}

TEST_F(ScheduleWindow, IsWrittenAsCsv) {
  const std::string path = folder.file("schedule.csv");
  window.write_csv("schedule", path);
  EXPECT_EQ(read(path), schedule_csv(*panel().schedule(), *window.session().model()));
}

}  // namespace
}  // namespace tapedeck::viewer
