#include <tapedeck/capture/tool/files/input_values.h>
#include <tapedeck/capture/tool/files/missing_file.h>

#include <tapedeck/capture/tool/files/value_files.h>

#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace tapedeck::tool {

namespace {

bool is_pattern(const std::string& text) { return text.find_first_of("*?[") != text.npos; }

bool exists(const std::string& path) {
  std::error_code failed;
  return std::filesystem::exists(path, failed);
}

// A word that is no file and looks like none is a mistake of the command line, not a missing file.
bool is_path(const std::string& text) {
  return text.starts_with("@") || text.find_first_of("./*?[") != text.npos || exists(text);
}

std::string path_of(const std::string& text) { return text.starts_with("@") ? text.substr(1) : text; }

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failed, is_broken_link;
  for (std::filesystem::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
    if (it->is_regular_file(is_broken_link) && it->path().filename().string()[0] != '.') files.push_back(it->path().string());
  if (failed) throw FileError(fmt::format("{}: cannot read: {}", folder, failed.message()));
  std::sort(files.begin(), files.end());
  if (files.empty()) throw FileError(fmt::format("{}: the folder holds no files", folder));
  return files;
}

std::vector<std::string> matches_of(const std::string& pattern) {
  glob_t found = {};
  const int code = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> files;
  for (std::size_t i = 0; code == 0 && i < found.gl_pathc; ++i)
    if (!is_folder(found.gl_pathv[i])) files.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  std::sort(files.begin(), files.end());
  if (files.empty()) throw FileError(fmt::format("{}: no file has such a name", pattern));
  return files;
}

// One file for each step; empty: `path` is a single file.
std::vector<std::string> sequence_of(const std::string& path) {
  if (is_folder(path)) return files_in(path);
  if (is_pattern(path) && !exists(path)) return matches_of(path);
  return {};
}

Tensor zeros_of(const Type& type) {
  const std::vector<unsigned char> zero(static_cast<std::size_t>(type.bytes()));
  return from_bytes(type, zero.data());
}

}  // namespace

InputSequence::InputSequence(std::string name, const Type& type, std::vector<std::string> files)
    : name_(std::move(name)), type_(type), files_(std::move(files)) {}

InputSequence::InputSequence(std::string name, const Type& type, std::shared_ptr<TensorStream> stream)
    : name_(std::move(name)), type_(type), stream_(std::move(stream)) {}

Tensor InputSequence::at(std::int64_t step) {
  if (!stream_) {
    if (step > 0 && files_.size() == 1) return {};
    const std::string& path = files_[static_cast<std::size_t>(step) % files_.size()];
    return checked(load_value(path, name_, type_), path);
  }
  if (is_single_) return {};
  if (std::optional<Tensor> value = stream_->next(type_)) return checked(std::move(*value), "stdin");
  is_single_ = step == 1;
  if (!is_single_)
    throw FileError(step == 0
                        ? fmt::format("stdin: there is no value for the input '{}'", name_)
                        : fmt::format("stdin: it ended after {} values of '{}', and step {} needs one", step, name_, step + 1));
  return {};
}

Tensor InputSequence::checked(Tensor value, const std::string& from) const {
  if (value.type() != type_)
    throw FileError(fmt::format("{}: {}, but the input '{}' is {}", from, to_string(value.type()), name_, to_string(type_)));
  return value;
}

GivenInput given_input(const std::string& text, const std::string& name, const Type& type) {
  const bool is_random =
      text.starts_with("rand:") && text.size() > 5 && text.size() < 24 && text.find_first_not_of("0123456789", 5) == text.npos;
  if (text == "zeros") return {zeros_of(type), nullptr};
  if (is_random) return {default_value(type, std::strtoull(text.c_str() + 5, nullptr, 10), name), nullptr};
  if (text == "-" || text == "@-")
    return {{}, std::make_unique<InputSequence>(name, type, std::make_shared<TensorStream>(STDIN_FILENO, "stdin"))};
  if (!is_path(text))
    throw UsageError(fmt::format(
        "--input {}={}: give the value as a file (.npy, .npz, .safetensors or raw), a folder or pattern with a file for each "
        "step, - for stdin, rand:SEED or zeros",
        name, text));
  std::vector<std::string> files = sequence_of(path_of(text));
  if (files.empty()) {
    require_other_file(path_of(text));
    files.push_back(path_of(text));
  }
  return {{}, std::make_unique<InputSequence>(name, type, std::move(files))};
}

std::vector<std::string> files_of_inputs(const std::vector<std::string>& options) {
  std::vector<std::string> all;
  for (const std::string& option : options) {
    const std::size_t equals = option.find('=');
    const std::string text = equals == option.npos ? "" : option.substr(equals + 1);
    if (text.empty() || text == "-" || text == "@-" || !is_path(text)) continue;
    const std::vector<std::string> files = sequence_of(path_of(text));
    all.insert(all.end(), files.begin(), files.end());
    if (files.empty()) all.push_back(path_of(text));
  }
  return all;
}

}  // namespace tapedeck::tool
