#include <tapedeck/viewer/planning/replay_values.h>

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/file/foreign_file.h>
#include <tapedeck/engine/ir/error.h>

#include <map>

namespace tapedeck::viewer {

namespace {

constexpr std::uint64_t kSeed = 42;  // of stand-ins, as the tool's

Tensor value_of(const std::map<std::string, Tensor>& known, const Graph& graph, ValueId v, ReplayValues* values) {
  const Value& wanted = graph.values[static_cast<std::size_t>(v)];
  const std::string name = wanted.name.str();
  const auto found = known.find(name);
  if (found == known.end()) {
    ++values->stand_ins;
    return default_value(wanted.type, kSeed, name);
  }
  if (!(found->second.type() == wanted.type))
    throw UsageError("the file was written anew since it was opened: its value %" + name + " is " +
                     to_string(found->second.type()) + ", not " + to_string(wanted.type) + "; open it again");
  return found->second;
}

}  // namespace

ReplayValues replay_values(const std::string& path, const Graph& graph) {
  TapeFile file;
  if (!path.ends_with(".graph") && !is_graph_text(path)) file = load_tape(path, Check::all);
  ReplayValues values;
  for (ValueId v = 0; v < graph.n_inputs; ++v) values.inputs.push_back(value_of(file.inputs, graph, v, &values));
  for (ValueId v = graph.n_inputs; v < graph.n_inputs + graph.n_state; ++v)
    values.state.push_back(value_of(file.state, graph, v, &values));
  return values;
}

void set_values(Executor* executor, const ReplayValues& values) {
  for (std::size_t i = 0; i < values.inputs.size(); ++i) executor->set_input(static_cast<int>(i), values.inputs[i]);
  const std::vector<std::string> names = executor->state_names();
  for (std::size_t i = 0; i < names.size(); ++i) executor->bind_state(names[i], values.state[i]);
}

}  // namespace tapedeck::viewer
