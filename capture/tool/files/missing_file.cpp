#include <tapedeck/capture/tool/files/missing_file.h>

#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

namespace tapedeck::tool {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLooked = 10'000;  // files of a folder

bool is_graph(const std::string& name) { return name.ends_with(".tape") || name.ends_with(".graph"); }

// The files beside the path, or the graphs and captured steps alone, in the order of names. Empty if the folder cannot be
// listed.
std::vector<std::string> neighbours(const fs::path& path, bool graphs_alone) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(path.has_parent_path() ? path.parent_path() : ".", error), end;
  for (std::size_t looked = 0; !error && at != end && looked < kMostLooked; at.increment(error), ++looked)
    if (const std::string name = at->path().filename().string(); !graphs_alone || is_graph(name)) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string near_files(const std::string& path, bool graphs_alone) {
  const std::vector<std::string> names = neighbours(path, graphs_alone);
  return did_you_mean(fs::path(path).filename().string(), {names.begin(), names.end()});
}

std::string hint(const std::string& path) {
  if (find_model(path)) return fmt::format("; {0} is a model: record it first, by tapedeck record {0} -o {0}.tape", path);
  return near_files(path, true);
}

bool is_missing(const std::string& path) {
  std::error_code error;
  return !fs::exists(path, error) && !error;  // whatever else is wrong, reading says it
}

}  // namespace

void require_file(const std::string& path) {
  if (is_missing(path)) throw FileError(fmt::format("{}: cannot read: No such file or directory{}", path, hint(path)));
}

void require_other_file(const std::string& path) {
  if (is_missing(path))
    throw FileError(fmt::format("{}: cannot read: No such file or directory{}", path, near_files(path, false)));
}

}  // namespace tapedeck::tool
