// Reads the triangles of ImGui's draw lists back as shapes. Smooth edges are off in such a frame, so every shape is a fan of
// triangles of one colour:
//
//   0 1 2, 0 2 3, 0 3 4   a convex polygon, or an upright rectangle
//
// Letters are triangles, too. They lie in the ranges of indices that the text functions have noted; the text replaces them.
#include <tapedeck/viewer/drawing/picture_vectors.h>

#include <tapedeck/viewer/drawing/imgui_host.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr int kFrames = 3;  // a window inside the picture has its final size from the second frame on
// ImGui gives the height of a line, other programs the size of the font's em. The ratio is that of DejaVu Sans.
constexpr float kLinePerEm = 2384.0f / 2048;

Colour from_imgui(ImU32 c) {
  const auto byte = [c](int shift) { return static_cast<std::uint8_t>(c >> shift & 0xff); };
  return {byte(IM_COL32_R_SHIFT), byte(IM_COL32_G_SHIFT), byte(IM_COL32_B_SHIFT), byte(IM_COL32_A_SHIFT)};
}

// The rectangle that four corners in a row span, if its edges are upright.
std::optional<VectorBox> upright(const VectorContour& c) {
  if (c.size() != 4) return {};
  const bool across_first = c[0].y == c[1].y && c[1].x == c[2].x && c[2].y == c[3].y && c[3].x == c[0].x;
  const bool up_first = c[0].x == c[1].x && c[1].y == c[2].y && c[2].x == c[3].x && c[3].y == c[0].y;
  if (!across_first && !up_first) return {};
  const auto [x0, x1] = std::minmax(c[0].x, c[2].x);
  const auto [y0, y1] = std::minmax(c[0].y, c[2].y);
  return VectorBox{x0, y0, x1, y1};
}

// Reads one draw list.
class Reader {
 public:
  Reader(const ImDrawList& list, const std::vector<DrawnText>& texts, float scale, VectorPicture* out)
      : list_(list), texts_(texts), scale_(scale), white_(ImGui::GetIO().Fonts->TexUvWhitePixel), out_(out) {}

  void read() {
    for (const ImDrawCmd& command : list_.CmdBuffer) {
      if (command.UserCallback != nullptr) continue;
      const ImVec4& c = command.ClipRect;
      out_->set_clip({c.x * scale_, c.y * scale_, c.z * scale_, c.w * scale_});
      read(command);
    }
    out_->clear_clip();
  }

 private:
  void read(const ImDrawCmd& command) {
    const int end = static_cast<int>(command.IdxOffset + command.ElemCount);
    for (int i = static_cast<int>(command.IdxOffset); i + 3 <= end;) {
      while (next_ < texts_.size() && (texts_[next_].list != &list_ || texts_[next_].end <= i)) ++next_;
      const DrawnText* text = next_ < texts_.size() ? &texts_[next_] : nullptr;
      if (text != nullptr && text->first <= i) {
        if (text->first == i) add(*text);
        i = text->end;
      } else {
        i = shape(command, i, text != nullptr ? std::min(end, text->first) : end);
      }
    }
  }

  const ImDrawVert& vertex(const ImDrawCmd& command, int i) const {
    return list_.VtxBuffer[static_cast<int>(command.VtxOffset) + list_.IdxBuffer[i]];
  }
  VectorPoint point(const ImDrawVert& v) const { return {v.pos.x * scale_, v.pos.y * scale_}; }

  // Adds the fan that begins at index i and ends before `end`, and returns the index behind it.
  int shape(const ImDrawCmd& command, int i, int end) {
    const auto& index = list_.IdxBuffer;
    const ImDrawVert& first = vertex(command, i);
    VectorContour contour{point(first), point(vertex(command, i + 1)), point(vertex(command, i + 2))};
    int next = i + 3;
    for (; next + 3 <= end && index[next] == index[i] && index[next + 1] == index[next - 1]; next += 3)
      contour.push_back(point(vertex(command, next + 2)));
    if (first.uv.x != white_.x || first.uv.y != white_.y) return next;  // a letter of a text without a note: a tooltip
    if (const auto box = upright(contour))
      out_->add(VectorRect{*box, from_imgui(first.col)});
    else
      out_->add(VectorPolygon{{std::move(contour)}, false, from_imgui(first.col)});
    return next;
  }

  void add(const DrawnText& t) {
    const ImFont* used = font(t.size);
    VectorText text;
    text.x = t.at.x * scale_;
    text.baseline = t.at.y * scale_ + used->Ascent;
    text.width = t.width * scale_;
    text.size = used->FontSize / kLinePerEm;
    text.bold = t.size == TextSize::title;
    text.colour = from_imgui(t.colour);
    text.text = t.text;
    out_->add(std::move(text));
  }

  const ImDrawList& list_;
  const std::vector<DrawnText>& texts_;
  float scale_;
  ImVec2 white_;
  VectorPicture* out_;
  std::size_t next_ = 0;  // the text that comes next
};

// The functions that draw text note it as long as this object lives.
class Notes {
 public:
  Notes() { text_notes = &texts; }
  ~Notes() { text_notes = nullptr; }
  Notes(const Notes&) = delete;
  std::vector<DrawnText> texts;
};

}  // namespace

VectorPicture picture_vectors(Picture& picture, int width, int height, double scale) {
  ImGuiHost host(scale);
  ImGui::GetStyle().AntiAliasedLines = ImGui::GetStyle().AntiAliasedFill = false;
  Notes notes;
  const ImDrawData* drawn = nullptr;
  for (int i = 0; i < kFrames; ++i) {
    notes.texts.clear();
    if (i > 0) picture.settle();
    drawn = &host.frame(picture, static_cast<float>(width / scale), static_cast<float>(height / scale), 1.0 / 60);
  }
  VectorPicture out(static_cast<float>(width), static_cast<float>(height), colours::kCanvas);
  for (int i = 0; i < drawn->CmdListsCount; ++i)
    Reader(*drawn->CmdLists[i], notes.texts, static_cast<float>(scale), &out).read();
  return out;
}

}  // namespace tapedeck::viewer
