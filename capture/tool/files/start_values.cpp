// Collects the values that a replay starts from. A value of the command line goes before a value of the file, and a stand-in
// made from the seed takes the place of a value that is missing.
#include <tapedeck/capture/tool/files/start_values.h>

#include <tapedeck/capture/tool/files/missing_file.h>
#include <tapedeck/capture/tool/files/terminal.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

namespace tapedeck::tool {

namespace {

std::string name_of(const Graph& g, ValueId v) { return g.values[v].name.str(); }
const Type& type_of(const Graph& g, ValueId v) { return g.values[v].type; }

bool is_stdin(const std::string& option) { return option.ends_with("=-") || option.ends_with("=@-"); }

}  // namespace

TapeFile load_any(const std::string& path, Check check) {
  require_file(path);
  if (!path.ends_with(".graph")) return load_tape(path, check);
  TapeFile file;
  file.captured = load_graph(path);
  return file;
}

Start starting_values(const TapeFile& file, const StartOptions& options) {
  const Graph& g = file.captured;
  Start start;
  for (ValueId v = 0; v < g.n_inputs; ++v) {
    auto it = file.inputs.find(name_of(g, v));
    start.inputs.push_back(it != file.inputs.end() ? it->second : default_value(type_of(g, v), options.seed, name_of(g, v)));
  }
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v) {
    auto it = file.state.find(name_of(g, v));
    start.state.push_back(it != file.state.end() ? it->second : default_value(type_of(g, v), options.seed, name_of(g, v)));
  }
  if (std::count_if(options.inputs.begin(), options.inputs.end(), is_stdin) > 1)
    throw UsageError("--input: two inputs cannot both be read from stdin");
  for (const std::string& item : options.inputs) {
    const std::size_t equals = item.find('=');
    if (equals == item.npos) throw UsageError(fmt::format("--input {}: give a name and a value: NAME=VALUE", item));
    const std::string name = item.substr(0, equals);
    ValueId v = 0;
    while (v < g.n_inputs && name_of(g, v) != name) ++v;
    if (v == g.n_inputs) {
      std::string names;
      for (ValueId i = 0; i < g.n_inputs; ++i) names += (i ? ", " : "") + name_of(g, i);
      throw UsageError(fmt::format("the graph has no input '{}'; its inputs are: {}", name, names));
    }
    GivenInput given = given_input(item.substr(equals + 1), name, type_of(g, v));
    if (given.sequence) given.value = given.sequence->at(0);
    start.inputs[v] = std::move(given.value);
    if (given.sequence) start.sequences[v] = std::move(given.sequence);
  }
  if (options.weights.empty()) return start;
  int used = 0;
  require_other_file(options.weights);
  const TensorFile weights = load_tensor_file(options.weights);
  for (const SkippedTensor& t : weights.skipped)
    note(fmt::format("{}: the tensor '{}' is {}, which cannot be loaded, and is left out", options.weights, t.name,
                     to_string(t)));
  const bool is_tape = weights.tensors.count("graph") > 0;  // weights of a capture stand under state/
  for (const auto& [key, tensor] : weights.tensors) {
    if (is_tape && !key.starts_with("state/")) continue;
    const std::string name = is_tape ? key.substr(6) : key;
    ValueId v = g.n_inputs;
    while (v < g.n_inputs + g.n_state && name_of(g, v) != name) ++v;
    if (v == g.n_inputs + g.n_state) {
      note(fmt::format("{}: the tensor '{}' is no state value of the graph and is left out", options.weights, name));
      continue;
    }
    if (tensor.type() != type_of(g, v))
      throw FileError(fmt::format("{}: the tensor '{}' is {}, but the state of the graph is {}", options.weights, name,
                                  to_string(tensor.type()), to_string(type_of(g, v))));
    start.state[v - g.n_inputs] = tensor;
    ++used;
  }
  if (used == 0) throw FileError(fmt::format("{}: the file holds no state value of the graph", options.weights));
  return start;
}

void set_start(Executor* executor, const Start& start, StateUse use) {
  for (std::size_t i = 0; i < start.inputs.size(); ++i) executor->set_input(static_cast<int>(i), start.inputs[i]);
  const std::vector<std::string> names = executor->state_names();
  for (std::size_t i = 0; i < start.state.size(); ++i)
    use == StateUse::bound ? executor->bind_state(names[i], start.state[i]) : executor->set_state(names[i], start.state[i]);
}

}  // namespace tapedeck::tool
