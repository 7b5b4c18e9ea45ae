// Tests files that are dropped where another widget could take them: on a field, a spin box, a text, a floating panel.
#include <tapedeck/tests/viewer/ui_window.h>

#include <QtCore/QMimeData>
#include <QtCore/QUrl>
#include <QtGui/QDropEvent>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QStatusBar>

namespace tapedeck::viewer {
namespace {

class DropWindow : public Window {
 protected:
  // As file managers do it: the file as a URL, and as text, too.
  static bool drop_on(QWidget& child, const std::string& path) {
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(QString::fromStdString(path))});
    data.setText(QString::fromStdString("file://" + path));
    QWidget& top = *child.window();
    const QPoint at = child.mapTo(&top, child.rect().center());
    QDragEnterEvent enter(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(top.windowHandle(), &enter);
    QDragMoveEvent move(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(top.windowHandle(), &move);
    QDropEvent drop(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(top.windowHandle(), &drop);
    return enter.isAccepted();
  }
  void expect_opened(QWidget& child, const char* where) {
    const std::string path = folder.write(std::to_string(++files_) + ".graph", training_graph(2));
    EXPECT_TRUE(drop_on(child, path)) << where;
    window.wait_for_plan();
    EXPECT_EQ(window.session().document()->path, path) << where;
  }

 private:
  int files_ = 0;
};

TEST_F(DropWindow, AFileOpensWhereverItIsDropped) {
  expect_opened(*window.nodes().filter(), "the filter");
  EXPECT_EQ(window.nodes().filter()->text(), QString());
  expect_opened(*window.findChild<QDoubleSpinBox*>(), "the budget");
  expect_opened(*window.details().viewport(), "the details");
  expect_opened(window.slider(), "the slider");
  expect_opened(*window.statusBar(), "the status bar");
}

TEST_F(DropWindow, AFileOpensOnAPanelThatFloats) {
  QDockWidget& dock = *window.panel("curve").dock;
  dock.setFloating(true);
  dock.resize(500, 300);
  ASSERT_TRUE(spin_until([&] { return dock.windowHandle() != nullptr && dock.windowHandle()->isExposed(); }));
  expect_opened(window.curve_canvas(), "a floating picture");
  dock.setFloating(false);
}

TEST_F(DropWindow, UndoSaysThatThereIsNothingToTakeBack) {
  press(window, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(window.statusBar()->currentMessage(), QStringLiteral("There is no wish to take back."));
  press(window, Qt::Key_Y, Qt::ControlModifier);
  EXPECT_EQ(window.statusBar()->currentMessage(), QStringLiteral("No wish was taken back."));
  window.set_wishes({{WishKind::keep, "h3"}});
  window.wait_for_plan();
  press(window, Qt::Key_Z, Qt::ControlModifier);
  window.wait_for_plan();
  EXPECT_TRUE(window.session().wishes().empty());
  press(window, Qt::Key_Y, Qt::ControlModifier);
  window.wait_for_plan();
  EXPECT_EQ(window.session().wishes().size(), 1u);
}

}  // namespace
}  // namespace tapedeck::viewer
