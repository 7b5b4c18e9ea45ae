// What the pictures have in common: boxes, axes, labelled lines, the legend, tooltips. ImGui only.
#pragma once

#include <tapedeck/viewer/imgui_host.h>
#include <tapedeck/viewer/model/lod.h>
#include <tapedeck/viewer/model/session.h>

#include <functional>
#include <string>
#include <utility>

namespace tapedeck::viewer {

// A rectangle of the canvas, in units, with the ranges its sides stand for.
struct Plot {
  float x0 = 0, y0 = 0, x1 = 1, y1 = 1;
  Range across, up;

  float width() const { return x1 - x0; }
  float height() const { return y1 - y0; }
  float x_of(double value) const { return x0 + static_cast<float>((value - across.low) / across.size()) * width(); }
  float y_of(double value) const { return y1 - static_cast<float>((value - up.low) / up.size()) * height(); }
  double across_at(float x) const { return across.at(static_cast<double>((x - x0) / width())); }
  bool contains(const ImVec2& p) const { return p.x >= x0 && p.x < x1 && p.y >= y0 && p.y < y1; }
};

// At whole pixels, and never smaller than one.
Plot make_plot(float x0, float y0, float x1, float y1, const Range& across, const Range& up);

float text_width(TextSize size, const std::string& text);
void draw_text(TextSize size, float x, float y, Colour colour, const std::string& text);
// Text cut to `width` with an ellipsis.
void draw_text_cut(TextSize size, float x, float y, float width, Colour colour, const std::string& text);
// Text on a dark plate, kept inside the plot; (x, y) is its upper left corner, or upper right one.
void draw_plate(const Plot& plot, float x, float y, bool right_aligned, Colour colour, const std::string& text);

void draw_plot_ground(const Plot& plot);
// Byte axis on the left and its grid; `extent` picks the unit.
void draw_byte_axis(const Plot& plot, std::int64_t extent, const char* what);
// Below the plot: a strip of the phases, then node numbers. Takes kTimeAxisHeight.
inline constexpr float kTimeAxisHeight = 40;
void draw_time_axis(const Plot& plot, const PlanModel& model);
// Peak (label on the right) and budget (label on the left): they never touch, however near the lines are.
void draw_limits(const Plot& plot, const Plan& plan);
// The roles present in the model, in one or more rows; returns the height used.
float draw_legend(float x, float y, float width, const PlanModel& model);
// "peak 12.3 MiB · lower bound ..": the numbers of the plan.
std::string plan_summary(const Plan& plan);
// Over the last plan while a new one is being solved.
void draw_solving(const Plot& plot, const Session& session);
// Why no plan fits the budget, in a box; returns the height used, 0 if one fits.
float draw_infeasible(float x, float y, float width, const Plan& plan);

void value_tooltip(const Plan& plan, ValueId v);
void node_tooltip(const PlanModel& model, NodeId n);

// Wheel, dragging and W A S D + - arrows over a plot. Changes the session's view and tells it.
struct Navigation {
  bool dragging = false;
  bool clicked = false;  // this frame: a left click that was no drag
  bool double_clicked = false;
  void update(const Plot& plot, Session& session, bool has_addresses);

 private:
  bool wheel(const Plot& plot, PlanView* view, bool has_addresses) const;
  bool drag(const Plot& plot, PlanView* view, bool has_addresses);
  bool keys(const Plot& plot, PlanView* view) const;
  bool pressed_ = false;
};

// A panel that is a picture: all four callbacks ask for a new frame.
class PicturePanel : public Picture, public Observer {
 public:
  explicit PicturePanel(Session& session) : session_(session) { session_.attach(this); }
  ~PicturePanel() override { session_.detach(this); }
  PicturePanel(const PicturePanel&) = delete;
  void set_repaint(std::function<void()> repaint) { repaint_ = std::move(repaint); }

  void opened() override { repaint(); }
  void closed() override { repaint(); }
  void selection_changed() override { repaint(); }
  void plan_changed() override { repaint(); }

 protected:
  void repaint() const {
    if (repaint_) repaint_();
  }
  // True, and says so on the canvas, if there is no plan to draw.
  bool draw_nothing(float width, float height) const;

  Session& session_;

 private:
  std::function<void()> repaint_;
};

}  // namespace tapedeck::viewer
