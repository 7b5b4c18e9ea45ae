#include <tapedeck/capture/replay/time_travel.h>

namespace tapedeck {

const char* stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::end:
      return "end";
    case StopReason::node:
      return "node";
    case StopReason::name:
      return "name";
    case StopReason::not_finite:
      return "not_finite";
    case StopReason::pause:
      return "pause";
  }
  return "";
}

}  // namespace tapedeck
