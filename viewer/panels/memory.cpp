// Draws the memory plan: rectangles at the level of detail of the zoom, then outlines of the selection, axes, limits, legend
// and tooltip. The level of detail is computed again only if the plot, the scale or the model changed.
#include <tapedeck/viewer/panels/memory.h>

#include <tapedeck/viewer/drawing/imgui_host.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/memory_csv.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/glossary.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck::viewer {

void MemoryPlot::update(const Plot& plot, const std::shared_ptr<const PlanModel>& model) {
  scale_ = ImGui::GetIO().DisplayFramebufferScale.x;
  plot_ = plot;
  lod_.want({model,
             {plot.across, plot.up},
             static_cast<std::int32_t>(plot.width() * scale_),
             static_cast<std::int32_t>(plot.height() * scale_),
             plot.axis});
  is_of_model_ = lod_.made().model == model && lod_.made().axis == plot.axis;
}

// The upper left and the lower right corner. Of a level of detail of another view, whole units where they belong now.
std::pair<ImVec2, ImVec2> MemoryPlot::corners(const LodRect& r) const {
  const float pixel = 1 / scale_;
  if (lod_.is_fresh())
    return {ImVec2(plot_.x0 + static_cast<float>(r.x0) * pixel, plot_.y0 + static_cast<float>(r.y0) * pixel),
            ImVec2(plot_.x0 + static_cast<float>(r.x1) * pixel, plot_.y0 + static_cast<float>(r.y1) * pixel)};
  const LodRequest& made = lod_.made();
  const auto x_of = [&](std::int32_t x) {
    const double share = (made.view.time.at(static_cast<double>(x) / made.width) - plot_.across.low) / plot_.across.size();
    return std::round(plot_.x0 + static_cast<float>(std::clamp(share, -1.0, 2.0)) * plot_.width());
  };
  const auto y_of = [&](std::int32_t y) {
    const double share = (made.view.address.at(1 - static_cast<double>(y) / made.height) - plot_.up.low) / plot_.up.size();
    return std::round(plot_.y1 - static_cast<float>(std::clamp(share, -1.0, 2.0)) * plot_.height());
  };
  const ImVec2 low(x_of(r.x0), y_of(r.y0));
  return {low, ImVec2(std::max(x_of(r.x1), low.x + 1), std::max(y_of(r.y1), low.y + 1))};
}

void MemoryPlot::draw_rect(const PlanModel& model, const PlanColours& colours, const LodRect& r, float pixel) const {
  const PlanRect& rect = model.rects()[r.rect];
  const Colour colour = colours.colour_of(static_cast<std::size_t>(r.rect));
  const auto [low, high] = corners(r);
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
  if (h < 12 || w < 20 || r.count > 1) return;
  // The workspace of a loop opens, so it has the sign of a box of the graph that opens.
  if (rect.value == kNone && model.graph().nodes[rect.node].n_regions == 0) return;
  const std::string name =
      rect.value == kNone ? std::string("+ ") + model.graph().nodes[rect.node].op->name : model.name_of(rect.value);
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

void MemoryPlot::draw(const Plot& plot, const std::shared_ptr<const PlanModel>& shown, const PlanColours& colours,
                      const Selection& selection) {
  update(plot, shown);
  const PlanModel& model = *shown;
  shapes()->PushClipRect(ImVec2(plot.x0, plot.y0), ImVec2(plot.x1, plot.y1), true);
  const float pixel = 1 / scale_;
  if (is_of_model_)
    for (const LodRect& r : lod_.frame().rects) draw_rect(model, colours, r, pixel);
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

void MemoryPlot::draw_edges(const Plot& plot, const std::shared_ptr<const PlanModel>& model, Colour colour) {
  update(plot, model);
  shapes()->PushClipRect(ImVec2(plot.x0, plot.y0), ImVec2(plot.x1, plot.y1), true);
  for (const LodRect& r : lod_.frame().rects) {
    const auto [low, high] = corners(r);
    if (high.x - low.x >= 3 && high.y - low.y >= 3) shapes()->AddRect(low, high, to_imgui(colour, 190));
  }
  shapes()->PopClipRect();
}

const LodRect* MemoryPlot::hit(const ImVec2& point) const {
  if (!plot_.contains(point) || !is_of_model_) return nullptr;
  const LodRequest& made = lod_.made();
  // Of a level of detail of another view, the place in that view.
  const double across = (plot_.across_at(point.x) - made.view.time.low) / made.view.time.size();
  const double up = (plot_.up.at(static_cast<double>((plot_.y1 - point.y) / plot_.height())) - made.view.address.low) /
                    made.view.address.size();
  const bool is_fresh = lod_.is_fresh();
  const auto x = is_fresh ? static_cast<std::int32_t>((point.x - plot_.x0) * scale_)
                          : static_cast<std::int32_t>(std::floor(std::clamp(across, -1.0, 2.0) * made.width));
  const auto y = is_fresh ? static_cast<std::int32_t>((point.y - plot_.y0) * scale_)
                          : static_cast<std::int32_t>(std::floor((1 - std::clamp(up, -1.0, 2.0)) * made.height));
  const std::int32_t id = lod_.frame().hit(x, y);
  return id < 0 ? nullptr : &lod_.frame().rects[static_cast<std::size_t>(id)];
}

// ---- the panel ----

MemoryPanel::MemoryPanel(Session& session)
    : PicturePanel(session), picture_([this] { ask_for_frame(); }), regions_(session, *this, [this] { ask_for_frame(); }) {}

// Any thread may call it.
void MemoryPanel::ask_for_frame() const {
  if (wake_function()) wake_function()();
}

void MemoryPanel::finish() {
  regions_.finish();
  picture_.lod().finish();
}

void MemoryPanel::write_csv(const std::string& path) {
  if (session_.model() == nullptr) throw UsageError("there is no plan to write");
  AtomicWriter out(path);
  out.write(memory_csv(*regions_.session().model()));
  out.commit();
}

void MemoryPanel::restore_region(const SavedRegion& region) {
  regions_.restore(region);
  ask_for_frame();
}

void MemoryPanel::stop() {
  regions_.stop();
  picture_.lod().stop();
}

void MemoryPanel::closed() {
  regions_.forget();
  picture_.lod().forget();
  PicturePanel::closed();
}

// The title, the summary, the way out of a region, and the legend. Returns the height used.
float MemoryPanel::draw_heading(float width) {
  const Plan& plan = session_.model()->plan();
  const ShownRegion* const region = regions_.region();
  const std::string title = session_.document() != nullptr ? session_.document()->title() : plan.graph.name.str();
  draw_text_cut(TextSize::title, 12, 8, width - 24, colours::kText, title);
  const float after_title = 12 + text_width(TextSize::title, title) + 18;
  const std::string summary = region == nullptr ? plan_summary(plan, unit_of(plan))
                                                : region_text(region->facts, region->place.path.back().region, unit_of(plan));
  const bool is_beside = after_title + text_width(TextSize::small, summary) + 12 <= width;
  const float x = is_beside ? after_title : 12, top = is_beside ? 11 : 30;
  draw_text_cut(TextSize::small, x, top, width - x - 12, colours::kFaint, summary);
  if (is_under_mouse(x, top, text_width(TextSize::small, summary))) {
    if (region == nullptr)
      summary_tooltip();
    else
      explained_tooltip("One run of a region", explain_term("memory of a region") + " " + region->facts.keeps, "");
  }
  float y = is_beside ? 30 : 47;
  if (region != nullptr) {
    const RegionWay way = draw_region_way(region->place, y, width);
    y += way.height;
    if (way.leaves_to) regions_.leave(*way.leaves_to);
    if (way.region != kNone) regions_.show_region(way.region);
  }
  return y;
}

// The workspace of the node in the plan around it, as a bar in parts. Narrow parts are drawn wider than they are.
float MemoryPanel::draw_workspace(float y, float width) {
  const ShownRegion& region = *regions_.region();
  if (region.workspace.empty()) return 0;
  constexpr float kLeast = 12, kHigh = 18;
  const ByteUnit unit = unit_of(session_.model()->plan());
  const std::string label = "its workspace:";
  draw_text(TextSize::small, 12, y + 2, colours::kFaint, label);
  float x = 12 + text_width(TextSize::small, label) + 8;
  const float room = std::max(width - x - kLeast * static_cast<float>(region.workspace.size()) - 12, 0.0f);
  for (const WorkspacePart& part : region.workspace) {
    const double share =
        static_cast<double>(part.bytes) / static_cast<double>(std::max<std::int64_t>(region.facts.workspace, 1));
    const float wide = std::round(kLeast + room * static_cast<float>(share));
    const ImVec2 low(x, y), high(x + wide - 1, y + kHigh), mouse = ImGui::GetIO().MousePos;
    const Colour colour = role_class_colour(part.name == "tape" ? RoleClass::saved : RoleClass::workspace);
    shapes()->AddRectFilled(low, high, to_imgui(part.name == "frame" || part.name == "tape" ? colour : shaded(colour, 0.55)));
    const std::string text = part.name + " " + unit.readable_text(part.bytes);
    if (text_width(TextSize::small, text) + 8 < wide) draw_text(TextSize::small, x + 4, y + 2, text_on(colour), text);
    if (mouse.x >= low.x && mouse.x < high.x && mouse.y >= low.y && mouse.y < high.y)
      explained_tooltip(part.name + " " + unit.exact_text(part.bytes), part.sentence, "");
    x += wide;
  }
  return kHigh + 6;
}

// The names of the bands of addresses, beside the plot.
void MemoryPanel::draw_bands(const PlanModel& model) const {
  const auto band = [&](std::int64_t low, std::int64_t high, const char* name, const char* term) {
    const float top = std::max(plot_.y_of(static_cast<double>(high)), plot_.y0);
    const float bottom = std::min(plot_.y_of(static_cast<double>(low)), plot_.y1), y = (top + bottom) / 2 - 7;
    if (bottom - top <= 15) return;
    draw_text(TextSize::small, plot_.x1 + 7, y, colours::kFaint, name);
    if (is_under_mouse(plot_.x1 + 7, y, text_width(TextSize::small, name))) explained_tooltip(name, explain_term(term), "");
  };
  const std::int64_t arena = model.external_bytes();
  band(arena, model.extent(), "arena", regions_.region() != nullptr ? "arena of a region" : "arena");
  if (regions_.region() == nullptr) return band(0, arena, "external", "external");
  const std::int64_t inputs = arena - result_bytes(model.plan());
  band(0, inputs, "inputs", "inputs of a region");
  band(inputs, arena, "results", "results of a region");
}

void MemoryPanel::draw(float width, float height) {
  if (draw_nothing(width, height)) return;
  regions_.update();
  float y = draw_heading(width);
  Session& shown = regions_.session();  // the heading may have left the region
  const ShownRegion* const region = regions_.region();
  const PlanModel& model = *shown.model();
  const Plan& plan = session_.model()->plan();
  y += draw_legend(12, y + 2, width - 24, shown.colours());
  y += region != nullptr ? draw_workspace(y + 4, width) : draw_infeasible(12, y + 2, width - 24, plan);
  plot_ =
      make_plot(60, y + 22, width - 62, height - kTimeAxisHeight - 6, shown.view.time, shown.view.address, shown.time_axis());
  const bool mouse_is_taken = minimap_.update(plot_, shown) || (region == nullptr && budget_.update(plot_, session_));
  if (mouse_is_taken)
    navigation_.rest();
  else
    navigation_.update(plot_, shown, true);
  plot_.across = shown.view.time;
  plot_.up = shown.view.address;
  draw_plot_ground(plot_);
  draw_byte_axis(plot_, unit_of(plan), "address");
  picture_.draw(plot_, shown.shared_model(), shown.colours(), shown.selection());
  draw_time_axis(plot_, model);
  draw_phase_legend(plot_, model);
  if (region == nullptr) draw_limits(plot_, plan, unit_of(plan), session_.asked_budget());
  draw_bands(model);
  draw_solving(plot_, session_);
  if (!regions_.settled()) draw_plate(plot_, plot_.x0 + 6, plot_.y0 + 6, false, colours::kHover, "opening…");
  minimap_.draw(shown);
  if (!mouse_is_taken) answer_mouse(shown);
}

void MemoryPanel::answer_mouse(Session& shown) {
  const PlanModel& model = *shown.model();
  const LodRect* hit = picture_.hit(ImGui::GetIO().MousePos);
  const PlanRect* rect = hit != nullptr ? &model.rects()[hit->rect] : nullptr;
  if (!plot_.contains(ImGui::GetIO().MousePos)) {
    // The outline goes when the mouse leaves; a hover that another panel set stays.
    if (std::exchange(hovers_, false)) shown.hover(kNone);
  } else if (!navigation_.dragging) {
    hovers_ = true;
    shown.hover(rect != nullptr ? rect->value : kNone);
    if (hit != nullptr) rect_tooltip(model, *hit, unit_of(session_.model()->plan()), "Double click to see what runs in it");
  }
  const bool is_workspace = rect != nullptr && rect->value == kNone && hit->count == 1;
  if (navigation_.double_clicked && is_workspace && model.graph().nodes[rect->node].n_regions > 0)
    regions_.enter(rect->node);
  else if (navigation_.double_clicked)
    shown.fit_all();
  else if (navigation_.clicked && rect == nullptr)
    shown.clear_selection();
  else if (navigation_.clicked && rect->value != kNone)
    shown.select_value(rect->value);
  else if (navigation_.clicked)
    shown.select_node(rect->node);
}

bool MemoryPanel::move_view(ViewMove move) {
  if (regions_.region() == nullptr) return false;
  Session& shown = regions_.session();
  const PlanView before = shown.view;
  move_session_view(shown, move);
  if (move == ViewMove::back && shown.view == before) leave(depth() - 1);
  return true;
}

bool MemoryPanel::enter_selection() {
  repaint();
  return regions_.enter_selection();
}

bool MemoryPanel::leave(std::size_t depth) {
  repaint();
  return regions_.leave(depth);
}

void MemoryPanel::turn_minimap(bool on) {
  minimap_.turn(on);
  repaint();
}

std::optional<ImVec2> MemoryPanel::place_of_rect(const PlanRect& r) const {
  const ImVec2 p((plot_.x_of(r.begin) + plot_.x_of(r.end)) / 2,
                 (plot_.y_of(static_cast<double>(r.address)) + plot_.y_of(static_cast<double>(r.address + r.bytes))) / 2);
  if (!plot_.contains(p)) return std::nullopt;
  return p;
}

std::optional<ImVec2> MemoryPanel::place_of(ValueId v) const {
  const PlanModel* const model = regions_.session().model();
  if (model == nullptr) return std::nullopt;
  for (const PlanRect& r : model->rects_of(v))
    if (const std::optional<ImVec2> place = place_of_rect(r)) return place;
  return std::nullopt;
}

std::optional<ImVec2> MemoryPanel::place_of_workspace(NodeId n) const {
  const PlanModel* const model = regions_.session().model();
  if (model == nullptr) return std::nullopt;
  for (const PlanRect& r : model->rects())
    if (r.value == kNone && r.node == n) return place_of_rect(r);
  return std::nullopt;
}

}  // namespace tapedeck::viewer
