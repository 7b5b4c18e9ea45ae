#include <tapedeck/viewer/panels/compare.h>

#include <tapedeck/viewer/panels/curve.h>
#include <tapedeck/viewer/words/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

ComparePicture::ComparePicture(ComparedPlan left, ComparedPlan right)
    : sides_{std::move(left), std::move(right)}, colours_{PlanColours(sides_[0].model), PlanColours(sides_[1].model)} {
  for (const ComparedPlan& side : sides_) {
    const PlanView home = side.model->home();
    time_.high = std::max(time_.high, home.time.high);
    address_.high = std::max(address_.high, home.address.high);
    live_.high = std::max(live_.high, curve_top(side.model->plan()));
  }
}

void ComparePicture::draw_side(int side, float x0, float x1, float height) {
  const ComparedPlan& shown = sides_[side];
  const PlanModel& model = *shown.model;
  const Plan& plan = model.plan();
  const float width = x1 - x0;
  draw_text_cut(TextSize::title, x0 + 12, 10, width - 24, colours::kText, shown.title);
  draw_text_cut(TextSize::body, x0 + 12, 31, width - 24, colours::kText, plan_summary(plan));
  const float legend = draw_legend(x0 + 12, 54, width - 24, colours_[side]);
  const float top = 54 + std::max(legend, 17.0f) + 22, split = top + (height - top) * 0.62f;
  Plot plot = make_plot(x0 + 60, top, x1 - 16, split - kTimeAxisHeight, time_, address_);
  const std::int64_t extent = std::max(sides_[0].model->extent(), sides_[1].model->extent());
  draw_plot_ground(plot);
  draw_byte_axis(plot, extent, "address");
  plots_[side].draw(plot, model, colours_[side], Selection{});
  draw_time_axis(plot, model);
  draw_limits(plot, plan, plan.budget_bytes);
  plot = make_plot(x0 + 60, split + 26, x1 - 16, height - kTimeAxisHeight - 6, time_, live_);
  draw_plot_ground(plot);
  draw_byte_axis(plot, extent, "live");
  draw_curve(plot, model, colours_[side], Selection{});
  draw_time_axis(plot, model);
  draw_limits(plot, plan, plan.budget_bytes);
}

void ComparePicture::draw(float width, float height) {
  const float middle = std::round(width / 2);
  draw_side(0, 0, middle - 4, height);
  draw_side(1, middle + 4, width, height);
  ImGui::GetWindowDrawList()->AddRectFilled(ImVec2(middle, 8), ImVec2(middle + 1, height - 8), to_imgui(colours::kFrame));
}

}  // namespace tapedeck::viewer
