// Finds the window of a comparison, which belongs to no other window.
#pragma once

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/compare/delta_panel.h>

#include <QtWidgets/QApplication>
#include <QtWidgets/QWidget>

namespace tapedeck::viewer {

// The shown window of a comparison; null if there is none.
inline QWidget* find_compare() {
  const QWidgetList all = QApplication::topLevelWidgets();
  for (QWidget* window : all)
    if (window->windowTitle() == QStringLiteral("Compare - Tapedeck") && window->isVisible()) return window;
  return nullptr;
}

// Whether the plans of such a window are compared, and its pictures and its table are there.
inline bool is_compared(const QWidget* window) {
  return window != nullptr && window->findChild<QWidget*>(QStringLiteral("pictures")) != nullptr;
}
// The parts of such a window. REQUIRES is_compared().
inline Canvas& compare_canvas(const QWidget& window) {
  return dynamic_cast<Canvas&>(*window.findChild<QWidget*>(QStringLiteral("pictures")));
}
inline ComparePicture& compare_picture(const QWidget& window) {
  return dynamic_cast<ComparePicture&>(compare_canvas(window).picture());
}
inline DeltaPanel& compare_table(const QWidget& window) {
  return dynamic_cast<DeltaPanel&>(*window.findChild<QWidget*>(QStringLiteral("differences")));
}

}  // namespace tapedeck::viewer
