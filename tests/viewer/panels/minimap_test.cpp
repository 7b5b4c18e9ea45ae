// Tests the minimap of the memory plan with the events of a person.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/settings.h>

namespace tapedeck::viewer {
namespace {

class MinimapWindow : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    home = window.session().view;
  }
  void zoom_in() {
    window.session().zoom(0.25, 0.5);
    settle_all();
    ASSERT_TRUE(minimap().is_seen());
  }
  const Minimap& minimap() { return window.memory().minimap(); }
  const PlanView& view() { return window.session().view; }
  Canvas& canvas() { return window.memory_canvas(); }
  ImVec2 at(double time_share, double address_share) {
    return minimap().place_of(home.time.at(time_share), home.address.at(address_share));
  }
  void expect_centre(double time_share, double address_share) {
    const double unit = home.time.size() / 150;  // somewhat more than a pixel of the minimap
    EXPECT_NEAR(view().time.at(0.5), home.time.at(time_share), 2 * unit);
    EXPECT_NEAR(view().address.at(0.5), home.address.at(address_share), home.address.size() / 40);
  }
  void drag(const ImVec2& from, const ImVec2& to) {
    send_mouse(canvas(), QEvent::MouseMove, from);
    send_mouse(canvas(), QEvent::MouseButtonPress, from, Qt::LeftButton);
    settle(canvas());
    for (int i = 1; i <= 4; ++i) {
      const float share = static_cast<float>(i) / 4;
      send_mouse(canvas(), QEvent::MouseMove, ImVec2(from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share));
      settle(canvas());
    }
    send_mouse(canvas(), QEvent::MouseButtonRelease, to, Qt::LeftButton);
    settle(canvas());
  }

  PlanView home;
};

TEST_F(MinimapWindow, IsSeenWhileAPartOfThePlanIsInView) {
  EXPECT_FALSE(minimap().is_seen());
  zoom_in();
  type(window, "h");
  settle_all();
  EXPECT_FALSE(minimap().is_seen());
}

TEST_F(MinimapWindow, ADragOfTheRectangleMovesTheView) {
  zoom_in();
  const PlanView before = view();
  drag(at(0.5, 0.5), at(0.7, 0.6));
  EXPECT_EQ(view().time.size(), before.time.size());
  expect_centre(before.time.at(0.5) / home.time.size() + 0.2, before.address.at(0.5) / home.address.size() + 0.1);
  EXPECT_EQ(window.session().selection().value, kNone);
  type(window, ".");  // selects the first node: the plot still takes input
  EXPECT_EQ(window.session().selection().node, 0);
  press(window, Qt::Key_Backspace);
  EXPECT_EQ(view(), before);  // the drag was one step
}

TEST_F(MinimapWindow, AClickCentresTheView) {
  zoom_in();
  click(canvas(), at(0.25, 0.35));
  expect_centre(0.25, 0.35);
  click(canvas(), at(0.3, 0.4));  // in the rectangle
  expect_centre(0.3, 0.4);
  click(canvas(), at(0.005, 0.02));  // the view stays inside the plan
  EXPECT_EQ(view().time.low, home.time.low);
  EXPECT_EQ(view().address.low, home.address.low);
  EXPECT_EQ(window.session().selection().value, kNone);
}

TEST_F(MinimapWindow, NothingUnderItIsHovered) {
  zoom_in();
  window.session().hover(value("h3"));
  send_mouse(canvas(), QEvent::MouseMove, at(0.5, 0.2));
  settle(canvas());
  EXPECT_EQ(window.session().selection().hovered, kNone);
}

TEST_F(MinimapWindow, ADragThatBeganInThePlotPassesOverIt) {
  zoom_in();
  const ImVec2 corner = at(0, 1);
  const double before = view().time.low;
  drag(ImVec2(corner.x - 40, corner.y - 40), ImVec2(corner.x + 20, corner.y + 20));
  EXPECT_LT(view().time.low, before);  // the plan followed the hand to the right
}

TEST_F(MinimapWindow, TheKeyTurnsItOff) {
  zoom_in();
  type(window, "m");
  settle_all();
  EXPECT_FALSE(minimap().is_seen());
  const PlanView before = view();
  click(canvas(), at(0.2, 0.2));
  EXPECT_EQ(view(), before);
  type(window, "m");
  settle_all();
  EXPECT_TRUE(minimap().is_seen());
}

TEST_F(MinimapWindow, AnExportHasItAsShapes) {
  zoom_in();
  const auto rectangles = [&] {
    export_picture(folder.file("memory.svg"), window.memory(), 900, 600, 1);
    const std::string svg = read(folder.file("memory.svg"));
    std::size_t count = 0;
    for (std::size_t at = svg.find("<rect"); at != std::string::npos; at = svg.find("<rect", at + 1)) ++count;
    return count;
  };
  const std::size_t with = rectangles();
  window.toggle_minimap();
  EXPECT_GT(with, rectangles() + 20);
}

TEST_F(MinimapWindow, SmallPlotsHaveNone) {
  zoom_in();
  render_picture(window.memory(), 300, 200);
  EXPECT_FALSE(minimap().is_seen());
  render_picture(window.memory(), 900, 500);
  EXPECT_TRUE(minimap().is_seen());
}

TEST(MinimapSetting, IsKept) {
  EXPECT_TRUE(remembered_minimap());
  {
    MainWindow window{{Renderer::soft, "software", true}};
    window.toggle_minimap();
  }
  EXPECT_FALSE(remembered_minimap());
  const MainWindow window{{Renderer::soft, "software", true}};
  EXPECT_FALSE(window.minimap_is_on());
  user_settings().remove(QStringLiteral("minimap"));
}

}  // namespace
}  // namespace tapedeck::viewer
