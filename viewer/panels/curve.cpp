// Draws the curve of live bytes. Each column of pixels shows the highest of its nodes, and the roles are stacked from bottom to
// top: first the bytes that are always there, then the bytes that the plan decides about.
#include <tapedeck/viewer/panels/curve.h>

#include <tapedeck/viewer/model/measured_csv.h>
#include <tapedeck/viewer/panels/measured.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/plan/same_step.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/glossary.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/drawing/imgui_host.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

namespace {

constexpr float kHighEnoughForLegend = 300;

// The highest node of a column of pixels, so that a peak never falls between pixels.
NodeId highest(const Plot& plot, const PlanModel& model, int column) {
  const auto nodes = plot.nodes_in_column(column, model.nodes());
  return static_cast<NodeId>(model.maxima().first_of_largest(model.curve(), static_cast<std::size_t>(nodes.first),
                                                             static_cast<std::size_t>(nodes.second)));
}

void draw_node(const Plot& plot, const PlanColours& colours, NodeId n, float x0, float x1) {
  std::int64_t below = 0;
  for (const PlanLayer& layer : colours.layers()) {
    const std::int64_t bytes = (*layer.curve)[static_cast<std::size_t>(n)];
    if (bytes == 0) continue;
    const float y1 = std::round(plot.y_of(static_cast<double>(below))),
                y0 = std::round(plot.y_of(static_cast<double>(below + bytes)));
    if (y1 > y0)
      shapes()->AddRectFilled(ImVec2(x0, y0), ImVec2(x1, y1), to_imgui(mixed(colours::kPlot, colours.colour(layer), 0.85)));
    below += bytes;
  }
}

void draw_peak_marker(const Plot& plot, const PlanModel& model) {
  const NodeId n = model.peak_node();
  if (n == kNone) return;
  const std::int64_t bytes = model.curve()[n];
  const float x = plot.x_of(n + 0.5), y = plot.y_of(static_cast<double>(bytes));
  if (x < plot.x0 || x > plot.x1) return;
  shapes()->AddCircleFilled(ImVec2(x, y), 5, to_imgui(colours::kOutline));
  shapes()->AddCircleFilled(ImVec2(x, y), 3.5f, to_imgui(colours::kPeak));
  const std::string text = "most live: " + unit_of(model.plan()).text(bytes) + " at " + node_title(model.graph(), n);
  const bool left = x + text_width(TextSize::small, text) + 20 > plot.x1;
  draw_plate(plot, left ? x - 10 : x + 10, y + 24, left, colours::kPeak, text);  // below the label of the line above
}

}  // namespace

double curve_top(const Plan& plan) {
  return static_cast<double>(std::max({plan.peak_bytes, plan.keep_all_peak_bytes, std::int64_t{1}})) * 1.14;
}

void draw_outline(const Plot& plot, const std::vector<std::int64_t>& bytes, const BlockMaxima& maxima, Colour colour) {
  const auto nodes = static_cast<NodeId>(bytes.size());
  const double end_of_step = plot.axis ? plot.axis->at(nodes) : nodes;
  float before = -1;
  for (int c = 0; c < static_cast<int>(plot.width()); ++c) {
    if (nodes == 0 || plot.across_at(plot.x0 + static_cast<float>(c)) >= end_of_step) break;
    const auto [a, b] = plot.nodes_in_column(c, nodes);
    const float x = plot.x0 + static_cast<float>(c);
    const std::size_t highest =
        maxima.first_of_largest(bytes, static_cast<std::size_t>(a), static_cast<std::size_t>(std::max(b, a + 1)));
    const float y = std::round(plot.y_of(static_cast<double>(bytes[highest])));
    const float top = before < 0 ? y : std::min(before, y), bottom = before < 0 ? y : std::max(before, y);
    if (bottom >= plot.y0 && top < plot.y1)
      shapes()->AddRectFilled(ImVec2(x, std::max(top, plot.y0)), ImVec2(x + 1, std::min(bottom + 1, plot.y1)),
                              to_imgui(colour));
    before = y;
  }
}

void draw_curve(const Plot& plot, const PlanModel& model, const PlanColours& colours, const Selection& selection) {
  if (model.nodes() == 0) return;
  shapes()->PushClipRect(ImVec2(plot.x0, plot.y0), ImVec2(plot.x1, plot.y1), true);
  const int columns = static_cast<int>(plot.width());
  const double end_of_step = plot.axis ? plot.axis->at(model.nodes()) : model.nodes();
  const auto is_past_the_end = [&](int column) { return plot.across_at(plot.x0 + static_cast<float>(column)) >= end_of_step; };
  float previous_top = -1;
  int c = 0;
  const auto highest_in = [&](int column) { return is_past_the_end(column) ? kNone : highest(plot, model, column); };
  for (NodeId n = highest_in(0), next = n; n != kNone; n = next) {
    int end = c + 1;
    for (; end < columns; ++end)
      if ((next = highest_in(end)) != n) break;
    if (end == columns) next = kNone;
    const float x0 = plot.x0 + static_cast<float>(c), x1 = plot.x0 + static_cast<float>(end);
    draw_node(plot, colours, n, x0, x1);
    const float top = std::round(plot.y_of(static_cast<double>(model.curve()[n])));
    shapes()->AddRectFilled(ImVec2(x0, top - 1), ImVec2(x1, top + 1), to_imgui(colours::kText));
    if (previous_top >= 0 && previous_top != top)
      shapes()->AddRectFilled(ImVec2(x0, std::min(top, previous_top) - 1), ImVec2(x0 + 1, std::max(top, previous_top) + 1),
                              to_imgui(colours::kText, 150));
    previous_top = top;
    c = end;
  }
  // Of the groups, each has its share of the external bytes, so these do not lie at the bottom.
  if (colours.by() == ColourBy::role) {
    const float base = std::round(plot.y_of(static_cast<double>(model.external_bytes())));
    shapes()->AddRectFilled(ImVec2(plot.x0, base), ImVec2(plot.x_of(model.nodes()), base + 1), to_imgui(colours::kText, 170));
  }
  if (selection.node != kNone) {
    const float x0 = std::round(plot.x_of(selection.node)), x1 = std::max(std::round(plot.x_of(selection.node + 1)), x0 + 1);
    shapes()->AddRectFilled(ImVec2(x0, plot.y0), ImVec2(x1, plot.y1), to_imgui(colours::kSelect, 70));
  }
  for (const PlanRect& r : model.rects_of(selection.hovered))
    shapes()->AddRect(ImVec2(plot.x_of(r.begin), plot.y0 + 1), ImVec2(plot.x_of(r.end), plot.y1), to_imgui(colours::kHover));
  shapes()->PopClipRect();
}

void CurvePanel::draw(float width, float height) {
  if (draw_nothing(width, height)) return;
  const PlanModel& model = *session_.model();
  const Plan& plan = model.plan();
  plot_ = lay_out(width, height);
  // The marker of the peak often lies on the line of the budget. A press on it is for the marker, and a drag of the line goes
  // on.
  const bool is_dragging = ImGui::GetIO().MouseDown[0] && !ImGui::GetIO().MouseClicked[0];
  const bool on_budget = (is_dragging || !on_peak_marker()) && budget_.update(plot_, session_);
  if (on_budget)
    navigation_.rest();
  else
    navigation_.update(plot_, session_, false);
  plot_.across = session_.view.time;
  drag_range();
  draw_plot_ground(plot_);
  draw_byte_axis(plot_, unit_of(plan), "live");
  draw_curve(plot_, model, session_.colours(), session_.selection());
  if (session_.keep_all() != nullptr)
    draw_outline(plot_, outline(), outline_maxima_, mixed(colours::kPlot, colours::kFaint, 0.6));
  draw_limits(plot_, plan, unit_of(plan), session_.asked_budget());
  draw_measured_bytes(plot_, session_);
  draw_peak_marker(plot_, model);
  draw_time_axis(plot_, model);
  const float base = plot_.y_of(static_cast<double>(model.external_bytes()));
  if (plot_.y1 - base > 15 && session_.colour_by() == ColourBy::role)
    draw_text(TextSize::small, plot_.x1 + 7, (plot_.y1 + base) / 2 - 7, colours::kFaint, "external");
  draw_solving(plot_, session_);
  if (box_) draw_range_box(plot_, *box_, session_.range());
  if (on_budget) return;

  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (!plot_.contains(mouse) || model.nodes() == 0) return;
  const NodeId n = std::clamp(static_cast<NodeId>(plot_.node_at(mouse.x)), 0, model.nodes() - 1);
  session_.hover(kNone);
  if (!navigation_.dragging && on_peak_marker())
    explained_tooltip("most live: " + unit_of(plan).exact_text(model.curve()[model.peak_node()]), explain_term("most live"),
                      "Click to see all that is alive there, and what would lower it");
  else if (!navigation_.dragging)
    node_tooltip(model, session_.colours(), n);
  if (navigation_.double_clicked)
    session_.fit_all();
  else if (navigation_.clicked)
    session_.select_node(on_peak_marker() ? model.peak_node() : n);
}

void CurvePanel::write_csv(const std::string& path) {
  if (session_.model() == nullptr) throw UsageError("there is no plan to write");
  AtomicWriter out(path);
  out.write(live_bytes_csv(*session_.model(), session_.measurements().of_plan(*session_.model()), session_.measured_us()));
  out.commit();
}

void CurvePanel::drag_range() {
  if (!navigation_.selecting) return;
  const double from = plot_.node_of(navigation_.selected_from), to = plot_.node_at(ImGui::GetIO().MousePos.x);
  session_.select_range({static_cast<NodeId>(std::max(std::min(from, to), 0.0)), static_cast<NodeId>(std::max(from, to))});
}

const RangeTotals& CurvePanel::totals() {
  const PlanModel& model = *session_.model();
  if (totals_of_ != model.serial() || !(totals_.range == session_.range())) {
    totals_ = range_totals(model, session_.range());
    totals_of_ = model.serial();
  }
  return totals_;
}

// Draws the title and the legend, and returns the plot below them. It begins further down where the box of the range stands
// above it.
Plot CurvePanel::lay_out(float width, float height) {
  const Plan& plan = session_.model()->plan();
  const std::string title =
      "Live bytes" + (session_.document() != nullptr ? " · " + session_.document()->title() : std::string());
  draw_text_cut(TextSize::title, 12, 6, width - 24, colours::kText, title);
  float top = 44;
  // By role, the legend of the memory plan serves a low curve too.
  if (session_.colour_by() != ColourBy::role || height >= kHighEnoughForLegend) {
    const float left = 12 + text_width(TextSize::title, title) + 18;
    top += std::max(draw_legend(left, 8, std::max(width - left - 12, 1.0f), session_.colours()) - 17, 0.0f);
  }
  const auto from = [&](float y) {
    return make_plot(60, y, width - 62, height - kTimeAxisHeight - 6, session_.view.time, {0, curve_top(plan)},
                     session_.time_axis());
  };
  box_.reset();
  if (!session_.range().empty()) box_ = place_range_box(from(top), width, *session_.model(), totals());
  return from(box_ ? top + box_->above : top);
}

bool CurvePanel::on_peak_marker() const {
  constexpr float kReach = 8;
  if (session_.model()->peak_node() == kNone) return false;
  const ImVec2 mouse = ImGui::GetIO().MousePos, peak = place_of_peak();
  return std::abs(mouse.x - peak.x) <= kReach && std::abs(mouse.y - peak.y) <= kReach;
}

ImVec2 CurvePanel::place_of_peak() const {
  const PlanModel& model = *session_.model();
  const NodeId n = model.peak_node();
  return ImVec2(plot_.x_of(n + 0.5), plot_.y_of(static_cast<double>(model.curve()[n])));
}

const std::vector<std::int64_t>& CurvePanel::outline() {
  const PlanModel &other = *session_.keep_all(), &shown = *session_.model();
  if (outline_of_ != other.serial() || outline_along_ != shown.serial()) {
    outline_ = live_bytes_along(other, shown);
    outline_maxima_ = BlockMaxima(outline_);
    outline_of_ = other.serial();
    outline_along_ = shown.serial();
  }
  return outline_;
}

ImVec2 CurvePanel::place_of_bytes(std::int64_t bytes) const {
  return ImVec2((plot_.x0 + plot_.x1) / 2, plot_.y_of(static_cast<double>(bytes)));
}

ImVec2 CurvePanel::place_of(NodeId n) const { return ImVec2(plot_.x_of(n + 0.5), (plot_.y0 + plot_.y1) / 2); }

}  // namespace tapedeck::viewer
