// A window on the offscreen platform, and the events of a person: mouse, wheel, keyboard.
#pragma once

#include <tapedeck/tests/viewer/folder.h>
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/viewer/window.h>

#include <gtest/gtest.h>
#include <QtCore/QElapsedTimer>
#include <QtCore/QTimer>
#include <QtGui/QMouseEvent>
#include <QtGui/QWheelEvent>
#include <QtGui/QWindow>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QSlider>

#include <functional>
#include <string>

// Qt's own tests send keys by this function: it is exported and declared in no header of its own.
Q_GUI_EXPORT bool qt_handleKeyEvent(QWindow* window, QEvent::Type type, int key, Qt::KeyboardModifiers modifiers,
                                    const QString& text, bool repeated, ushort count);

namespace tapedeck::viewer {

// Handles events until `done()`, for at most a minute. Between events it sleeps, so that the threads it waits for have the
// processors; the timer is for a condition that becomes true without an event.
inline bool spin_until(const std::function<bool()>& done) {
  QElapsedTimer clock;
  clock.start();
  QTimer tick;
  tick.start(2);
  while (!done() && clock.elapsed() < 60000)
    QCoreApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents);
  return done();
}

inline void settle(Canvas& canvas) {
  EXPECT_TRUE(spin_until([&] { return canvas.settled(); }));
}

inline void send_mouse(Canvas& canvas, QEvent::Type type, ImVec2 at, Qt::MouseButton button = Qt::NoButton) {
  const QPointF p(static_cast<double>(at.x), static_cast<double>(at.y));
  QMouseEvent event(type, p, canvas.mapToGlobal(p), button, type == QEvent::MouseButtonPress ? button : Qt::NoButton,
                    Qt::NoModifier);
  QApplication::sendEvent(&canvas, &event);
}

// Sends press and release without a frame between them, as a real mouse may do.
inline void click(Canvas& canvas, ImVec2 at) {
  send_mouse(canvas, QEvent::MouseMove, at);
  send_mouse(canvas, QEvent::MouseButtonPress, at, Qt::LeftButton);
  send_mouse(canvas, QEvent::MouseButtonRelease, at, Qt::LeftButton);
  settle(canvas);
}

inline void wheel(Canvas& canvas, ImVec2 at, int steps, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
  const QPointF p(static_cast<double>(at.x), static_cast<double>(at.y));
  QWheelEvent event(p, canvas.mapToGlobal(p), QPoint(), QPoint(0, 120 * steps), Qt::NoButton, modifiers, Qt::NoScrollPhase,
                    false);
  QApplication::sendEvent(&canvas, &event);
  settle(canvas);
}

// A click on a button or another widget of Qt, in its middle.
inline void click_widget(QWidget& widget) {
  const QPointF p = QRectF(widget.rect()).center();
  for (const QEvent::Type type : {QEvent::MouseButtonPress, QEvent::MouseButtonRelease}) {
    QMouseEvent event(type, p, widget.mapToGlobal(p), Qt::LeftButton,
                      type == QEvent::MouseButtonPress ? Qt::LeftButton : Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(&widget, &event);
  }
}

// A key of the real keyboard: shortcuts, then the widget with the focus.
inline void press(QWidget& widget, int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier, const QString& text = {}) {
  QWindow* window = widget.window()->windowHandle();
  for (QEvent::Type type : {QEvent::KeyPress, QEvent::KeyRelease})
    qt_handleKeyEvent(window, type, key, modifiers, text, false, 1);
}

// Types letters of the English keyboard.
inline void type(QWidget& widget, const std::string& text) {
  for (char c : text) {
    const bool capital = c >= 'A' && c <= 'Z';
    press(widget, c >= 'a' && c <= 'z' ? c - 'a' + Qt::Key_A : c, capital ? Qt::ShiftModifier : Qt::NoModifier,
          QString(QLatin1Char(c)));
  }
}

// A shown window with a small training step. It plans budgets that nobody asked for only if it `prepares`: few tests need them.
class Window : public ::testing::Test {
 protected:
  explicit Window(bool prepares = false) : window({Renderer::soft, "software", false, prepares}) {}
  // The window is shown once it has its plan: a window without one would be laid out and painted for nothing.
  void SetUp() override {
    window.resize(1280, 720);
    window.open(folder.write("step.graph", training_graph(16)));
    window.wait_for_plan();
    activate();
    settle_all();
  }
  void activate() {  // only the active window has shortcuts
    window.show();
    window.activateWindow();
    ASSERT_TRUE(spin_until([&] { return window.isActiveWindow(); }));
  }
  void settle_all() {
    settle(window.memory_canvas());
    settle(window.curve_canvas());
  }
  const Graph& graph() { return window.session().model()->graph(); }
  ValueId value(const std::string& name) {
    for (ValueId v = 0; v < graph().value_count(); ++v)
      if (graph().value_name(v) == name) return v;
    return kNone;
  }
  void expect_selected_everywhere(ValueId v) {
    const NodeId n = graph().values[v].node;
    EXPECT_EQ(window.session().selection().value, v);
    EXPECT_EQ(window.session().selection().node, n);
    EXPECT_EQ(window.nodes().node_at(window.nodes().table()->currentIndex().row()), n);
    EXPECT_TRUE(window.details().toPlainText().startsWith(QString::fromStdString("%" + graph().value_name(v))));
  }

  Folder folder;
  MainWindow window;
};

}  // namespace tapedeck::viewer
