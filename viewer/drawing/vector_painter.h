// Draws a list of shapes with a painter of Qt, as vectors where the device has them: PDF.
#pragma once

#include <tapedeck/viewer/drawing/vector_picture.h>

class QPainter;

namespace tapedeck::viewer {

void paint(const VectorPicture& picture, QPainter& painter);

}  // namespace tapedeck::viewer
