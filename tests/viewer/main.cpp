// Runs the tests of the viewer. They need no display: Qt uses its offscreen platform.
#include <tapedeck/viewer/messages.h>
#include <tapedeck/viewer/theme.h>

#include <gtest/gtest.h>
#include <QtCore/QSettings>
#include <QtCore/QTemporaryDir>
#include <QtWidgets/QApplication>

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  testing::InitGoogleTest(&argc, argv);
  const QTemporaryDir settings;  // the settings of the person who runs the tests stay as they are
  QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, settings.path());
  tapedeck::viewer::Application app(argc, argv);
  tapedeck::viewer::apply_look(app, {});
  return RUN_ALL_TESTS();
}
