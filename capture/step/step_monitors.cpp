#include <tapedeck/capture/step/step_monitors.h>

#include <tapedeck/capture/replay/monitors.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

std::int32_t StepMonitors::add(const std::string& pattern, MonitorFunction fn, const MonitorOptions& options) {
  if (!fn) throw UsageError("monitor: there is no function to call");
  monitors_.push_back({next_, pattern, std::move(fn), options});
  ++version_;
  return next_++;
}

void StepMonitors::remove(std::int32_t id) {
  if (std::erase_if(monitors_, [&](const Monitor& m) { return m.id == id; }) == 0)
    throw UsageError(fmt::format("there is no monitor {}", id));
  ++version_;
}

void StepMonitors::apply(Recording& r) const {
  if (version_ == 0) return;
  Recording::Watched& watched = r.watched;
  const std::shared_ptr<Executor> before = watched.executor.lock();
  if (watched.version == version_ && before == r.executor) return;
  if (before)
    for (const std::int32_t id : watched.ids) before->remove_monitor(id);
  watched = {r.executor, {}, version_};
  for (const Monitor& m : monitors_)
    if (replay::Monitors::any_match(r.executor->plan().graph, m.pattern, m.options))
      watched.ids.push_back(r.executor->monitor(m.pattern, m.fn, m.options));
}

}  // namespace tapedeck
