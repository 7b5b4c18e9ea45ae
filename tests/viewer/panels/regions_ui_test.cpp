// Tests with the events of a person that loops and branches open in the panel of the graph, and that the details tell about
// them.
#include <tapedeck/tests/viewer/loops.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/panels/graph.h>

#include <QtGui/QTextBlock>
#include <QtGui/QTextCursor>

#include <string>

namespace tapedeck::viewer {
namespace {

class LoopWindow : public ::testing::Test {
 protected:
  void SetUp() override {
    window.resize(1600, 1200);  // room for the whole graph at a size at which its boxes can be clicked
    window.show();
    window.activateWindow();
    ASSERT_TRUE(spin_until([&] { return window.isActiveWindow(); }));
    window.open(folder.write("loops.graph", graph_with_loops()));
    window.wait_for_plan();
    window.show_panel("graph");
    window.graph().set_open_modules(std::set<std::string>{"stem", "rnn", "search", "head"});
    canvas().setFocus();
    settle_graph();
    panel().move_view(ViewMove::fit_all);
    settle_graph();
  }
  Canvas& canvas() { return *window.panel("graph").canvas; }
  GraphPanel& panel() { return window.graph(); }
  const Graph& shown() { return panel().scene()->model->graph(); }
  void settle_graph() {
    EXPECT_TRUE(spin_until([&] { return panel().settled() && canvas().settled(); }));
  }
  NodeId node(const std::string& op) {
    for (NodeId n = 0; n < shown().node_count(); ++n)
      if (shown().nodes[static_cast<std::size_t>(n)].op->name == op) return n;
    ADD_FAILURE() << op;
    return 0;
  }
  BoxId box(const std::string& op) { return panel().scene()->layout.box_of_node[static_cast<std::size_t>(node(op))]; }
  void click_at(ImVec2 place) {
    click(canvas(), place);
    settle_graph();
  }
  void press_and_settle(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    press(window, key, modifiers);
    settle_graph();
  }
  // The picture as SVG: its texts can be read.
  std::string picture() {
    const std::string path = folder.file("graph.svg");
    export_picture(path, panel(), 1000, 700, 1);
    return read(path);
  }

  Folder folder;
  MainWindow window{{Renderer::soft, "software", false, false}};
};

TEST_F(LoopWindow, TheSignOfALoopOpensItsBodyAndAButtonLeadsBack) {
  const double scale = panel().view().scale();
  click_at(panel().picture().place_of_sign(*panel().scene(), box("scan")));
  ASSERT_EQ(panel().depth(), 1u);
  EXPECT_EQ(shown().node_count(), 3);
  const std::string svg = picture();
  EXPECT_NE(svg.find("scan %y, body"), std::string::npos);
  EXPECT_NE(svg.find("100 passes"), std::string::npos);
  EXPECT_NE(svg.find("matmul"), std::string::npos);
  EXPECT_EQ(svg.find("sigmoid"), std::string::npos);

  // A click selects a node of the body, and nothing in the other panels.
  click_at(*panel().place_of(box("tanh")));
  EXPECT_EQ(window.session().selection().node, kNone);
  canvas().repaint();
  settle_graph();
  // The button stands at the left edge, under the title.
  click_at(ImVec2(30, 40));
  if (panel().depth() > 0) click_at(ImVec2(30, 57));
  EXPECT_EQ(panel().depth(), 0u);
  EXPECT_EQ(shown().node_count(), 4);
  EXPECT_NEAR(panel().view().scale(), scale, 1e-9);
}

TEST_F(LoopWindow, KeysOpenTheRegionsOneAfterTheOtherAndLeaveThem) {
  click_at(*panel().place_of(box("while")));
  EXPECT_EQ(window.session().selection().node, node("while"));
  press_and_settle(Qt::Key_I);
  EXPECT_EQ(panel().inside(), (RegionPath{{"n", 1}}));
  EXPECT_EQ(shown().node_count(), 2);
  press_and_settle(Qt::Key_I);
  EXPECT_EQ(panel().inside(), (RegionPath{{"n", 0}}));
  EXPECT_EQ(shown().node_count(), 0);
  press_and_settle(Qt::Key_I, Qt::ShiftModifier);
  EXPECT_EQ(panel().depth(), 0u);
  press_and_settle(Qt::Key_I);
  press_and_settle(Qt::Key_Backspace);  // nothing was moved: back leads out
  EXPECT_EQ(panel().depth(), 0u);
}

TEST_F(LoopWindow, ADoubleClickOpensABranchAndAnotherPlanKeepsItOpen) {
  const ImVec2 place = *panel().place_of(box("cond"));
  send_mouse(canvas(), QEvent::MouseMove, place);
  for (int i = 0; i < 2; ++i) {
    send_mouse(canvas(), QEvent::MouseButtonPress, place, Qt::LeftButton);
    send_mouse(canvas(), QEvent::MouseButtonRelease, place, Qt::LeftButton);
  }
  settle(canvas());
  settle_graph();
  EXPECT_EQ(panel().inside(), (RegionPath{{"b", 0}}));
  EXPECT_EQ(shown().node_count(), 1);
  window.set_budget({-1, 99});
  window.wait_for_plan();
  settle_graph();
  EXPECT_EQ(panel().inside(), (RegionPath{{"b", 0}}));
  EXPECT_EQ(panel().scene()->step, window.session().shared_model());
  // A file without this branch.
  window.open(folder.write("step.graph", training_graph(4)));
  window.wait_for_plan();
  settle_graph();
  EXPECT_EQ(panel().depth(), 0u);
}

TEST_F(LoopWindow, TheDetailsOfALoopListItsBodyAndALinkDrawsIt) {
  window.session().select_node(node("scan"));
  window.show_panel("details");
  DetailsPanel& details = window.details();
  const QString text = details.toPlainText();
  const NodeRegions facts = regions_of(*window.session().model(), node("scan"));
  const ByteUnit unit = unit_of(window.session().model()->plan());
  for (const std::string& part : {std::string("Inside"), std::string("100 passes"), std::string("matmul(%c, %v)"),
                                  unit.exact_text(facts.regions[0].arena_bytes)})
    EXPECT_TRUE(text.contains(QString::fromStdString(part))) << part << " in\n" << text.toStdString();
  const QString href = QStringLiteral("region:%1/0").arg(node("scan"));
  bool is_clicked = false;
  for (QTextBlock block = details.document()->begin(); block.isValid() && !is_clicked; block = block.next())
    for (auto part = block.begin(); !part.atEnd() && !is_clicked; ++part) {
      if (part.fragment().charFormat().anchorHref() != href) continue;
      QTextCursor cursor(details.document());
      cursor.setPosition(part.fragment().position() + 1);
      details.setTextCursor(cursor);  // scrolls it into view
      details.ensureCursorVisible();
      const QPointF at = details.cursorRect(cursor).center();
      for (const QEvent::Type type : {QEvent::MouseButtonPress, QEvent::MouseButtonRelease}) {
        QMouseEvent event(type, at, details.viewport()->mapToGlobal(at), Qt::LeftButton,
                          type == QEvent::MouseButtonPress ? Qt::LeftButton : Qt::NoButton, Qt::NoModifier);
        QApplication::sendEvent(details.viewport(), &event);
      }
      is_clicked = true;
    }
  ASSERT_TRUE(is_clicked);
  settle_graph();
  EXPECT_EQ(panel().inside(), (RegionPath{{"y", 0}}));
}

}  // namespace
}  // namespace tapedeck::viewer
