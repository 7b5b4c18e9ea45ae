// Runs the tests of the viewer. They need no display: Qt uses its offscreen platform, unless the environment names the one of X
// for the tests of OpenGL (opengl_test.sh).
#include <tapedeck/tests/viewer/shared_plans.h>

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/drawing/theme.h>

#include <gtest/gtest.h>
#include <QtCore/QSettings>
#include <QtCore/QTemporaryDir>
#include <QtWidgets/QApplication>

int main(int argc, char** argv) {
  if (qgetenv("QT_QPA_PLATFORM") != "xcb") qputenv("QT_QPA_PLATFORM", "offscreen");
  ::testing::InitGoogleTest(&argc, argv);
  const QTemporaryDir settings;  // the settings of the person who runs the tests stay as they are
  QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, settings.path());
  qputenv("XDG_DATA_HOME", settings.path().toUtf8());  // and so do their recordings
  tapedeck::viewer::prepare_opengl();
  tapedeck::viewer::Application app(argc, argv);
  tapedeck::viewer::apply_look(app, {});
  tapedeck::viewer::default_source() = tapedeck::viewer::share_plans;
  return RUN_ALL_TESTS();
}
