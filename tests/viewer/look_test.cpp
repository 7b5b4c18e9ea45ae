// Tests the look of the window: themes and scale switched live, small windows, recent files.
#include <tapedeck/tests/viewer/compare/find_compare.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/options.h>
#include <tapedeck/viewer/screenshot.h>
#include <tapedeck/viewer/settings.h>

#include <QtCore/QDir>
#include <QtCore/QMimeData>
#include <QtGui/QDropEvent>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QMenu>
#include <QtWidgets/QTabBar>
#include <QtWidgets/QToolButton>

#include <algorithm>

namespace tapedeck::viewer {
namespace {

// Puts the normal look back at the end of a test.
class LookWindow : public Window {
 protected:
  void TearDown() override { apply_look(*qApp, {}); }
  QImage picture() {
    settle_all();
    return window.grab().toImage().convertToFormat(QImage::Format_RGB32);
  }
};

double lightness(const QImage& image) {
  double sum = 0;
  for (int y = 0; y < image.height(); y += 4)
    for (int x = 0; x < image.width(); x += 4) sum += qGray(image.pixel(x, y));
  return sum / (255.0 * ((image.width() + 3) / 4) * ((image.height() + 3) / 4));
}

int count_pixels(const QImage& image, Colour colour) {
  int pixels = 0;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) pixels += image.pixel(x, y) == qRgb(colour.r, colour.g, colour.b) ? 1 : 0;
  return pixels;
}

TEST_F(LookWindow, ThemesSwitchWindowsAndPicturesAtOnce) {
  window.session().select_value(value("h5"));
  const QImage dark = picture();
  window.set_look({Theme::light, 1});
  const QImage light = picture();
  window.set_look({Theme::high_contrast, 1});
  const QImage high = picture();
  EXPECT_LT(lightness(high), lightness(dark));
  EXPECT_GT(lightness(light), lightness(dark) + 0.4);
  EXPECT_GT(count_pixels(light, colours_of(Theme::light).plot), 10000);
  EXPECT_EQ(count_pixels(light, colours_of(Theme::dark).plot), 0);
  EXPECT_EQ(count_pixels(light, colours_of(Theme::dark).canvas), 0);
  EXPECT_EQ(count_pixels(light, colours_of(Theme::dark).window), 0);
  EXPECT_EQ(count_pixels(high, colours_of(Theme::dark).window), 0);
  EXPECT_TRUE(window.details().toHtml().contains(QString::fromStdString(html_colour(colours_of(Theme::high_contrast).faint))));
  window.set_look({Theme::dark, 1});
  EXPECT_EQ(picture(), dark);
}

// A style sheet would draw the same, and take a third of the time in which a window is made and shown.
TEST_F(LookWindow, FramesHeadersAndTitlesHaveTheColoursOfTheThemeWithoutAStyleSheet) {
  const auto is_of = [](QRgb pixel, Colour colour) { return pixel == qRgb(colour.r, colour.g, colour.b); };
  for (const Theme theme : {Theme::light, Theme::high_contrast, Theme::dark}) {
    window.set_look({theme, 1});
    const QImage image = picture();
    const Colours& colours = colours_of(theme);
    const auto pixel = [&](const QWidget& widget, QPoint at) { return image.pixel(widget.mapTo(&window, at)); };
    const RowsView& table = *window.nodes().table();
    const QHeaderView& header = *window.nodes().table()->header();
    EXPECT_TRUE(is_of(pixel(table, {0, 0}), colours.edge));
    EXPECT_TRUE(is_of(pixel(*window.nodes().filter(), {0, 0}), colours.edge));
    EXPECT_TRUE(is_of(pixel(*header.viewport(), {1, 1}), colours.panel));
    EXPECT_TRUE(is_of(pixel(*header.viewport(), {header.sectionSize(0) - 1, 5}), colours.edge));
    EXPECT_TRUE(is_of(pixel(*window.panel("curve").dock, {2, 2}), colours.panel));
  }
  EXPECT_EQ(qApp->styleSheet(), QString());
  for (const QWidget* widget : window.findChildren<QWidget*>()) EXPECT_EQ(widget->styleSheet(), QString());
}

TEST_F(LookWindow, TheScaleChangesTextsPicturesAndTables) {
  window.resize(1600, 900);  // at twice the scale the picture still has room for the value
  settle_all();
  const int column = window.nodes().table()->header()->sectionSize(1);
  const int row = window.nodes().table()->rowHeight(0);
  window.set_look({Theme::dark, 2});
  settle_all();
  EXPECT_EQ(qApp->font().pixelSize(), 24);
  EXPECT_EQ(window.nodes().table()->header()->sectionSize(1), 2 * column);
  EXPECT_GE(window.nodes().table()->rowHeight(0), row * 3 / 2);
  // A picture has its own units: at twice the scale a place of it is twice as far from the corner of the canvas.
  const ImVec2 place = *window.memory().place_of(value("h3"));
  click(window.memory_canvas(), ImVec2(2 * place.x, 2 * place.y));
  expect_selected_everywhere(value("h3"));
}

TEST_F(LookWindow, TheScaleHasEnds) {
  window.set_look({Theme::dark, 9});
  EXPECT_EQ(look_in_use().scale, kMostScale);
  window.set_look({Theme::dark, 0.1});
  EXPECT_EQ(look_in_use().scale, kLeastScale);
  EXPECT_EQ(stepped_scale(kLeastScale, -1), kLeastScale);
  EXPECT_EQ(stepped_scale(kMostScale, 1), kMostScale);
  double scale = kLeastScale;
  for (int i = 0; i < 20; ++i) scale = stepped_scale(scale, 1);
  EXPECT_EQ(scale, kMostScale);
}

TEST(Look, AShotHasTheThemeOfTheOptions) {
  Options options;
  std::string error;
  ASSERT_TRUE(parse_options({"a.tape", "--theme", "light", "--scale", "150%"}, &options, &error)) << error;
  EXPECT_EQ(options.theme, Theme::light);
  EXPECT_EQ(options.scale, 1.5);
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"a", "--theme", "pink"},
                                              {"a", "--scale", "74"},
                                              {"a", "--scale", "301"},
                                              {"a", "--scale", "x"},
                                              {"a", "--scale="}}) {
    options = {};
    EXPECT_FALSE(parse_options(bad, &options, &error)) << bad.back();
  }
}

// ---- layout ----

struct SmallWindow {
  SmallWindow(int width, int height) {
    window.resize(width, height);
    window.show();
    window.open(folder.write("step.graph", training_graph(6)));
    window.wait_for_plan();
    settle(window.memory_canvas());
  }
  Folder folder;
  MainWindow window{{Renderer::soft, "software", false, false}};
};

TEST(Layout, ASmallWindowLeavesMostOfItToTheMemoryPlan) {
  SmallWindow small(800, 600);
  MainWindow& window = small.window;
  EXPECT_EQ(window.size(), QSize(800, 600));
  EXPECT_GE(window.memory_canvas().width(), 780);
  EXPECT_GE(window.memory_canvas().height(), 260);
  for (const Panel& panel : all_panels()) EXPECT_TRUE(window.panel_is_open(panel.name)) << panel.name;
  // The other panels are tabs in one place.
  EXPECT_EQ(window.tabifiedDockWidgets(window.panel("curve").dock).size(),
            static_cast<int>(window.findChildren<QDockWidget*>().size()) - 1);
  EXPECT_FALSE(window.curve_canvas().visibleRegion().isEmpty());
  window.show_panel("details");
  EXPECT_TRUE(spin_until([&] { return window.curve_canvas().visibleRegion().isEmpty(); }));
}

// The titles of the tabs are whole; arrows bring those into view for which there is no room.
TEST(Layout, TheTitlesOfTabsAreWholeInASmallWindow) {
  SmallWindow small(800, 600);
  MainWindow& window = small.window;
  QTabBar* bar = nullptr;
  for (QTabBar* one : window.findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly))
    if (one->isVisible()) bar = one;
  ASSERT_NE(bar, nullptr);
  ASSERT_EQ(bar->count(), static_cast<int>(all_panels().size()) - 1);
  const auto in_view = [&](int tab) { return bar->rect().contains(bar->tabRect(tab)); };
  ASSERT_TRUE(spin_until([&] { return bar->elideMode() == Qt::ElideNone; }));
  for (int tab = 0; tab < bar->count(); ++tab)
    EXPECT_GT(bar->tabRect(tab).width(), bar->fontMetrics().horizontalAdvance(bar->tabText(tab))) << tab;
  const int last = bar->count() - 1;
  ASSERT_FALSE(in_view(last));
  QToolButton* arrow = nullptr;
  for (QToolButton* button : bar->findChildren<QToolButton*>())
    if (button->isVisible() && (arrow == nullptr || button->x() > arrow->x())) arrow = button;
  ASSERT_NE(arrow, nullptr);
  for (int clicks = 0; clicks < bar->count() && arrow->isEnabled(); ++clicks) click_widget(*arrow);
  ASSERT_TRUE(in_view(last));
  const QPointF at = QRectF(bar->tabRect(last)).center();
  for (const QEvent::Type type : {QEvent::MouseButtonPress, QEvent::MouseButtonRelease}) {
    QMouseEvent event(type, at, bar->mapToGlobal(at), Qt::LeftButton,
                      type == QEvent::MouseButtonPress ? Qt::LeftButton : Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(bar, &event);
  }
  EXPECT_TRUE(spin_until([&] { return !window.panel(all_panels().back().name).widget->visibleRegion().isEmpty(); }));
}

// Qt gives a tab its title as the tooltip, again and again.
TEST(Layout, ATabSaysWhatItsPanelShows) {
  SmallWindow small(1600, 900);
  MainWindow& window = small.window;
  const auto all_explain = [&] {
    int tabs = 0;
    for (const QTabBar* bar : window.findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly))
      for (int tab = 0; tab < bar->count(); ++tab) {
        const auto& panels = all_panels();
        const auto panel = std::find_if(panels.begin(), panels.end(),
                                        [&](const Panel& one) { return QString::fromLatin1(one.title) == bar->tabText(tab); });
        if (panel == panels.end() || bar->tabToolTip(tab) != QString::fromLatin1(panel->sentence)) return 0;
        ++tabs;
      }
    return tabs;
  };
  EXPECT_TRUE(spin_until([&] { return all_explain() == static_cast<int>(all_panels().size()) - 1; }));
  window.resize(800, 600);
  window.reset_layout();
  EXPECT_TRUE(spin_until([&] { return all_explain() == static_cast<int>(all_panels().size()) - 1; }));
}

TEST(Layout, ResetLayoutFitsTheSizeOfTheWindow) {
  SmallWindow small(800, 600);
  MainWindow& window = small.window;
  window.resize(1600, 900);
  window.reset_layout();
  EXPECT_TRUE(window.tabifiedDockWidgets(window.panel("curve").dock).contains(window.panel("tradeoff").dock));
  ASSERT_TRUE(spin_until([&] { return window.memory_canvas().width() < 1200; }));
  EXPECT_GE(window.memory_canvas().width(), 800);
  window.resize(800, 600);
  window.reset_layout();
  ASSERT_TRUE(spin_until([&] { return window.memory_canvas().width() >= 780; }));
}

// ---- files ----

TEST(RecentFiles, AreAbsolutePathsWithoutDuplicates) {
  const QString before = QDir::currentPath();
  Folder folder;
  QDir::setCurrent(QString::fromStdString(folder.file("")));
  user_settings().setValue(QStringLiteral("recent"), QStringList{QStringLiteral("old.tape")});
  EXPECT_TRUE(recent_files().isEmpty());
  remember_recent_file("a.tape");
  remember_recent_file("b.tape");
  remember_recent_file(folder.file("a.tape"));
  QDir::setCurrent(before);
  ASSERT_EQ(recent_files().size(), 2);
  EXPECT_EQ(recent_files()[0].toStdString(), folder.file("a.tape"));
  EXPECT_EQ(recent_files()[1].toStdString(), folder.file("b.tape"));
  for (int i = 0; i < 20; ++i) remember_recent_file("/x/" + std::to_string(i));
  EXPECT_EQ(recent_files().size(), 9);
  EXPECT_EQ(recent_files()[0], QStringLiteral("/x/19"));
  user_settings().remove(QStringLiteral("recent"));
}

TEST(RecentFiles, TheMenuOpensThemAgain) {
  Folder folder;
  const std::string first = folder.write("a.graph", training_graph(3)), second = folder.write("b.graph", training_graph(4));
  MainWindow window({Renderer::soft, "software", true});
  for (const std::string& path : {first, second}) {
    window.open(path);
    window.wait_for_plan();
  }
  QMenu* recent = nullptr;
  for (auto* menu : window.findChildren<QMenu*>())
    if (menu->title() == QStringLiteral("Open recent")) recent = menu;
  ASSERT_NE(recent, nullptr);
  Q_EMIT recent->aboutToShow();
  ASSERT_EQ(recent->actions().size(), 2);
  EXPECT_EQ(recent->actions()[0]->text().toStdString(), second);
  recent->actions()[1]->trigger();
  window.wait_for_plan();
  EXPECT_EQ(window.session().document()->path, first);
  user_settings().remove(QStringLiteral("recent"));
}

TEST(Settings, TheLookIsKept) {
  remember_look({Theme::high_contrast, 1.25});
  EXPECT_EQ(remembered_look(), (Look{Theme::high_contrast, 1.25}));
  user_settings().setValue(QStringLiteral("theme"), QStringLiteral("pink"));
  user_settings().setValue(QStringLiteral("scale"), 99);
  EXPECT_EQ(remembered_look(), Look());
  user_settings().remove(QStringLiteral("theme"));
  user_settings().remove(QStringLiteral("scale"));
}

void drop(MainWindow& window, const std::vector<std::string>& files) {
  QMimeData data;
  QList<QUrl> urls;
  for (const std::string& file : files) urls << QUrl::fromLocalFile(QString::fromStdString(file));
  data.setUrls(urls);
  QDragEnterEvent enter(QPoint(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &enter);
  EXPECT_TRUE(enter.isAccepted());
  QDropEvent event(QPointF(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &event);
}

TEST_F(Window, ADroppedFileIsOpenedAndASecondOneCompared) {
  const std::string a = folder.write("a.graph", training_graph(3)), b = folder.write("b.graph", training_graph(5));
  drop(window, {a});
  window.wait_for_plan();
  EXPECT_EQ(window.session().document()->path, a);
  EXPECT_EQ(find_compare(), nullptr);
  drop(window, {b, a});
  EXPECT_TRUE(spin_until([] { return find_compare() != nullptr; }));
  EXPECT_EQ(window.session().document()->path, b);
  if (QWidget* other = find_compare()) other->close();
}

}  // namespace
}  // namespace tapedeck::viewer
