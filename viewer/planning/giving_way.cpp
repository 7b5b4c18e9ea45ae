#include <tapedeck/viewer/planning/giving_way.h>

#include <sys/resource.h>
#include <unistd.h>

namespace tapedeck::viewer {

// On Linux a priority belongs to a thread. Where it cannot be lowered, the thread works as before.
GivingWay::GivingWay() {
  constexpr int kLower = 5;
  const auto thread = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + kLower);
}

}  // namespace tapedeck::viewer
