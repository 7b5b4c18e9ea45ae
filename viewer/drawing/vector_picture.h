// A picture as a list of shapes: rectangles, polygons, texts and images, from back to front. Canvases (picture_vectors.h) and
// widgets (widget_vectors.h) make such lists, and to_svg() and vector_painter.h write them. This file knows neither Qt nor
// ImGui.
//
// Lengths are pixels; (0, 0) is the upper left corner.
#pragma once

#include <tapedeck/viewer/words/colours.h>

#include <string>
#include <variant>
#include <vector>

namespace tapedeck::viewer {

struct VectorPoint {
  float x = 0, y = 0;
};

// An upright rectangle. It is empty unless x0 < x1 and y0 < y1.
struct VectorBox {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  bool empty() const { return !(x0 < x1 && y0 < y1); }
  float width() const { return x1 - x0; }
  float height() const { return y1 - y0; }
  bool holds(const VectorBox& o) const { return x0 <= o.x0 && y0 <= o.y0 && x1 >= o.x1 && y1 >= o.y1; }
};
VectorBox common_part(const VectorBox& a, const VectorBox& b);

struct VectorRect {
  VectorBox box;
  Colour colour;
};

using VectorContour = std::vector<VectorPoint>;
struct VectorPolygon {
  std::vector<VectorContour> contours;
  bool even_odd = false;  // which points are inside of several contours: an odd number of turns, or any
  Colour colour;
};

// One line of text.
struct VectorText {
  float x = 0, baseline = 0, width = 0;
  float size = 0;  // of the font
  bool bold = false, fixed = false;
  Colour colour;
  std::string text;  // UTF-8
  VectorBox clip;    // what lies outside is not shown
};

struct VectorImage {
  VectorBox box;
  std::string png;  // in base 64
  VectorBox clip;
};

using VectorShape = std::variant<VectorRect, VectorPolygon, VectorText, VectorImage>;

// The list. What is added is cut to the clip at that time; what is then empty, transparent or not finite is left out.
class VectorPicture {
 public:
  VectorPicture(float width, float height, Colour ground);

  float width() const { return all_.x1; }
  float height() const { return all_.y1; }
  Colour ground() const { return ground_; }
  const std::vector<VectorShape>& shapes() const { return shapes_; }

  void set_clip(const VectorBox& clip) { clip_ = common_part(clip, all_); }
  void clear_clip() { clip_ = all_; }
  void add(const VectorRect& rect);
  void add(VectorPolygon polygon);
  void add(VectorText text);    // sets its clip
  void add(VectorImage image);  // sets its clip
  // Adds the ground and the shapes of `picture` with its upper left corner at (x, y).
  void add(const VectorPicture& picture, float x, float y);

 private:
  VectorBox all_, clip_;
  Colour ground_;
  std::vector<VectorShape> shapes_;
};

// The picture as an SVG document: numbers with at most two decimals, no reference to anything outside. Equal pictures give
// equal bytes.
std::string to_svg(const VectorPicture& picture);

}  // namespace tapedeck::viewer
