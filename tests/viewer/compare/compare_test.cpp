// Tests the comparison of two plans: the colours and the axis that it shares with the memory plan, its menu, its tooltips, and
// the command line.
#include <tapedeck/tests/viewer/compare/find_compare.h>
#include <tapedeck/tests/viewer/pictures.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/compare/delta_panel.h>
#include <tapedeck/viewer/compare_window.h>
#include <tapedeck/viewer/drawing/picture_vectors.h>
#include <tapedeck/viewer/options.h>
#include <tapedeck/viewer/screenshot.h>

#include <gtest/gtest.h>
#include <QtGui/QAction>
#include <QtWidgets/QMainWindow>

#include <algorithm>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace tapedeck::viewer {
namespace {

constexpr int kCompareWidth = 1200, kCompareHeight = 700;

std::vector<std::string> texts(Picture& picture) {
  std::vector<std::string> found;
  const VectorPicture drawn = picture_vectors(picture, kCompareWidth, kCompareHeight);
  for (const VectorShape& shape : drawn.shapes())
    if (const auto* text = std::get_if<VectorText>(&shape)) found.push_back(text->text);
  return found;
}

std::int64_t count_texts(Picture& picture, const std::string& text) {
  const std::vector<std::string> all = texts(picture);
  return std::count(all.begin(), all.end(), text);
}

QRgb rgb(Colour c) { return qRgb(c.r, c.g, c.b); }

class Comparison : public ::testing::Test {
 protected:
  std::string write(const char* name, int layers) { return folder.write(name, training_graph(layers)); }
  // The colours of large rectangles in one half of the picture.
  static std::set<QRgb> half(Picture& picture, int side) {
    return colours_in(render_picture(picture, kCompareWidth, kCompareHeight)
                          .copy(side * kCompareWidth / 2, 0, kCompareWidth / 2, kCompareHeight));
  }

  Folder folder;
  ComparedPlan left = load_compared(write("left.graph", 8)), right = load_compared(folder.file("left.graph"), {-1, 60});
};

TEST_F(Comparison, IsColouredByModuleOrOpAsTheMemoryPlan) {
  ComparePicture picture(left, right);
  EXPECT_EQ(count_texts(picture, "saved"), 2);
  EXPECT_EQ(count_texts(picture, "layer3"), 0);
  const ValueGroups groups(*left.captured, ColourBy::module);
  picture.set_look({ColourBy::module, TimeUnit::nodes});
  EXPECT_EQ(count_texts(picture, "saved"), 0);
  for (int g = 0; g < groups.others(); ++g) {
    EXPECT_EQ(count_texts(picture, groups.name(g)), 2) << groups.name(g);
    for (const int side : {0, 1}) EXPECT_TRUE(half(picture, side).count(rgb(group_colour(g)))) << groups.name(g) << side;
  }
  picture.set_look({ColourBy::op, TimeUnit::nodes});
  EXPECT_EQ(count_texts(picture, "opaque"), 2);
}

// A module of both models has one colour, whatever other modules they have.
TEST_F(Comparison, AModuleHasTheSameColourInBothPlans) {
  const ComparedPlan other =
      load_compared(folder.write("other.graph",
                                 "graph g(%x: f32[1024]) {\n  %a: f32[1024] = opaque(%x) {us=1.0} [path=\"stem\"]\n"
                                 "  %b: f32[1024] = opaque(%a) {us=1.0} [path=\"layer2\"]\n  return %b\n}\n"));
  ComparePicture picture(left, other, {ColourBy::module, TimeUnit::nodes});
  const ValueGroups groups(std::vector<const Graph*>{left.captured.get(), other.captured.get()}, ColourBy::module);
  const auto group_of = [&](const ComparedPlan& plan, const std::string& path) {
    for (NodeId n = 0; n < plan.captured->node_count(); ++n)
      if (plan.captured->nodes[static_cast<std::size_t>(n)].origin.path.view() == path)
        return groups.of_node(*plan.captured, n);
    return -1;
  };
  EXPECT_GE(group_of(left, "layer2"), 0);
  EXPECT_EQ(group_of(left, "layer2"), group_of(other, "layer2"));
  EXPECT_NE(group_of(other, "stem"), group_of(other, "layer2"));
  EXPECT_EQ(count_texts(picture, "layer2"), 2);
  EXPECT_EQ(count_texts(picture, "stem"), 1);
}

TEST_F(Comparison, HasTheAxisOfTime) {
  ComparePicture picture(left, right);
  EXPECT_EQ(count_texts(picture, "node"), 4);
  picture.set_look({ColourBy::role, TimeUnit::us});
  EXPECT_EQ(count_texts(picture, "node"), 0);
  EXPECT_EQ(count_texts(picture, "ms, estimated") + count_texts(picture, "us, estimated"), 4);
}

// Where one of the plans takes no time, microseconds could not be compared.
TEST_F(Comparison, CountsNodesWhereOnePlanTakesNoTime) {
  const ComparedPlan still = load_compared(folder.write("still.graph",
                                                        "graph g(%x: f32[8]) {\n  %a: f32[8] = opaque(%x) {us=0.0}\n"
                                                        "  return %a\n}\n"));
  ASSERT_EQ(still.model->time_axis(TimeUnit::us)->unit(), TimeUnit::nodes);
  ComparePicture picture(left, still, {ColourBy::role, TimeUnit::us});
  EXPECT_EQ(count_texts(picture, "node"), 4);
}

// The numbers of both plans are in the unit of the larger one.
TEST_F(Comparison, HasOneUnitOfBytes) {
  const ComparedPlan small = load_compared(folder.write("small.graph",
                                                        "graph g(%x: f32[64]) {\n  %a: f32[64] = relu(%x)\n"
                                                        "  return %a\n}\n"));
  ComparePicture picture(left, small);
  for (const std::string& text : texts(picture)) {
    EXPECT_EQ(text.find("KiB"), std::string::npos) << text;
    EXPECT_EQ(text.find(" B"), std::string::npos) << text;
  }
}

TEST_F(Comparison, TheMenuOfTheWindowChangesTheLook) {
  show_compare_window(left, right, Renderer::soft, {ColourBy::op, TimeUnit::us}, kCompareWidth, kCompareHeight);
  QWidget* window = find_compare();
  ASSERT_NE(window, nullptr);
  const auto action = [&](const std::string& id) { return window->findChild<QAction*>(QString::fromStdString(id)); };
  EXPECT_TRUE(action("view.colour-by-op")->isChecked());
  EXPECT_TRUE(action("view.axis-time")->isChecked());
  for (const std::string& id : compare_commands()) {
    ASSERT_NE(action(id), nullptr) << id;
    EXPECT_FALSE(action(id)->toolTip().isEmpty()) << id;
  }
  ASSERT_TRUE(spin_until([&] { return is_compared(window); }));
  Canvas* canvas = &compare_canvas(*window);
  settle(*canvas);
  const QImage before = canvas->grab().toImage();
  action("view.colour-by-module")->trigger();
  action("view.axis-nodes")->trigger();
  settle(*canvas);
  EXPECT_GT(share_different(before, canvas->grab().toImage()), 0.05);
  EXPECT_EQ(dynamic_cast<ComparePicture&>(canvas->picture()).look(), (CompareLook{ColourBy::module, TimeUnit::nodes}));
  // A value, a node of the curve and the summary say what they are.
  const QImage alone = canvas->grab().toImage();
  for (const ImVec2 at : {ImVec2(200, 260), ImVec2(200, 440), ImVec2(100, 60)}) {
    send_mouse(*canvas, QEvent::MouseMove, at);
    settle(*canvas);
    EXPECT_GT(share_different(canvas->grab().toImage(), alone), 0.005) << at.x << ", " << at.y;
  }
  window->close();
  QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
}

// The window of a comparison, with the events of a person.
class CompareWindowTest : public Comparison {
 protected:
  void SetUp() override {
    show_compare_window(left, right, Renderer::soft, {}, kCompareWidth, 900);
    window = find_compare();
    ASSERT_NE(window, nullptr);
    ASSERT_TRUE(spin_until([&] { return is_compared(window); }));
    canvas = &compare_canvas(*window);
    table = &compare_table(*window);
    settle(*canvas);
  }
  void TearDown() override {
    if (window != nullptr) window->close();
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  }
  ComparePicture& picture() { return dynamic_cast<ComparePicture&>(canvas->picture()); }
  void trigger(const char* id) {
    window->findChild<QAction*>(QString::fromLatin1(id))->trigger();
    settle(*canvas);
  }
  // A value that both plans keep, and that is large enough to be hit.
  ValueId shown_value(int side) {
    const PlanModel& model = *picture().plans().side(side).model;
    for (const PlanRect& rect : model.rects())
      if (rect.value != kNone && rect.role == RoleClass::saved && picture().place_of(side, rect.value)) return rect.value;
    return kNone;
  }

  QWidget* window = nullptr;
  Canvas* canvas = nullptr;
  DeltaPanel* table = nullptr;
};

TEST_F(CompareWindowTest, AValueUnderTheMouseIsOutlinedOnBothSides) {
  for (const int side : {0, 1}) {
    const ValueId v = shown_value(side);
    ASSERT_NE(v, kNone);
    send_mouse(*canvas, QEvent::MouseMove, *picture().place_of(side, v));
    settle(*canvas);
    EXPECT_EQ(picture().hovered(side), v);
    EXPECT_EQ(picture().hovered(1 - side), picture().plans().other(side, v));
    EXPECT_NE(picture().hovered(1 - side), kNone);
  }
}

TEST_F(CompareWindowTest, AClickSelectsOnBothSidesAndInTheTableAndBack) {
  const ValueId v = shown_value(1);
  ASSERT_NE(v, kNone);
  click(*canvas, *picture().place_of(1, v));
  EXPECT_EQ(picture().selected(1), v);
  EXPECT_EQ(picture().selected(0), picture().plans().other(1, v));
  const int place = table->table()->currentIndex().row();
  ASSERT_GE(place, 0);
  EXPECT_EQ(table->ids_at(place).value, picture().plans().side(1).model->values().copies(v).front());
  const int other = place == 0 ? 1 : 0;
  table->table()->setCurrentIndex(table->table()->model()->index(other, 0));
  settle(*canvas);
  EXPECT_EQ(picture().selected(1), table->ids_at(other).value);
  EXPECT_EQ(picture().selected(0), picture().plans().other(1, picture().selected(1)));
}

TEST_F(CompareWindowTest, ALockedZoomMovesBothSidesAndAFreeOneMovesOne) {
  const ImVec2 at = *picture().place_of(0, shown_value(0));
  const PlanView whole = picture().view(0);
  wheel(*canvas, at, 3);
  EXPECT_LT(picture().view(0).time.size(), whole.time.size());
  EXPECT_EQ(picture().view(0), picture().view(1));
  trigger("compare.lock");
  wheel(*canvas, at, 3);
  EXPECT_LT(picture().view(0).time.size(), picture().view(1).time.size());
  trigger("compare.lock");
  EXPECT_EQ(picture().view(0), picture().view(1));
}

TEST_F(CompareWindowTest, OverlayDrawsOnePlanOverTheOtherAndASwapTurnsTheDifferencesRound) {
  const QImage beside = canvas->grab().toImage();
  trigger("compare.overlay");
  EXPECT_TRUE(window->findChild<QAction*>(QStringLiteral("compare.overlay"))->isChecked());
  EXPECT_GT(share_different(beside, canvas->grab().toImage()), 0.05);
  const std::string before = difference_summary(picture().plans(), ByteUnit());
  EXPECT_NE(before.find("peak -"), std::string::npos) << before;
  trigger("compare.swap");
  EXPECT_NE(difference_summary(picture().plans(), ByteUnit()).find("peak +"), std::string::npos);
  EXPECT_EQ(picture().plans().side(0).model, right.model);
  trigger("compare.swap");
  EXPECT_EQ(difference_summary(picture().plans(), ByteUnit()), before);
}

TEST_F(CompareWindowTest, TheTableIsFilteredAndWritten) {
  table->filter()->setText(QStringLiteral("is:changed"));
  const std::int64_t changed = picture().plans().count(PlanChange::choice);
  ASSERT_GT(changed, 0);
  EXPECT_EQ(table->table()->model()->rowCount(), changed);
  table->write_csv(folder.file("changed.csv"));
  const std::string text = read(folder.file("changed.csv"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), changed + 1);
}

// The plan before the last change of the budget.
TEST_F(Window, IsComparedWithThePlanBefore) {
  window.run({find_command("compare.plan-before")});
  EXPECT_EQ(find_compare(), nullptr);
  const std::shared_ptr<const PlanModel> before = window.session().shared_model();
  window.set_budget({-1, 70});
  window.wait_for_plan();
  ASSERT_NE(window.session().shared_model(), before);
  window.run({find_command("compare.plan-before")});
  QWidget* compare = find_compare();
  ASSERT_NE(compare, nullptr);
  ASSERT_TRUE(spin_until([&] { return is_compared(compare); }));
  auto& picture = compare_picture(*compare);
  EXPECT_EQ(picture.plans().side(0).model, before);
  EXPECT_EQ(picture.plans().side(1).model, window.session().shared_model());
  window.run({find_command("compare.overlay")});
  EXPECT_TRUE(picture.look().overlay);
  compare->close();
  QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
}

TEST_F(Comparison, TheTableOfDifferencesIsWrittenUnattended) {
  Options options;
  options.file = folder.file("left.graph");
  options.compare = options.file;
  options.budget = {-1, 80};
  options.csv = folder.file("delta.csv");
  ASSERT_EQ(take_shot(options), kOk);
  const std::string text = read(options.csv);
  const MatchedPlans plans(left, load_compared(options.file, options.budget));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<std::int64_t>(plans.values().size()) + 1);
}

TEST_F(Comparison, TheCommandLineGivesTheLook) {
  Options options;
  std::string error;
  const std::vector<std::string> line{"a", "--compare", "b", "--shot", "x.png", "--run"};
  const auto parsed = [&](const std::string& ids) {
    options = {};
    std::vector<std::string> arguments = line;
    arguments.push_back(ids);
    return parse_options(arguments, &options, &error);
  };
  ASSERT_TRUE(parsed("view.colour-by-op,view.axis-time")) << error;
  EXPECT_EQ(options.look_after_run({}), (CompareLook{ColourBy::op, TimeUnit::us}));
  ASSERT_TRUE(parsed("view.axis-nodes")) << error;
  EXPECT_EQ(options.look_after_run({ColourBy::module, TimeUnit::us}), (CompareLook{ColourBy::module, TimeUnit::nodes}));
  const auto accepts = [&](const std::vector<std::string>& arguments) {
    options = {};
    return parse_options(arguments, &options, &error);
  };
  EXPECT_TRUE(accepts({"a", "--compare", "b", "--export", "d.csv"})) << error;
  EXPECT_TRUE(accepts({"a", "--compare", "b", "--panel", "compare", "--shot", "x.png"})) << error;
  EXPECT_FALSE(accepts({"a", "--panel", "compare", "--shot", "x.png"}));
  EXPECT_NE(error.find("--compare FILE"), std::string::npos) << error;
  EXPECT_FALSE(parsed("view.axis-time,go.peak"));
  EXPECT_NE(error.find("go.peak"), std::string::npos) << error;
}

}  // namespace
}  // namespace tapedeck::viewer
