#include <tapedeck/viewer/panels/compare.h>

#include <tapedeck/viewer/panels/curve.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck::viewer {

namespace {

// The colours of both plans. Groups are those of both graphs together.
std::vector<PlanColours> colours_of(const std::array<ComparedPlan, 2>& sides, ColourBy by) {
  std::shared_ptr<const ValueGroups> groups;
  if (by != ColourBy::role)
    groups =
        std::make_shared<const ValueGroups>(std::vector<const Graph*>{sides[0].captured.get(), sides[1].captured.get()}, by);
  std::vector<PlanColours> colours;
  for (const ComparedPlan& side : sides) colours.emplace_back(side.model, groups);
  return colours;
}

}  // namespace

const std::vector<std::string>& compare_commands() {
  static const std::vector<std::string> commands{"view.colour-by-role", "view.colour-by-module", "view.colour-by-op",
                                                 "view.axis-nodes", "view.axis-time"};
  return commands;
}

CompareLook look_after(CompareLook look, std::string_view command) {
  constexpr std::string_view kColourBy = "view.colour-by-";
  if (command.starts_with(kColourBy))
    find_colour_by(command.substr(kColourBy.size()), &look.by);
  else
    look.unit = command == "view.axis-time" ? TimeUnit::us : TimeUnit::nodes;
  return look;
}

ComparePicture::ComparePicture(ComparedPlan left, ComparedPlan right, CompareLook look)
    : sides_{std::move(left), std::move(right)} {
  std::int64_t largest = 0;
  for (const ComparedPlan& side : sides_) {
    const Plan& plan = side.model->plan();
    address_.high = std::max(address_.high, side.model->home().address.high);
    live_.high = std::max(live_.high, curve_top(plan));
    largest = std::max({largest, plan.peak_bytes, plan.keep_all_peak_bytes});
  }
  unit_ = ByteUnit::of(largest);
  set_look(look);
}

void ComparePicture::set_look(CompareLook look) {
  look_ = look;
  colours_ = colours_of(sides_, look.by);
  time_ = {};
  for (int side = 0; side < 2; ++side)
    time_.high = std::max(time_.high, axis_of(side)->range_of(sides_[static_cast<std::size_t>(side)].model->home().time).high);
}

std::shared_ptr<const TimeAxis> ComparePicture::axis_of(int side) const {
  const bool both_take_time = std::all_of(sides_.begin(), sides_.end(), [](const ComparedPlan& plan) {
    return plan.model->time_axis(TimeUnit::us)->unit() == TimeUnit::us;
  });
  return sides_[static_cast<std::size_t>(side)].model->time_axis(both_take_time ? look_.unit : TimeUnit::nodes);
}

void ComparePicture::draw_side(int side, float x0, float x1, float height) {
  const auto at = static_cast<std::size_t>(side);
  const ComparedPlan& shown = sides_[at];
  const PlanModel& model = *shown.model;
  const Plan& plan = model.plan();
  const float width = x1 - x0;
  draw_text_cut(TextSize::title, x0 + 12, 10, width - 24, colours::kText, shown.title);
  const std::string summary = plan_summary(plan, unit_);
  draw_text_cut(TextSize::small, x0 + 12, 31, width - 24, colours::kFaint, summary);
  if (is_under_mouse(x0 + 12, 31, std::min(text_width(TextSize::small, summary), width - 24))) summary_tooltip();
  // The legends of both sides take up the same height, so that the plots lie side by side.
  const float legend = std::max(legend_height(width - 24, colours_[0]), legend_height(width - 24, colours_[1]));
  draw_legend(x0 + 12, 52, width - 24, colours_[at]);
  const float top = 52 + legend + 22, split = top + (height - top) * 0.62f;
  const Plot memory = make_plot(x0 + 60, top, x1 - 16, split - kTimeAxisHeight, time_, address_, axis_of(side));
  draw_plot_ground(memory);
  draw_byte_axis(memory, unit_, "address");
  plots_[at].draw(memory, model, colours_[at], Selection{});
  draw_time_axis(memory, model);
  draw_phase_legend(memory, model);
  draw_limits(memory, plan, unit_, plan.budget_bytes);
  const Plot curve = make_plot(x0 + 60, split + 26, x1 - 16, height - kTimeAxisHeight - 6, time_, live_, axis_of(side));
  draw_plot_ground(curve);
  draw_byte_axis(curve, unit_, "live");
  draw_curve(curve, model, colours_[at], Selection{});
  draw_time_axis(curve, model);
  draw_limits(curve, plan, unit_, plan.budget_bytes);
  hover(side, memory, curve);
}

void ComparePicture::hover(int side, const Plot& memory, const Plot& curve) const {
  const auto at = static_cast<std::size_t>(side);
  const PlanModel& model = *sides_[at].model;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (const LodRect* hit = plots_[at].hit(mouse); memory.contains(mouse) && hit != nullptr) return rect_tooltip(model, *hit);
  if (!curve.contains(mouse)) return;
  const auto n = static_cast<NodeId>(curve.node_at(mouse.x));
  if (n >= 0 && n < model.nodes() && curve.across_at(mouse.x) <= curve.axis->at(model.nodes()))
    node_tooltip(model, colours_[at], n);
}

void ComparePicture::draw(float width, float height) {
  const float middle = std::round(width / 2);
  draw_side(0, 0, middle - 4, height);
  draw_side(1, middle + 4, width, height);
  ImGui::GetWindowDrawList()->AddRectFilled(ImVec2(middle, 8), ImVec2(middle + 1, height - 8), to_imgui(colours::kFrame));
}

}  // namespace tapedeck::viewer
