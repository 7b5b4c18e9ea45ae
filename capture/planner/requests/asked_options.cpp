#include <tapedeck/capture/planner/requests/asked_options.h>

#include <tapedeck/capture/planner/rematerialize/strategy.h>

namespace tapedeck {

PlanRequest request_of(const PlanOptions& options) {
  PlanRequest asked;
  asked.strategy = strategy_name(options.strategy);
  asked.recorded_order = options.ordering == Ordering::recorded;
  asked.wishes = options.wishes;
  asked.segment_us = options.segment_us;
  asked.parallel_peak = options.parallel_peak;
  return asked;
}

PlanOptions options_asked(const Plan& plan) {
  PlanOptions options;
  options.strategy = strategy_named(plan.asked.strategy);
  options.ordering = plan.asked.recorded_order ? Ordering::recorded : Ordering::automatic;
  options.wishes = plan.asked.wishes;
  options.segment_us = plan.asked.segment_us;
  options.parallel_peak = plan.asked.parallel_peak;
  options.alignment = plan.alignment;
  options.chunk_bytes = plan.chunk_bytes;
  options.level = plan.level;
  options.threads = plan.threads;
  options.split_phases = plan.segment_rule.split_phases;
  return options;
}

}  // namespace tapedeck
