// Finds the window of a comparison, which belongs to no other window.
#pragma once

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

}  // namespace tapedeck::viewer
