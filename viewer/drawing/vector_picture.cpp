// Cuts shapes to the clip, and writes a list of shapes as SVG:
//
//   VectorRect     <rect x="10" y="20" width="30" height="4" fill="..."/>
//   VectorPolygon  <polygon points="..."/>, or <path> if it has several contours
//   VectorText     <text x="10" y="30" font-size="11" textLength="57">%relu.3</text>
//   VectorImage    <image href="data:image/png;base64,..."/>
#include <tapedeck/viewer/drawing/vector_picture.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace tapedeck::viewer {

namespace {

bool finite(const VectorBox& b) {
  return std::isfinite(b.x0) && std::isfinite(b.y0) && std::isfinite(b.x1) && std::isfinite(b.y1);
}

VectorBox bounds(const VectorContour& contour) {
  VectorBox b{contour[0].x, contour[0].y, contour[0].x, contour[0].y};
  for (const VectorPoint& p : contour) b = {std::min(b.x0, p.x), std::min(b.y0, p.y), std::max(b.x1, p.x), std::max(b.y1, p.y)};
  return b;
}

bool touches(const VectorBox& a, const VectorBox& b) { return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1; }

// Keeps the side of a contour where sign * (coordinate - at) >= 0 (Sutherland and Hodgman).
VectorContour cut(const VectorContour& contour, float VectorPoint::*axis, float at, float sign) {
  VectorContour kept;
  for (std::size_t i = 0; i < contour.size(); ++i) {
    const VectorPoint &a = contour[i], &b = contour[(i + 1) % contour.size()];
    const float da = sign * (a.*axis - at), db = sign * (b.*axis - at);
    if (da >= 0) kept.push_back(a);
    if ((da >= 0) == (db >= 0)) continue;
    const float t = da / (da - db);
    VectorPoint p{a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)};
    p.*axis = at;
    kept.push_back(p);
  }
  return kept;
}

VectorContour cut_to(VectorContour contour, const VectorBox& clip) {
  contour = cut(contour, &VectorPoint::x, clip.x0, 1);
  contour = cut(contour, &VectorPoint::x, clip.x1, -1);
  contour = cut(contour, &VectorPoint::y, clip.y0, 1);
  return cut(contour, &VectorPoint::y, clip.y1, -1);
}

bool finite(const VectorContour& contour) {
  return std::all_of(contour.begin(), contour.end(),
                     [](const VectorPoint& p) { return std::isfinite(p.x) && std::isfinite(p.y); });
}

// A rectangle around the letters of a text, with room to spare.
VectorBox ink(const VectorText& t) { return {t.x - 1, t.baseline - t.size, t.x + t.width + 1, t.baseline + t.size * 0.35f}; }

VectorBox moved(VectorBox b, float x, float y) { return {b.x0 + x, b.y0 + y, b.x1 + x, b.y1 + y}; }

VectorShape moved(VectorShape shape, float x, float y) {
  if (auto* rect = std::get_if<VectorRect>(&shape)) rect->box = moved(rect->box, x, y);
  if (auto* image = std::get_if<VectorImage>(&shape)) {
    image->box = moved(image->box, x, y);
    image->clip = moved(image->clip, x, y);
  }
  if (auto* text = std::get_if<VectorText>(&shape)) {
    text->x += x;
    text->baseline += y;
    text->clip = moved(text->clip, x, y);
  }
  if (auto* polygon = std::get_if<VectorPolygon>(&shape))
    for (VectorContour& contour : polygon->contours)
      for (VectorPoint& p : contour) p = {p.x + x, p.y + y};
  return shape;
}

// ---- SVG ----

std::string number(float value) {
  const long long hundredths = std::llround(static_cast<double>(value) * 100);
  const long long size = std::llabs(hundredths);
  char text[40];
  int length = std::snprintf(text, sizeof text, "%s%lld.%02lld", hundredths < 0 ? "-" : "", size / 100, size % 100);
  while (text[length - 1] == '0') --length;
  if (text[length - 1] == '.') --length;
  return {text, static_cast<std::size_t>(length)};
}

// The length in bytes of the character of UTF-8 at the begin of `text`; 0 if there is none that XML allows.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 ? 1 : 0;
  const std::size_t length = first >= 0xf0 && first < 0xf5   ? 4
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xc2 && first < 0xe0 ? 2
                                                             : 0;
  unsigned code = length == 4 ? first & 7 : length == 3 ? first & 15 : first & 31;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool shortest = length != 3 || code >= 0x800, planes = length != 4 || (code >= 0x10000 && code <= 0x10ffff);
  const bool allowed = (code < 0xd800 || code > 0xdfff) && code != 0xfffe && code != 0xffff;
  return shortest && planes && allowed ? length : 0;
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character(text);
    const char c = length == 0 ? '?' : text[0];
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (length <= 1)
      out += c;
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

// Writes one shape after the other.
class SvgWriter {
 public:
  explicit SvgWriter(const VectorPicture& picture) {
    const std::string w = number(picture.width()), h = number(picture.height());
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h + "\" viewBox=\"0 0 " + w + " " + h +
           "\" shape-rendering=\"crispEdges\" xml:space=\"preserve\">\n";
    (*this)(VectorRect{{0, 0, picture.width(), picture.height()}, picture.ground()});
    for (const VectorShape& shape : picture.shapes()) std::visit(*this, shape);
    out_ += "</svg>\n";
  }

  void operator()(const VectorRect& rect) { out_ += "<rect" + place(rect.box) + fill(rect.colour) + "/>\n"; }

  void operator()(const VectorPolygon& polygon) {
    if (polygon.contours.size() == 1) {
      out_ += "<polygon points=\"" + points(polygon.contours[0]) + "\"" + fill(polygon.colour) + "/>\n";
      return;
    }
    out_ += "<path d=\"";
    for (const VectorContour& contour : polygon.contours) out_ += "M" + points(contour) + "Z";
    out_ += std::string("\"") + (polygon.even_odd ? " fill-rule=\"evenodd\"" : "") + fill(polygon.colour) + "/>\n";
  }

  void operator()(const VectorText& t) {
    out_ += "<text x=\"" + number(t.x) + "\" y=\"" + number(t.baseline) + "\" font-family=\"" +
            (t.fixed ? "DejaVu Sans Mono, monospace" : "DejaVu Sans, sans-serif") + "\" font-size=\"" + number(t.size) + "\"" +
            (t.bold ? " font-weight=\"bold\"" : "") + " textLength=\"" + number(t.width) + "\"" + fill(t.colour) +
            clip(ink(t), t.clip) + ">" + escaped(t.text) + "</text>\n";
  }

  void operator()(const VectorImage& image) {
    out_ += "<image" + place(image.box) + " preserveAspectRatio=\"none\"" + clip(image.box, image.clip) +
            " href=\"data:image/png;base64," + image.png + "\"/>\n";
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string place(const VectorBox& b) {
    return " x=\"" + number(b.x0) + "\" y=\"" + number(b.y0) + "\" width=\"" + number(b.width()) + "\" height=\"" +
           number(b.height()) + "\"";
  }
  static std::string fill(Colour c) {
    return " fill=\"" + html_colour(c) + "\"" +
           (c.a == 255 ? "" : " fill-opacity=\"" + number(static_cast<float>(c.a) / 255) + "\"");
  }
  static std::string points(const VectorContour& contour) {
    std::string text;
    for (const VectorPoint& p : contour) text += (text.empty() ? "" : " ") + number(p.x) + "," + number(p.y);
    return text;
  }
  // Writes the clip before the element that needs one, and returns the attribute of the element.
  std::string clip(const VectorBox& ink, const VectorBox& clip) {
    if (clip.holds(ink)) return "";
    const std::string name = "c" + std::to_string(++clips_);
    out_ += "<clipPath id=\"" + name + "\"><rect" + place(clip) + "/></clipPath>\n";
    return " clip-path=\"url(#" + name + ")\"";
  }

  std::string out_;
  int clips_ = 0;
};

}  // namespace

VectorBox common_part(const VectorBox& a, const VectorBox& b) {
  return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}

VectorPicture::VectorPicture(float width, float height, Colour ground)
    : all_{0, 0, width, height}, clip_(all_), ground_(ground) {}

void VectorPicture::add(const VectorRect& rect) {
  const VectorBox box = common_part(rect.box, clip_);
  if (rect.colour.a != 0 && finite(rect.box) && !box.empty()) shapes_.emplace_back(VectorRect{box, rect.colour});
}

void VectorPicture::add(VectorPolygon polygon) {
  if (polygon.colour.a == 0 || clip_.empty()) return;
  std::vector<VectorContour> kept;
  for (VectorContour& contour : polygon.contours) {
    if (contour.size() < 3 || !finite(contour)) continue;
    const VectorBox box = bounds(contour);
    if (!touches(box, clip_)) continue;
    if (!clip_.holds(box)) contour = cut_to(std::move(contour), clip_);
    if (contour.size() >= 3) kept.push_back(std::move(contour));
  }
  polygon.contours = std::move(kept);
  if (!polygon.contours.empty()) shapes_.emplace_back(std::move(polygon));
}

void VectorPicture::add(VectorText text) {
  text.clip = clip_;
  const VectorBox box = ink(text);
  if (text.colour.a == 0 || !finite(box) || common_part(box, clip_).empty()) return;
  if (text.text.find_first_not_of(' ') != std::string::npos) shapes_.emplace_back(std::move(text));
}

void VectorPicture::add(VectorImage image) {
  image.clip = clip_;
  if (finite(image.box) && !common_part(image.box, clip_).empty()) shapes_.emplace_back(std::move(image));
}

void VectorPicture::add(const VectorPicture& picture, float x, float y) {
  const VectorBox before = clip_;
  add(VectorRect{moved(picture.all_, x, y), picture.ground_});
  for (const VectorShape& shape : picture.shapes_) {
    clip_ = before;
    if (const auto* text = std::get_if<VectorText>(&shape)) clip_ = common_part(before, moved(text->clip, x, y));
    if (const auto* image = std::get_if<VectorImage>(&shape)) clip_ = common_part(before, moved(image->clip, x, y));
    std::visit([this](auto one) { add(std::move(one)); }, moved(shape, x, y));
  }
  clip_ = before;
}

std::string to_svg(const VectorPicture& picture) { return SvgWriter(picture).take(); }

}  // namespace tapedeck::viewer
