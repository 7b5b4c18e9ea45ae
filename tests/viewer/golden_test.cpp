// Compares pictures with those that are stored beside this file. TAPEDECK_UPDATE_GOLDEN=1 writes them anew; look at them then.
#include <tapedeck/tests/viewer/ui_window.h>

#include <QtGui/QImage>

#include <cstdlib>
#include <string>

namespace tapedeck::viewer {
namespace {

constexpr double kMostDifferent = 0.005;  // of the pixels; letters and edges may fall a little differently
constexpr int kVisible = 24;              // of 255, in any channel

double share_different(const QImage& a, const QImage& b) {
  if (a.size() != b.size()) return 1;
  std::int64_t different = 0;
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x) {
      const QRgb p = a.pixel(x, y), q = b.pixel(x, y);
      different += std::abs(qRed(p) - qRed(q)) > kVisible || std::abs(qGreen(p) - qGreen(q)) > kVisible ||
                   std::abs(qBlue(p) - qBlue(q)) > kVisible;
    }
  return static_cast<double>(different) / (static_cast<double>(a.width()) * a.height());
}

// A window that plans nothing unasked, so that its pictures do not depend on how far such plans have come.
class Golden : public testing::Test {
 protected:
  void SetUp() override {
    window.open(folder.write("step.graph", training_graph(16)), {-1, 60});
    window.wait_for_plan();
    const Graph& graph = window.session().model()->graph();
    for (ValueId v = 0; v < graph.value_count(); ++v)
      if (graph.value_name(v) == "h5") window.session().select_value(v);
  }
  void expect_golden(const std::string& panel, Theme theme) {
    window.set_look({theme, 1});
    window.finish(panel);
    const std::string name = panel + "-" + theme_name(theme) + ".png";
    const std::string stored = std::string(TAPEDECK_SOURCE_DIR) + "/tests/viewer/golden/" + name;
    const QImage drawn = render_picture(*window.panel(panel).picture, 480, 300).convertToFormat(QImage::Format_RGB32);
    if (std::getenv("TAPEDECK_UPDATE_GOLDEN") != nullptr) drawn.save(QString::fromStdString(stored));
    const QImage golden = QImage(QString::fromStdString(stored)).convertToFormat(QImage::Format_RGB32);
    ASSERT_FALSE(golden.isNull()) << stored;
    const double share = share_different(drawn, golden);
    EXPECT_LE(share, kMostDifferent) << name;
    if (share > kMostDifferent) drawn.save(QString::fromStdString(testing::TempDir() + name));
  }

  Folder folder;
  MainWindow window{{Renderer::soft, "software", false, false}};
};

TEST_F(Golden, EveryPictureInEveryTheme) {
  for (const char* panel : {"memory", "curve", "tradeoff"})
    for (const Theme theme : {Theme::dark, Theme::light, Theme::high_contrast}) expect_golden(panel, theme);
  window.set_look({});
}

// The comparison finds a picture in which one value in fifty is another.
TEST_F(Golden, ADifferentPictureIsFound) {
  const QImage before = render_picture(window.memory(), 480, 300);
  window.set_budget({-1, 100});
  window.wait_for_plan();
  EXPECT_GT(share_different(before, render_picture(window.memory(), 480, 300)), kMostDifferent);
  EXPECT_EQ(share_different(before, before), 0);
}

}  // namespace
}  // namespace tapedeck::viewer
