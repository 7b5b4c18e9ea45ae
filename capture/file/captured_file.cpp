#include <tapedeck/capture/file/captured_file.h>

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

}  // namespace tapedeck
