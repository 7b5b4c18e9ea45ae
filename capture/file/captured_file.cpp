#include <tapedeck/capture/file/captured_file.h>

#include <tapedeck/capture/step/captured_step.h>

#include <vector>

namespace tapedeck {

namespace {

std::map<std::string, Tensor> by_name(const Graph& graph, ValueId first, const std::vector<Tensor>& tensors) {
  std::map<std::string, Tensor> named;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].defined() && !tensors[i].abstract())
      named[graph.values[static_cast<std::size_t>(first) + i].name.str()] = tensors[i];
  return named;
}

}  // namespace

TapeFile tape_of(const Captured& captured, const std::map<std::string, std::string>& metadata) {
  TapeFile file;
  file.captured = captured.graph;
  file.inputs = by_name(captured.graph, 0, captured.inputs);
  file.state = by_name(captured.graph, captured.graph.n_inputs, captured.state);
  file.metadata = metadata;
  return file;
}

void save_tape(const std::string& path, const Captured& captured, const std::map<std::string, std::string>& metadata) {
  save_tape(path, tape_of(captured, metadata));
}

void save_tape(const std::string& path, const Captured& captured, const Plan& plan,
               const std::map<std::string, std::string>& metadata) {
  TapeFile file = tape_of(captured, metadata);
  file.plan = plan;
  save_tape(path, file);
}

// A step saves itself with a member function, which stands here because the rooms before this one know no files.
void CapturedStep::save(const std::string& path, const std::map<std::string, std::string>& metadata) const {
  const Captured& program = recorded("save");
  plan() ? save_tape(path, program, *plan(), metadata) : save_tape(path, program, metadata);
}

void save_tape(const std::string& path, const CapturedStep& step, const std::map<std::string, std::string>& metadata) {
  step.save(path, metadata);
}

void save_tape(const std::string& path, const CapturedStep& step, const Plan& plan,
               const std::map<std::string, std::string>& metadata) {
  if (!step.captured())
    throw UsageError(error_text("save_tape", "the captured step was not called yet, so there is nothing to save", {}));
  save_tape(path, *step.captured(), plan, metadata);
}

}  // namespace tapedeck
