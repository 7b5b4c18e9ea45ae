#include <tapedeck/capture/planner/rematerialize/cancel_and_progress.h>

#include <tapedeck/engine/ir/error.h>

#include <algorithm>

namespace tapedeck {

void Watch::check() const {
  if (cancel && cancel->load()) throw Cancelled("planning was cancelled");
}

void Watch::report(double done) const {
  if (progress) progress(std::clamp(done, 0.0, 1.0));
}

}  // namespace tapedeck
