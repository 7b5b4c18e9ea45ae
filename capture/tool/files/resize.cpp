#include <tapedeck/capture/tool/files/resize.h>

#include <tapedeck/capture/tool/files/missing_file.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>

#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/sizes/retype.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/suggest.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <utility>

namespace tapedeck::tool {

namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 40;

struct Request {
  std::string name;
  std::int64_t size = 0;
};

Request parse_request(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) throw UsageError(fmt::format("--dims {}: give a name and a size: batch=32", text));
  Request request{text.substr(0, equals), 0};
  const char *first = text.data() + equals + 1, *last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, request.size);
  if (error != std::errc() || end != last || request.size < 1 || request.size > kMostSize)
    throw UsageError(fmt::format("--dims {}: '{}' is not a size; give a whole number from 1 to {}", text,
                                 std::string(first, last), kMostSize));
  return request;
}

// ---- by the model ----

std::int64_t* size_of(ModelOptions* options, const std::string& name) {
  if (name == "batch") return &options->batch;
  if (name == "image") return &options->image;
  if (name == "seq") return &options->seq;
  if (name == "layers") return &options->layers;
  if (name == "width") return &options->width;
  return nullptr;
}

std::vector<std::string> model_sizes(const TapeFile& file) {
  std::vector<std::string> names;
  for (const auto& [key, value] : file.metadata) {
    ModelOptions any;
    if (size_of(&any, key)) names.push_back(key);
  }
  const auto model = file.metadata.find("model");
  return model != file.metadata.end() && find_model(model->second) ? names : std::vector<std::string>();
}

enum class Constants : std::uint8_t { by_type, by_data };

bool same_node(const Graph& a, const Graph& b, NodeId n, Constants constants) {
  const Node &x = a.nodes[n], &y = b.nodes[n];
  if (x.op != y.op) return false;
  const bool is_constant = constants == Constants::by_type && a.literal(x) && b.literal(y);
  return is_constant || same_attributes(a, x, b, y);
}

bool same_structure(const Graph& a, const Graph& b, Constants constants) {
  if (a.node_count() != b.node_count() || a.value_count() != b.value_count() || a.n_inputs != b.n_inputs ||
      a.outputs != b.outputs || a.refs != b.refs)
    return false;
  for (NodeId n = 0; n < a.node_count(); ++n)
    if (!same_node(a, b, n, constants)) return false;
  for (ValueId v = 0; v < a.value_count(); ++v)
    if (a.values[v].name != b.values[v].name || a.values[v].type != b.values[v].type) return false;
  return true;
}

bool has_abstract_constant(const Graph& g) {
  return std::any_of(g.constants.begin(), g.constants.end(), [](const Literal& literal) { return !literal.data; });
}

Graph recorded_graph(const std::string& model, ModelOptions options, bool abstract) {
  options.abstract = abstract;
  return record_tape(model, options).captured;
}

// Types come first, since a file may claim any size; a step on real data is recorded only for the data of constants, and only
// once the graph of the file is known to be of that size.
bool is_recorded_by(const std::string& model, const ModelOptions& options, const Graph& captured) {
  if (options.layers > captured.node_count()) return false;  // each layer has a node; to record so many would take long
  const Graph types = recorded_graph(model, options, true);
  if (!same_structure(types, captured, Constants::by_type)) return false;
  return !has_abstract_constant(types) || same_structure(recorded_graph(model, options, false), captured, Constants::by_data);
}

Graph recorded_again(TapeFile* file, const std::vector<Request>& requests) {
  const std::string model = file->metadata.at("model");
  ModelOptions options = recorded_options(file->metadata);
  if (!is_recorded_by(model, options, file->captured))
    throw UsageError(
        fmt::format("--dims: the graph is not, or no longer, the one that the model {} records; write INPUT@AXIS=SIZE", model));
  for (const Request& request : requests) {
    *size_of(&options, request.name) = request.size;
    file->metadata[request.name] = std::to_string(request.size);
  }
  Graph types = recorded_graph(model, options, true);
  return has_abstract_constant(types) ? recorded_graph(model, options, false) : types;
}

// ---- by axes ----

Graph retyped_by_axes(const Graph& graph, const std::vector<Request>& requests) {
  std::map<std::string, Type> types;
  for (const Request& request : requests) {
    const std::size_t at = request.name.rfind('@');
    const std::string name = request.name.substr(0, at), axis_text = request.name.substr(at + 1);
    ValueId v = 0;
    while (v < graph.n_inputs && graph.value_name(v) != name) ++v;
    if (v == graph.n_inputs) {
      std::vector<std::string> names;
      for (ValueId i = 0; i < graph.n_inputs; ++i) names.push_back(graph.value_name(i));
      throw UsageError(fmt::format("--dims {}: the graph has no input '{}'; its inputs are: {}", request.name, name,
                                   fmt::join(names, ", ")));
    }
    Type& type = types.emplace(name, graph.values[v].type).first->second;
    int axis = -1;
    const auto [end, error] = std::from_chars(axis_text.data(), axis_text.data() + axis_text.size(), axis);
    if (error != std::errc() || end != axis_text.data() + axis_text.size() || axis < 0 || axis >= type.shape.rank)
      throw UsageError(fmt::format("--dims {}: '{}' is no axis of {}, which has {}", request.name, axis_text, name,
                                   type.shape.rank == 0 ? "none" : fmt::format("0 to {}", type.shape.rank - 1)));
    type.shape[axis] = request.size;
    if (checked_bytes(type.dtype, {type.shape.begin(), static_cast<std::size_t>(type.shape.rank)}) < 0)
      throw UsageError(fmt::format("--dims {}={}: the input would be too large", request.name, request.size));
  }
  return retype(graph, types);
}

[[noreturn]] void refuse_name(const std::string& name, const DimTable& dims, const TapeFile& file) {
  std::vector<std::string> known = model_sizes(file);
  for (const DimRange& dim : dims.dims) known.push_back(dim.name);
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string near = did_you_mean(name, names);
  throw UsageError(fmt::format("--dims {}: the file has no such dimension{}", name,
                               !near.empty() ? near
                               : known.empty()
                                   ? "; it names none: write INPUT@AXIS=SIZE"
                                   : fmt::format("; it has: {}; or write INPUT@AXIS=SIZE", fmt::join(known, ", "))));
}

Graph resized(TapeFile* file, const DimTable& dims, const std::vector<Request>& requests) {
  const std::vector<std::string> of_model = model_sizes(*file);
  std::size_t named = 0, modelled = 0, axes = 0;
  Sizes sizes;
  for (const Request& request : requests) {
    if (dims.find(request.name) != kNone)
      sizes[request.name] = request.size, ++named;
    else if (request.name.find('@') != std::string::npos)
      ++axes;
    else if (std::find(of_model.begin(), of_model.end(), request.name) != of_model.end())
      ++modelled;
    else
      refuse_name(request.name, dims, *file);
  }
  if (named == requests.size()) return retype(file->captured, dims, sizes);
  if (axes == requests.size()) return retyped_by_axes(file->captured, requests);
  if (modelled == requests.size()) return recorded_again(file, requests);
  throw UsageError("--dims: give dimensions of one kind: those that the file names, those of the model, or INPUT@AXIS");
}

}  // namespace

TapeFile load_with_dims(const std::string& path, Check check, DimTable* dims) {
  require_file(path);
  TapeFile file;
  if (path.ends_with(".graph")) {  // read once: it may be a pipe
    const std::string text = read_text_file(path);
    file.captured = parse(text, path);
    *dims = parse_dims(text, path);
    return file;
  }
  file = load_any(path, check);
  if (const auto it = file.metadata.find(kDimsKey); it != file.metadata.end()) *dims = dims_from_text(it->second);
  return file;
}

void resize(TapeFile* file, const DimTable& dims, const std::vector<std::string>& sizes) {
  std::vector<Request> requests;
  for (const std::string& text : sizes) requests.push_back(parse_request(text));
  Graph graph = resized(file, dims, requests);
  std::vector<std::string> dropped;
  for (ValueId v = 0; v < graph.n_inputs + graph.n_state; ++v) {
    const std::string name = graph.value_name(v);
    auto& values = graph.is_input(v) ? file->inputs : file->state;
    const auto it = values.find(name);
    if (it == values.end() || it->second.type() == graph.values[v].type) continue;
    if (graph.is_state(v))
      throw TypeError(fmt::format("--dims: the state '{}' would become {}, but it is {}", name, to_string(graph.values[v].type),
                                  to_string(it->second.type())));
    dropped.push_back(name);
    values.erase(it);
  }
  if (!dropped.empty())
    note(fmt::format("--dims: the samples of {} have other sizes; stand-ins take their place unless --input gives values",
                     fmt::join(dropped, ", ")));
  file->captured = std::move(graph);
  file->plan.reset();
  file->profile.reset();
}

}  // namespace tapedeck::tool
