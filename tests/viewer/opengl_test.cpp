// The viewer with OpenGL, in real windows. These tests need an X display: opengl_test.sh runs them under Xvfb, where Mesa draws
// OpenGL on a machine without a GPU. Without a display they are skipped.
//
//   the window of this process, rasteriser --> screen --> expected
//   the window of this process, OpenGL ------> screen --+
//   the program, OpenGL ---------------------> screen --+--> within the tolerance of expected, never blank
#include <tapedeck/tests/viewer/pictures.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <QtCore/QProcess>
#include <QtGui/QCursor>
#include <QtGui/QOpenGLContext>
#include <QtGui/QOpenGLFunctions>
#include <QtGui/QScreen>
#include <QtOpenGLWidgets/QOpenGLWidget>

#include <string>

namespace tapedeck::viewer {
namespace {

constexpr int kOpenGlWidth = 1000, kOpenGlHeight = 640;
constexpr double kMostDifferentOpenGl = 0.01;  // of the pixels: edges of lines and letters fall differently
constexpr int kVisible = 48;                   // of 255, in any channel

// The pixels of the screen where the window is.
QImage on_screen(const QRect& place) {
  return QGuiApplication::primaryScreen()
      ->grabWindow(0, place.x(), place.y(), place.width(), place.height())
      .toImage()
      .convertToFormat(QImage::Format_RGB32);
}

class OpenGl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (QGuiApplication::platformName() != QStringLiteral("xcb"))
      GTEST_SKIP() << "there is no X display; opengl_test.sh brings one";
    ASSERT_EQ(choose_renderer(Renderer::gl, &name), Renderer::gl) << name;
    path = folder.write("step.graph", training_graph(12));
    const QRect screen = QGuiApplication::primaryScreen()->geometry();
    QCursor::setPos(screen.right(), screen.bottom());  // over no window: a tooltip would hide a part of it
  }
  void show(MainWindow& window) {
    window.setGeometry(0, 0, kOpenGlWidth, kOpenGlHeight);
    window.show();
    window.open(path, {-1, 60});
    window.wait_for_plan();
    settle(window);
  }
  // Until every canvas has drawn its last frame and Qt has put it on the screen.
  void settle(MainWindow& window) {
    for (const char* name : {"memory", "curve"}) viewer::settle(*window.panel(name).canvas);
    for (int i = 0; i < 10; ++i) QCoreApplication::processEvents();
  }
  static QRect place_of(const QWidget& widget) { return {widget.mapToGlobal(QPoint(0, 0)), widget.size()}; }
  // The software picture of the window on the same screen, with the same words in the status bar.
  QImage expected(const Look& look = {}) {
    MainWindow window({Renderer::soft, name, false, false});
    show(window);
    window.set_look(look);
    settle(window);
    return on_screen(place_of(window));
  }

  Folder folder;
  std::string path, name;
};

TEST_F(OpenGl, AWindowShowsThePictureOfTheRasteriser) {
  for (const Look& look : {Look{}, Look{Theme::light, 2}}) {
    const QImage wanted = expected(look);
    MainWindow window({Renderer::gl, name, false, false});
    show(window);
    window.set_look(look);
    settle(window);
    const QImage shown = on_screen(place_of(window));
    EXPECT_LE(share_different(shown, wanted, kVisible), kMostDifferentOpenGl) << theme_name(look.theme);
    for (const char* panel : {"memory", "curve"}) {
      const Canvas& canvas = *window.panel(panel).canvas;
      EXPECT_GT(colours_in(on_screen(place_of(canvas))).size(), 20u) << panel;
      auto* surface = canvas.findChild<QOpenGLWidget*>();
      ASSERT_NE(surface, nullptr) << panel;
      ASSERT_TRUE(surface->isValid()) << panel;
      surface->makeCurrent();
      EXPECT_EQ(surface->context()->functions()->glGetError(), GLenum{GL_NO_ERROR}) << panel;  // of all frames so far
      surface->doneCurrent();
    }
    window.close();
    window.set_look({});
  }
}

// The mouse reaches the picture through the surface, and the picture follows.
TEST_F(OpenGl, AWheelZoomsThePicture) {
  MainWindow window({Renderer::gl, name, false, false});
  show(window);
  const QRect place = place_of(window.memory_canvas());
  const QImage before = on_screen(place);
  wheel(window.memory_canvas(), ImVec2(300, 200), 4);
  settle(window);
  EXPECT_GT(share_different(before, on_screen(place), kVisible), 0.05);
}

#ifdef TAPEDECK_VIEWER_PROGRAM
TEST_F(OpenGl, TheProgramDrawsAndLeavesInOrder) {
  const QImage wanted = expected();
  QProcess program;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("xcb"));
  environment.insert(QStringLiteral("XDG_CONFIG_HOME"), QString::fromStdString(folder.file("settings")));
  program.setProcessEnvironment(environment);
  program.start(QStringLiteral(TAPEDECK_VIEWER_PROGRAM),
                {QString::fromStdString(path), QStringLiteral("--budget"), QStringLiteral("60%"), QStringLiteral("--renderer"),
                 QStringLiteral("gl"), QStringLiteral("--size"), QStringLiteral("%1x%2").arg(kOpenGlWidth).arg(kOpenGlHeight)});
  ASSERT_TRUE(program.waitForStarted());
  QImage shown;
  double share = 1;
  EXPECT_TRUE(spin_until([&] {
    shown = on_screen({0, 0, kOpenGlWidth, kOpenGlHeight});
    share = share_different(shown, wanted, kVisible);
    return share <= kMostDifferentOpenGl || program.state() == QProcess::NotRunning;
  })) << share;
  EXPECT_LE(share, kMostDifferentOpenGl);
  EXPECT_GT(colours_in(shown).size(), 20u);
  program.terminate();
  ASSERT_TRUE(program.waitForFinished());
  EXPECT_EQ(program.exitStatus(), QProcess::NormalExit);
  EXPECT_EQ(program.exitCode(), kOk);
  EXPECT_EQ(program.readAllStandardError().toStdString(), "");
}
#endif

}  // namespace
}  // namespace tapedeck::viewer
