// Drawing functions that the pictures share: boxes, axes, labelled lines, the legend, tooltips. This file uses ImGui only.
#pragma once

#include <tapedeck/viewer/drawing/imgui_host.h>
#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/plan/level_of_detail.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/plan/regions.h>
#include <tapedeck/viewer/words/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tapedeck::viewer {

// A rectangle of the canvas, in units, and the ranges of values along its sides.
struct Plot {
  float x0 = 0, y0 = 0, x1 = 1, y1 = 1;
  Range across, up;
  std::shared_ptr<const TimeAxis> axis;  // of a picture over time: `across` are positions on it. Null: the axis is plain

  float width() const { return x1 - x0; }
  float height() const { return y1 - y0; }
  // Of a node, in a picture over time; else of a value on the axis.
  float x_of(double value) const {
    return x0 + static_cast<float>(((axis ? axis->at(value) : value) - across.low) / across.size()) * width();
  }
  float y_of(double value) const { return y1 - static_cast<float>((value - up.low) / up.size()) * height(); }
  double across_at(float x) const { return across.at(static_cast<double>((x - x0) / width())); }
  double node_of(double position) const { return axis ? axis->node_at(position) : position; }
  double node_at(float x) const { return node_of(across_at(x)); }
  // The nodes of a column of pixels: [first, second).
  std::pair<NodeId, NodeId> nodes_in_column(int column, NodeId nodes) const {
    const double step = across.size() / static_cast<double>(width()), low = across.low + column * step;
    return axis ? axis->nodes_in(low, low + step, nodes) : TimeAxis().nodes_in(low, low + step, nodes);
  }
  bool contains(const ImVec2& p) const { return p.x >= x0 && p.x < x1 && p.y >= y0 && p.y < y1; }
};

// Makes a plot whose edges lie at whole units, at least one unit wide and high.
Plot make_plot(float x0, float y0, float x1, float y1, const Range& across, const Range& up,
               std::shared_ptr<const TimeAxis> axis = nullptr);

float text_width(TextSize size, const std::string& text);
void draw_text(TextSize size, float x, float y, Colour colour, const std::string& text);
// Draws text, cut to `width` units with an ellipsis.
void draw_text_cut(TextSize size, float x, float y, float width, Colour colour, const std::string& text);
// Draws a button that is as large as its text needs, and returns true in the frame in which it is pressed. ImGui::Button would
// draw a text that no export knows. REQUIRES that no other button of the picture has this text.
bool draw_button(float x, float y, const std::string& text);
// Draws text on a dark plate, moved inside the plot. (x, y) is the upper left corner of the plate, or the upper right corner.
void draw_plate(const Plot& plot, float x, float y, bool right_aligned, Colour colour, const std::string& text);

// Draws diagonal stripes, so that recomputed values differ from others by more than colour.
void draw_hatch(const ImVec2& low, const ImVec2& high, Colour colour);

void draw_plot_ground(const Plot& plot);
// Draws the byte axis on the left, and its grid.
void draw_byte_axis(const Plot& plot, const ByteUnit& unit, const char* what);
// Draws the strip of phases and the numbers of nodes or the microseconds below the plot. They need kTimeAxisHeight units. The
// strip says what it shows when the mouse rests on it.
inline constexpr float kTimeAxisHeight = 40;
void draw_time_axis(const Plot& plot, const PlanModel& model);
// Draws the names and colours of the phases of the strip, above the plot on the right; nothing where they do not fit.
void draw_phase_legend(const Plot& plot, const PlanModel& model);
// Draws the lines of the peak (label on the right), of keeping everything, where that is higher, and of the budget (label on
// the left; -1: none). The labels never overlap.
void draw_limits(const Plot& plot, const Plan& plan, const ByteUnit& unit, std::int64_t budget);
// Draws the names and colours of the layers of a plan, in one or more rows. Returns the height used.
float draw_legend(float x, float y, float width, const PlanColours& colours);
float legend_height(float width, const PlanColours& colours);  // that draw_legend would use
// The way from the step to a region, each part of it a button that leads back, and the other regions of the node.
struct RegionWay {
  float height = 0;
  std::optional<std::size_t> leaves_to;  // a button was pressed: how many steps of the path are left
  int region = kNone;                    // the button of another region of the node was pressed
};
RegionWay draw_region_way(const RegionPlace& place, float y, float width);
// Whether the mouse is over a line of small text of this width.
bool is_under_mouse(float x, float y, float width);
// The numbers of the plan in one line: "peak 12.3 MiB · lower bound ..".
std::string plan_summary(const Plan& plan, const ByteUnit& unit);
// Says that a better plan is being made, and how far that is. A plan that has nothing to do with it is dimmed.
void draw_solving(const Plot& plot, const Session& session);
// Draws a box that says why no plan fits the budget. Returns the height used, 0 if a plan fits.
float draw_infeasible(float x, float y, float width, const Plan& plan);

// A number, what it means, and what a person can do there.
void explained_tooltip(const std::string& title, const std::string& sentence, const std::string& action);
// The numbers of the summary, each with its sentence.
void summary_tooltip();
void value_tooltip(const PlanModel& model, ValueId v, const ByteUnit& unit);
inline void value_tooltip(const PlanModel& model, ValueId v) { value_tooltip(model, v, unit_of(model.plan())); }
// Of a rectangle of the memory plan: its value, or the workspace of its node, or the number of values that are drawn as one.
// `action` says what a person can do with the workspace of a loop or a branch.
void rect_tooltip(const PlanModel& model, const LodRect& rect, const ByteUnit& unit, const std::string& action = "");
void node_tooltip(const PlanModel& model, const PlanColours& colours, NodeId n);

// Zooms and moves the view of the session by wheel and drag over a plot. Keys are commands of the window.
struct Navigation {
  enum class LeftDrag : std::uint8_t { moves, selects };
  explicit Navigation(LeftDrag left = LeftDrag::moves) : left_(left) {}

  bool dragging = false;
  bool clicked = false;  // true in the frame of a left click that was no drag
  bool double_clicked = false;
  void update(const Plot& plot, Session& session, bool has_addresses);
  // Zooms and moves a view that belongs to no session. Returns true if the view changed.
  bool update(const Plot& plot, PlanView* view, bool has_addresses);
  bool selecting = false;  // a left drag marks times, from `selected_from` to the mouse; other buttons move the view
  double selected_from = 0;
  void rest() { *this = Navigation(left_); }  // in a frame in which something else has the mouse

 private:
  bool wheel(const Plot& plot, PlanView* view, bool has_addresses) const;
  bool drag(const Plot& plot, PlanView* view, bool has_addresses);
  void note_cursor(const Plot& plot, Session& session) const;
  LeftDrag left_;
  bool pressed_ = false, by_left_ = false;
};

// The line of the budget as a handle: a drag of it, or of the line of the peak where there is no budget, asks for the budget
// under the mouse.
struct BudgetHandle {
  // True while the mouse holds the line or lies on it: the plot then takes no other input.
  bool update(const Plot& plot, Session& session);

 private:
  bool held_ = false;
};

// The moves that keys make in the view of a picture.
enum class ViewMove : std::uint8_t {
  back,
  forward,
  fit_all,
  fit_selection,
  zoom_in,
  zoom_out,
  left,
  right,
  up,
  down,
};

void move_session_view(Session& session, ViewMove move);

// A panel that is a picture. Each of the four callbacks asks for a new frame.
class PicturePanel : public Picture, public Observer {
 public:
  explicit PicturePanel(Session& session) : session_(session) { session_.attach(this); }
  ~PicturePanel() override { session_.detach(this); }
  PicturePanel(const PicturePanel&) = delete;
  void set_repaint(std::function<void()> repaint) { repaint_ = std::move(repaint); }
  // `wake` may be called by any thread, and asks for a new frame.
  void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }
  // Waits for work of the panel in the background; for unattended pictures.
  virtual void finish() {}
  // Ends work of the panel in the background: no thread calls `wake` any more. The window calls it before the canvas goes.
  virtual void stop() {}
  // Moves the view of a picture that has one of its own; false: the picture shows the view of the session.
  virtual bool move_view(ViewMove) { return false; }
  // Writes the numbers of the picture as CSV. Throws FileError; UsageError if there is no plan.
  virtual void write_csv(const std::string& path) = 0;

  void opened() override { repaint(); }
  void closed() override { repaint(); }
  void selection_changed() override { repaint(); }
  void plan_changed() override { repaint(); }

 protected:
  void repaint() const {
    if (repaint_) repaint_();
  }
  // If there is no plan, draws a note about it and returns true.
  bool draw_nothing(float width, float height) const;
  const std::function<void()>& wake_function() const { return wake_; }

  Session& session_;

 private:
  std::function<void()> repaint_, wake_;
};

}  // namespace tapedeck::viewer
