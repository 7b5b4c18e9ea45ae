#include <tapedeck/capture/file/load_executor.h>

#include <tapedeck/capture/planner/planner.h>

#include <utility>

namespace tapedeck {

Executor make_executor(TapeFile file, const ExecutorOptions& options) {
  Executor executor(file.plan ? *std::move(file.plan) : make_plan(file.captured), options);
  for (const auto& [name, tensor] : file.inputs) executor.set_input(name, tensor);
  for (const auto& [name, tensor] : file.state) executor.bind_state(name, tensor);
  return executor;
}

Executor load_executor(const std::string& path, const ExecutorOptions& options) {
  return make_executor(load_tape(path), options);
}

Executor load_executor(const std::string& path, const PlanOptions& plan, const ExecutorOptions& options) {
  TapeFile file = load_tape(path);
  file.plan = make_plan(file.captured, plan);
  return make_executor(std::move(file), options);
}

}  // namespace tapedeck
