// The stream of an executor, which runs all work in the order in which it is given, and the counts of what was given.
#pragma once

#include <tapedeck/capture/replay/device/device_counters.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/cuda/device_runtime.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace tapedeck::replay {

// The device has reported an error, in words of NVIDIA.
class DeviceFailure : public ExecutionError {
 public:
  explicit DeviceFailure(const char* text) : ExecutionError(std::string("the device reports: ") + text), text(text) {}
  const char* text;
};

class DeviceQueue {
 public:
  // Every function throws DeviceFailure. Copies of no bytes are none.
  explicit DeviceQueue(std::shared_ptr<kernels::cuda::DeviceRuntime> runtime) : runtime_(std::move(runtime)) {
    check(runtime_->create_stream(&stream_));
  }
  ~DeviceQueue() {
    runtime_->synchronize(stream_);  // memory that the stream still uses is freed after this
    runtime_->destroy_stream(stream_);
  }
  DeviceQueue(const DeviceQueue&) = delete;

  kernels::cuda::DeviceRuntime& runtime() const { return *runtime_; }
  const std::shared_ptr<kernels::cuda::DeviceRuntime>& shared_runtime() const { return runtime_; }
  kernels::cuda::Stream stream() const { return stream_; }

  void upload(void* to, const void* from, std::int64_t bytes) {
    if (bytes <= 0) return;
    check(runtime_->copy_to_device(to, from, static_cast<std::size_t>(bytes), stream_));
    counters.bytes_to_device += bytes;
  }
  void download(void* to, const void* from, std::int64_t bytes) {
    if (bytes <= 0) return;
    check(runtime_->copy_to_host(to, from, static_cast<std::size_t>(bytes), stream_));
    counters.bytes_to_host += bytes;
  }
  void copy(void* to, const void* from, std::int64_t bytes) {  // on the device
    if (bytes <= 0) return;
    check(runtime_->copy_on_device(to, from, static_cast<std::size_t>(bytes), stream_));
    counters.bytes_on_device += bytes;
  }
  void synchronize() {
    ++counters.synchronizations;
    check(runtime_->synchronize(stream_));
  }
  // Waits if the event of this stream is not done, and counts it.
  void wait_for(kernels::cuda::Event event) {
    bool done = false;
    check(runtime_->is_done(event, &done));
    if (done) return;
    ++counters.input_waits;
    check(runtime_->wait_on_host(event));
  }
  static void check(const char* error) {
    if (error) throw DeviceFailure(error);
  }

  DeviceCounters counters;

 private:
  const std::shared_ptr<kernels::cuda::DeviceRuntime> runtime_;
  kernels::cuda::Stream stream_ = nullptr;
};

// An event of a device, never recorded at first.
class DeviceEvent {
 public:
  explicit DeviceEvent(std::shared_ptr<kernels::cuda::DeviceRuntime> runtime) : runtime_(std::move(runtime)) {
    DeviceQueue::check(runtime_->create_event(&event_));
  }
  ~DeviceEvent() { runtime_->destroy_event(event_); }
  DeviceEvent(const DeviceEvent&) = delete;

  kernels::cuda::Event get() const { return event_; }

 private:
  const std::shared_ptr<kernels::cuda::DeviceRuntime> runtime_;
  kernels::cuda::Event event_ = nullptr;
};

}  // namespace tapedeck::replay
