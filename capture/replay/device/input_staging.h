// The way of inputs to the device: pinned memory in two halves, used in turn. While the device reads the inputs of one step
// from one half, the host writes those of the next step into the other.
//
//     launch 1   write half 0 | copies | event 0
//     launch 2   write half 1 | copies | event 1
//     launch 3   wait for event 0, write half 0 | copies | event 0
#pragma once

#include <tapedeck/capture/replay/device/device_memory.h>
#include <tapedeck/capture/replay/device/device_queue.h>

#include <cstdint>

namespace tapedeck::replay {

class InputStaging {
 public:
  // `bytes`: of one half. REQUIRES: the queue outlives this. Every function throws DeviceFailure.
  InputStaging(DeviceQueue& queue, std::int64_t bytes);
  InputStaging(const InputStaging&) = delete;

  // The half whose turn it is. Waits if the device still reads it.
  char* next_half();
  // The copies from this half have been given to the stream.
  void copies_given();
  // The stream was waited for, so nothing reads either half.
  void all_read() { read_[0] = read_[1] = false; }

 private:
  DeviceQueue& queue_;
  const std::int64_t bytes_;
  const PinnedMemory memory_;
  const DeviceEvent events_[2];    // by half: behind the copies from it
  bool read_[2] = {false, false};  // by half: the device may still read it
  int half_ = 1;
};

}  // namespace tapedeck::replay
