#include <tapedeck/capture/planner/solvers/cancel_and_progress.h>

#include <tapedeck/engine/ir/error.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

namespace tapedeck {

void Watch::check() const {
  if (cancel && cancel->load()) throw Cancelled("planning was cancelled");
}

void Watch::report(double done) const {
  if (progress) progress(std::clamp(done, 0.0, 1.0));
}

std::function<void(double)> never_less(std::function<void(double)> progress) {
  if (!progress) return progress;
  struct Most {
    std::mutex mutex;
    double done = 0;
  };
  return [progress = std::move(progress), most = std::make_shared<Most>()](double done) {
    std::lock_guard lock(most->mutex);
    if (done < most->done) return;
    most->done = done;
    progress(done);
  };
}

}  // namespace tapedeck
