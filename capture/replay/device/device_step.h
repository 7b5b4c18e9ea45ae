// Steps of an executor on a device. A step is always a whole one:
//
//     send        inputs and state that were given since the last step go to the device
//     run         the parts of the program, one after the other, on one stream
//     wait        once, at the end; then the faults are read
//
// The first step calls kernel after kernel and waits after each, so that code is loaded and an error names its node. The second
// step captures each part as a CUDA graph. From then on a step launches these graphs; no address ever changes.
//
// run() has all three. launch() leaves the wait to a later wait(), which may stand for several steps. The memory of the kernels
// for their faults is one for all steps, so a fault is known to lie in one of these steps, and not in which.
//
// Inputs, state and outputs have copies on the host, in the buffers that an executor on the CPU has. A copy of state or of an
// output is brought up to date when it is read. A tensor that is bound to state is up to date when a step has run.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/device/device_counters.h>
#include <tapedeck/capture/replay/device/device_faults.h>
#include <tapedeck/capture/replay/device/device_memory.h>
#include <tapedeck/capture/replay/device/device_queue.h>
#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/capture/replay/device/host_calls.h>
#include <tapedeck/capture/replay/device/input_staging.h>
#include <tapedeck/capture/replay/device/step_graphs.h>
#include <tapedeck/capture/replay/memory/buffers.h>
#include <tapedeck/capture/replay/memory/shared_memory.h>
#include <tapedeck/capture/replay/program/program.h>
#include <tapedeck/capture/replay/segments/faults.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck {
class EagerDevice;
struct Timeline;
}  // namespace tapedeck

namespace tapedeck::replay {

// The end of a step, or of several that were launched: the first fault, or another error.
struct DeviceOutcome {
  bool failed() const { return fault.node != kNone || !error.empty(); }

  Fault fault;               // of the lowest faulty node
  std::string error;         // of the device itself, where no single node is known; empty: none
  bool wrote_state = false;  // some node that writes state has run, or may have
  std::int32_t steps = 1;    // steps in one of which the fault is
};

class DeviceStep final : public DeviceCopies {
 public:
  // Allocates all memory. Throws ExecutionError if there is not enough, and UsageError if graphs are required and a step
  // cannot be one graph. REQUIRES: all that is passed by reference outlives this; the program is for this device.
  // `state_later`: state gets memory in the first step, if it is not bound to tensors of the device by then.
  DeviceStep(std::shared_ptr<kernels::cuda::DeviceRuntime> runtime, const Plan& plan, const Member& member,
             const Buffers& buffers, Program& program, CudaGraphs graphs, int threads, bool state_later);
  ~DeviceStep();

  // ---- what the caller has given, in the copies on the host ----
  void input_changed(std::int32_t slot) { any_new_input_ = new_inputs_[slot] = true; }
  void state_changed(std::int32_t slot);

  // ---- tensors of the same device ----
  // From now on steps run after the ops that eager code has called, and eager code may use what a step has left. Inputs and
  // state may be tensors of the device after this.
  void join_ops(EagerDevice& ops) { ops_ = &ops; }
  void set_input(std::int32_t slot, const Tensor& value);  // copied now. REQUIRES: join_ops(); the tensor is on that device

  // One step. With a timeline, kernel after kernel is called and waited for. REQUIRES: in_flight() == 0.
  DeviceOutcome run(Timeline* timeline);
  // Gives one step to the device, and returns before it has run. But it is run() for the first step, for nodes that run on the
  // host, for steps that wait after each node, and for state that is bound to a tensor, which the caller may read at any time.
  DeviceOutcome launch();
  std::int32_t in_flight() const { return in_flight_; }  // steps that were launched since the last wait
  // Waits for all of them. Nothing else reads or writes memory of the device meanwhile.
  DeviceOutcome wait();
  // The versions of bound tensors after a step; a version that differs later is a write by the caller.
  void note_versions();

  void fetch(BufferId b) override;
  Tensor read(const BufferView& from, const Type& type) override;
  std::vector<Tensor> copies_there(const std::vector<Copied>& values) override;

  DeviceCounters counters() const;

 private:
  void send_constants();
  void place_state();
  void send_inputs();
  void send_state();
  void require_one_graph() const;
  bool captures();
  bool goes_ahead() const;
  DeviceOutcome step(bool ahead, Timeline* timeline);
  bool run_parts(bool one_by_one, Timeline* timeline, DeviceOutcome* outcome);
  void settle(DeviceOutcome* outcome);
  bool run_part(std::size_t part, bool one_by_one, Timeline* timeline, DeviceOutcome* outcome);
  bool call(std::int32_t i, bool wait, DeviceOutcome* outcome);
  bool run_on_host(std::int32_t i, DeviceOutcome* outcome);
  bool synchronize(DeviceOutcome* outcome);
  void note_failure(const DeviceFailure& failure, DeviceOutcome* outcome);
  std::string running_text() const;
  void note_slice(std::int32_t i, std::int64_t start_ns, Timeline* timeline) const;
  std::int32_t segment_of(std::int32_t i) const;
  void note_results(bool others_in_flight, DeviceOutcome* outcome);
  void fetch_bound_state();
  void refuse_if_lost() const;

  const std::shared_ptr<kernels::cuda::DeviceRuntime> runtime_;
  const Plan& plan_;
  const Member& member_;
  const Buffers& buffers_;
  Program& program_;
  const CudaGraphs graph_use_;
  const std::vector<DevicePart> parts_;
  DeviceMemory memory_;
  DeviceQueue queue_;
  InputStaging input_staging_;
  DeviceFaults faults_;
  HostCalls host_;
  StepGraphs graphs_;

  std::vector<std::int64_t> staging_offset_;  // by input
  const bool on_device_alone_;                // no part of a step runs on the host
  std::vector<bool> new_inputs_, new_state_;  // by slot: must be sent before the next step
  bool any_new_input_ = false, any_new_state_ = false, any_bound_state_ = false;
  bool state_moved_ = true;              // place_state() is due
  EagerDevice* ops_ = nullptr;           // whose tensors are inputs, state or results; null: all of these are on the host
  std::vector<std::uint32_t> versions_;  // by state slot: of the bound tensor, as it was sent or brought back
  std::vector<bool> stale_;              // by buffer: the copy on the host is older than the bytes on the device
  bool warm_ = false;                    // every kernel has run
  std::int32_t in_flight_ = 0;
  bool needs_waits_ = false;   // un-graphed steps wait after each node
  std::int64_t began_ns_ = 0;  // the start of the parts of this step
  std::int32_t begun_ = 0;     // instructions that this step has given to the device or run
  std::int32_t known_ = 0;     // of these: have come to their end
  std::string lost_;           // why the device cannot be used any more; empty: it can
};

}  // namespace tapedeck::replay
