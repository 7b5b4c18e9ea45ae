#include <tapedeck/capture/tool/files/value_files.h>

#include <tapedeck/capture/tool/files/terminal.h>

#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

namespace tapedeck::tool {

namespace {

using Tensors = std::map<std::string, Tensor>;

Tensor tensor_named(const Tensors& tensors, const std::string& name, const std::string& path) {
  if (const auto it = tensors.find(name); it != tensors.end()) return it->second;
  if (tensors.size() == 1) return tensors.begin()->second;
  std::vector<std::string_view> names;
  for (const auto& [known, tensor] : tensors) names.push_back(known);
  throw FileError(
      fmt::format("{}: none of its {} tensors is named '{}'{}", path, tensors.size(), name, did_you_mean(name, names)));
}

bool holds_names(const std::string& path) {
  return path.ends_with(".safetensors") || path.ends_with(".tape") || path.ends_with(".npz");
}

Tensors load_named(const std::string& path) { return path.ends_with(".npz") ? load_npz(path) : load_safetensors(path); }

// "y=out.npy" is {"y", "out.npy"}, and any other text {"", text}.
std::pair<std::string, std::string> split_place(const std::string& place) {
  const std::size_t equals = place.find('=');
  return equals == place.npos ? std::pair<std::string, std::string>("", place)
                              : std::pair(place.substr(0, equals), place.substr(equals + 1));
}

const NamedType& find_value(const char* option, const std::string& place, const std::string& name,
                            const std::vector<NamedType>& values) {
  std::vector<std::string_view> names;
  for (const NamedType& value : values) {
    if (value.name == name) return value;
    names.push_back(value.name);
  }
  const std::string near = did_you_mean(name, names);
  throw UsageError(fmt::format("{} {}: there is no output '{}'{}", option, place, name,
                               near.empty() ? fmt::format("; the outputs are: {}", fmt::join(names, ", ")) : near));
}

std::vector<NamedType> each_once(const std::vector<NamedType>& values) {
  std::vector<NamedType> result;
  std::set<std::string> seen;
  for (const NamedType& value : values)
    if (seen.insert(value.name).second) result.push_back(value);
  return result;
}

std::string path_in(const std::string& folder, const NamedType& value) {
  return (std::filesystem::path(folder) / (file_name_of(value.name) + (npy_holds(value.type.dtype) ? ".npy" : ".safetensors")))
      .string();
}

void save_value(const std::string& path, const std::string& name, const Tensor& tensor) {
  path.ends_with(".npy") ? save_npy(path, tensor) : save_safetensors(path, {{name, tensor}});
}

}  // namespace

std::vector<NamedType> outputs_of(const Graph& g) {
  std::vector<NamedType> outputs;
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    const bool named = i < g.output_names.size() && !g.output_names[i].empty();
    outputs.push_back({named ? g.output_names[i].str() : g.value_name(g.outputs[i]), g.values[g.outputs[i]].type});
  }
  return outputs;
}

bool is_folder(const std::string& path) {
  std::error_code failed;
  return std::filesystem::is_directory(path, failed);
}

Tensor load_value(const std::string& path, const std::string& name, const Type& type) {
  if (path.ends_with(".npy")) return load_npy(path);
  if (holds_names(path)) return tensor_named(load_named(path), name, path);
  return load_raw(path, type);
}

std::string file_name_of(const std::string& value) {
  std::string name;
  for (const char c : value) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                       (c == '.' && !name.empty());
    name += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return name;
}

// ---- written ----

OutputPlaces::OutputPlaces(const std::vector<std::string>& places, std::vector<NamedType> values) : values_(each_once(values)) {
  for (const std::string& text : places) {
    const auto [only, path] = split_place(text);
    if (path.empty()) throw UsageError(fmt::format("--output {}: give a folder, FILE.safetensors or NAME=FILE", text));
    if (path == "-") throw UsageError(fmt::format("--output {}: this is not written to stdout; name a file", text));
    places_.push_back({path, only, only.empty() && !path.ends_with(".safetensors")});
    check(places_.back());
  }
}

void OutputPlaces::check(const Place& place) const {
  if (place.is_folder) {
    std::filesystem::path folder = std::filesystem::path(place.path).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();  // "out/"
    const std::filesystem::path parent = folder.parent_path();
    std::error_code failed;
    if (std::filesystem::exists(place.path, failed) && !is_folder(place.path))
      throw FileError(fmt::format("{}: cannot write into it: it is no folder; for one file write NAME=FILE", place.path));
    if (!is_folder(place.path) && !parent.empty() && !is_folder(parent.string()))
      throw FileError(fmt::format("{}: cannot make this folder: {} is no folder", place.path, parent.string()));
    return;
  }
  const bool is_npy = place.path.ends_with(".npy");
  if (!is_npy && !place.path.ends_with(".safetensors"))
    throw UsageError(
        fmt::format("--output {}={}: the name of the file must end in .npy or .safetensors", place.only, place.path));
  if (place.only.empty()) return;
  const NamedType& value = find_value("--output", fmt::format("{}={}", place.only, place.path), place.only, values_);
  if (is_npy && !npy_holds(value.type.dtype))
    throw UsageError(fmt::format("--output {}={}: NumPy has no dtype for {}; write a .safetensors file", place.only, place.path,
                                 dtype_name(value.type.dtype)));
}

std::vector<OutputFile> OutputPlaces::files() const {
  std::vector<OutputFile> files;
  for (const Place& place : places_)
    if (!place.is_folder)
      files.push_back({"--output", place.path});
    else
      for (const NamedType& value : values_) files.push_back({"--output", path_in(place.path, value)});
  return files;
}

std::vector<std::string> OutputPlaces::write(const std::vector<NamedTensor>& values) const {
  std::vector<std::string> paths;
  Tensors all;
  for (const NamedTensor& value : values) all.emplace(value.name, value.tensor);
  for (const Place& place : places_) {
    if (place.is_folder) {
      std::error_code failed;
      if (!is_folder(place.path) && !std::filesystem::create_directory(place.path, failed) && failed)
        throw FileError(fmt::format("{}: cannot make this folder: {}", place.path, failed.message()));
      for (const auto& [name, tensor] : all) {
        paths.push_back(path_in(place.path, {name, tensor.type()}));
        save_value(paths.back(), name, tensor);
      }
      continue;
    }
    paths.push_back(place.path);
    if (place.only.empty()) {
      save_safetensors(place.path, all);
      continue;
    }
    const auto it = all.find(place.only);
    if (it == all.end())
      throw UsageError(
          fmt::format("--output {}={}: the step ended before '{}' was computed", place.only, place.path, place.only));
    save_value(place.path, place.only, it->second);
  }
  return paths;
}

// ---- expected ----

namespace {

// The file of a folder that holds the value; empty: there is none.
std::string file_in(const std::string& folder, const std::string& name) {
  for (const char* ending : {".npy", ".safetensors"}) {
    const std::string path = (std::filesystem::path(folder) / (file_name_of(name) + ending)).string();
    std::error_code failed;
    if (std::filesystem::exists(path, failed)) return path;
  }
  return "";
}

std::vector<ExpectedValue> expected_in(const std::string& place, const std::vector<NamedType>& values) {
  std::vector<ExpectedValue> found;
  std::vector<std::string> missing;
  if (!is_folder(place) && !holds_names(place))
    throw FileError(fmt::format(
        "--expect {}: it is neither a folder nor a .safetensors or .npz file; for one file write NAME=FILE", place));
  const Tensors tensors = is_folder(place) ? Tensors() : load_named(place);
  for (const NamedType& value : values) {
    const std::string path = is_folder(place) ? file_in(place, value.name) : tensors.count(value.name) > 0 ? place : "";
    if (path.empty())
      missing.push_back(value.name);
    else
      found.push_back({value.name, path, is_folder(place) ? load_value(path, value.name, value.type) : tensors.at(value.name)});
  }
  if (found.empty())
    throw FileError(fmt::format("--expect {}: it has no value of any output: {}", place, fmt::join(missing, ", ")));
  if (!missing.empty()) note(fmt::format("--expect {}: not compared, because not there: {}", place, fmt::join(missing, ", ")));
  return found;
}

}  // namespace

std::vector<ExpectedValue> load_expected(const std::vector<std::string>& places, const std::vector<NamedType>& values) {
  const std::vector<NamedType> all = each_once(values);
  std::vector<ExpectedValue> expected;
  for (const std::string& place : places) {
    const auto [name, path] = split_place(place);
    if (name.empty()) {
      for (ExpectedValue& value : expected_in(path, all)) expected.push_back(std::move(value));
      continue;
    }
    const NamedType& value = find_value("--expect", place, name, all);
    expected.push_back({name, path, load_value(path, name, value.type)});
  }
  return expected;
}

}  // namespace tapedeck::tool
