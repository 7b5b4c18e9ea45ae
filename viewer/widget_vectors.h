// A widget as a list of shapes. Its canvases are in it with the shapes of their pictures, not as pixels.
#pragma once

#include <tapedeck/viewer/drawing/vector_picture.h>

class QWidget;

namespace tapedeck::viewer {

// The upper left width x height pixels of a widget. It must be shown, on any platform of Qt. A gradient becomes the colour of
// its middle.
VectorPicture widget_vectors(QWidget& widget, int width, int height);

}  // namespace tapedeck::viewer
