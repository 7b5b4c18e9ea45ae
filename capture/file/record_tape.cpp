#include <tapedeck/capture/file/record_tape.h>

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

// The options of a recording as metadata of its file: those that the model takes.
std::map<std::string, std::string> record_metadata(const Model& model, const ModelOptions& options) {
  std::map<std::string, std::string> metadata = {{"model", model.name},
                                                 {"optimizer", options.optimizer},
                                                 {"dtype", options.dtype},
                                                 {"seed", std::to_string(options.seed)}};
  const auto size = [&](const char* name, std::int64_t value) {
    if (value > 0) metadata[name] = std::to_string(value);
  };
  size("batch", options.batch);
  size("image", options.image);
  size("seq", options.seq);
  size("layers", options.layers);
  size("width", options.width);
  return metadata;
}

}  // namespace

ModelOptions recorded_options(const std::map<std::string, std::string>& metadata) {
  ModelOptions options;
  const auto text = [&](const char* name) {
    const auto it = metadata.find(name);
    return it == metadata.end() ? std::string() : it->second;
  };
  const auto size = [&](const char* name, std::int64_t* to) { *to = std::strtoll(text(name).c_str(), nullptr, 10); };
  options.dtype = text("dtype");
  options.optimizer = text("optimizer");
  options.seed = std::strtoull(text("seed").c_str(), nullptr, 10);
  size("batch", &options.batch);
  size("image", &options.image);
  size("seq", &options.seq);
  size("layers", &options.layers);
  size("width", &options.width);
  return options;
}

TapeFile record_tape(const std::string& name, const ModelOptions& request, Captured* report) {
  const Model* model = find_model(name);
  if (!model) {
    std::vector<std::string> names;
    for (const Model& m : all_models()) names.push_back(m.name);
    const std::string near = did_you_mean(name, {names.begin(), names.end()});
    throw UsageError(
        fmt::format("unknown model '{}'{} The models are: {}", name, near.empty() ? "." : near, fmt::join(names, ", ")));
  }
  const ModelOptions options = with_defaults(*model, request);
  Captured captured = model->record(options);
  // The captured step ran, so the state before it is gone: the file holds the state after the step.
  TapeFile file = tape_of(captured, record_metadata(*model, options));
  if (report) *report = std::move(captured);
  return file;
}

}  // namespace tapedeck
