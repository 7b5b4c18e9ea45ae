// Writes what is shown as a file. The ending of the name chooses the format: PNG has pixels; SVG and PDF have shapes and text.
// Equal input gives equal bytes.
#pragma once

#include <tapedeck/viewer/drawing/picture.h>

#include <QtCore/QList>

#include <string>

class QWidget;

namespace tapedeck::viewer {

// The file appears whole or not at all. REQUIRES picture_name_problem(path) to be empty. Throws a FileError.
// A picture without a window: width x height pixels, `scale` pixels per unit.
void export_picture(const std::string& path, Picture& picture, int width, int height, double scale);
// The upper left width x height pixels of a shown widget, with all that can be seen in it.
void export_widget(const std::string& path, QWidget& widget, int width, int height);
// The same of a window, with its open dialogs in its middle, the newest one on top.
void export_window(const std::string& path, QWidget& window, int width, int height);
// The open dialogs of a window, the oldest first. They are windows of their own, in front of it.
QList<QWidget*> open_dialogs(const QWidget& window);

}  // namespace tapedeck::viewer
