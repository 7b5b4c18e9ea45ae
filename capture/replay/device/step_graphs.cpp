#include <tapedeck/capture/replay/device/step_graphs.h>

#include <tapedeck/kernels/cuda/fault_text.h>

#include <fmt/format.h>

namespace tapedeck::replay {

std::string StepGraphs::capture() {
  execs_.assign(parts_.size(), nullptr);
  std::string failure;
  for (std::size_t p = 0; p < parts_.size() && failure.empty(); ++p)
    if (!parts_[p].on_host) failure = capture_part(parts_[p], &execs_[p]);
  ready_ = failure.empty();
  if (!ready_) {
    ++queue_.counters.failed_captures;
    queue_.counters.graph_nodes = 0;
    destroy();
    faults_.clear();
  }
  return failure;
}

// A capture that was begun is ended in any case, or the stream could not be used any more.
std::string StepGraphs::capture_part(const DevicePart& part, kernels::cuda::GraphExec* exec) {
  kernels::cuda::DeviceRuntime& runtime = queue_.runtime();
  if (const char* error = runtime.begin_capture(queue_.stream())) return error;
  ++queue_.counters.captures;
  std::string failure;
  for (std::int32_t i = part.instructions.first; i < part.instructions.end && failure.empty(); ++i) {
    const Instruction& instruction = program_.instructions[i];
    runtime.run(instruction.kernel, instruction.call);
    if (const char* text = kernels::cuda::fault_text(faults_.of(i)))
      failure = fmt::format("node {} cannot be captured: {}", instruction.node, text);
  }
  kernels::cuda::Graph graph = nullptr;
  if (const char* error = runtime.end_capture(queue_.stream(), &graph); error && failure.empty()) failure = error;
  if (failure.empty()) failure = instantiate(graph, exec);
  if (graph) runtime.destroy_graph(graph);
  return failure;
}

std::string StepGraphs::instantiate(kernels::cuda::Graph graph, kernels::cuda::GraphExec* exec) {
  kernels::cuda::DeviceRuntime& runtime = queue_.runtime();
  std::size_t nodes = 0;
  if (const char* error = runtime.node_count(graph, &nodes)) return error;
  if (const char* error = runtime.instantiate(graph, exec)) return error;
  ++queue_.counters.instantiations;
  queue_.counters.graph_nodes += static_cast<std::int64_t>(nodes);
  if (const char* error = runtime.upload(*exec, queue_.stream())) return error;
  return "";
}

void StepGraphs::launch(std::size_t part) {
  DeviceQueue::check(queue_.runtime().launch(execs_[part], queue_.stream()));
  ++queue_.counters.graph_launches;
}

void StepGraphs::drop() {
  destroy();
  ready_ = false;
  queue_.counters.graph_nodes = 0;
}

void StepGraphs::destroy() noexcept {
  for (kernels::cuda::GraphExec exec : execs_)
    if (exec) queue_.runtime().destroy_exec(exec);
  execs_.clear();
}

}  // namespace tapedeck::replay
