#include <tapedeck/viewer/drawing/imgui_host.h>
#include <tapedeck/viewer/panels/minimap.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

namespace {

constexpr float kShare = 0.22f, kLeastWidth = 110, kMostWidth = 240;  // of the width of the plot; in units
constexpr float kMostHeightShare = 0.3f, kMinimapMargin = 10;
constexpr float kLeastPlotWidth = 300, kLeastPlotHeight = 150;  // a smaller plot has no room for a minimap
constexpr double kWhole = 0.995;                                // a view of this share of the plan shows the whole plan

bool shows_a_part(const PlanView& view, const PlanView& home) {
  return view.time.size() < home.time.size() * kWhole || view.address.size() < home.address.size() * kWhole;
}

// The lower right corner: the labels of the limits stand further up, and notes about planning on the left.
Plot place_in(const Plot& around, const PlanView& home) {
  const float width = std::round(std::clamp(around.width() * kShare, kLeastWidth, kMostWidth));
  const float height = std::round(std::min(width * 0.5f, around.height() * kMostHeightShare));
  const float x1 = around.x1 - kMinimapMargin, y1 = around.y1 - kMinimapMargin;
  return make_plot(x1 - width, y1 - height, x1, y1, home.time, home.address);
}

}  // namespace

Minimap::Point Minimap::under(const ImVec2& mouse) const {
  return {plot_.across_at(mouse.x), plot_.up.at(static_cast<double>((plot_.y1 - mouse.y) / plot_.height()))};
}

void Minimap::centre(Session& session, const Point& at) const {
  PlanView view = session.view;
  view.time.pan((at.time - view.time.at(0.5)) / view.time.size());
  view.address.pan((at.address - view.address.at(0.5)) / view.address.size());
  session.view = view;
  session.view_changed(Gesture::drag);
}

bool Minimap::update(const Plot& around, Session& session) {
  const ImGuiIO& io = ImGui::GetIO();
  const PlanView home = session.home();
  seen_ = on_ && shows_a_part(session.view, home) && around.width() >= kLeastPlotWidth && around.height() >= kLeastPlotHeight;
  if (!seen_) {
    held_ = false;
    return false;
  }
  plot_ = place_in(around, home);
  const bool inside = plot_.contains(io.MousePos);
  const Point mouse = under(io.MousePos);
  if (io.MouseClicked[0] && inside) {
    const PlanView& view = session.view;
    const bool in_view = mouse.time >= view.time.low && mouse.time <= view.time.high && mouse.address >= view.address.low &&
                         mouse.address <= view.address.high;
    held_ = true;
    grabbed_ = in_view ? Point{view.time.at(0.5) - mouse.time, view.address.at(0.5) - mouse.address} : Point{};
    if (!in_view) centre(session, mouse);
  } else if (held_) {
    const bool is_drag = io.MouseDragMaxDistanceSqr[0] > 16;
    const bool moved = io.MouseDelta.x != 0 || io.MouseDelta.y != 0;
    if (is_drag && moved) centre(session, {mouse.time + grabbed_.time, mouse.address + grabbed_.address});
    if (io.MouseReleased[0] && !is_drag) centre(session, mouse);
    if (!io.MouseDown[0]) session.end_gesture();
  }
  const bool was_held = held_;
  if (!io.MouseDown[0]) held_ = false;
  const bool other_drag = !held_ && (io.MouseDown[0] || io.MouseDown[1] || io.MouseDown[2]);
  if (!was_held && (!inside || other_drag)) return false;
  ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  session.hover(kNone);
  if (!was_held) ImGui::SetTooltip("The whole plan. Drag to move the part in view; click to centre it.");
  return true;
}

void Minimap::draw(Session& session) {
  if (!seen_) return;
  const PlanModel& model = *session.model();
  const PlanColours& colours = session.colours();
  const PlanView& view = session.view;
  const std::shared_ptr<const TimeAxis> axis = session.time_axis();
  const float scale = ImGui::GetIO().DisplayFramebufferScale.x, pixel = 1 / scale;
  const auto width = static_cast<std::int32_t>(plot_.width() * scale),
             height = static_cast<std::int32_t>(plot_.height() * scale);
  if (model_ != model.serial() || axis_ != axis || lod_.width != width || lod_.height != height)
    make_lod(model.rects(), {plot_.across, plot_.up}, width, height, *axis, &lod_);
  model_ = model.serial();
  axis_ = axis;
  const ImVec2 low(plot_.x0, plot_.y0), high(plot_.x1, plot_.y1);
  shapes()->AddRectFilled(ImVec2(low.x - 2, low.y - 2), ImVec2(high.x + 2, high.y + 2), to_imgui(colours::kFrame));
  shapes()->AddRectFilled(low, high, to_imgui(colours::kPlot));
  shapes()->PushClipRect(low, high, true);
  for (const LodRect& r : lod_.rects)
    shapes()->AddRectFilled(ImVec2(low.x + static_cast<float>(r.x0) * pixel, low.y + static_cast<float>(r.y0) * pixel),
                            ImVec2(low.x + static_cast<float>(r.x1) * pixel, low.y + static_cast<float>(r.y1) * pixel),
                            to_imgui(colours.colour_of(static_cast<std::size_t>(r.rect))));
  // The part in view, at least three units wide and high; all around it is dimmed.
  const float x0 = std::round(plot_.x_of(view.time.low)), x1 = std::max(std::round(plot_.x_of(view.time.high)), x0 + 3);
  const float y1 = std::round(plot_.y_of(view.address.low)), y0 = std::min(std::round(plot_.y_of(view.address.high)), y1 - 3);
  const ImU32 dim = to_imgui(colours::kCanvas, 140);
  shapes()->AddRectFilled(low, ImVec2(high.x, y0), dim);
  shapes()->AddRectFilled(ImVec2(low.x, y1), high, dim);
  shapes()->AddRectFilled(ImVec2(low.x, y0), ImVec2(x0, y1), dim);
  shapes()->AddRectFilled(ImVec2(x1, y0), ImVec2(high.x, y1), dim);
  const auto frame = [&](float by, Colour colour) {
    const float l = x0 - by, r = x1 + by, t = y0 - by, b = y1 + by;
    shapes()->AddRectFilled(ImVec2(l, t), ImVec2(r, t + 1), to_imgui(colour));
    shapes()->AddRectFilled(ImVec2(l, b - 1), ImVec2(r, b), to_imgui(colour));
    shapes()->AddRectFilled(ImVec2(l, t), ImVec2(l + 1, b), to_imgui(colour));
    shapes()->AddRectFilled(ImVec2(r - 1, t), ImVec2(r, b), to_imgui(colour));
  };
  frame(1, colours::kOutline);
  frame(0, colours::kText);
  shapes()->PopClipRect();
}

}  // namespace tapedeck::viewer
