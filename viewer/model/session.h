// The state that all panels share: the document, the shown plan, the selection and the view. Panels change the state through a
// Session, and learn of changes through four callbacks. Not thread safe: only the UI thread uses a session.
#pragma once

#include <tapedeck/viewer/model/document.h>
#include <tapedeck/viewer/model/measurements.h>
#include <tapedeck/viewer/model/tradeoff_points.h>
#include <tapedeck/viewer/model/view_history.h>
#include <tapedeck/viewer/plan/plan_colours.h>
#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/plan/selection.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::viewer {

class Session;

// How far the shown plan is from the one that was asked for last.
enum class Planning : std::uint8_t {
  done,       // it is that plan
  improving,  // a plan within that budget, or a plan of a moment ago: the final one is being made
  waiting,    // a plan that has nothing to do with it: nothing better is there yet
};

// The four callbacks of a panel. The session is consistent during a callback. A callback must not attach or detach observers.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void opened() = 0;             // a document was opened; the plan may come later
  virtual void closed() = 0;             // the document is about to be replaced or closed: all ids become invalid
  virtual void selection_changed() = 0;  // the selected value or node, or the hovered value, changed
  virtual void plan_changed() = 0;       // another plan is shown; planning or measuring began or ended
};

// The shared state of one window.
class Session {
 public:
  void attach(Observer* observer) { observers_.push_back(observer); }
  void detach(Observer* observer);

  const Document* document() const { return document_.get(); }
  const PlanModel* model() const { return model_.get(); }  // null until the first plan is shown
  std::shared_ptr<const PlanModel> shared_model() const { return model_; }
  const Selection& selection() const { return selection_; }
  Planning planning() const { return planning_; }
  bool solving() const { return planning_ != Planning::done; }
  double progress() const { return progress_; }
  // The budget that was asked for last, in bytes: its line follows the hand at once. -1: none.
  std::int64_t asked_budget() const { return asked_budget_; }
  // The plan that keeps everything, as far as it is known; the pictures draw its outline. May be null.
  const PlanModel* keep_all() const { return keep_all_.get(); }
  // The file that is being opened; empty: none. The document before it stays open until it is there.
  const std::string& opening() const { return opening_; }
  void set_opening(std::string name);

  void open(Document document);
  void close();
  // Shows a plan. The value of the same name stays selected, if there is one, and the same part of the step stays in view.
  void show(std::shared_ptr<const PlanModel> model);
  // Tells the panels when the tables of the shown plan, whose pictures came first, are there. Until then nothing is selected.
  void note_complete();
  void set_planning(Planning planning, double progress = 0);
  void set_asked_budget(std::int64_t bytes);
  void set_keep_all(std::shared_ptr<const PlanModel> model);
  // The plans of other budgets that are known so far, ascending by budget.
  const std::vector<KnownPlan>& known() const { return known_; }
  void set_known(std::vector<KnownPlan> known);

  // The measurements of replays, and whether a replay is being measured.
  const Measurements& measurements() const { return measurements_; }
  void set_measurements(Measurements measurements);
  bool measuring() const { return measuring_; }
  void set_measuring(bool measuring);
  // The measured microseconds of the nodes of the shown plan, by node; NaN where there are none. Empty: nothing was measured.
  const std::vector<double>& measured_us() const { return measured_us_; }
  std::uint64_t measured_serial() const { return measured_serial_; }  // another number after every change of what was measured

  // The wishes for single values that the shown plan, or the one that is being made, honours.
  const std::vector<Wish>& wishes() const { return wishes_; }
  void set_wishes(std::vector<Wish> wishes);

  // Requests of panels; the window plans them.
  void ask_budget(std::int64_t bytes) {
    if (on_budget) on_budget(bytes);
  }
  void ask_wishes(const std::vector<Wish>& wishes) {
    if (on_wishes) on_wishes(wishes);
  }
  std::function<void(std::int64_t)> on_budget;
  std::function<void(const std::vector<Wish>&)> on_wishes;

  void select_value(ValueId v);
  void select_node(NodeId n);
  void hover(ValueId v);
  void clear_selection();  // and the range
  // Nodes whose bytes are summed up, apart from the selection.
  const NodeRange& range() const { return range_; }
  void select_range(const NodeRange& range);  // clipped to the schedule
  // Selects the node `by` steps further in the schedule. Without a selection, selects the first or the last node.
  void step_node(int by);
  // Selects the producer of the first operand of the selection, or the first reader of the selection.
  void follow(bool to_reader);

  // The rule for the colours of the pictures; the shown plan in these colours. REQUIRES a plan for the second.
  ColourBy colour_by() const { return colour_by_; }
  void set_colour_by(ColourBy by);
  const PlanColours& colours();

  // The unit of the axis of time, and the axis of the shown plan. Another unit keeps the same nodes in view. An axis in
  // microseconds counts nodes where no node takes any time. REQUIRES a plan for the axis and for home().
  TimeUnit time_unit() const { return time_unit_; }
  void set_time_unit(TimeUnit unit);
  std::shared_ptr<const TimeAxis> time_axis() const { return model_->time_axis(time_unit_); }
  PlanView home() const;  // the view of the whole plan

  PlanView view;  // the part of the plan that the pictures show; call view_changed() after a change
  void view_changed(Gesture gesture = Gesture::jump);
  void end_gesture() { history_.end_gesture(); }  // the next change of the view is an entry of its own in the history
  void view_back();                               // shows the view before the last gesture; nothing if there is none
  void view_forward();
  // Zooms around the cursor, or around the centre if the cursor is not over a picture. A factor below 1 zooms in.
  void zoom(double time_factor, double address_factor);
  void pan(double time_share, double address_share);  // moves by shares of the range in view
  // The cursor over a picture: its time, and the picture that it is over (null: none).
  struct Cursor {
    const void* picture = nullptr;
    double time = 0;
  };
  Cursor cursor;
  void fit_all();
  void fit_selection();  // centres the selected value; if it is already centred, zooms to it

 private:
  void tell(void (Observer::*what)());
  void clamp_view();
  void select(ValueId v, NodeId n);  // the value if there is one, else the node
  void find_again(const PlanModel& before, const Selection& old);
  void find_range_again(const PlanModel& before);

  std::vector<Observer*> observers_;
  std::shared_ptr<const Document> document_;
  std::shared_ptr<const PlanModel> model_;
  Selection selection_;
  NodeRange range_;
  ViewHistory history_;
  ValueId centred_ = kNone;
  std::shared_ptr<const PlanModel> keep_all_;
  bool complete_ = false;  // the shown plan, as far as the panels know
  Planning planning_ = Planning::done;
  double progress_ = 0;
  std::int64_t asked_budget_ = -1;
  std::string opening_;
  std::vector<Wish> wishes_;
  std::vector<KnownPlan> known_;
  Measurements measurements_;
  std::vector<double> measured_us_;  // of model_
  std::uint64_t measured_serial_ = 0;
  bool measuring_ = false;
  ColourBy colour_by_ = ColourBy::role;
  TimeUnit time_unit_ = TimeUnit::nodes;
  std::shared_ptr<const ValueGroups> groups_;  // of the document; null: not made yet, or by role
  std::optional<PlanColours> colours_;         // of the shown plan, once a picture asked for them
};

}  // namespace tapedeck::viewer
