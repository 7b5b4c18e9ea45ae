// The answer of explain(), as text and as JSON.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/record/capture.h>

#include <string>
#include <vector>

namespace tapedeck {

class JsonWriter;

// One recording of a captured step.
struct Explanation {
  std::string types;                      // of the inputs
  std::vector<std::string> reasons;       // why it was recorded, and recorded again
  const CaptureReport* report = nullptr;  // null: no recording has succeeded
  const Plan* plan = nullptr;             // null: not yet planned
};

struct StepCounts {
  int recordings = 0, replays = 0, checks = 0;
  int eager = 0;                  // calls that were not recorded, because every call draws other numbers
  int fallbacks = 0;              // calls that eager_fallback let run eagerly
  std::string last_eager_reason;  // of both; empty: there was none
};

std::string explain_text(const StepCounts& counts, const std::vector<Explanation>& recordings);
std::string explain_json(const StepCounts& counts, const std::vector<Explanation>& recordings);  // schema tapedeck.explain/1

}  // namespace tapedeck
