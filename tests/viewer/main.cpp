// Runs the tests of the viewer. They need no display: Qt uses its offscreen platform.
#include <tapedeck/viewer/messages.h>
#include <tapedeck/viewer/theme.h>

#include <gtest/gtest.h>
#include <QtCore/QStandardPaths>
#include <QtWidgets/QApplication>

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  testing::InitGoogleTest(&argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  tapedeck::viewer::Application app(argc, argv);
  tapedeck::viewer::apply_look(app, {});
  return RUN_ALL_TESTS();
}
