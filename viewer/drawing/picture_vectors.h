// A picture of Dear ImGui as a list of shapes: its rectangles, polygons and lines of text.
#pragma once

#include <tapedeck/viewer/drawing/picture.h>
#include <tapedeck/viewer/drawing/vector_picture.h>

namespace tapedeck::viewer {

// Draws a picture without any window: width x height pixels, `scale` pixels per unit, as render_picture() does.
VectorPicture picture_vectors(Picture& picture, int width, int height, double scale = 1);

}  // namespace tapedeck::viewer
