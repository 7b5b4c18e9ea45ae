// The components of an Executor. A component owns its fields and refers to components above it.
#pragma once

#include <tapedeck/capture/replay/device/device_step.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/input_slots.h>
#include <tapedeck/capture/replay/inspector.h>
#include <tapedeck/capture/replay/kept_step.h>
#include <tapedeck/capture/replay/memory/buffers.h>
#include <tapedeck/capture/replay/memory/byte_uses.h>
#include <tapedeck/capture/replay/memory/shared_memory.h>
#include <tapedeck/capture/replay/memory/step_progress.h>
#include <tapedeck/capture/replay/observed_run.h>
#include <tapedeck/capture/replay/partial_step.h>
#include <tapedeck/capture/replay/program/program.h>
#include <tapedeck/capture/replay/results.h>
#include <tapedeck/capture/replay/segments/run_segments.h>
#include <tapedeck/capture/replay/state_slots.h>
#include <tapedeck/capture/replay/step_runner.h>

#include <memory>
#include <vector>

namespace tapedeck {

// As a Member, the executor is known to the other executors on its memory.
struct Executor::Impl final : replay::Member {
  Impl(Plan plan, const ExecutorOptions& options);
  // A plan of the same graph at other types, on the parent's memory. Throws TypeError where a buffer would have to grow and may
  // not.
  Impl(Plan plan, const Impl& parent, bool allow_up_sizing);
  ~Impl() override;

  void keep_outputs_in(const replay::StateValue& value) override { results.keep_those_in(value); }
  const std::vector<std::shared_ptr<Buffer>>& own_buffers() const override { return buffers.own(); }

  void set_input(std::int32_t slot, const Tensor& value);
  // The tensor is on the device of this executor. From then on steps run in the order of the ops there.
  bool shares_device(const Tensor& value);
  void join_ops();
  void refuse_on_device(const char* what) const;  // UsageError: `what` needs a replay on the CPU

  const Plan plan;
  const ExecutorOptions options;
  const std::shared_ptr<kernels::cuda::DeviceRuntime> runtime;  // of the device; null: the CPU
  replay::Buffers buffers;
  replay::InputSlots inputs;
  replay::StateSlots states;
  replay::KeptStep kept;
  replay::Program program;
  replay::SegmentWalk walk;
  replay::ObservedRun observed;
  replay::StepProgress progress;
  replay::ByteUses uses;
  replay::Results results;
  replay::StepRunner runner;
  replay::PartialStep partial;
  replay::Inspector inspector;
  std::unique_ptr<replay::DeviceStep> device;  // null: the CPU
  EagerDevice* ops = nullptr;                  // whose tensors this executor uses where they lie; null: none

 private:
  struct Shared {
    std::shared_ptr<replay::Memory> memory;
    std::shared_ptr<replay::Family> family;
  };

  static Shared memory_of(const ExecutorOptions& options);
  Impl(Plan plan, const ExecutorOptions& options, Shared shared);
  void finish();
};

}  // namespace tapedeck
