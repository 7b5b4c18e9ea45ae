#include <tapedeck/viewer/model/measurements.h>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

constexpr std::size_t kMostRuns = 16;  // of a large plan, a run holds some megabytes

}  // namespace

void Measurements::add(std::shared_ptr<const MeasuredRun> run) {
  std::erase_if(runs_, [&](const auto& known) { return known->plan == run->plan; });
  runs_.push_back(std::move(run));
  if (runs_.size() > kMostRuns) runs_.erase(runs_.begin());
}

void Measurements::clear() {
  runs_.clear();
  points_.clear();
}

const MeasuredRun* Measurements::of_plan(const PlanModel& model) const {
  for (const auto& run : runs_)
    if (run->plan == model.serial()) return run.get();
  return nullptr;
}

std::vector<double> Measurements::node_us(const PlanModel& model) const {
  const MeasuredRun* run = of_plan(model);
  if (run == nullptr) run = newest();
  return run == nullptr ? std::vector<double>() : measured_node_us(*run, model);
}

}  // namespace tapedeck::viewer
