// The numbers of the cells, and the boxes of those that changed; see frame_raster.h.
#include <tapedeck/viewer/drawing/frame_raster.h>

#include <imgui.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr int kCell = 32;               // pixels
constexpr std::size_t kMostBoxes = 12;  // each box is one pass over all triangles
constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15u;

std::uint64_t bits_of(float a, float b) {
  return static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(a)) << 32 | std::bit_cast<std::uint32_t>(b);
}

std::uint64_t mixed(std::uint64_t number, std::uint64_t with) { return std::rotl((number ^ with) * kMix, 29); }

int cells_across(int pixels) { return (pixels + kCell - 1) / kCell; }

// Adds the triangles of a frame to the numbers of the cells that they touch.
class CellNumbers {
 public:
  CellNumbers(const ImDrawData& draw_data, const Pixels& target, std::vector<std::uint64_t>* cells)
      : origin_(draw_data.DisplayPos),
        scale_(draw_data.FramebufferScale),
        size_(static_cast<float>(target.width), static_cast<float>(target.height)),
        across_(cells_across(target.width)),
        cells_(*cells) {
    cells_.assign(static_cast<std::size_t>(across_) * static_cast<std::size_t>(cells_across(target.height)), kMix);
  }

  void add(const ImDrawList& list, const ImDrawCmd& cmd) {
    const ImVec4& c = cmd.ClipRect;
    low_ = inside(ImVec2(c.x, c.y));
    high_ = inside(ImVec2(c.z, c.w));
    if (low_.x >= high_.x || low_.y >= high_.y) return;
    clip_ = mixed(bits_of(c.x, c.y), bits_of(c.z, c.w));
    const ImDrawVert* vertices = list.VtxBuffer.Data + cmd.VtxOffset;
    const ImDrawIdx* index = list.IdxBuffer.Data + cmd.IdxOffset;
    for (unsigned i = 0; i + 3 <= cmd.ElemCount;) {
      // Boxes and letters are two triangles (a b c), (a c d).
      const bool pair = i + 6 <= cmd.ElemCount && index[i + 3] == index[i] && index[i + 4] == index[i + 2];
      const ImDrawVert &a = vertices[index[i]], &b = vertices[index[i + 1]], &c2 = vertices[index[i + 2]];
      add(a, b, c2, pair ? vertices[index[i + 5]] : a);
      i += pair ? 6 : 3;
    }
  }

 private:
  ImVec2 to_pixels(const ImVec2& p) const { return ImVec2((p.x - origin_.x) * scale_.x, (p.y - origin_.y) * scale_.y); }
  // NaN becomes 0.
  ImVec2 inside(const ImVec2& p) const {
    const ImVec2 q = to_pixels(p);
    return ImVec2(q.x > 0 ? std::min(q.x, size_.x) : 0, q.y > 0 ? std::min(q.y, size_.y) : 0);
  }

  static std::uint64_t number_of(const ImDrawVert& v) {
    return mixed(mixed(bits_of(v.pos.x, v.pos.y), bits_of(v.uv.x, v.uv.y)), v.col);
  }

  void add(const ImDrawVert& a, const ImDrawVert& b, const ImDrawVert& c, const ImDrawVert& d) {
    const ImVec2 p = to_pixels(a.pos), q = to_pixels(b.pos), r = to_pixels(c.pos), s = to_pixels(d.pos);
    // A vertex moves by less than a pixel when it is rounded. A triangle with a vertex that is not finite is not drawn.
    const float x0 = std::min({p.x, q.x, r.x, s.x}) - 1, x1 = std::max({p.x, q.x, r.x, s.x}) + 1;
    const float y0 = std::min({p.y, q.y, r.y, s.y}) - 1, y1 = std::max({p.y, q.y, r.y, s.y}) + 1;
    if (x1 < low_.x || x0 > high_.x || y1 < low_.y || y0 > high_.y) return;
    const int left = cell(x0 > low_.x ? x0 : low_.x), right = cell(x1 < high_.x ? x1 : high_.x);
    const int top = cell(y0 > low_.y ? y0 : low_.y), bottom = cell(y1 < high_.y ? y1 : high_.y);
    std::uint64_t number = clip_;
    for (const ImDrawVert* v : {&a, &b, &c, &d}) number = mixed(number, number_of(*v));
    const int last = across_ - 1, lowest = static_cast<int>(cells_.size()) / across_ - 1;
    for (int y = top; y <= std::min(bottom, lowest); ++y)
      for (int x = left; x <= std::min(right, last); ++x) {
        std::uint64_t& sum = cells_[static_cast<std::size_t>(y * across_ + x)];
        sum = mixed(sum, number);
      }
  }

  static int cell(float pixel) { return static_cast<int>(pixel) / kCell; }

  ImVec2 origin_, scale_, size_, low_, high_;
  int across_;
  std::uint64_t clip_ = 0;
  std::vector<std::uint64_t>& cells_;
};

// Joins the cells that differ to boxes: runs of a row of cells, and equal runs of rows below each other.
std::vector<PixelBox> boxes_of_changes(const std::vector<std::uint64_t>& before, const std::vector<std::uint64_t>& now,
                                       const Pixels& target) {
  std::vector<PixelBox> boxes;
  const int across = cells_across(target.width), down = cells_across(target.height);
  const auto differs = [&](int x, int y) {
    const auto i = static_cast<std::size_t>(y * across + x);
    return before[i] != now[i];
  };
  for (int y = 0; y < down; ++y)
    for (int x = 0; x < across;) {
      if (!differs(x, y)) {
        ++x;
        continue;
      }
      const int first = x;
      while (x < across && differs(x, y)) ++x;
      const PixelBox run{first * kCell, y * kCell, std::min(x * kCell, target.width), std::min((y + 1) * kCell, target.height)};
      const auto above = std::find_if(boxes.begin(), boxes.end(), [&](const PixelBox& box) {
        return box.x0 == run.x0 && box.x1 == run.x1 && box.y1 == run.y0;
      });
      if (above != boxes.end())
        above->y1 = run.y1;
      else
        boxes.push_back(run);
    }
  return boxes;
}

PixelBox around(const std::vector<PixelBox>& boxes) {
  PixelBox all = boxes.front();
  for (const PixelBox& box : boxes)
    all = {std::min(all.x0, box.x0), std::min(all.y0, box.y0), std::max(all.x1, box.x1), std::max(all.y1, box.y1)};
  return all;
}

void clear(const Pixels& target, const PixelBox& box, std::uint32_t colour) {
  for (int y = box.y0; y < box.y1; ++y) {
    std::uint32_t* row = target.data + static_cast<std::ptrdiff_t>(y) * target.width;
    std::fill(row + box.x0, row + box.x1, colour);
  }
}

}  // namespace

const std::vector<PixelBox>& FrameRaster::draw(const ImDrawData& draw_data, const AlphaTexture& texture, std::uint32_t ground,
                                               const Pixels& target) {
  const bool holds_frame_before = !cells_.empty() && target.data == target_.data && target.width == target_.width &&
                                  target.height == target_.height && ground == ground_;
  target_ = target;
  ground_ = ground;
  std::swap(before_, cells_);
  CellNumbers numbers(draw_data, target, &cells_);
  for (int n = 0; n < draw_data.CmdListsCount; ++n)
    for (const ImDrawCmd& cmd : draw_data.CmdLists[n]->CmdBuffer)
      if (cmd.UserCallback == nullptr) numbers.add(*draw_data.CmdLists[n], cmd);
  if (holds_frame_before) {
    changed_ = boxes_of_changes(before_, cells_, target);
    if (changed_.size() > kMostBoxes) changed_ = {around(changed_)};
  } else {
    changed_ = {{0, 0, target.width, target.height}};
  }
  for (const PixelBox& box : changed_) {
    clear(target, box, ground);
    rasterize(draw_data, texture, target, box);
  }
  return changed_;
}

}  // namespace tapedeck::viewer
