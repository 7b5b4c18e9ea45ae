// A bound on the peak and the cost of a schedule once a repeated run is taken back, without a change of the schedule. Most runs
// of a good plan are needed. The bound shows this for most of them in a fraction of the time that a trial takes.
//
//     stage         0 makes %h         5, 6        7 makes %h again, from %a
//     taken back    |---------- %h: 4096 bytes ----------|          at least the live bytes of 5 and 6 + 4096 - bytes of %a
#include <tapedeck/capture/planner/schedules/schedule.h>

#include <algorithm>

namespace tapedeck {

// The runs that may go are those of the same stage that make operands for the run. Nothing is known where a run of another
// stage may go, too.
Schedule::Without Schedule::least_without(NodeId stage, NodeId node) {
  Without least;
  std::int64_t freed = 0;
  going_.assign(1, node);
  for (std::size_t i = 0; i < going_.size(); ++i) {
    least.saved_us += facts_.cost[going_[i]];
    for (ValueId root : reads(going_[i])) {
      if (!facts_.in_arena(root)) continue;
      const auto& touches = touches_[root];
      const std::size_t k = find_touch(root, stage);
      if (touches[k].made) {
        const NodeId maker = facts_.graph->values[root].node;
        if (std::find(going_.begin(), going_.end(), maker) == going_.end()) going_.push_back(maker);
        continue;
      }
      if (k == 0 || (touches[k - 1].made && touches[k - 1].readers == 0)) return {};
      const bool stays = k + 1 < touches.size() && touches[k + 1].gap != kNone;
      freed += stays ? 0 : facts_.bytes[root];
    }
  }
  for (ValueId v : facts_.makes(node)) {
    if (!facts_.in_arena(v)) continue;
    const std::size_t k = find_touch(v, stage);
    if (k == 0) continue;
    least.bytes = std::max(least.bytes, live_.most(touches_[v][k - 1].stage + 1, stage - 1) + facts_.bytes[v] - freed);
  }
  return least;
}

}  // namespace tapedeck
