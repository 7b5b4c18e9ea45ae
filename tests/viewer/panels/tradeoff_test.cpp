// Tests the panel of tradeoffs: its curves are the library's, a click takes the plan under it, and its numbers are written as
// CSV.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/drawing/picture_vectors.h>
#include <tapedeck/viewer/model/tradeoff_points.h>
#include <tapedeck/viewer/screenshot.h>

#include <algorithm>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace tapedeck::viewer {
namespace {

class TradeoffWindow : public Window {
 protected:
  TradeoffWindow() : Window(true) {}
  void SetUp() override {
    Window::SetUp();
    window.open(folder.write("short.graph", training_graph(7)));
    window.wait_for_plan();
    window.show_panel("tradeoff");
    ASSERT_TRUE(spin_until([&] { return window.tradeoff().has_curves() && !window.worker().fills(); }));
    settle(canvas());
  }
  Canvas& canvas() { return *window.panel("tradeoff").canvas; }
};

TEST_F(TradeoffWindow, ShowsTheCurvesOfTheLibrary) {
  const Tradeoff alone = tradeoff(*window.session().document()->captured);
  const Tradeoff& shown = *window.tradeoff().curves();
  ASSERT_EQ(shown.curves.size(), alone.curves.size());
  for (std::size_t c = 0; c < alone.curves.size(); ++c) {
    EXPECT_EQ(shown.curves[c].name, alone.curves[c].name);
    ASSERT_EQ(shown.curves[c].points.size(), alone.curves[c].points.size());
    for (std::size_t i = 0; i < alone.curves[c].points.size(); ++i) {
      EXPECT_EQ(shown.curves[c].points[i].peak_bytes, alone.curves[c].points[i].peak_bytes);
      EXPECT_EQ(shown.curves[c].points[i].cost_us, alone.curves[c].points[i].cost_us);
    }
  }
}

// The plans that were made while nobody waited: no larger budget costs more, and none costs less than its bound.
TEST_F(TradeoffWindow, KnownPlansAreMonotoneAndAboveTheirBounds) {
  const std::vector<KnownPlan>& known = window.session().known();
  ASSERT_GT(known.size(), 10u);
  for (std::size_t i = 0; i < known.size(); ++i) {
    EXPECT_LE(known[i].peak, known[i].budget);
    EXPECT_GE(known[i].ratio, known[i].bound - 1e-12);
    EXPECT_LE(known[i].ratio, known[i > 0 ? i - 1 : 0].ratio);
  }
}

// The thread that works the curves out must not wake a canvas that is gone. The window is closed at different times of its
// work.
TEST_F(TradeoffWindow, AWindowMayCloseWhileItsCurvesAreWorkedOut) {
  for (const int ms : {0, 2, 5, 9, 14, 20, 30, 45}) {
    MainWindow other({Renderer::soft, "software", false});
    other.open(folder.file("short.graph"));
    other.show();
    other.show_panel("tradeoff");
    QElapsedTimer clock;
    clock.start();
    while (clock.elapsed() < ms) QCoreApplication::processEvents(QEventLoop::AllEvents, 1);
  }
}

// Budgets between two plans give the plan of the smaller one: it is listed once.
TEST_F(TradeoffWindow, EachPlanIsListedOnce) {
  std::vector<std::string> texts;
  const VectorPicture picture = picture_vectors(window.tradeoff(), 1200, 700);
  for (const VectorShape& shape : picture.shapes())
    if (const auto* text = std::get_if<VectorText>(&shape)) texts.push_back(text->text);
  const auto head = std::find(texts.begin(), texts.end(), "above bound");
  ASSERT_NE(head, texts.end());
  std::set<std::pair<std::string, std::string>> rows;  // peak, cost
  for (auto at = head + 1; at + 1 < texts.end() && at[1].starts_with("×"); at += at + 2 < texts.end() ? 3 : 2)
    EXPECT_TRUE(rows.insert({at[0], at[1]}).second) << at[0] << " " << at[1];
  EXPECT_GT(rows.size(), 5u);
}

TEST_F(TradeoffWindow, AClickTakesThePlanUnderIt) {
  const std::vector<KnownPlan> known = window.session().known();
  const KnownPlan& wanted = known[known.size() / 2];
  click(canvas(), window.tradeoff().place_of(wanted.peak, wanted.ratio));
  window.wait_for_plan();
  const Plan& plan = window.session().model()->plan();
  EXPECT_EQ(plan.peak_bytes, wanted.peak);
  EXPECT_DOUBLE_EQ(plan.recompute_cost_ratio(), wanted.ratio);
}

// A wish changes the curves.
TEST_F(TradeoffWindow, AWishMakesNewCurves) {
  const double before = window.tradeoff().curves()->curves[0].points[0].cost_us;
  std::vector<Wish> wishes;
  for (int i = 1; i < 7; i += 2) wishes.push_back({WishKind::keep, "h" + std::to_string(i)});
  window.set_wishes(wishes);
  window.wait_for_plan();
  ASSERT_TRUE(spin_until([&] { return window.tradeoff().has_curves() && !window.worker().fills(); }));
  EXPECT_NE(window.tradeoff().curves()->curves[0].points[0].cost_us, before);
}

TEST_F(TradeoffWindow, WritesItsNumbers) {
  const std::string path = folder.file("t.csv");
  window.write_csv("tradeoff", path);
  const std::string text = read(path);
  EXPECT_EQ(text.find("strategy,budget_bytes,peak_bytes,cost_ratio,bound_ratio,measured_peak_bytes,measured_us,measured_ratio,"
                      "deviation_percent\nauto,"),
            0u);
  EXPECT_NE(text.find("\ngreedy,"), std::string::npos);
  EXPECT_THROW(window.write_csv("tradeoff", folder.file("no/such/folder.csv")), FileError);
}

TEST(TradeoffShot, IsCompleteWithoutAWindow) {
  const Folder folder;
  Options options;
  options.file = folder.write("step.graph", training_graph(5));
  options.panel = "tradeoff";
  options.shot = folder.file("t.png");
  options.csv = folder.file("t.csv");
  EXPECT_EQ(take_shot(options), kOk);
  EXPECT_NE(read(options.csv).find("\nsearch,"), std::string::npos);
  EXPECT_EQ(read(options.shot).substr(1, 3), "PNG");
}

TEST(TradeoffPoints, TheNearestMarkCountsInUnitsOfThePlot) {
  const std::vector<TradeoffMark> marks = {{1, 1000, 1.0, "a"}, {2, 2000, 1.0, "b"}, {3, 1000, 1.5, "c"}};
  EXPECT_EQ(nearest_mark(marks, 1100, 1.01, 100, 0.01, 3)->strategy, "a");
  EXPECT_EQ(nearest_mark(marks, 1900, 1.0, 100, 0.01, 3)->strategy, "b");
  EXPECT_EQ(nearest_mark(marks, 1500, 1.25, 100, 0.01, 3), nullptr);
}

}  // namespace
}  // namespace tapedeck::viewer
