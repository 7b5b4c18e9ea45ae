// The rasteriser; see raster.h. A triangle is the intersection of three half planes. In fixed point, the pixels of one row
// inside a half plane are all pixels on one side of the quotient of an integer division. So each row of a triangle is a run of
// pixels found by three divisions, without any rounding error.
//
//     row y    . . . . x0 # # # # x1 . .      x0, x1: the largest left end and the smallest right end of the three half planes
#include <tapedeck/viewer/drawing/raster.h>

#include <imgui.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

namespace {

constexpr int kSub = 16;         // steps per pixel
constexpr float kFar = 1 << 20;  // vertices are limited to this many pixels, so that products stay below 2^50

struct Point {
  std::int64_t x, y;  // in 1/16 of a pixel
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) {  // REQUIRES b > 0
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

// The first pixel whose centre is at or after `x`.
std::int64_t first_centre(std::int64_t x) { return ceil_div(x - kSub / 2, kSub); }

std::uint32_t div255(std::uint32_t x) { return (x + 128 + ((x + 128) >> 8)) >> 8; }

void blend(std::uint32_t* pixel, std::uint32_t colour, std::uint32_t alpha) {
  const std::uint32_t under = *pixel, rest = 255 - alpha;
  const std::uint32_t r = div255((colour & 255) * alpha + (under & 255) * rest);
  const std::uint32_t g = div255((colour >> 8 & 255) * alpha + (under >> 8 & 255) * rest);
  const std::uint32_t b = div255((colour >> 16 & 255) * alpha + (under >> 16 & 255) * rest);
  *pixel = 0xff000000u | b << 16 | g << 8 | r;
}

class Painter {
 public:
  Painter(const ImDrawData& draw_data, const AlphaTexture& texture, const Pixels& target, const PixelBox& part)
      : origin_(draw_data.DisplayPos), scale_(draw_data.FramebufferScale), texture_(texture), target_(target), part_(part) {}

  void command(const ImDrawList& list, const ImDrawCmd& cmd) {
    clip_.x0 = std::max(clip_edge((cmd.ClipRect.x - origin_.x) * scale_.x, target_.width), part_.x0);
    clip_.y0 = std::max(clip_edge((cmd.ClipRect.y - origin_.y) * scale_.y, target_.height), part_.y0);
    clip_.x1 = std::min(clip_edge((cmd.ClipRect.z - origin_.x) * scale_.x, target_.width), part_.x1);
    clip_.y1 = std::min(clip_edge((cmd.ClipRect.w - origin_.y) * scale_.y, target_.height), part_.y1);
    if (clip_.x0 >= clip_.x1 || clip_.y0 >= clip_.y1) return;
    const ImDrawVert* vertices = list.VtxBuffer.Data + cmd.VtxOffset;
    const ImDrawIdx* index = list.IdxBuffer.Data + cmd.IdxOffset;
    for (unsigned i = 0; i + 3 <= cmd.ElemCount;) {
      if (i + 6 <= cmd.ElemCount && rectangle(vertices, index + i)) {
        i += 6;
      } else {
        triangle(vertices[index[i]], vertices[index[i + 1]], vertices[index[i + 2]]);
        i += 3;
      }
    }
  }

 private:
  static int clip_edge(float x, int size) {
    return std::isfinite(x) ? static_cast<int>(std::lround(std::clamp(x, 0.0f, static_cast<float>(size)))) : 0;
  }

  // Whether no pixel of the clip can lie between these coordinates, each given as the lowest and the highest; false in doubt.
  bool misses_clip(float x0, float y0, float x1, float y1) const {
    return (x1 - origin_.x) * scale_.x + 1 < static_cast<float>(clip_.x0) ||
           (x0 - origin_.x) * scale_.x - 1 > static_cast<float>(clip_.x1) ||
           (y1 - origin_.y) * scale_.y + 1 < static_cast<float>(clip_.y0) ||
           (y0 - origin_.y) * scale_.y - 1 > static_cast<float>(clip_.y1);
  }

  bool to_point(const ImVec2& p, Point* out) const {
    const float x = (p.x - origin_.x) * scale_.x, y = (p.y - origin_.y) * scale_.y;
    if (!std::isfinite(x) || !std::isfinite(y)) return false;
    out->x = std::lround(std::clamp(x, -kFar, kFar) * kSub);
    out->y = std::lround(std::clamp(y, -kFar, kFar) * kSub);
    return true;
  }

  std::uint32_t texel(float u, float v) const {
    if (texture_.data == nullptr) return 255;
    // NaN becomes 0.
    const auto nearest = [](float share, int size) {
      const float x = share * static_cast<float>(size);
      return x > 0 ? static_cast<int>(std::min(x, static_cast<float>(size - 1))) : 0;
    };
    return texture_.data[nearest(v, texture_.height) * texture_.width + nearest(u, texture_.width)];
  }

  std::uint32_t* row(std::int64_t y) const { return target_.data + y * target_.width; }

  void fill_span(std::int64_t y, std::int64_t x0, std::int64_t x1, std::uint32_t colour, std::uint32_t alpha) const {
    std::uint32_t* line = row(y);
    if (alpha == 255) {
      std::fill(line + x0, line + x1, colour | 0xff000000u);
    } else {
      for (std::int64_t x = x0; x < x1; ++x) blend(line + x, colour, alpha);
    }
  }

  // Draws the triangles (a b c), (a c d) if they form an upright rectangle of one colour, as ImGui writes boxes and letters.
  // Returns false if they do not.
  bool rectangle(const ImDrawVert* vertices, const ImDrawIdx* i) const {
    if (i[3] != i[0] || i[4] != i[2]) return false;
    const ImDrawVert &a = vertices[i[0]], &b = vertices[i[1]], &c = vertices[i[2]], &d = vertices[i[5]];
    if (a.col != b.col || a.col != c.col || a.col != d.col) return false;
    if (a.pos.y != b.pos.y || b.pos.x != c.pos.x || c.pos.y != d.pos.y || d.pos.x != a.pos.x) return false;
    if (a.uv.y != b.uv.y || b.uv.x != c.uv.x || c.uv.y != d.uv.y || d.uv.x != a.uv.x) return false;
    if (misses_clip(std::min(a.pos.x, c.pos.x), std::min(a.pos.y, c.pos.y), std::max(a.pos.x, c.pos.x),
                    std::max(a.pos.y, c.pos.y)))
      return true;
    Point low, high;
    if (!to_point(a.pos, &low) || !to_point(c.pos, &high)) return true;  // a vertex is not finite: nothing is drawn
    if (low.x > high.x || low.y > high.y) return false;
    const std::int64_t x0 = std::max<std::int64_t>(first_centre(low.x), clip_.x0),
                       x1 = std::min<std::int64_t>(first_centre(high.x), clip_.x1);
    const std::int64_t y0 = std::max<std::int64_t>(first_centre(low.y), clip_.y0),
                       y1 = std::min<std::int64_t>(first_centre(high.y), clip_.y1);
    const std::uint32_t alpha = a.col >> 24;
    if (a.uv.x == c.uv.x && a.uv.y == c.uv.y) {
      const std::uint32_t solid = div255(alpha * texel(a.uv.x, a.uv.y));
      if (x0 < x1 && solid > 0)
        for (std::int64_t y = y0; y < y1; ++y) fill_span(y, x0, x1, a.col, solid);
      return true;
    }
    const float du = (c.uv.x - a.uv.x) * kSub / static_cast<float>(high.x - low.x);
    const float dv = (c.uv.y - a.uv.y) * kSub / static_cast<float>(high.y - low.y);
    for (std::int64_t y = y0; y < y1; ++y) {
      const float v = a.uv.y + dv * (static_cast<float>(y * kSub + kSub / 2 - low.y) / kSub);
      for (std::int64_t x = x0; x < x1; ++x) {
        const float u = a.uv.x + du * (static_cast<float>(x * kSub + kSub / 2 - low.x) / kSub);
        const std::uint32_t solid = div255(alpha * texel(u, v));
        if (solid > 0) blend(row(y) + x, a.col, solid);
      }
    }
    return true;
  }

  struct HalfPlane {  // a pixel centre (x, y) is inside if a*x + b*y + c >= 0
    std::int64_t a, b, c;
  };

  // The half plane to the right of p -> q, with y downwards. A centre on an upper or a left edge is inside, on other edges
  // outside.
  static HalfPlane half_plane(const Point& p, const Point& q) {
    const std::int64_t a = p.y - q.y, b = q.x - p.x;
    const bool inclusive = a > 0 || (a == 0 && b > 0);
    return {a, b, -(a * p.x + b * p.y) - (inclusive ? 0 : 1)};
  }

  void triangle(const ImDrawVert& v0, const ImDrawVert& v1, const ImDrawVert& v2) const {
    if (misses_clip(std::min({v0.pos.x, v1.pos.x, v2.pos.x}), std::min({v0.pos.y, v1.pos.y, v2.pos.y}),
                    std::max({v0.pos.x, v1.pos.x, v2.pos.x}), std::max({v0.pos.y, v1.pos.y, v2.pos.y})))
      return;
    Point p[3];
    const ImDrawVert* v[3] = {&v0, &v1, &v2};
    for (int i = 0; i < 3; ++i)
      if (!to_point(v[i]->pos, &p[i])) return;
    const std::int64_t area = (p[1].x - p[0].x) * (p[2].y - p[0].y) - (p[2].x - p[0].x) * (p[1].y - p[0].y);
    if (area == 0) return;
    if (area < 0) {
      std::swap(p[1], p[2]);
      std::swap(v[1], v[2]);
    }
    const HalfPlane edges[3] = {half_plane(p[0], p[1]), half_plane(p[1], p[2]), half_plane(p[2], p[0])};
    const auto [top, bottom] = std::minmax({p[0].y, p[1].y, p[2].y});
    const std::int64_t y0 = std::max<std::int64_t>(first_centre(top), clip_.y0);
    const std::int64_t y1 = std::min<std::int64_t>(first_centre(bottom) + 1, clip_.y1);
    const Shade shade(v, p);
    for (std::int64_t y = y0; y < y1; ++y) {
      std::int64_t x0 = clip_.x0, x1 = clip_.x1;
      const std::int64_t cy = y * kSub + kSub / 2;
      for (const HalfPlane& e : edges) {
        // The condition is a * (16 x + 8) + b * cy + c >= 0.
        const std::int64_t rest = e.b * cy + e.c + e.a * (kSub / 2), a = e.a * kSub;
        if (a > 0) {
          x0 = std::max(x0, ceil_div(-rest, a));
        } else if (a < 0) {
          x1 = std::min(x1, floor_div(rest, -a) + 1);
        } else if (rest < 0) {
          x1 = x0;
        }
      }
      if (x0 < x1) span(shade, y, x0, x1);
    }
  }

  // The colour and the texture position as affine functions of the pixel centre.
  struct Shade {
    Shade(const ImDrawVert* const* v, const Point* p) {
      flat = v[0]->col == v[1]->col && v[0]->col == v[2]->col;
      plain = v[0]->uv.x == v[1]->uv.x && v[0]->uv.x == v[2]->uv.x && v[0]->uv.y == v[1]->uv.y && v[0]->uv.y == v[2]->uv.y;
      colour = v[0]->col;
      x0 = static_cast<double>(p[0].x) / kSub - 0.5;
      y0 = static_cast<double>(p[0].y) / kSub - 0.5;
      const double ax = static_cast<double>(p[1].x - p[0].x) / kSub, ay = static_cast<double>(p[1].y - p[0].y) / kSub;
      const double bx = static_cast<double>(p[2].x - p[0].x) / kSub, by = static_cast<double>(p[2].y - p[0].y) / kSub;
      const double det = ax * by - bx * ay;
      for (int k = 0; k < 6; ++k) {
        const double f0 = channel(*v[0], k), d1 = channel(*v[1], k) - f0, d2 = channel(*v[2], k) - f0;
        at0[k] = f0;
        dx[k] = (d1 * by - d2 * ay) / det;
        dy[k] = (d2 * ax - d1 * bx) / det;
      }
    }
    static double channel(const ImDrawVert& v, int k) {
      return k < 4    ? static_cast<double>(v.col >> (8 * k) & 255)
             : k == 4 ? static_cast<double>(v.uv.x)
                      : static_cast<double>(v.uv.y);
    }
    double at(int k, double x, double y) const { return at0[k] + dx[k] * (x - x0) + dy[k] * (y - y0); }

    bool flat, plain;
    std::uint32_t colour;
    double x0, y0, at0[6], dx[6], dy[6];
  };

  static std::uint32_t to_byte(double x) { return static_cast<std::uint32_t>(std::clamp(x, 0.0, 255.0) + 0.5); }

  void span(const Shade& s, std::int64_t y, std::int64_t x0, std::int64_t x1) const {
    const std::uint32_t cover = s.plain ? texel(static_cast<float>(s.at0[4]), static_cast<float>(s.at0[5])) : 255;
    if (s.flat && s.plain) {
      const std::uint32_t alpha = div255((s.colour >> 24) * cover);
      if (alpha > 0) fill_span(y, x0, x1, s.colour, alpha);
      return;
    }
    const auto fy = static_cast<double>(y);
    for (std::int64_t x = x0; x < x1; ++x) {
      const auto fx = static_cast<double>(x);
      std::uint32_t colour = s.colour, alpha = s.colour >> 24;
      if (!s.flat) {
        colour = to_byte(s.at(0, fx, fy)) | to_byte(s.at(1, fx, fy)) << 8 | to_byte(s.at(2, fx, fy)) << 16;
        alpha = to_byte(s.at(3, fx, fy));
      }
      alpha =
          div255(alpha * (s.plain ? cover : texel(static_cast<float>(s.at(4, fx, fy)), static_cast<float>(s.at(5, fx, fy)))));
      if (alpha > 0) blend(row(y) + x, colour, alpha);
    }
  }

  ImVec2 origin_, scale_;
  AlphaTexture texture_;
  Pixels target_;
  PixelBox part_;
  PixelBox clip_;
};

}  // namespace

void rasterize(const ImDrawData& draw_data, const AlphaTexture& texture, const Pixels& target) {
  rasterize(draw_data, texture, target, {0, 0, target.width, target.height});
}

void rasterize(const ImDrawData& draw_data, const AlphaTexture& texture, const Pixels& target, const PixelBox& part) {
  Painter painter(draw_data, texture, target, part);
  for (int n = 0; n < draw_data.CmdListsCount; ++n) {
    const ImDrawList& list = *draw_data.CmdLists[n];
    for (const ImDrawCmd& cmd : list.CmdBuffer) {
      if (cmd.UserCallback == nullptr) painter.command(list, cmd);
    }
  }
}

}  // namespace tapedeck::viewer
