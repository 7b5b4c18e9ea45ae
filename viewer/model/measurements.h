// All that was measured of one document: the runs of its plans, and points of cost over peak.
#pragma once

#include <tapedeck/viewer/model/measured_run.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tapedeck::viewer {

// A plan that was measured beside the plan that keeps everything.
struct MeasuredPoint {
  std::int64_t budget = -1;  // that gives the plan
  std::int64_t planned_peak_bytes = 0, observed_peak_bytes = 0;
  double planned_ratio = 1;  // of its cost to that of keeping everything, by the cost model
  StepTimes step;
  double keep_all_us = 0;  // the median of the plan that keeps everything, measured in turn with this one

  double ratio() const { return keep_all_us > 0 ? step.median_us / keep_all_us : 0; }
};

class Measurements {
 public:
  void add(std::shared_ptr<const MeasuredRun> run);  // replaces a run of the same plan
  void set_points(std::vector<MeasuredPoint> points) { points_ = std::move(points); }
  void clear();

  bool empty() const { return runs_.empty() && points_.empty(); }
  const MeasuredRun* of_plan(const PlanModel& model) const;  // null: this plan was not measured
  const MeasuredRun* newest() const { return runs_.empty() ? nullptr : runs_.back().get(); }
  // The times of nodes for this plan: from its own run, else from the newest one. Empty: nothing was measured.
  std::vector<double> node_us(const PlanModel& model) const;
  const std::vector<MeasuredPoint>& points() const { return points_; }  // ascending by peak

 private:
  std::vector<std::shared_ptr<const MeasuredRun>> runs_;  // the newest one is last
  std::vector<MeasuredPoint> points_;
};

}  // namespace tapedeck::viewer
