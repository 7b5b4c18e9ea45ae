// Draws the memory plan: rectangles at the level of detail of the zoom, then outlines of the selection, axes, limits, legend
// and tooltip. The level of detail is computed again only if the plot, the scale or the model changed.
#include <tapedeck/viewer/panels/memory.h>

#include <tapedeck/viewer/drawing/imgui_host.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/words/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck::viewer {

void MemoryPlot::update(const Plot& plot, const PlanModel& model) {
  const float scale = ImGui::GetIO().DisplayFramebufferScale.x;
  const bool same = model_ == model.serial() && scale_ == scale && plot_.x0 == plot.x0 && plot_.x1 == plot.x1 &&
                    plot_.y0 == plot.y0 && plot_.y1 == plot.y1 && plot_.across == plot.across && plot_.up == plot.up &&
                    plot_.axis == plot.axis;
  plot_ = plot;
  scale_ = scale;
  model_ = model.serial();
  if (same) return;
  static const TimeAxis nodes;
  make_lod(model.rects(), {plot.across, plot.up}, static_cast<std::int32_t>(plot.width() * scale),
           static_cast<std::int32_t>(plot.height() * scale), plot.axis ? *plot.axis : nodes, &lod_);
}

void MemoryPlot::draw_rect(const PlanModel& model, const PlanColours& colours, const LodRect& r, float pixel) const {
  const PlanRect& rect = model.rects()[r.rect];
  const Colour colour = colours.colour_of(static_cast<std::size_t>(r.rect));
  const ImVec2 low(plot_.x0 + static_cast<float>(r.x0) * pixel, plot_.y0 + static_cast<float>(r.y0) * pixel);
  const ImVec2 high(plot_.x0 + static_cast<float>(r.x1) * pixel, plot_.y0 + static_cast<float>(r.y1) * pixel);
  const float w = high.x - low.x, h = high.y - low.y;
  if (w < 3 || h < 3) {
    shapes()->AddRectFilled(low, high, to_imgui(colour));
    return;
  }
  // A darker edge on two sides separates neighbours of the same colour.
  shapes()->AddRectFilled(low, high, to_imgui(shaded(colour, 0.55)));
  const ImVec2 inner_low(low.x, low.y + pixel), inner_high(high.x - pixel, high.y);
  shapes()->AddRectFilled(inner_low, inner_high, to_imgui(colour));
  if (rect.role == RoleClass::recomputed) draw_hatch(inner_low, inner_high, colour);
  if (h < 12 || w < 20 || r.count > 1 || rect.value == kNone) return;
  const std::string name = model.name_of(rect.value);
  const float wide = text_width(TextSize::small, name);
  if (wide + 8 > w) return;
  const ImVec2 at(low.x + 4, low.y + std::round((h - 12) / 2));
  if (rect.role == RoleClass::recomputed)
    shapes()->AddRectFilled(ImVec2(at.x - 2, at.y), ImVec2(at.x + wide + 2, at.y + 13), to_imgui(colour));
  draw_text(TextSize::small, at.x, at.y, text_on(colour), name);
}

void MemoryPlot::outline(const PlanModel& model, ValueId v, Colour colour, float thickness) const {
  for (const PlanRect& r : model.rects_of(v)) {
    const ImVec2 low(plot_.x_of(r.begin), plot_.y_of(static_cast<double>(r.address + r.bytes)));
    const ImVec2 high(plot_.x_of(r.end), plot_.y_of(static_cast<double>(r.address)));
    if (high.x < plot_.x0 || low.x > plot_.x1 || high.y < plot_.y0 || low.y > plot_.y1) continue;
    const ImVec2 a(std::round(low.x), std::round(low.y)),
        b(std::round(std::max(high.x, low.x + 2)), std::round(std::max(high.y, low.y + 2)));
    shapes()->AddRect(ImVec2(a.x - 1, a.y - 1), ImVec2(b.x + 1, b.y + 1), to_imgui(colours::kOutline), 0, 0, thickness + 2);
    shapes()->AddRect(a, b, to_imgui(colour), 0, 0, thickness);
  }
}

// Lines lead from where the bytes of a run end to where the next run writes them again, and ticks at the bottom mark the
// readers.
void MemoryPlot::draw_chain(const PlanModel& model, const Selection& selection) const {
  ImVec2 from;
  bool is_first = true;
  for (const ValueId copy : selection.copies) {
    const std::vector<PlanRect> rects = model.rects_of(copy);
    if (rects.empty()) continue;
    const float y = plot_.y_of(static_cast<double>(rects.front().address) + static_cast<double>(rects.front().bytes) / 2);
    const ImVec2 to(plot_.x_of(rects.front().begin), y);
    if (!is_first) {
      shapes()->AddLine(from, to, to_imgui(colours::kOutline), 3);
      shapes()->AddLine(from, to, to_imgui(colours::kSelect), 1.5f);
      shapes()->AddCircleFilled(to, 3.5f, to_imgui(colours::kSelect));
    }
    from = ImVec2(plot_.x_of(rects.back().end), y);
    is_first = false;
  }
  if (selection.value == kNone) return;
  for (const NodeId reader : model.values().entry(selection.value).readers) {
    const float x = plot_.x_of(reader + 0.5);
    shapes()->AddTriangleFilled(ImVec2(x - 4, plot_.y1), ImVec2(x + 4, plot_.y1), ImVec2(x, plot_.y1 - 7),
                                to_imgui(colours::kSelect));
  }
}

void MemoryPlot::draw(const Plot& plot, const PlanModel& model, const PlanColours& colours, const Selection& selection) {
  update(plot, model);
  shapes()->PushClipRect(ImVec2(plot.x0, plot.y0), ImVec2(plot.x1, plot.y1), true);
  const float pixel = 1 / scale_;
  for (const LodRect& r : lod_.rects) draw_rect(model, colours, r, pixel);
  const float floor = std::round(plot.y_of(static_cast<double>(model.external_bytes())));
  if (model.external_bytes() > 0 && model.plan().arena_bytes > 0)
    shapes()->AddRectFilled(ImVec2(plot.x0, floor), ImVec2(plot.x_of(model.nodes()), floor + 1), to_imgui(colours::kText, 170));
  if (selection.node != kNone) {
    const float x0 = std::round(plot.x_of(selection.node)), x1 = std::max(std::round(plot.x_of(selection.node + 1)), x0 + 1);
    shapes()->AddRectFilled(ImVec2(x0, plot.y0), ImVec2(x1, plot.y1), to_imgui(colours::kSelect, 46));
  }
  for (const ValueId copy : selection.copies)
    if (copy != selection.value) outline(model, copy, colours::kSelect, 1);
  if (selection.value != kNone) outline(model, selection.value, colours::kSelect, 2);
  chain_.draw(plot, model, selection.value);
  draw_chain(model, selection);
  if (selection.hovered != kNone) outline(model, selection.hovered, colours::kHover, 1);
  shapes()->PopClipRect();
}

void MemoryPlot::draw_edges(const Plot& plot, const PlanModel& model, Colour colour) {
  update(plot, model);
  shapes()->PushClipRect(ImVec2(plot.x0, plot.y0), ImVec2(plot.x1, plot.y1), true);
  const float pixel = 1 / scale_;
  for (const LodRect& r : lod_.rects) {
    const ImVec2 low(plot_.x0 + static_cast<float>(r.x0) * pixel, plot_.y0 + static_cast<float>(r.y0) * pixel);
    const ImVec2 high(plot_.x0 + static_cast<float>(r.x1) * pixel, plot_.y0 + static_cast<float>(r.y1) * pixel);
    if (high.x - low.x >= 3 && high.y - low.y >= 3) shapes()->AddRect(low, high, to_imgui(colour, 190));
  }
  shapes()->PopClipRect();
}

const LodRect* MemoryPlot::hit(const ImVec2& point) const {
  if (!plot_.contains(point)) return nullptr;
  const std::int32_t id = lod_.hit(static_cast<std::int32_t>((point.x - plot_.x0) * scale_),
                                   static_cast<std::int32_t>((point.y - plot_.y0) * scale_));
  return id < 0 ? nullptr : &lod_.rects[id];
}

void MemoryPanel::draw(float width, float height) {
  if (draw_nothing(width, height)) return;
  const PlanModel& model = *session_.model();
  const Plan& plan = model.plan();
  const std::string title = session_.document() != nullptr ? session_.document()->title() : model.graph().name.str();
  draw_text_cut(TextSize::title, 12, 8, width - 24, colours::kText, title);
  const float after_title = 12 + text_width(TextSize::title, title) + 18;
  const std::string summary = plan_summary(plan, unit_of(plan));
  float y = 30;
  if (after_title + text_width(TextSize::small, summary) + 12 <= width) {
    draw_text(TextSize::small, after_title, 11, colours::kFaint, summary);
  } else {
    draw_text_cut(TextSize::small, 12, y, width - 24, colours::kFaint, summary);
    y += 17;
  }
  const bool beside = y == 30;
  if (is_under_mouse(beside ? after_title : 12, beside ? 11 : 30, text_width(TextSize::small, summary))) summary_tooltip();
  y += draw_legend(12, y + 2, width - 24, session_.colours());
  y += draw_infeasible(12, y + 2, width - 24, plan);
  plot_ = make_plot(60, y + 22, width - 62, height - kTimeAxisHeight - 6, session_.view.time, session_.view.address,
                    session_.time_axis());
  const bool mouse_is_taken = minimap_.update(plot_, session_) || budget_.update(plot_, session_);
  if (mouse_is_taken)
    navigation_.rest();
  else
    navigation_.update(plot_, session_, true);
  plot_.across = session_.view.time;
  plot_.up = session_.view.address;
  draw_plot_ground(plot_);
  draw_byte_axis(plot_, unit_of(plan), "address");
  picture_.draw(plot_, model, session_.colours(), session_.selection());
  draw_time_axis(plot_, model);
  draw_phase_legend(plot_, model);
  draw_limits(plot_, plan, unit_of(plan), session_.asked_budget());
  // Names of the two bands of addresses, beside the plot.
  const auto band = [&](double low, double high, const char* name) {
    const float top = std::max(plot_.y_of(high), plot_.y0), bottom = std::min(plot_.y_of(low), plot_.y1);
    if (bottom - top > 15) draw_text(TextSize::small, plot_.x1 + 7, (top + bottom) / 2 - 7, colours::kFaint, name);
  };
  band(0, static_cast<double>(model.external_bytes()), "external");
  band(static_cast<double>(model.external_bytes()), static_cast<double>(model.extent()), "arena");
  draw_solving(plot_, session_);
  minimap_.draw(session_);
  if (mouse_is_taken) return;

  const LodRect* hit = picture_.hit(ImGui::GetIO().MousePos);
  const PlanRect* rect = hit != nullptr ? &model.rects()[hit->rect] : nullptr;
  if (!plot_.contains(ImGui::GetIO().MousePos)) {
    // The outline goes when the mouse leaves; a hover that another panel set stays.
    if (std::exchange(hovers_, false)) session_.hover(kNone);
  } else if (!navigation_.dragging) {
    hovers_ = true;
    session_.hover(rect != nullptr ? rect->value : kNone);
    if (hit != nullptr) rect_tooltip(model, *hit);
  }
  if (navigation_.double_clicked)
    session_.fit_all();
  else if (navigation_.clicked && rect == nullptr)
    session_.clear_selection();
  else if (navigation_.clicked && rect->value != kNone)
    session_.select_value(rect->value);
  else if (navigation_.clicked)
    session_.select_node(rect->node);
}

void MemoryPanel::turn_minimap(bool on) {
  minimap_.turn(on);
  repaint();
}

std::optional<ImVec2> MemoryPanel::place_of(ValueId v) const {
  if (session_.model() == nullptr) return std::nullopt;
  for (const PlanRect& r : session_.model()->rects_of(v)) {
    const ImVec2 p((plot_.x_of(r.begin) + plot_.x_of(r.end)) / 2,
                   (plot_.y_of(static_cast<double>(r.address)) + plot_.y_of(static_cast<double>(r.address + r.bytes))) / 2);
    if (plot_.contains(p)) return p;
  }
  return std::nullopt;
}

}  // namespace tapedeck::viewer
