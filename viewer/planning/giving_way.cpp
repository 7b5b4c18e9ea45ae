#include <tapedeck/viewer/planning/giving_way.h>

#include <tapedeck/capture/planner/search_beside.h>

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace tapedeck::viewer {

namespace {

// On Linux a priority belongs to a thread. Where it cannot be lowered, the thread works as before.
void lower_priority_once() {
  constexpr int kLower = 5;
  static thread_local bool is_lowered = false;
  if (std::exchange(is_lowered, true)) return;
  const auto thread = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + kLower);
}

}  // namespace

void give_way(const std::function<void()>& work) {
  if (threads_beside() == 1) lower_priority_once();
  search_beside(work);
}

}  // namespace tapedeck::viewer
