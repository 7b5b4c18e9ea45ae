// The schedule: threads as lanes, with the segments and nodes that each of them runs, the gaps in which it has nothing to run,
// and the critical path. Planned by the costs of the plan, for any number of threads, or measured by a replay.
#pragma once

#include <tapedeck/viewer/panels/plot.h>
#include <tapedeck/viewer/plan/schedule.h>
#include <tapedeck/viewer/planning/background_task.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tapedeck::viewer {

class SchedulePanel : public PicturePanel {
 public:
  static constexpr std::int32_t kMostThreads = 64;

  explicit SchedulePanel(Session& session) : PicturePanel(session) {}

  void draw(float width, float height) override;
  void closed() override;
  void finish() override;  // waits for the schedule
  void stop() override;
  void write_csv(const std::string& path) override;

  const Schedule* schedule() const { return schedule_.get(); }  // null until it is there
  bool settled() const;                                         // it is that of the shown plan and of the choices below
  // The number of threads of the planned schedule; at first that of the plan.
  std::int32_t threads() const;
  void set_threads(std::int32_t threads);
  // Whether the measured schedule is shown, where there is one.
  bool shows_measured() const { return measured_; }
  void show_measured(bool on);
  bool has_measured() const;

  // On the canvas in the last frame, for tests: the middle of a node's box, and a place in a lane.
  ImVec2 place_of(NodeId n) const;
  ImVec2 place_at(std::int32_t lane, double us) const;
  const Range& view() const { return plot_.across; }  // microseconds

 private:
  // The plan, the measurement and the number of threads that a schedule was made from.
  struct Key {
    std::uint64_t model = 0, measured = 0;
    std::int32_t threads = 0;
    bool operator==(const Key&) const = default;
  };
  struct Mail {
    std::mutex mutex;
    std::shared_ptr<const Schedule> schedule;
    Key key;
  };
  struct Row {  // of a lane, on the canvas
    float top = 0, strip = 0, bottom = 0;
  };

  Key wanted() const;
  void start();
  void arrive();
  void follow_view();
  void navigate();
  float draw_head(float width);
  void draw_controls(float x, float y);
  void draw_lane(std::int32_t lane, const Row& row);
  void draw_segments(const ScheduleLane& lane, const Row& row);
  void draw_boxes(const ScheduleLane& lane, const Row& row);
  void draw_gaps(const ScheduleLane& lane, const Row& row);
  void draw_axis();
  void draw_marks();
  void hover();
  Row row_of(std::int32_t lane) const;
  std::int32_t lane_at(float y) const;  // kNone between the lanes
  float x_of(double us) const;
  void colour_nodes();

  Plot plot_;
  Session own_;        // its view is the shown time in microseconds, which the navigation moves
  PlanView followed_;  // the view of the window that own_.view was made from
  Navigation navigation_;
  bool measured_ = true;
  std::int32_t threads_ = 0;  // 0: those of the plan
  std::vector<Colour> node_colours_;
  std::uint64_t coloured_model_ = 0;
  ColourBy coloured_by_ = ColourBy::role;
  Theme coloured_theme_ = Theme::dark;

  std::shared_ptr<const Schedule> schedule_;
  Key key_, asked_;
  std::shared_ptr<Mail> mail_ = std::make_shared<Mail>();
  BackgroundTask task_;  // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
