// Planned against measured, as CSV.
#pragma once

#include <tapedeck/viewer/model/measured_run.h>

#include <string>
#include <vector>

namespace tapedeck::viewer {

// what,node,op,value,planned_bytes,measured_bytes,bytes_deviation_percent,planned_us,measured_us,us_deviation_percent: a line
// for the peak with the time of the step, a line for the most live bytes, and a line with the live bytes for each node. Cells
// of numbers that nobody measured are empty. `run` is that of this plan; null: it was not measured. `node_us` is by node;
// empty: nothing was measured.
std::string live_bytes_csv(const PlanModel& model, const MeasuredRun* run, const std::vector<double>& node_us);

}  // namespace tapedeck::viewer
