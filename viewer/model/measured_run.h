// Measurements of replays, which stand beside the numbers of plans: the time of a step and of every node, and the bytes that
// were held meanwhile.
#pragma once

#include <tapedeck/capture/cost/profile.h>
#include <tapedeck/capture/cost/timeline.h>
#include <tapedeck/viewer/plan/plan_model.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// The times of whole steps, in microseconds.
struct StepTimes {
  double median_us = 0, least_us = 0, most_us = 0;
  std::int64_t runs = 0;
};

// REQUIRES: `us` is not empty.
StepTimes step_times(const std::vector<double>& us);

// The replays of one plan, or a profile that a file holds.
struct MeasuredRun {
  std::string source;  // "a replay" or "the profile of FILE": for people
  std::int32_t threads = 1;
  StepTimes step;
  std::int64_t observed_peak_bytes = 0;  // counted by the allocator of the replay
  Profile times;                         // of nodes by name, which hold for other plans of the step too

  // Of the plan that ran; a profile does not know it.
  std::uint64_t plan = 0;  // PlanModel::serial(); 0: not known
  std::int64_t planned_peak_bytes = -1;
  double planned_us = 0;                     // by the cost model
  std::vector<std::int64_t> live;            // by node: the most bytes held while it ran; -1: the replay had no call for it
  std::int64_t most_live = 0;                // at any time of a step
  std::vector<double> node_us;               // by node: the median; NaN: no call
  std::shared_ptr<const Timeline> timeline;  // the fastest of the steps that were watched; null: of a profile
};

// By how much the measured number is above the planned one: 0.02 is 2 %. 0 if the planned one is not positive.
double deviation(double measured, double planned);
// "+1.25 %"; "0 %" for equal numbers.
std::string deviation_text(double measured, double planned);

// Raises `live` (by node) to the most bytes that were held while each node ran in this step, external bytes included: values
// are held from the start of the node that writes them to the end of the last node that touched them. Nodes without a call are
// left as they are. Returns the most bytes at any time. REQUIRES: `step` comes from a replay of `plan`, and live.size() is the
// number of its nodes. O(values + slices log slices).
std::int64_t raise_live_bytes(const Plan& plan, const Timeline& step, std::vector<std::int64_t>* live);

// The measured microseconds of the nodes of a plan, by node: those of the run if it ran this plan, else those of the nodes of
// the same name. NaN where there are none.
std::vector<double> measured_node_us(const MeasuredRun& run, const PlanModel& model);

}  // namespace tapedeck::viewer
