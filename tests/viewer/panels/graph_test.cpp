// Tests the panel of the graph with the events of a person: clicks, double clicks, drags, the wheel, keys and the search.
#include <tapedeck/tests/viewer/pictures.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/command_palette.h>
#include <tapedeck/viewer/node_search.h>
#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/screenshot.h>
#include <tapedeck/viewer/session_keeper.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace tapedeck::viewer {
namespace {

class GraphWindow : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    window.show_panel("graph");
    canvas().setFocus();
    settle_graph();
  }
  Canvas& canvas() { return *window.panel("graph").canvas; }
  GraphPanel& panel() { return window.graph(); }
  const GraphScene& scene() { return *panel().scene(); }
  void settle_graph() {
    EXPECT_TRUE(spin_until([&] { return panel().settled() && canvas().settled(); }));
  }
  BoxId module(const std::string& path, Lane lane = Lane::forward) { return panel().box_of_module(path, lane); }
  bool is_open(const std::string& path) {
    const BoxId id = module(path);
    return id != kNone && scene().layout.boxes[static_cast<std::size_t>(id)].open;
  }
  ImVec2 sign_of(const std::string& path) { return panel().picture().place_of_sign(scene(), module(path)); }
  ImVec2 middle_of(BoxId id) {
    const std::optional<ImVec2> place = panel().place_of(id);
    EXPECT_TRUE(place);
    return place.value_or(ImVec2());
  }
  BoxId box_of(const std::string& name) { return scene().layout.box_of(graph(), value(name)); }
  void click_at(ImVec2 at) {
    click(canvas(), at);
    settle_graph();
  }
  void double_click(ImVec2 at) {
    send_mouse(canvas(), QEvent::MouseMove, at);
    for (int i = 0; i < 2; ++i) {
      send_mouse(canvas(), QEvent::MouseButtonPress, at, Qt::LeftButton);
      send_mouse(canvas(), QEvent::MouseButtonRelease, at, Qt::LeftButton);
    }
    settle(canvas());
    settle_graph();
  }
  void drag(ImVec2 from, ImVec2 to) {
    send_mouse(canvas(), QEvent::MouseMove, from);
    send_mouse(canvas(), QEvent::MouseButtonPress, from, Qt::LeftButton);
    settle(canvas());
    send_mouse(canvas(), QEvent::MouseMove, ImVec2((from.x + to.x) / 2, (from.y + to.y) / 2));
    settle(canvas());
    send_mouse(canvas(), QEvent::MouseMove, to);
    settle(canvas());
    send_mouse(canvas(), QEvent::MouseButtonRelease, to, Qt::LeftButton);
    settle(canvas());
  }
  ImVec2 middle() {
    const CanvasBox& plot = panel().view().plot();
    return ImVec2((plot.x0 + plot.x1) / 2, (plot.y0 + plot.y1) / 2);
  }
  void press_and_settle(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    press(window, key, modifiers);
    settle_graph();
  }
};

TEST_F(GraphWindow, ASignOpensAndClosesAModuleAndAClickSelectsANodeEverywhere) {
  EXPECT_FALSE(is_open("layer1"));
  click_at(sign_of("layer1"));
  ASSERT_TRUE(is_open("layer1"));
  const BoxId box = box_of("h2");
  EXPECT_EQ(scene().layout.boxes[static_cast<std::size_t>(box)].module, kNone);
  click_at(middle_of(box));
  expect_selected_everywhere(value("h2"));
  click_at(middle_of(box_of("dw1")));
  expect_selected_everywhere(value("dw1"));
  click_at(sign_of("layer1"));
  EXPECT_FALSE(is_open("layer1"));
  EXPECT_EQ(box_of("h2"), module("layer1"));
}

TEST_F(GraphWindow, ADoubleClickOpensAModuleAndItsCornerStays) {
  const ImVec2 sign = sign_of("layer1");
  double_click(middle_of(module("layer1", Lane::backward)));
  ASSERT_TRUE(is_open("layer1"));
  EXPECT_NEAR(sign_of("layer1").y, sign.y, 1.5f);
  EXPECT_EQ(window.session().selection().value, kNone);  // the release was no click on what came under the mouse
  double_click(ImVec2(sign.x + 40, sign.y));             // on the title
  EXPECT_FALSE(is_open("layer1"));
  const GraphPicture::Hit hit = panel().picture().hit(ImVec2(sign.x + 40, sign.y));
  EXPECT_EQ(hit.box, module("layer1"));  // it is still under the mouse
}

TEST_F(GraphWindow, AClickOnAModuleMarksItsNodesInTheCurve) {
  const BoxId backward = module("layer1", Lane::backward);
  click_at(middle_of(backward));
  const LaneSums& sums = scene().tree->module(scene().find_module("layer1")).sums[static_cast<std::size_t>(Lane::backward)];
  EXPECT_EQ(window.session().range(), (NodeRange{sums.first, sums.last}));
  press_and_settle(Qt::Key_O);
  EXPECT_TRUE(is_open("layer1"));
  press_and_settle(Qt::Key_O);
  EXPECT_FALSE(is_open("layer1"));
}

TEST_F(GraphWindow, ADragMovesAndTheWheelZoomsAtTheCursor) {
  const ImVec2 before = middle_of(module("layer1"));
  drag(middle(), ImVec2(middle().x + 30, middle().y + 20));
  EXPECT_NEAR(middle_of(module("layer1")).x, before.x + 30, 1);
  EXPECT_NEAR(middle_of(module("layer1")).y, before.y + 20, 1);
  EXPECT_EQ(window.session().selection().node, kNone);
  const ImVec2 at = middle_of(module("layer1"));
  const double scale = panel().view().scale();
  wheel(canvas(), at, 2);
  EXPECT_NEAR(panel().view().scale(), scale * 1.25 * 1.25, 1e-9);
  EXPECT_NEAR(middle_of(module("layer1")).x, at.x, 1);
  EXPECT_NEAR(middle_of(module("layer1")).y, at.y, 1);
  const PlanView plan = window.session().view;
  press_and_settle(Qt::Key_Backspace);
  EXPECT_NEAR(panel().view().scale(), scale, 1e-9);
  EXPECT_NEAR(middle_of(module("layer1")).y, before.y + 20, 1);
  EXPECT_EQ(window.session().view, plan);  // the keys were those of the graph
}

TEST_F(GraphWindow, KeysMoveTheGraphThatHasTheFocus) {
  const double scale = panel().view().scale();
  const PlanView plan = window.session().view;
  press_and_settle(Qt::Key_W);
  EXPECT_GT(panel().view().scale(), scale);
  const double top = panel().view().y_at(0);
  press_and_settle(Qt::Key_Down);
  EXPECT_GT(panel().view().y_at(0), top);
  const double left = panel().view().x_at(0);
  press_and_settle(Qt::Key_D);
  EXPECT_GT(panel().view().x_at(0), left);
  press_and_settle(Qt::Key_H);
  for (const BoxId id : {module("layer0"), module("layer15"), module("layer15", Lane::backward)})
    EXPECT_TRUE(panel().place_of(id));
  EXPECT_EQ(window.session().view, plan);
  window.memory_canvas().setFocus();
  press(window, Qt::Key_W);
  EXPECT_NE(window.session().view, plan);
}

TEST_F(GraphWindow, LevelsOpenAndCloseByKeys) {
  press_and_settle(Qt::Key_L);
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(is_open("layer" + std::to_string(i)));
  press_and_settle(Qt::Key_L, Qt::ShiftModifier);
  for (int i = 0; i < 16; ++i) EXPECT_FALSE(is_open("layer" + std::to_string(i)));
}

TEST_F(GraphWindow, TheSearchFindsANodeAndOpensItsModule) {
  press(window, Qt::Key_Slash, Qt::NoModifier);
  ASSERT_NE(open_palette(window), nullptr);
  type(window, "dw11");
  press(window, Qt::Key_Return);
  settle_graph();
  expect_selected_everywhere(value("dw11"));
  EXPECT_TRUE(is_open("layer11"));
  const ImVec2 place = middle_of(box_of("dw11"));
  EXPECT_NEAR(place.x, middle().x, 2);
  EXPECT_NEAR(place.y, middle().y, 2);
  press(window, Qt::Key_Slash, Qt::NoModifier);
  type(window, "layer3");
  press(window, Qt::Key_Return);
  settle_graph();
  EXPECT_NEAR(middle_of(module("layer3")).y, middle().y, 2);
  EXPECT_EQ(found_nodes(window, "no such thing").size(), 0u);
}

TEST_F(GraphWindow, ASelectionFromElsewhereIsShownAndGOpensItsModule) {
  const QImage before = render_picture(panel(), 900, 600);
  window.session().select_value(value("h3"));
  settle_graph();
  EXPECT_GT(share_different(before, render_picture(panel(), 900, 600), 8), 0);
  window.session().select_value(value("h9"));
  EXPECT_FALSE(is_open("layer8"));
  press_and_settle(Qt::Key_G);
  EXPECT_TRUE(is_open("layer8"));
  EXPECT_TRUE(panel().place_of(box_of("h9")));
}

TEST_F(GraphWindow, TheMouseOverANodeOrAnEdgeHoversItsValue) {
  press_and_settle(Qt::Key_L);
  press_and_settle(Qt::Key_W);
  const auto& layout = scene().layout;
  bool found_edge = false;
  for (std::size_t i = 0; i < layout.edges.size() && !found_edge; ++i) {
    const std::optional<ImVec2> from = panel().place_of(layout.edges[i].from), to = panel().place_of(layout.edges[i].to);
    if (!from || !to || layout.boxes[static_cast<std::size_t>(layout.edges[i].from)].lane != Lane::forward) continue;
    const ImVec2 at((from->x + to->x) / 2, (from->y + to->y) / 2);
    const GraphPicture::Hit hit = panel().picture().hit(at);
    if (hit.edge == kNone) continue;
    send_mouse(canvas(), QEvent::MouseMove, at);
    settle(canvas());
    EXPECT_EQ(window.session().selection().hovered, layout.edges[static_cast<std::size_t>(hit.edge)].value);
    found_edge = true;
  }
  EXPECT_TRUE(found_edge);
  for (const char* name : {"h1", "d15"})
    if (const std::optional<ImVec2> at = panel().place_of(box_of(name))) {
      send_mouse(canvas(), QEvent::MouseMove, *at);
      settle(canvas());
      EXPECT_EQ(window.session().selection().hovered, value(name));
    }
}

TEST_F(GraphWindow, FollowsThePlanAndShowsClones) {
  EXPECT_EQ(scene().layout.boxes[static_cast<std::size_t>(Lane::recomputed)].width, 0);
  window.set_budget({-1, 60});
  window.wait_for_plan();
  settle_graph();
  ASSERT_EQ(scene().model.get(), window.session().model());
  ASSERT_GT(window.session().model()->plan().recomputed_nodes, 0);
  EXPECT_GT(scene().layout.boxes[static_cast<std::size_t>(Lane::recomputed)].width, 0);
  for (NodeId n = 0; n < graph().node_count(); ++n)
    if (graph().nodes[static_cast<std::size_t>(n)].origin.clone) {
      const NodeId original = scene().tree->original_of(n);
      ASSERT_NE(original, kNone);
      EXPECT_EQ(scene().tree->item_of(original), scene().tree->item_of(n));
    }
}

TEST_F(GraphWindow, OpenModulesAreKeptInTheSession) {
  EXPECT_FALSE(window.keeper().now().open_modules);
  click_at(sign_of("layer1"));
  ASSERT_TRUE(window.keeper().now().open_modules);
  EXPECT_EQ(*window.keeper().now().open_modules, std::vector<std::string>{"layer1"});
  panel().set_open_modules(std::set<std::string>{"layer3", "no such module"});
  settle_graph();
  EXPECT_TRUE(is_open("layer3"));
  EXPECT_FALSE(is_open("layer1"));
}

TEST_F(GraphWindow, AnotherFileIsShownAnew) {
  press_and_settle(Qt::Key_L);
  window.open(folder.write("short.graph", training_graph(5)));
  window.wait_for_plan();
  settle_graph();
  EXPECT_FALSE(panel().open_modules());
  EXPECT_EQ(module("layer7"), kNone);
  EXPECT_TRUE(panel().place_of(module("layer0")));
}

TEST(GraphPanel, LaysNothingOutWhileItIsHidden) {
  Folder folder;
  MainWindow window({Renderer::soft, "software", false});
  window.open(folder.write("step.graph", training_graph(6)));
  window.wait_for_plan();
  window.show();
  ASSERT_TRUE(spin_until([&] { return window.memory_canvas().settled(); }));
  for (int i = 0; i < 20; ++i) QCoreApplication::processEvents();
  EXPECT_EQ(window.graph().scene(), nullptr);
}

TEST(GraphPanel, AWindowMayCloseWhileItsGraphIsLaidOut) {
  Folder folder;
  const std::string path = folder.write("step.graph", training_graph(300));
  for (const int ms : {0, 1, 2, 4, 8, 16}) {
    MainWindow window({Renderer::soft, "software", false, false});
    window.open(path);
    window.show();
    window.show_panel("graph");
    QElapsedTimer clock;
    clock.start();
    while (clock.elapsed() < ms) QCoreApplication::processEvents(QEventLoop::AllEvents, 1);
  }
}

TEST(GraphPanel, IsWrittenAsPicturesAndAsATableOfBoxes) {
  Folder folder;
  Options options;
  options.file = folder.write("step.graph", training_graph(6));
  options.panel = "graph";
  options.width = 700;
  options.height = 500;
  for (const char* ending : {"png", "svg", "pdf"}) {
    options.shot = folder.file(std::string("graph.") + ending);
    options.csv = folder.file("boxes.csv");
    ASSERT_EQ(take_shot(options), kOk) << ending;
    EXPECT_GT(read(options.shot).size(), 1000u) << ending;
  }
  const std::string svg = read(folder.file("graph.svg")), csv = read(folder.file("boxes.csv"));
  for (const char* text : {"layer0", "layer1", "forward", "backward"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
    EXPECT_NE(csv.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(csv.substr(0, csv.find('\n')), "kind,lane,name,op,nodes,bytes,us,x,y,width,height");
  std::string error;
  Options given;
  EXPECT_TRUE(parse_options({"a.tape", "--panel", "graph", "--export", "b.csv"}, &given, &error)) << error;
  ASSERT_TRUE(parse_commands("graph.close-level", &options.run, &error)) << error;
  ASSERT_EQ(take_shot(options), kOk);
  const std::string opened = read(folder.file("boxes.csv"));
  EXPECT_NE(opened, csv);
}

}  // namespace
}  // namespace tapedeck::viewer
