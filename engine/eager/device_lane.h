// The work of one host thread on a device: its stream, and a list of the pieces of work that were given to it.
//
//     thread 0   lane 0    ops and copies 1, 2, 3, ...
//     thread 1   lane 1    ops and copies 1, 2, ...       after 3 of lane 0
//
// A thread gets its lane at its first call for the device. When the thread ends, the next new thread gets the lane.
#pragma once

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/cuda/device_runtime.h>
#include <tapedeck/kernels/kernel.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace tapedeck {

struct DeviceLane {
  static constexpr std::size_t kPlaces = 4096;      // pieces of work that are not checked yet, at most
  static constexpr std::size_t kStaging = 1 << 20;  // bytes of pinned memory for copies

  struct Launched {
    const Op* op = nullptr;  // null: a copy
    Site site;
  };

  DeviceLane(kernels::cuda::DeviceRuntime& runtime, std::size_t number) : runtime(runtime), number(number), launched(kPlaces) {}
  // Waits for the work. Errors here are those of earlier calls.
  ~DeviceLane() {
    if (stream) runtime.synchronize(stream);
    if (faults) runtime.free_pinned(faults);
    if (staging) runtime.free_pinned(staging);
    for (kernels::cuda::Event event : {finished, crossed})
      if (event) runtime.destroy_event(event);
    if (stream) runtime.destroy_stream(stream);
  }
  DeviceLane(const DeviceLane&) = delete;

  // The owner calls this once, before all else. Throws DeviceError if the device gives no stream or no memory.
  void open() {
    void *fault_memory = nullptr, *staging_memory = nullptr;
    require(runtime.create_stream(&stream));
    require(runtime.create_event(&finished));
    require(runtime.create_event(&crossed));
    require(runtime.allocate_pinned(kPlaces * sizeof(KernelFault), &fault_memory));
    faults = static_cast<KernelFault*>(fault_memory);
    for (std::size_t i = 0; i < kPlaces; ++i) new (&faults[i]) KernelFault;
    require(runtime.allocate_pinned(kStaging, &staging_memory));
    staging = static_cast<char*>(staging_memory);
  }

  // The place of a piece of work in `faults` and `launched`.
  static std::size_t place_of(std::uint64_t work) { return (work - 1) % kPlaces; }
  bool is_full() const { return given - checked == kPlaces; }
  std::uint64_t passed(const DeviceLane& other) const { return other.number < others.size() ? others[other.number] : 0; }

  kernels::cuda::DeviceRuntime& runtime;
  const std::size_t number;
  kernels::cuda::Stream stream = nullptr;
  kernels::cuda::Event finished = nullptr;  // the thread of the lane waits for it
  kernels::cuda::Event crossed = nullptr;   // the streams of other lanes wait for it
  KernelFault* faults = nullptr;            // kPlaces of them
  std::vector<Launched> launched;           // kPlaces of them
  std::uint64_t given = 0;                  // pieces of work
  std::uint64_t checked = 0;                // of these: have run, and their faults were thrown
  std::vector<std::uint64_t> others;        // by lane: the next work of this lane runs after so many pieces of that one
  char* staging = nullptr;                  // kStaging bytes
  std::size_t staged = 0;                   // of them, since the last wait of the thread

 private:
  static void require(const char* error) {
    if (error) throw DeviceError(error);
  }
};

// The lanes of threads that have ended.
struct IdleLanes {
  std::mutex mutex;
  bool open = true;  // the device is there
  std::vector<DeviceLane*> lanes;
};

// The place of the running thread on one device.
class LaneSeat {
 public:
  LaneSeat(std::shared_ptr<IdleLanes> idle, DeviceLane* lane) : idle_(std::move(idle)), lane_(lane) {}
  LaneSeat(LaneSeat&& other) noexcept : idle_(std::move(other.idle_)), lane_(std::exchange(other.lane_, nullptr)) {}
  LaneSeat& operator=(LaneSeat&& other) noexcept {
    std::swap(idle_, other.idle_);
    std::swap(lane_, other.lane_);
    return *this;
  }
  ~LaneSeat() {
    if (!lane_) return;
    const std::lock_guard lock(idle_->mutex);
    if (idle_->open) idle_->lanes.push_back(lane_);
  }

  bool is_on(const std::shared_ptr<IdleLanes>& idle) const { return idle_ == idle; }
  bool is_left() const {
    const std::lock_guard lock(idle_->mutex);
    return !idle_->open;
  }
  DeviceLane& lane() const { return *lane_; }

 private:
  std::shared_ptr<IdleLanes> idle_;
  DeviceLane* lane_ = nullptr;
};

}  // namespace tapedeck
