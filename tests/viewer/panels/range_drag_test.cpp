// Tests the range that a person drags over the curve of live bytes, with real events: the marked nodes, the box that sums them
// up, and the other buttons of the mouse.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/drawing/picture_vectors.h>
#include <tapedeck/viewer/words/format.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace tapedeck::viewer {
namespace {

class RangeDrag : public Window {
 protected:
  Canvas& canvas() { return window.curve_canvas(); }
  const std::vector<std::int64_t>& live() { return window.session().model()->curve(); }

  // Moves the mouse with a button held down, in steps, as a hand does.
  void drag(ImVec2 from, ImVec2 to, Qt::MouseButton button) {
    send_mouse(canvas(), QEvent::MouseMove, from);
    settle(canvas());
    send_mouse(canvas(), QEvent::MouseButtonPress, from, button);
    settle(canvas());
    for (int i = 1; i <= 4; ++i) {
      const float share = static_cast<float>(i) / 4;
      send_mouse(canvas(), QEvent::MouseMove, ImVec2(from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share));
      settle(canvas());
    }
    send_mouse(canvas(), QEvent::MouseButtonRelease, to, button);
    settle(canvas());
  }
  void drag(NodeId from, NodeId to, Qt::MouseButton button = Qt::LeftButton) {
    drag(window.curve().place_of(from), window.curve().place_of(to), button);
  }
  std::string in_unit(std::int64_t bytes) { return unit_of(window.session().model()->plan()).text(bytes); }
  std::vector<std::string> texts(int width = 1600) {
    std::vector<std::string> found;
    const VectorPicture picture = picture_vectors(window.curve(), width, 400);
    for (const VectorShape& shape : picture.shapes())
      if (const auto* text = std::get_if<VectorText>(&shape)) found.push_back(text->text);
    return found;
  }
  bool shows(const std::string& text) {
    const std::vector<std::string> all = texts();
    return std::any_of(all.begin(), all.end(), [&](const std::string& t) { return t.find(text) != std::string::npos; });
  }
};

TEST_F(RangeDrag, MarksTheNodesAndSumsThemUp) {
  drag(10, 40);
  EXPECT_EQ(window.session().range(), (NodeRange{10, 40}));
  EXPECT_EQ(window.session().selection().node, kNone);  // a drag is no click
  const std::int64_t delta = live()[40] - live()[10];
  EXPECT_TRUE(shows("nodes 10 to 40 (31)"));
  EXPECT_TRUE(shows((delta < 0 ? "-" : "+") + in_unit(std::abs(delta))));
  const auto most = std::max_element(live().begin() + 10, live().begin() + 41);
  EXPECT_TRUE(shows("most " + in_unit(*most) + " at node " + std::to_string(most - live().begin())));
  EXPECT_TRUE(shows(in_unit(live()[10])));
  EXPECT_TRUE(shows(in_unit(live()[40])));
  // The row of all bytes: at both ends, born and died. Births less deaths are the difference of the ends.
  const std::vector<std::string> all = texts();
  const auto row = std::find(all.begin(), all.end(), "all");
  ASSERT_NE(row, all.end());
  EXPECT_EQ(row[1], in_unit(live()[10]));
  EXPECT_EQ(row[2], in_unit(live()[40]));
  EXPECT_NE(row[3].find('('), std::string::npos) << row[3];
}

TEST_F(RangeDrag, SaysHowLongTheNodesTake) {
  drag(10, 40);
  const PlanModel& model = *window.session().model();
  double us = 0;
  for (NodeId n = 10; n <= 40; ++n) us += model.values().node_us(n);
  EXPECT_TRUE(shows("time " + human_us(us) + ", " + percent(us / model.plan().cost_us) + " of the step, estimated"));
}

// The box stands beside the marked range or above the plot, however narrow the picture and however wide the range is.
TEST_F(RangeDrag, TheBoxNeverHidesTheRange) {
  const NodeId last = graph().node_count() - 1;
  for (const int width : {300, 480, 800, 1600})
    for (const int height : {200, 300, 500})
      for (const NodeRange& range :
           {NodeRange{2, 5}, NodeRange{25, 30}, NodeRange{last - 4, last}, NodeRange{5, last - 5}, NodeRange{0, last}}) {
        window.session().select_range(range);
        const VectorPicture picture = picture_vectors(window.curve(), width, height);
        VectorBox band;
        std::vector<VectorBox> lines;
        for (const VectorShape& shape : picture.shapes()) {
          if (const auto* rect = std::get_if<VectorRect>(&shape))
            if (rect->colour.a == 40 && rect->colour.r == colours::kSelect.r) band = rect->box;
          if (const auto* text = std::get_if<VectorText>(&shape))
            for (const char* begin : {"nodes ", "time ", "most ", "least ", "at first"})
              if (text->text.starts_with(begin) && !text->text.starts_with("most live"))
                lines.push_back({text->x, text->baseline - 9, text->x + text->width, text->baseline});
        }
        SCOPED_TRACE(std::to_string(width) + "x" + std::to_string(height) + ", " + std::to_string(range.first) + " to " +
                     std::to_string(range.last));
        ASSERT_FALSE(band.empty());
        ASSERT_GE(lines.size(), 4u);
        for (const VectorBox& line : lines) {
          EXPECT_TRUE(common_part(line, band).empty()) << line.x0 << ", " << line.y0;
          EXPECT_GE(line.x0, 0);
          EXPECT_LE(line.x1, static_cast<float>(width));
          EXPECT_LE(line.y1, static_cast<float>(height));
        }
      }
}

TEST_F(RangeDrag, FromRightToLeftMarksTheSameNodes) {
  drag(40, 10);
  EXPECT_EQ(window.session().range(), (NodeRange{10, 40}));
}

TEST_F(RangeDrag, EscapeAndTheNextDragTakeItAway) {
  drag(10, 40);
  drag(20, 30);
  EXPECT_EQ(window.session().range(), (NodeRange{20, 30}));
  EXPECT_TRUE(shows("nodes 20 to 30"));
  press(window, Qt::Key_Escape);
  settle(canvas());
  EXPECT_TRUE(window.session().range().empty());
  EXPECT_FALSE(shows("nodes 20 to 30"));
}

TEST_F(RangeDrag, EndsAtTheEdgesOfThePlan) {
  ImVec2 right = window.curve().place_of(graph().node_count() - 1);
  right.x = static_cast<float>(canvas().width()) - 1;
  drag(window.curve().place_of(50), right, Qt::LeftButton);
  EXPECT_EQ(window.session().range(), (NodeRange{50, graph().node_count() - 1}));
}

// The bytes of the range follow the plan that is shown.
TEST_F(RangeDrag, StaysOnItsNodesInTheNextPlan) {
  drag(4, 12);
  window.set_budget({-1, 60});
  window.wait_for_plan();
  const NodeRange now = window.session().range();
  ASSERT_FALSE(now.empty());
  EXPECT_EQ(graph().node_count(), window.session().model()->nodes());
  EXPECT_TRUE(shows(in_unit(live()[now.first])));
  EXPECT_TRUE(shows(in_unit(live()[now.last])));
}

TEST_F(RangeDrag, TheRightAndTheMiddleButtonMoveThePicture) {
  wheel(canvas(), window.curve().place_of(30), 5);
  for (const Qt::MouseButton button : {Qt::RightButton, Qt::MiddleButton}) {
    const PlanView before = window.session().view;
    const ImVec2 from = window.curve().place_of(30);
    const double nodes_per_unit = before.time.size() / static_cast<double>(canvas().width());
    drag(from, ImVec2(from.x - 80, from.y), button);
    const PlanView after = window.session().view;
    EXPECT_NEAR(after.time.low - before.time.low, 80 * nodes_per_unit, 40 * nodes_per_unit);
    EXPECT_NEAR(after.time.size(), before.time.size(), 1e-9);
    EXPECT_EQ(after.address, before.address);
    EXPECT_TRUE(window.session().range().empty());
    EXPECT_EQ(window.session().selection().node, kNone);
  }
}

}  // namespace
}  // namespace tapedeck::viewer
