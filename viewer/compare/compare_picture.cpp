#include <tapedeck/viewer/compare/compare_picture.h>

#include <tapedeck/viewer/panels/curve.h>
#include <tapedeck/viewer/plan/same_step.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr float kLeft = 60, kRight = 16;  // of a plot in its side: room for the axis, and a margin

ImDrawList* list() { return ImGui::GetWindowDrawList(); }
std::size_t at(int side) { return static_cast<std::size_t>(side); }

// The colours of both plans. Groups are those of both graphs together.
std::vector<PlanColours> colours_of(const MatchedPlans& plans, ColourBy by) {
  std::shared_ptr<const ValueGroups> groups;
  if (by != ColourBy::role)
    groups = std::make_shared<const ValueGroups>(
        std::vector<const Graph*>{plans.side(0).captured.get(), plans.side(1).captured.get()}, by);
  std::vector<PlanColours> colours;
  for (const int side : {0, 1}) colours.emplace_back(plans.side(side).model, groups);
  return colours;
}

}  // namespace

const std::vector<std::string>& compare_commands() {
  static const std::vector<std::string> commands{"view.colour-by-role", "view.colour-by-module", "view.colour-by-op",
                                                 "view.axis-nodes",     "view.axis-time",        "compare.overlay",
                                                 "compare.lock",        "compare.swap"};
  return commands;
}

CompareLook look_after(CompareLook look, std::string_view command) {
  constexpr std::string_view kColourBy = "view.colour-by-";
  if (command.starts_with(kColourBy))
    find_colour_by(command.substr(kColourBy.size()), &look.by);
  else if (command == "compare.overlay")
    look.overlay = !look.overlay;
  else if (command == "compare.lock")
    look.locked = !look.locked;
  else if (command == "compare.swap")
    look.swapped = !look.swapped;
  else
    look.unit = command == "view.axis-time" ? TimeUnit::us : TimeUnit::nodes;
  return look;
}

ComparePicture::ComparePicture(Comparison comparison, CompareLook look) : comparison_(std::move(comparison)) {
  std::int64_t largest = 0;
  for (const int s : {0, 1}) {
    const ComparedPlan& side = comparison_.plans[0]->side(s);
    const Plan& plan = side.model->plan();
    home_.address.high = std::max(home_.address.high, side.model->home().address.high);
    live_.high = std::max(live_.high, curve_top(plan));
    largest = std::max({largest, plan.peak_bytes, plan.keep_all_peak_bytes});
  }
  unit_ = ByteUnit::of(largest);
  set_look(look);
}

void ComparePicture::set_look(CompareLook look) {
  if (plans_ == nullptr || look.swapped != look_.swapped) {
    plans_ = comparison_.plans[look.swapped ? 1 : 0].get();
    left_bytes_ = live_bytes_along(*plan(0).model, *plan(1).model);
    std::swap(selections_[0], selections_[1]);
    std::swap(views_[0], views_[1]);
  }
  const bool keeps_views = look.unit == look_.unit && home_.time.size() > 1;
  look_ = look;
  colours_ = colours_of(*plans_, look.by);
  home_.time = {};
  for (const int side : {0, 1})
    home_.time.high = std::max(home_.time.high, axis_of(side)->range_of(plan(side).model->home().time).high);
  if (!keeps_views) fit_all();
  if (look_.locked || look_.overlay) views_[0] = views_[1];
}

void ComparePicture::fit_all() { views_ = {home_, home_}; }

std::shared_ptr<const TimeAxis> ComparePicture::axis_of(int side) const {
  const auto takes_time = [this](int s) { return plan(s).model->time_axis(TimeUnit::us)->unit() == TimeUnit::us; };
  const bool both_take_time = takes_time(0) && takes_time(1);
  return plan(side).model->time_axis(both_take_time ? look_.unit : TimeUnit::nodes);
}

// ---- selection ----

void ComparePicture::select(int side, ValueId v) {
  for (const int s : {0, 1}) {
    const ValueId shown = s == side ? v : plans_->other(side, v);
    Selection& selection = selections_[at(s)];
    const ValueId hovered = selection.hovered;
    selection.clear();
    selection.hovered = hovered;
    if (shown == kNone) continue;
    selection.select_value(plan(s).model->graph(), shown);
    selection.copies = plan(s).model->values().copies(shown);
  }
}

void ComparePicture::hover(int side, ValueId v) {
  selections_[at(side)].hovered = v;
  selections_[at(1 - side)].hovered = plans_->other(side, v);
}

// ---- mouse ----

// A locked side takes the view of the other one.
void ComparePicture::move_other(int side) {
  PlanView& view = views_[at(side)];
  view.time.clamp(home_.time.low, home_.time.high);
  view.address.clamp(home_.address.low, home_.address.high);
  if (look_.locked || look_.overlay) views_[at(1 - side)] = view;
}

void ComparePicture::take_mouse(int side) {
  Navigation& navigation = navigations_[at(side)];
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const bool in_curve = curve_[at(side)].contains(mouse) && !navigation.dragging;
  if (navigation.update(in_curve ? curve_[at(side)] : memory_[at(side)], &views_[at(side)], !in_curve)) move_other(side);
  if (!memory_[at(side)].contains(mouse) || navigation.dragging) return;
  const LodRect* hit = plots_[at(side)].hit(mouse);
  const ValueId value = hit != nullptr ? plan(side).model->rects()[hit->rect].value : kNone;
  hover(side, value);
  if (navigation.double_clicked) {
    fit_all();
  } else if (navigation.clicked) {
    select(side, value);
    if (chosen_) chosen_();
  }
}

void ComparePicture::tooltip(int side, const Plot& curve) const {
  const PlanModel& model = *plan(side).model;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (memory_[at(side)].contains(mouse)) {
    if (const LodRect* hit = plots_[at(side)].hit(mouse); hit != nullptr) rect_tooltip(model, *hit, unit_of(model.plan()));
    return;
  }
  if (!curve.contains(mouse)) return;
  const auto n = static_cast<NodeId>(curve.node_at(mouse.x));
  if (n >= 0 && n < model.nodes() && curve.across_at(mouse.x) <= curve.axis->at(model.nodes()))
    node_tooltip(model, colours_[at(side)], n);
}

std::optional<ImVec2> ComparePicture::place_of(int side, ValueId v) const {
  const Plot& plot = memory_[at(side)];
  for (const PlanRect& r : plan(side).model->rects_of(v)) {
    const ImVec2 place((plot.x_of(r.begin) + plot.x_of(r.end)) / 2,
                       (plot.y_of(static_cast<double>(r.address)) + plot.y_of(static_cast<double>(r.address + r.bytes))) / 2);
    if (plot.contains(place)) return place;
  }
  return std::nullopt;
}

// ---- drawing ----

float ComparePicture::draw_head(int side, float x0, float x1, float y) const {
  const float width = x1 - x0;
  const std::string title = (side == 0 ? "left: " : "right: ") + plan(side).title;
  draw_text_cut(TextSize::title, x0 + 12, y, width - 24, colours::kText, title);
  const std::string summary = plan_summary(plan(side).model->plan(), unit_);
  draw_text_cut(TextSize::small, x0 + 12, y + 21, width - 24, colours::kFaint, summary);
  if (is_under_mouse(x0 + 12, y + 21, std::min(text_width(TextSize::small, summary), width - 24))) summary_tooltip();
  return y + 42;
}

Plot ComparePicture::plot_of(int side, float x0, float y0, float x1, float y1, bool has_addresses) const {
  const PlanView& view = views_[at(side)];
  return make_plot(x0 + kLeft, y0, x1 - kRight, y1, view.time, has_addresses ? view.address : live_, axis_of(side));
}

void ComparePicture::draw_side(int side, float x0, float x1, float top, float height) {
  const PlanModel& model = *plan(side).model;
  const Plan& shown = model.plan();
  const float width = x1 - x0;
  const float below_head = draw_head(side, x0, x1, top);
  // The legends of both sides take up the same height, so that the plots lie side by side.
  const float legend = std::max(legend_height(width - 24, colours_[0]), legend_height(width - 24, colours_[1]));
  draw_legend(x0 + 12, below_head, width - 24, colours_[at(side)]);
  const float begin = below_head + legend + 22, split = begin + (height - begin) * 0.62f;
  memory_[at(side)] = plot_of(side, x0, begin, x1, split - kTimeAxisHeight, true);
  curve_[at(side)] = plot_of(side, x0, split + 26, x1, height - kTimeAxisHeight - 6, false);
  take_mouse(side);
  Plot& memory = memory_[at(side)] = plot_of(side, x0, begin, x1, split - kTimeAxisHeight, true);
  Plot& curve = curve_[at(side)] = plot_of(side, x0, split + 26, x1, height - kTimeAxisHeight - 6, false);
  draw_plot_ground(memory);
  draw_byte_axis(memory, unit_, "address");
  plots_[at(side)].draw(memory, plan(side).model, colours_[at(side)], selections_[at(side)]);
  draw_time_axis(memory, model);
  draw_phase_legend(memory, model);
  draw_limits(memory, shown, unit_, shown.budget_bytes);
  draw_plot_ground(curve);
  draw_byte_axis(curve, unit_, "live");
  draw_curve(curve, model, colours_[at(side)], selections_[at(side)]);
  draw_time_axis(curve, model);
  draw_limits(curve, shown, unit_, shown.budget_bytes);
  tooltip(side, curve);
}

// Shades the bytes between the curves of both plans: those that the right plan needs more, and those that it saves.
void ComparePicture::draw_difference(const Plot& curve) const {
  const PlanModel& right = *plan(1).model;
  const double end_of_step = curve.axis->at(right.nodes());
  for (int c = 0; c < static_cast<int>(curve.width()); ++c) {
    const float x = curve.x0 + static_cast<float>(c);
    if (right.nodes() == 0 || curve.across_at(x) >= end_of_step) break;
    const auto [first, last] = curve.nodes_in_column(c, right.nodes());
    const auto most = [first = first, last = last](const std::vector<std::int64_t>& bytes) {
      return static_cast<double>(*std::max_element(bytes.begin() + first, bytes.begin() + last));
    };
    const double now = most(right.curve()), before = most(left_bytes_);
    const float top = std::max(std::round(curve.y_of(std::max(now, before))), curve.y0);
    const float bottom = std::min(std::round(curve.y_of(std::min(now, before))), curve.y1);
    if (bottom > top)
      list()->AddRectFilled(ImVec2(x, top), ImVec2(x + 1, bottom),
                            to_imgui(now > before ? colours::kBudget : colours::kSelect, now > before ? 120 : 70));
  }
}

// The left plan is drawn out, or drawn together, to as many nodes as the right one has.
void ComparePicture::draw_overlay(float width, float top, float height) {
  const PlanModel &left = *plan(0).model, &right = *plan(1).model;
  const float half = std::round(width / 2);
  draw_head(0, 0, half, top);
  const float below_head = draw_head(1, half, width, top);
  const float legend = draw_legend(12, below_head, width - 24, colours_[1]);
  draw_text(
      TextSize::small, 12, below_head + legend + 2, colours::kFaint,
      "filled: the right plan · outlines: the left plan · between the curves, grey: saved on the right, red: needed more");
  const float begin = below_head + legend + 40, split = begin + (height - begin) * 0.62f;
  const auto lay_out = [&] {
    memory_[1] = plot_of(1, 0, begin, width, split - kTimeAxisHeight, true);
    curve_[1] = plot_of(1, 0, split + 26, width, height - kTimeAxisHeight - 6, false);
  };
  lay_out();
  take_mouse(1);
  lay_out();
  draw_plot_ground(memory_[1]);
  draw_byte_axis(memory_[1], unit_, "address");
  plots_[1].draw(memory_[1], plan(1).model, colours_[1], selections_[1]);
  memory_[0] = memory_[1];
  const double share = axis_of(0)->at(left.nodes()) / std::max(axis_of(1)->at(right.nodes()), 1e-9);
  memory_[0].axis = axis_of(0);
  memory_[0].across = {memory_[1].across.low * share, memory_[1].across.high * share};
  plots_[0].draw_edges(memory_[0], plan(0).model, colours::kText);
  draw_time_axis(memory_[1], right);
  draw_phase_legend(memory_[1], right);
  draw_limits(memory_[1], right.plan(), unit_, right.plan().budget_bytes);
  draw_plot_ground(curve_[1]);
  draw_byte_axis(curve_[1], unit_, "live");
  draw_curve(curve_[1], right, colours_[1], selections_[1]);
  draw_difference(curve_[1]);
  draw_outline(curve_[1], left_bytes_, BlockMaxima(left_bytes_), colours::kText);
  draw_time_axis(curve_[1], right);
  draw_limits(curve_[1], right.plan(), unit_, right.plan().budget_bytes);
  tooltip(1, curve_[1]);
}

void ComparePicture::draw(float width, float height) {
  draw_text_cut(TextSize::body, 12, 8, width - 24, colours::kText, difference_summary(*plans_, unit_));
  constexpr float kTop = 32;
  if (look_.overlay) return draw_overlay(width, kTop, height);
  const float middle = std::round(width / 2);
  draw_side(0, 0, middle - 4, kTop, height);
  draw_side(1, middle + 4, width, kTop, height);
  list()->AddRectFilled(ImVec2(middle, kTop), ImVec2(middle + 1, height - 8), to_imgui(colours::kFrame));
}

}  // namespace tapedeck::viewer
