// Replays the recordings of one captured step: an executor for each, whose state is the user's own tensors.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/step/recording.h>
#include <tapedeck/engine/eager/tensor.h>

#include <string>
#include <vector>

namespace tapedeck {

class RecordingReplayer {
 public:
  // `executor`: has a pool, and state by tensor, since all recordings of the step share their memory.
  RecordingReplayer(PlanOptions plan, ExecutorOptions executor);

  // A second recording has confirmed the first: plans the program, and makes the executor. Throws CaptureError if no plan fits.
  void build(Recording& r, Captured captured) const;
  // The inputs in, a step, the results out; gradients go where the function would have left them. If the step fails before it
  // writes state, nothing has happened.
  std::vector<Tensor> replay(Recording& r, const std::vector<Tensor>& inputs) const;

 private:
  PlanOptions plan_;
  ExecutorOptions executor_;
};

// The executors of a step that was recorded on a device run there, use its tensors where they lie, and give results there. They
// are in no pool.
ExecutorOptions on_device_of(const Captured& captured, ExecutorOptions executor);
// A plan of the graph for such an executor. On a device a budget holds for all memory there (device_plan.h), and elementwise
// nodes are fused unless a lower level than the default is asked for.
Plan plan_for(const Graph& graph, PlanOptions how, const ExecutorOptions& executor);

// The options for an executor of this recording, with its name: "WHATstep(f32[32,784])".
ExecutorOptions member_options(const Recording& r, ExecutorOptions executor, const char* what = "");

}  // namespace tapedeck
