#include <tapedeck/viewer/start/new_file.h>

#include <tapedeck/capture/file/record_tape.h>
#include <tapedeck/capture/formats/gzip.h>
#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/viewer/model/tool_command.h>
#include <tapedeck/viewer/words/format.h>

#include <sstream>

namespace tapedeck::viewer {

namespace {

// The bytes that a step takes when nothing is recomputed. Its types alone tell them. Nobody asks for its floor, so none is
// searched.
std::int64_t bytes_of(const Graph& graph) {
  PlanOptions options;
  options.strategy = Strategy::none;
  options.find_floor = false;
  return make_plan(graph, options).peak_bytes;
}

std::string too_large(std::int64_t needed, std::int64_t available) {
  return "Only types were recorded: the step takes " + human_bytes(needed) + ", and " + human_bytes(available) +
         " are free here. It can be planned and explored; a replay needs a machine with more memory, or a smaller size.";
}

}  // namespace

NewFile record_step(const std::string& model, const ModelOptions& options, const std::string& path, std::int64_t available,
                    const std::atomic<bool>& cancelled) {
  NewFile made;
  ModelOptions types = options;
  types.abstract = true;
  types.weights.clear();
  TapeFile file = record_tape(model, types);
  if (cancelled) return made;
  const std::int64_t needed = options.abstract ? 0 : bytes_of(file.captured);
  if (cancelled) return made;
  const bool fits = available < 0 || needed <= available;
  if (!options.abstract && fits) file = record_tape(model, options);
  if (cancelled) return made;
  save_tape(path, file);
  made.path = path;
  if (!fits) made.note = too_large(needed, available);
  return made;
}

NewFile import_step(const ImportFormat& format, const std::string& from, const std::string& path,
                    const std::atomic<bool>& cancelled) {
  TapeFile file;
  file.captured = format.read(unpacked_text(read_text_file(from), from), from, ImportedResults::held);
  file.metadata["imported_from"] = format.name;
  NewFile made;
  if (cancelled) return made;
  save_tape(path, file);
  made.path = path;
  return made;
}

NewFile import_model(const std::string& from, const OnnxOptions& options, const std::string& path, std::int64_t available,
                     const std::atomic<bool>& cancelled) {
  NewFile made;
  OnnxOptions types = options;
  types.abstract = true;
  OnnxImport import = import_onnx(from, types);
  if (cancelled) return made;
  const std::int64_t needed = bytes_of(import.file.captured);
  const bool fits = available < 0 || needed <= available;
  if (cancelled) return made;
  if (fits) import = import_onnx(from, options);
  if (cancelled) return made;
  save_tape(path, import.file);
  made.path = path;
  if (!fits) made.note = too_large(needed, available);
  for (const std::string& sentence : import.notes) made.note += (made.note.empty() ? "" : " ") + sentence;
  return made;
}

std::string record_line(const std::string& model, const ModelOptions& options, const std::string& path) {
  std::ostringstream line;
  line << "tapedeck record " << model;
  const auto size = [&](const char* option, std::int64_t value) {
    if (value > 0) line << ' ' << option << ' ' << value;
  };
  size("--batch", options.batch);
  size("--image", options.image);
  size("--seq", options.seq);
  size("--layers", options.layers);
  size("--width", options.width);
  if (!options.dtype.empty()) line << " --dtype " << options.dtype;
  if (!options.optimizer.empty()) line << " --optimizer " << options.optimizer;
  if (options.abstract) line << " --abstract";
  line << " -o " << shell_word(path);
  return line.str();
}

const ImportFormat& format_of(const std::string& path) {
  for (const ImportFormat& format : import_formats()) {
    std::istringstream endings(format.endings);
    for (std::string ending; endings >> ending;)
      if (path.ends_with(ending.substr(1))) return format;
  }
  return import_formats().front();
}

}  // namespace tapedeck::viewer
