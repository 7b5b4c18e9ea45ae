// Tests the viewer's model without Qt and ImGui. The oracles are slow counts over values and pixels.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/model/budget.h>
#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/level_of_detail.h>
#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/ticks.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

namespace tapedeck::viewer {
namespace {

PlanModel model_of(const MadePlan& made) { return PlanModel(std::make_shared<const Plan>(made.plan), made.curve); }

TEST(PlanModel, LiveBytesOfTheLibraryAgreeWithTheSlowCount) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    const MadePlan made = make_random_plan(seed, 120);
    EXPECT_EQ(live_bytes(made.plan), made.curve) << "seed " << seed;
  }
}

// The pictures of a large plan come before its value log and its tables, and need neither.
TEST(PlanModel, PicturesComeBeforeTables) {
  const Plan plan = make_plan(parse(training_graph(6)));
  const std::shared_ptr<const PlanModel> model = PlanModel::pictures_of(plan), whole = PlanModel::of(plan);
  EXPECT_FALSE(model->is_complete());
  EXPECT_TRUE(whole->is_complete());
  EXPECT_EQ(model->curve(), whole->curve());
  ASSERT_EQ(model->rects().size(), whole->rects().size());
  for (ValueId v = 0; v < model->graph().value_count(); ++v) EXPECT_EQ(model->name_of(v), whole->values().name(v));
  EXPECT_FALSE(model->is_complete());
  model->complete();
  EXPECT_TRUE(model->is_complete());
  EXPECT_EQ(model->table(TableId::nodes).rows(), whole->nodes());
}

TEST(PlanModel, WhatIsAliveSumsToTheCurveToTheByte) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    const MadePlan made = make_random_plan(seed, 120);
    const PlanModel model = model_of(made);
    for (NodeId n = 0; n < model.nodes(); ++n) {
      std::int64_t alive = 0, roles = 0;
      for (const PlanRect& rect : model.alive(n)) alive += rect.bytes;
      for (int r = 0; r < kRoleClassCount; ++r) roles += model.curve_of(static_cast<RoleClass>(r))[n];
      ASSERT_EQ(alive, made.curve[n]) << "seed " << seed << " node " << n;
      ASSERT_EQ(roles, made.curve[n]) << "seed " << seed << " node " << n;
    }
  }
}

TEST(PlanModel, TheLargestThatAreAliveAreTheFirstOfAll) {
  const PlanModel model = model_of(make_random_plan(3, 120));
  for (NodeId n = 0; n < model.nodes(); n += 7) {
    const std::vector<PlanRect> all = model.alive(n), six = model.alive(n, 6);
    ASSERT_EQ(six.size(), std::min<std::size_t>(6, all.size()));
    for (std::size_t i = 0; i + 1 < all.size(); ++i) ASSERT_GE(all[i].bytes, all[i + 1].bytes);
    for (std::size_t i = 0; i < six.size(); ++i) {
      EXPECT_EQ(six[i].value, all[i].value);
      EXPECT_EQ(six[i].address, all[i].address);
    }
  }
  EXPECT_EQ(model.alive_at_peak().size(), model.alive(model.peak_node()).size());
  EXPECT_TRUE(model.alive(model.peak_node(), 0).empty());
}

TEST(PlanModel, RectanglesNeverOverlapAndStayInside) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const PlanModel model = model_of(make_random_plan(seed, 100));
    const auto& rects = model.rects();
    for (std::size_t i = 0; i < rects.size(); ++i) {
      EXPECT_LT(rects[i].begin, rects[i].end);
      EXPECT_GE(rects[i].address, 0);
      EXPECT_LE(rects[i].address + rects[i].bytes, model.extent());
      for (std::size_t j = 0; j < i; ++j) {
        const bool apart = rects[i].end <= rects[j].begin || rects[j].end <= rects[i].begin ||
                           rects[i].address + rects[i].bytes <= rects[j].address ||
                           rects[j].address + rects[j].bytes <= rects[i].address;
        ASSERT_TRUE(apart) << "seed " << seed << ": values " << rects[i].value << " and " << rects[j].value;
      }
    }
  }
}

TEST(PlanModel, EveryValueWithBytesHasARectangleAndAWindowHasItsRoots) {
  const MadePlan made = make_random_plan(5, 150);
  const PlanModel model = model_of(made);
  for (ValueId v = 0; v < model.graph().value_count(); ++v) {
    const Placement& p = made.plan.values[v];
    ASSERT_FALSE(model.rects_of(v).empty()) << v;
    if (p.reason == Reason::alias) {
      EXPECT_EQ(model.rects_of(v)[0].address, model.rects_of(p.other)[0].address);
    }
  }
  EXPECT_TRUE(model.rects_of(-1).empty());
  EXPECT_TRUE(model.rects_of(1 << 30).empty());
}

TEST(PlanModel, PeakNodeIsTheFirstMaximumOfTheCurve) {
  const MadePlan made = make_random_plan(7, 90);
  const PlanModel model = model_of(made);
  EXPECT_EQ(made.curve[model.peak_node()], made.plan.lower_bound_bytes);
  for (NodeId n = 0; n < model.peak_node(); ++n) EXPECT_LT(made.curve[n], made.plan.lower_bound_bytes);
}

TEST(PlanModel, AnEmptyGraphIsHarmless) {
  auto plan = std::make_shared<Plan>();
  const PlanModel model(plan, {});
  EXPECT_EQ(model.peak_node(), kNone);
  EXPECT_TRUE(model.rects().empty());
  EXPECT_GT(model.home().time.size(), 0);
  EXPECT_TRUE(make_lod(model.rects(), model.home(), 100, 100).rects.empty());
}

// The oracle: true if the rectangle is out of view, or if some pixel near its middle shows a rectangle.
bool covered(const LodFrame& frame, const PlanRect& r, const PlanView& view) {
  const double x = (r.begin - view.time.low) / view.time.size() * frame.width;
  const double x1 = (r.end - view.time.low) / view.time.size() * frame.width;
  const double y0 =
      frame.height - (static_cast<double>(r.address + r.bytes) - view.address.low) / view.address.size() * frame.height;
  const double y1 = frame.height - (static_cast<double>(r.address) - view.address.low) / view.address.size() * frame.height;
  if (x1 <= 0 || x >= frame.width || y1 <= 0 || y0 >= frame.height) return true;  // out of view
  // Some pixel at most one away from the rectangle's middle must be drawn.
  const double cx = (std::max(x, 0.0) + std::min(x1, frame.width * 1.0)) / 2,
               cy = (std::max(y0, 0.0) + std::min(y1, frame.height * 1.0)) / 2;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx)
      if (frame.hit(static_cast<int>(std::floor(cx)) + dx, static_cast<int>(std::floor(cy)) + dy) >= 0) return true;
  return false;
}

TEST(Lod, NothingInViewIsEverInvisible) {
  std::mt19937 random(11);
  const PlanModel model = model_of(make_random_plan(3, 400));
  const PlanView home = model.home();
  for (int i = 0; i < 60; ++i) {
    PlanView view = home;
    if (i > 0) {
      view.time.zoom((random() % 100) / 100.0, 1.0 / (1 + random() % 40), 1);
      view.address.zoom((random() % 100) / 100.0, 1.0 / (1 + random() % 40), 64);
    }
    const int w = 8 + static_cast<int>(random() % 500), h = 8 + static_cast<int>(random() % 300);
    const LodFrame frame = make_lod(model.rects(), view, w, h);
    for (const PlanRect& r : model.rects()) ASSERT_TRUE(covered(frame, r, view)) << "view " << i << " value " << r.value;
  }
}

TEST(Lod, MergedRectanglesKeepCountAndBytes) {
  const PlanModel model = model_of(make_random_plan(3, 400));
  const LodFrame frame = make_lod(model.rects(), model.home(), 40, 30);
  std::int64_t bytes = 0, all = 0;
  std::int32_t count = 0;
  for (const LodRect& r : frame.rects) {
    bytes += r.bytes;
    count += r.count;
  }
  for (const PlanRect& r : model.rects()) all += r.bytes;
  EXPECT_EQ(bytes, all);
  EXPECT_EQ(count, static_cast<std::int32_t>(model.rects().size()));
  EXPECT_LT(frame.rects.size(), model.rects().size());
}

TEST(Lod, TheIdBufferNamesWhatIsDrawnLastAtEachPixel) {
  const PlanModel model = model_of(make_random_plan(9, 80));
  const LodFrame frame = make_lod(model.rects(), model.home(), 211, 97);
  for (int y = 0; y < 97; ++y)
    for (int x = 0; x < 211; ++x) {
      std::int32_t expected = -1;
      for (std::size_t i = 0; i < frame.rects.size(); ++i) {
        const LodRect& r = frame.rects[i];
        if (x >= r.x0 && x < r.x1 && y >= r.y0 && y < r.y1) expected = static_cast<std::int32_t>(i);
      }
      ASSERT_EQ(frame.hit(x, y), expected);
    }
  EXPECT_EQ(frame.hit(-1, 0), -1);
  EXPECT_EQ(frame.hit(211, 0), -1);
}

TEST(Lod, TinyAndDegenerateFramesAreSafe) {
  const PlanModel model = model_of(make_random_plan(9, 80));
  EXPECT_TRUE(make_lod(model.rects(), model.home(), 0, 10).rects.empty());
  EXPECT_TRUE(make_lod(model.rects(), {{0, 0}, {0, 1}}, 10, 10).rects.empty());
  EXPECT_FALSE(make_lod(model.rects(), model.home(), 1, 1).rects.empty());
}

TEST(Format, BytesReadWell) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_bytes((1 << 20) - 1), "1.00 MiB");
  EXPECT_EQ(human_bytes(std::int64_t{5} << 40), "5.00 TiB");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(exact_bytes(1), "1 byte");
  EXPECT_EQ(exact_bytes(2048), "2.00 KiB (2,048 bytes)");
  EXPECT_EQ(human_bytes(std::int64_t{150} << 20), "150.00 MiB");  // as the tool prints it
}

TEST(Format, BudgetsAreReadAsTheToolReadsThem) {
  Budget b;
  ASSERT_TRUE(parse_budget("64MiB", &b));
  EXPECT_EQ(b, (Budget{64 << 20, -1}));
  ASSERT_TRUE(parse_budget("1.5GB", &b));
  EXPECT_EQ(b, (Budget{1500000000, -1}));
  ASSERT_TRUE(parse_budget("60%", &b));
  EXPECT_EQ(b, (Budget{-1, 60}));
  ASSERT_TRUE(parse_budget("4096", &b));
  EXPECT_EQ(b, (Budget{4096, -1}));
  for (const char* bad : {"", "%", "MiB", "12 parsecs", "-5", "1e9", "0x10", "1.2.3", "99999999999999999999999", "12%%", "nan"})
    EXPECT_FALSE(parse_budget(bad, &b)) << bad;
}

TEST(BudgetScale, BeginsAtTheExternalBytesWhereNoFloorIsKnown) {
  Plan plan;
  plan.keep_all_peak_bytes = plan.peak_bytes = 1000;
  plan.lower_bound_bytes = 990;
  plan.external_bytes = 100;
  EXPECT_EQ(BudgetScale::of(plan).floor, 100);
  plan.floor_bytes = 400;
  EXPECT_EQ(BudgetScale::of(plan).floor, 400);
}

TEST(BudgetScale, EndsAreExactAndStepsGrow) {
  BudgetScale scale{1000001, 987654321};
  EXPECT_EQ(scale.bytes_at(0), 1000001);
  EXPECT_EQ(scale.bytes_at(kBudgetSteps), 987654321);
  for (int step = 0; step <= kBudgetSteps; ++step) EXPECT_EQ(scale.step_of(scale.bytes_at(step)), step);
  EXPECT_EQ(scale.step_of(0), 0);
  EXPECT_EQ(scale.step_of(std::int64_t{1} << 60), kBudgetSteps);
  EXPECT_DOUBLE_EQ(scale.percent_of(scale.keep_all), 100);
  BudgetScale flat{500, 500};
  EXPECT_EQ(flat.step_of(500), kBudgetSteps);
  EXPECT_EQ(flat.bytes_at(17), 500);
}

TEST(Words, TheLibrarysSizesAreSaidInTheUnitOfThePanel) {
  const ByteUnit mib = ByteUnit::of(1 << 30 >> 1);
  ASSERT_STREQ(mib.name, "MiB");
  EXPECT_EQ(in_unit("made again (150544.3 us), the peak would be 996517848 bytes, 2853376 less", mib),
            "made again (150.54 ms), the peak would be 950.35 MiB, 2.72 MiB less");
  EXPECT_EQ(in_unit("the peak would be 1048576 bytes, 4096 more: so much is alive", mib),
            "the peak would be 1.00 MiB, 0.004 MiB more: so much is alive");
  for (const char* same : {"sizes rounded up to 64 bytes: none is smaller", "%v2097152 bytes", "bytes", "", "512 less",
                           "1000 bytes", "7 users", "us"})
    EXPECT_EQ(in_unit(same, mib), grouped_numbers(same));
  EXPECT_EQ(in_unit("2048 bytes", {}), "2048 B");
}

TEST(Format, LongNumbersOfATextAreGrouped) {
  EXPECT_EQ(grouped_numbers("the peak would be 996517848 bytes, 2853376 less"),
            "the peak would be 996,517,848 bytes, 2,853,376 less");
  EXPECT_EQ(grouped_numbers("3 nodes (150544.3 us)"), "3 nodes (150,544.3 us)");
  EXPECT_EQ(grouped_numbers("1024 bytes"), "1,024 bytes");
  for (const char* same :
       {"", "7", "999 bytes", "%v123456", "%h.123456", "123456x", "0.1234567", "f32[8,64,224,224]", "12345678901234567890"})
    EXPECT_EQ(grouped_numbers(same), same);
}

// All numbers of a picture are in one unit, however small they are beside the largest.
TEST(Format, OneUnitForAllBytesOfAPicture) {
  const ByteUnit gib = ByteUnit::of(std::int64_t{3} << 30);
  EXPECT_EQ(gib.text(std::int64_t{3} << 30), "3.00 GiB");
  EXPECT_EQ(gib.text(std::int64_t{627} << 20), "0.612 GiB");
  EXPECT_EQ(gib.text((std::int64_t{1} << 30) - 1), "1.00 GiB");
  EXPECT_EQ(gib.text(1000), "<0.001 GiB");
  EXPECT_EQ(gib.text(0), "0.00 GiB");
  EXPECT_EQ(ByteUnit::of(std::int64_t{1} << 30).name, std::string("GiB"));
  EXPECT_EQ(ByteUnit::of((std::int64_t{1} << 30) - 1).text(std::int64_t{150} << 20), "150.00 MiB");
  EXPECT_EQ(ByteUnit::of(300 << 10).text(300 << 10), "0.293 MiB");
  EXPECT_EQ(ByteUnit::of(200 << 10).text(1536), "1.50 KiB");
  EXPECT_EQ(ByteUnit::of(1023).text(17), "17 B");
  EXPECT_EQ(ByteUnit::of(0).text(0), "0 B");
  EXPECT_EQ(gib.exact_text(std::int64_t{627} << 20), "0.612 GiB (657,457,152 bytes)");
  EXPECT_EQ(gib.exact_text(256), "256 bytes");
  EXPECT_EQ(gib.exact_text(2048), "2.00 KiB (2,048 bytes)");
  EXPECT_EQ(gib.exact_text(1), "1 byte");
  EXPECT_EQ(gib.exact_text(0), "0 bytes");
  EXPECT_EQ(ByteUnit::of(0).exact_text(17), "17 bytes");
}

TEST(Ticks, RoundNumbersInsideTheRange) {
  const ByteAxis axis = byte_ticks(0, 10 << 20, ByteUnit::of(10 << 20), 6);
  EXPECT_EQ(axis.unit, "MiB");
  ASSERT_EQ(axis.ticks.size(), 6u);
  EXPECT_EQ(axis.ticks[1].label, "2");
  EXPECT_DOUBLE_EQ(axis.ticks[1].at, 2 << 20);
  EXPECT_EQ(byte_ticks(0, 1000, ByteUnit::of(1000), 5).unit, "B");
  EXPECT_EQ(byte_ticks(0, 400 << 10, ByteUnit::of(400 << 10), 5).unit, "MiB");
  for (const Tick& t : count_ticks(3.5, 7.5, 50)) EXPECT_EQ(t.at, std::round(t.at));
  EXPECT_TRUE(count_ticks(5, 5, 4).empty());
}

TEST(Explain, SaysWhoReadsAndWhy) {
  const MadePlan made = make_random_plan(4, 100);
  const PlanModel model = model_of(made);
  bool saw_saved = false;
  for (ValueId v = 0; v < made.plan.graph.value_count(); ++v) {
    const ValueFacts facts = explain_value(model, v);
    EXPECT_FALSE(facts.reason.empty());
    EXPECT_EQ(facts.bytes, made.plan.graph.values[v].type.bytes());
    const Placement& p = made.plan.values[v];
    if (p.reason != Reason::saved) continue;
    saw_saved = true;
    EXPECT_NE(facts.reason.find("node " + std::to_string(p.reader)), std::string::npos) << facts.reason;
    ASSERT_FALSE(facts.readers.empty());
    EXPECT_EQ(facts.readers.back(), p.reader);
  }
  EXPECT_TRUE(saw_saved);
}

struct Watcher : Observer {
  int opens = 0, closes = 0, selections = 0, plans = 0;
  void opened() override { ++opens; }
  void closed() override { ++closes; }
  void selection_changed() override { ++selections; }
  void plan_changed() override { ++plans; }
};

TEST(Session, CallsBackAndKeepsTheSelectionByName) {
  Session session;
  Watcher watcher;
  session.attach(&watcher);
  session.select_value(0);  // no file is open: this does nothing
  session.step_node(1);
  EXPECT_EQ(watcher.selections, 0);
  Document document;
  document.name = "made.tape";
  session.open(document);
  session.show(std::make_shared<PlanModel>(model_of(make_random_plan(1, 60))));
  EXPECT_EQ(watcher.opens, 1);
  EXPECT_EQ(watcher.plans, 1);
  ValueId named = kNone;
  for (ValueId v = 2; v < session.model()->graph().value_count() && named == kNone; ++v)
    if (!session.model()->graph().values[v].name.empty()) named = v;
  session.select_value(named);
  EXPECT_EQ(session.selection().node, session.model()->graph().values[named].node);
  const std::string name = session.model()->graph().value_name(named);
  session.show(std::make_shared<PlanModel>(model_of(make_random_plan(1, 60))));
  ASSERT_NE(session.selection().value, kNone);
  EXPECT_EQ(session.model()->graph().value_name(session.selection().value), name);
  session.clear_selection();
  session.step_node(-1);
  EXPECT_EQ(session.selection().node, 59);
  session.step_node(1);
  EXPECT_EQ(session.selection().node, 59);
  session.select_node(30);
  const ValueId operand = session.model()->graph().inputs(session.model()->graph().nodes[30])[0];
  session.follow(false);
  EXPECT_EQ(session.selection().value, operand);
  session.close();
  EXPECT_EQ(watcher.closes, 1);
  EXPECT_EQ(session.model(), nullptr);
  session.detach(&watcher);
}

TEST(View, ZoomKeepsThePointUnderTheCursorAndStaysInside) {
  Range r{10, 20};
  r.zoom(0.3, 0.5, 1);
  EXPECT_DOUBLE_EQ(r.at(0.3), 13);
  EXPECT_DOUBLE_EQ(r.size(), 5);
  r.pan(100);
  r.clamp(0, 50);
  EXPECT_DOUBLE_EQ(r.high, 50);
  EXPECT_DOUBLE_EQ(r.size(), 5);
  r.zoom(0.5, 1000, 1);
  r.clamp(0, 50);
  EXPECT_EQ(r, (Range{0, 50}));
}

}  // namespace
}  // namespace tapedeck::viewer
