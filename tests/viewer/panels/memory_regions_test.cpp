// Tests with the events of a person that the workspace of a loop opens in the memory plan.
#include <tapedeck/tests/viewer/loops.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/panels/graph.h>

#include <string>

namespace tapedeck::viewer {
namespace {

class MemoryOfLoops : public ::testing::Test {
 protected:
  void SetUp() override {
    window.resize(1280, 900);
    window.open(folder.write("loops.graph", graph_with_loops()));
    window.wait_for_plan();
    window.show();
    window.activateWindow();
    ASSERT_TRUE(spin_until([&] { return window.isActiveWindow(); }));
    canvas().setFocus();
    settle_memory();
  }
  Canvas& canvas() { return window.memory_canvas(); }
  MemoryPanel& panel() { return window.memory(); }
  void settle_memory() {
    EXPECT_TRUE(spin_until([&] { return panel().regions().settled() && canvas().settled(); }));
  }
  const PlanModel& shown() { return *panel().regions().session().model(); }
  NodeId node(const std::string& op) {
    const Graph& graph = window.session().model()->graph();
    for (NodeId n = 0; n < graph.node_count(); ++n)
      if (graph.nodes[static_cast<std::size_t>(n)].op->name == op) return n;
    ADD_FAILURE() << op;
    return 0;
  }
  ValueId value_inside(const std::string& name) {
    for (ValueId v = 0; v < shown().graph().value_count(); ++v)
      if (shown().graph().value_name(v) == name) return v;
    ADD_FAILURE() << name;
    return 0;
  }
  void double_click(ImVec2 place) {
    send_mouse(canvas(), QEvent::MouseMove, place);
    for (int i = 0; i < 2; ++i) {
      send_mouse(canvas(), QEvent::MouseButtonPress, place, Qt::LeftButton);
      send_mouse(canvas(), QEvent::MouseButtonRelease, place, Qt::LeftButton);
    }
    settle(canvas());
    settle_memory();
  }
  void press_and_settle(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    press(window, key, modifiers);
    settle_memory();
  }
  std::string picture() {
    const std::string path = folder.file("memory.svg");
    export_picture(path, panel(), 1000, 700, 1);
    return read(path);
  }

  Folder folder;
  MainWindow window{{Renderer::soft, "software", false, false}};
};

TEST_F(MemoryOfLoops, ADoubleClickOnTheWorkspaceOpensItAndAButtonLeadsBack) {
  const PlanView before = window.session().view;
  double_click(*panel().place_of_workspace(node("scan")));
  ASSERT_EQ(panel().regions().path(), (RegionPath{{"y", 0}}));
  EXPECT_EQ(shown().nodes(), 3);
  EXPECT_EQ(window.graph().depth(), 0u);
  const std::string svg = picture();
  for (const char* text : {"scan %y, body", "100 passes", "%m", "frame ", "results", "inputs", "its workspace:"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  // A click selects in the body, and nothing in the other panels.
  canvas().repaint();
  settle_memory();
  click(canvas(), *panel().place_of(value_inside("m")));
  EXPECT_EQ(panel().regions().session().selection().value, value_inside("m"));
  EXPECT_EQ(window.session().selection().node, node("scan"));  // by the first click
  press_and_settle(Qt::Key_W);
  EXPECT_LT(panel().regions().session().view.time.size(), 3);
  EXPECT_EQ(window.session().view, before);
  // The button stands at the left edge, under the title.
  click(canvas(), ImVec2(30, 40));
  settle_memory();
  if (panel().depth() > 0) click(canvas(), ImVec2(30, 57));
  EXPECT_EQ(panel().depth(), 0u);
  EXPECT_EQ(window.session().view, before);
}

TEST_F(MemoryOfLoops, TheKeysOfTheGraphOpenAndLeaveIt) {
  click(canvas(), *panel().place_of_workspace(node("while")));
  ASSERT_EQ(window.session().selection().node, node("while"));
  press_and_settle(Qt::Key_I);
  EXPECT_EQ(panel().regions().path(), (RegionPath{{"n", 1}}));
  EXPECT_EQ(shown().nodes(), 2);
  press_and_settle(Qt::Key_I);
  EXPECT_EQ(panel().regions().path(), (RegionPath{{"n", 0}}));
  press_and_settle(Qt::Key_I, Qt::ShiftModifier);
  EXPECT_EQ(panel().depth(), 0u);
  press_and_settle(Qt::Key_I);
  EXPECT_EQ(panel().depth(), 1u);
  press_and_settle(Qt::Key_Backspace);  // nothing was moved: back leads out
  EXPECT_EQ(panel().depth(), 0u);
  EXPECT_EQ(window.graph().depth(), 0u);
}

TEST_F(MemoryOfLoops, AnotherPlanKeepsTheRegionAndAnotherFileClosesIt) {
  window.session().select_node(node("cond"));
  press_and_settle(Qt::Key_I);
  EXPECT_EQ(panel().regions().path(), (RegionPath{{"b", 0}}));
  window.set_budget({-1, 99});
  window.wait_for_plan();
  settle_memory();
  ASSERT_NE(panel().regions().region(), nullptr);
  EXPECT_EQ(panel().regions().region()->step, window.session().shared_model());
  EXPECT_EQ(shown().nodes(), 1);
  window.open(folder.write("step.graph", training_graph(4)));
  window.wait_for_plan();
  settle_memory();
  EXPECT_EQ(panel().depth(), 0u);
  EXPECT_FALSE(panel().enter_selection());  // nothing is selected
}

}  // namespace
}  // namespace tapedeck::viewer
