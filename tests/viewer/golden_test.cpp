// Compares pictures with those that are stored beside this file. TAPEDECK_UPDATE_GOLDEN=1 writes them anew; look at them then.
#include <tapedeck/tests/viewer/live/live_folder.h>
#include <tapedeck/tests/viewer/loops.h>
#include <tapedeck/tests/viewer/pictures.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/key_sheet.h>
#include <tapedeck/viewer/live/live_picture.h>
#include <tapedeck/viewer/panels/inspector.h>
#include <tapedeck/viewer/start/start_page.h>

#include <QtGui/QFont>
#include <QtGui/QImage>
#include <QtWidgets/QDialog>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QMenu>
#include <QtWidgets/QMenuBar>

#include <cstdlib>
#include <string>

namespace tapedeck::viewer {
namespace {

constexpr int kGoldenWidth = 480, kGoldenHeight = 300;
constexpr int kTableWidth = 400, kTableHeight = 220;
constexpr double kMostDifferent = 0.005;  // of the pixels; letters and edges may fall a little differently

// A window that plans nothing unasked, so that its pictures do not depend on how far such plans have come.
class Golden : public ::testing::Test {
 protected:
  void SetUp() override {
    window.open(folder.write("step.graph", training_graph(16)), {-1, 60});
    window.wait_for_plan();
    QCoreApplication::processEvents();  // the window hears of the plans that are known, which the tradeoff draws
    const Graph& graph = window.session().model()->graph();
    for (ValueId v = 0; v < graph.value_count(); ++v)
      if (graph.value_name(v) == "h5") window.session().select_value(v);
    window.inspector().move(StepMove::to_node);
    window.inspector().finish();
  }
  void TearDown() override { apply_look(*qApp, {}); }
  // The panel alone, at one size, whatever the layout of the window is.
  QImage drawn_alone(const std::string& name) {
    const MainWindow::OpenPanel& open = window.panel(name);
    if (open.picture) return render_picture(*open.picture, kGoldenWidth, kGoldenHeight);
    return drawn_outside_its_dock(name, {kTableWidth, kTableHeight});
  }
  // A panel that is a widget of Qt.
  QImage drawn_outside_its_dock(const std::string& name, QSize size) {
    const MainWindow::OpenPanel& open = window.panel(name);
    open.widget->setParent(nullptr);
    const QImage drawn = drawn_outside(*open.widget, size);
    open.dock->setWidget(open.widget);
    open.widget->show();
    return drawn;
  }
  // A widget that is a window of its own.
  QImage drawn_outside(QWidget& widget, QSize size) {
    widget.setAttribute(Qt::WA_DontShowOnScreen);
    widget.resize(size);
    widget.show();
    for (int i = 0; i < 4; ++i) QCoreApplication::processEvents();
    const std::string path = folder.file("outside.png");
    export_widget(path, widget, size.width(), size.height());
    widget.hide();
    return QImage(QString::fromStdString(path)).convertToFormat(QImage::Format_RGB32);
  }
  // Letters of Qt depend on the settings of fonts of the machine; these are fixed here.
  static void use_plain_letters() {
    QFont font = qApp->font();
    font.setHintingPreference(QFont::PreferNoHinting);
    font.setStyleStrategy(static_cast<QFont::StyleStrategy>(QFont::PreferAntialias | QFont::NoSubpixelAntialias));
    qApp->setFont(font);
  }
  // With 16 steps of each channel, which makes the file a third as long, and moves no channel by more than 8 of 255.
  static void store(QImage picture, const std::string& path) {
    for (int y = 0; y < picture.height(); ++y)
      for (int x = 0; x < picture.width(); ++x) {
        const QRgb p = picture.pixel(x, y);
        picture.setPixel(x, y, qRgb(qRed(p) / 16 * 16 + 8, qGreen(p) / 16 * 16 + 8, qBlue(p) / 16 * 16 + 8));
      }
    if (colours_in(picture).size() <= 256) picture = picture.convertToFormat(QImage::Format_Indexed8);
    picture.save(QString::fromStdString(path), "PNG", 0);
  }
  void expect_golden(const std::string& panel, Theme theme) {
    window.set_look({theme, 1});
    use_plain_letters();
    window.finish(panel);
    expect_stored(drawn_alone(panel).convertToFormat(QImage::Format_RGB32), panel + "-" + theme_name(theme) + ".png");
  }
  static void expect_stored(const QImage& drawn, const std::string& name) {
    const std::string stored = std::string(TAPEDECK_SOURCE_DIR) + "/tests/viewer/golden/" + name;
    if (std::getenv("TAPEDECK_UPDATE_GOLDEN") != nullptr) store(drawn, stored);
    const QImage golden = QImage(QString::fromStdString(stored)).convertToFormat(QImage::Format_RGB32);
    ASSERT_FALSE(golden.isNull()) << stored;
    const double share = share_different(drawn, golden);
    EXPECT_LE(share, kMostDifferent) << name;
    if (share > kMostDifferent) drawn.save(QString::fromStdString(::testing::TempDir() + name));
  }

  Folder folder;
  MainWindow window{{Renderer::soft, "software", false, false}};
};

// One test, because the curves of the tradeoff are worked out once for each window.
TEST_F(Golden, EveryPanelInDarkAndLightAndThePicturesWithHighContrast) {
  for (const Theme theme : {Theme::dark, Theme::light})
    for (const Panel& panel : all_panels()) expect_golden(panel.name, theme);
  for (const char* panel : {"memory", "curve", "tradeoff", "graph"}) expect_golden(panel, Theme::high_contrast);
}

TEST_F(Golden, TheBodyOfALoopInTheGraphAndInTheMemoryPlanAndItsDetails) {
  window.open(folder.write("loops.graph", graph_with_loops()));
  window.wait_for_plan();
  const Graph& graph = window.session().model()->graph();
  NodeId loop = 0;
  while (std::string(graph.nodes[static_cast<std::size_t>(loop)].op->name) != "scan") ++loop;
  for (const Theme theme : {Theme::dark, Theme::light}) {
    window.set_look({theme, 1});
    use_plain_letters();
    window.session().select_node(loop);
    const QImage details = drawn_outside_its_dock("details", {560, 540});
    expect_stored(details, std::string("loop-details-") + theme_name(theme) + ".png");
    window.graph().enter(loop, 0);
    window.finish("graph");
    const QImage drawn = render_picture(window.graph(), 640, 360).convertToFormat(QImage::Format_RGB32);
    expect_stored(drawn, std::string("loop-") + theme_name(theme) + ".png");
    window.memory().leave(0);
    ASSERT_TRUE(window.memory().enter_selection());
    window.finish("memory");
    const QImage memory = render_picture(window.memory(), 640, 360).convertToFormat(QImage::Format_RGB32);
    expect_stored(memory, std::string("loop-memory-") + theme_name(theme) + ".png");
  }
}

TEST_F(Golden, TheStartPage) {
  const QStringList recent{QStringLiteral("/models/resnet50.tape"), QStringLiteral("/models/gpt2.tape")};
  for (const Theme theme : {Theme::dark, Theme::light, Theme::high_contrast}) {
    window.set_look({theme, 1});
    use_plain_letters();
    StartPage page({[](const std::string&, const Budget&, bool) {}, [] {}, [&] { return recent; }, [](const std::string&) {},
                    [] {}, [] { return std::string("recordings"); }, [] {}});
    expect_stored(drawn_outside(page, {760, 560}), std::string("start-") + theme_name(theme) + ".png");
  }
}

TEST_F(Golden, TheSheetOfKeysAndAMenu) {
  window.resize(1280, 720);
  for (const Theme theme : {Theme::dark, Theme::light, Theme::high_contrast}) {
    window.set_look({theme, 1});
    use_plain_letters();
    show_key_sheet(window);
    auto* sheet = window.findChild<QDialog*>(QStringLiteral("keys"));
    ASSERT_NE(sheet, nullptr);
    expect_stored(drawn_outside(*sheet, {800, 420}), std::string("keys-") + theme_name(theme) + ".png");
    delete sheet;
    QMenu* menu = window.menuBar()->actions()[2]->menu();
    expect_stored(drawn_outside(*menu, menu->sizeHint()), std::string("menu-") + theme_name(theme) + ".png");
  }
}

TEST_F(Golden, TheComparisonOfTwoPlans) {
  const auto captured = window.session().document()->captured;
  const ComparedPlan now{"now", window.session().shared_model(), captured};
  window.set_budget({-1, 100});
  window.wait_for_plan();
  const ComparedPlan whole{"before", window.session().shared_model(), captured};
  for (const bool overlay : {false, true}) {
    window.set_look({overlay ? Theme::light : Theme::dark, 1});
    CompareLook look;
    look.overlay = overlay;
    ComparePicture picture(whole, now, look);
    expect_stored(render_picture(picture, 900, 560).convertToFormat(QImage::Format_RGB32),
                  overlay ? "compare-overlay-light.png" : "compare-dark.png");
  }
}

TEST_F(Golden, TheBoxOfARange) {
  window.session().select_range({20, 40});
  for (const Theme theme : {Theme::dark, Theme::light}) {
    window.set_look({theme, 1});
    const QImage drawn = render_picture(window.curve(), 700, kGoldenHeight).convertToFormat(QImage::Format_RGB32);
    expect_stored(drawn, std::string("range-") + theme_name(theme) + ".png");
  }
}

TEST_F(Golden, TheMemoryOfARunningProgram) {
  LiveFolder program(folder.file("live"));
  program.add_texts();
  program.add_calls(0, 90);
  for (std::uint64_t s = 1; s <= 4; ++s) program.add(live::StepRecord{s * 20, 1, 100, s});
  const LiveSource source(program.path());
  source.wait_until_read();
  for (const Theme theme : {Theme::dark, Theme::light}) {
    window.set_look({theme, 1});
    LivePicture picture(source);
    const QImage drawn = render_picture(picture, kGoldenWidth, kGoldenHeight).convertToFormat(QImage::Format_RGB32);
    expect_stored(drawn, std::string("live-") + theme_name(theme) + ".png");
  }
}

// The comparison finds a picture in which one value in fifty is another.
TEST_F(Golden, ADifferentPictureIsFound) {
  const QImage before = render_picture(window.memory(), kGoldenWidth, kGoldenHeight);
  window.set_budget({-1, 100});
  window.wait_for_plan();
  EXPECT_GT(share_different(before, render_picture(window.memory(), kGoldenWidth, kGoldenHeight)), kMostDifferent);
  EXPECT_EQ(share_different(before, before), 0);
}

}  // namespace
}  // namespace tapedeck::viewer
