// Who does what when: the lanes of threads with the nodes that each of them runs, the gaps in which a thread has nothing to
// run, and the critical path. Planned: simulated by the rules of the executor, with the costs of the plan. Measured: from a
// replay.
//
//     thread 1   | a ....... | c ... |          | e .. |        busy 80 %
//     thread 2   | b ... | idle      | d ..............|        busy 75 %
//
// The critical path is a longest chain of segments that wait for each other: no number of threads is done before it.
#pragma once

#include <tapedeck/capture/cost/timeline.h>
#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/plan/time_axis.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

// A node on a thread, or the start of a segment (node: kNone). Without a segment, the thread helps with the node, which another
// thread runs.
struct ScheduleBox {
  NodeId node = kNone;
  std::int32_t segment = kNone;
  double start_us = 0, end_us = 0;
  double us() const { return end_us - start_us; }
};

// All that one thread does, in order of time. Boxes of a lane do not overlap.
struct ScheduleLane {
  std::vector<ScheduleBox> boxes;
  double busy_us = 0;
};

// The facts about a segment in a schedule.
struct SegmentTimes {
  std::int32_t lane = kNone;  // kNone: it ran nothing that takes time
  double start_us = 0, end_us = 0;
  bool is_critical = false;
  double slack_us = 0;              // how much longer it could take without making the critical path longer
  std::int32_t waited_for = kNone;  // of the segments that it waits for, the one that ended last
};

// A schedule of one plan. Immutable: any thread may read it.
class Schedule {
 public:
  // By the costs of the plan, on `threads` threads. O(nodes * threads + edges log segments).
  static Schedule planned(const PlanModel& model, std::int32_t threads);
  // Of one step of a replay of the plan.
  static Schedule measured(const PlanModel& model, const Timeline& step, std::int32_t threads);

  bool is_measured() const { return is_measured_; }
  std::int32_t threads() const { return static_cast<std::int32_t>(lanes_.size()); }
  const std::vector<ScheduleLane>& lanes() const { return lanes_; }
  const SegmentTimes& segment(std::int32_t s) const { return segments_[static_cast<std::size_t>(s)]; }
  std::int32_t segments() const { return static_cast<std::int32_t>(segments_.size()); }
  double length_us() const { return length_us_; }  // of the whole run
  double busy_us() const { return busy_us_; }      // of all lanes
  double idle_us() const { return length_us_ * threads() - busy_us_; }
  double critical_us() const { return critical_us_; }
  double busy_share() const { return busy_share(busy_us_, threads()); }
  double busy_share(const ScheduleLane& lane) const { return busy_share(lane.busy_us, 1); }
  // The lane of a node and the index of its box there; kNone for a node that takes no time.
  std::pair<std::int32_t, std::int32_t> place_of(NodeId n) const { return place_of_[static_cast<std::size_t>(n)]; }
  // From nodes to microseconds, and back, for a view that all pictures share. With several threads nodes do not start in their
  // order; the axis takes the earliest start of a node and all behind it, so it never goes back.
  const TimeAxis& axis() const { return axis_; }
  // The box that runs at a time, or the first one after it: an index of the lane's boxes; their number if there is none.
  std::int32_t box_at(std::int32_t lane, double us) const;

 private:
  Schedule(const PlanModel& model, std::int32_t threads);
  void add(std::int32_t lane, const ScheduleBox& box) { lanes_[static_cast<std::size_t>(lane)].boxes.push_back(box); }
  void finish();
  void find_critical_path();
  void make_axis();
  double busy_share(double busy, std::int32_t lanes) const {
    return length_us_ > 0 && lanes > 0 ? busy / (length_us_ * lanes) : 0;
  }

  const Plan* plan_;  // while this is made
  bool is_measured_ = false;
  std::vector<ScheduleLane> lanes_;
  std::vector<SegmentTimes> segments_;
  std::vector<std::pair<std::int32_t, std::int32_t>> place_of_;  // by node
  TimeAxis axis_;
  double length_us_ = 0, busy_us_ = 0, critical_us_ = 0;
};

// The sentences of the tooltip of a box, and of the tooltip of a gap in a lane.
std::vector<std::string> box_sentences(const Schedule& schedule, const PlanModel& model, std::int32_t lane, std::int32_t box);
std::vector<std::string> gap_sentences(const Schedule& schedule, const PlanModel& model, std::int32_t lane, double us);
// "2 threads, done after 105 us · busy 61 %, idle 82 us · critical path 80 us"
std::string schedule_summary(const Schedule& schedule);
// Every box: thread, segment, node, op, value, start, end, whether it is on the critical path.
std::string schedule_csv(const Schedule& schedule, const PlanModel& model);

}  // namespace tapedeck::viewer
