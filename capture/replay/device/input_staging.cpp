#include <tapedeck/capture/replay/device/input_staging.h>

namespace tapedeck::replay {

InputStaging::InputStaging(DeviceQueue& queue, std::int64_t bytes)
    : queue_(queue),
      bytes_(bytes),
      memory_(queue.shared_runtime(), 2 * bytes),
      events_{DeviceEvent(queue.shared_runtime()), DeviceEvent(queue.shared_runtime())} {}

char* InputStaging::next_half() {
  half_ = 1 - half_;
  if (read_[half_]) queue_.wait_for(events_[half_].get());
  read_[half_] = false;
  return memory_.data() + half_ * bytes_;
}

void InputStaging::copies_given() {
  DeviceQueue::check(queue_.runtime().record(events_[half_].get(), queue_.stream()));
  read_[half_] = true;
}

}  // namespace tapedeck::replay
