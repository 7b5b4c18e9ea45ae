// The CUDA graphs of a step: one for each part that the device runs.
#pragma once

#include <tapedeck/capture/replay/device/device_faults.h>
#include <tapedeck/capture/replay/device/device_queue.h>
#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/capture/replay/program/program.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tapedeck::replay {

class StepGraphs {
 public:
  // REQUIRES: all that is passed by reference outlives this.
  StepGraphs(const Program& program, const std::vector<DevicePart>& parts, DeviceQueue& queue, DeviceFaults& faults)
      : program_(program), parts_(parts), queue_(queue), faults_(faults) {}
  ~StepGraphs() { destroy(); }
  StepGraphs(const StepGraphs&) = delete;

  bool ready() const { return ready_; }
  // Captures all parts; nothing runs. Returns why that failed; "" if it did not, and ready() from then on. REQUIRES: every
  // kernel has run once, so that its code is loaded.
  std::string capture();
  void drop();                    // addresses have changed: the graphs are captured again. REQUIRES: none of them runs
  void launch(std::size_t part);  // throws DeviceFailure. REQUIRES: ready(), and not a part of the host

 private:
  std::string capture_part(const DevicePart& part, kernels::cuda::GraphExec* exec);
  std::string instantiate(kernels::cuda::Graph graph, kernels::cuda::GraphExec* exec);
  void destroy() noexcept;

  const Program& program_;
  const std::vector<DevicePart>& parts_;
  DeviceQueue& queue_;
  DeviceFaults& faults_;
  bool ready_ = false;
  std::vector<kernels::cuda::GraphExec> execs_;  // by part; null for parts of the host
};

}  // namespace tapedeck::replay
