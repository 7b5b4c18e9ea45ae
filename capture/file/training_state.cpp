// A training state as named tensors. Saving and loading make the same list of parts, so they cannot disagree about names:
//
//     net/fc1.weight   optimizer/fc1.weight.m   optimizer/adam.steps   optimizer/lr.0   scaler/grad_scaler.scale
//     schedule/step    rng                      tensors/NAME
//
// The draws of the running random step stand in the metadata, as JSON: {"fc.drop":1}.
#include <tapedeck/capture/file/training_state.h>

#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/random_position.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/thread_state.h>

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <utility>
#include <vector>

namespace tapedeck {
namespace {

constexpr const char* kStateFormatKey = "tapedeck.state";
constexpr const char* kDrawsKey = "tapedeck.draws";
constexpr int kStateFormat = 1;

// How a part gets its value.
enum class PartKind : std::uint8_t { tensor, rate, step, rng };

struct Part {
  PartKind kind = PartKind::tensor;
  Tensor value;           // the value now; for PartKind::tensor the tensor to write
  std::size_t group = 0;  // of a rate
};
using Parts = std::map<std::string, Part>;

void add(Parts* all, const std::string& name, Part part) {
  const auto [known, first] = all->try_emplace(name, part);
  const bool tied = known->second.value.impl() == part.value.impl();  // one parameter of two modules
  if (!first && !tied) throw UsageError(fmt::format("two tensors of the state are named {}", shown(name)));
}

void add_tensors(Parts* all, const std::string& section, const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors) add(all, section + t.name().str(), {PartKind::tensor, t});
}

Parts parts_of(const StateParts& state) {
  Parts all;
  if (state.net) {
    add_tensors(&all, "net/", state.net->parameters());
    add_tensors(&all, "net/", state.net->buffers());
  }
  if (state.optimizer) {
    add_tensors(&all, "optimizer/", state.optimizer->state());
    for (std::size_t g = 0; g < state.optimizer->groups(); ++g)
      add(&all, fmt::format("optimizer/lr.{}", g), {PartKind::rate, scalar(state.optimizer->lr(g).item(), DType::f64), g});
  }
  if (state.scaler) add_tensors(&all, "scaler/", state.scaler->state());
  if (state.step) add(&all, "schedule/step", {PartKind::step, integer_scalar(*state.step)});
  if (state.rng) {
    const RandomPosition position = random_position();
    add(&all, "rng", {PartKind::rng, from_vector(std::vector<std::int64_t>{position.seed, position.step}, {2})});
  }
  for (const auto& [name, tensor] : state.tensors) {
    if (!tensor.defined()) throw UsageError(fmt::format("tensor {} of the state is undefined", shown(name)));
    add(&all, "tensors/" + name, {PartKind::tensor, tensor});
  }
  return all;
}

void refuse_inside_capture(const char* what, Site site) {
  const Recorder& tape = *thread_state().tape;
  if (tape.capturing)
    refuse_in_capture(tape, error_text(what, "works on the host inside a capture, which a replay could not repeat", site));
  if (abstract_mode()) throw UsageError(error_text(what, "has no data to work on in abstract mode", site));
}

// ---- draws as JSON ----

std::string draws_text(const RandomPosition& position) {
  JsonWriter json;
  json.open('{');
  for (const auto& [path, count] : position.draws) json.key(path).value(count);
  return json.close('}').take();
}

std::map<std::string, std::int32_t> parse_draws(const std::string& text) {
  std::map<std::string, std::int32_t> draws;
  const JsonDocument document(text);
  for (const auto& [path, value] : document.root().members()) {
    const std::int64_t count = value.as_integer();
    if (count < 0 || count >= std::numeric_limits<std::int32_t>::max())
      throw JsonError(fmt::format("{} draws of {}", count, shown(path)));
    draws.emplace(path, static_cast<std::int32_t>(count));
  }
  return draws;
}

// ---- loading ----

void check_format(const TensorFile& file) {
  const auto fail = [&](const std::string& reason) { throw FileError(fmt::format("{}: {}", file.path, reason)); };
  const auto format = file.metadata.find(kStateFormatKey);
  if (format == file.metadata.end())
    return fail(fmt::format("a safetensors file, but not a saved state (no {} in its metadata)", kStateFormatKey));
  int number = 0;
  const std::string& text = format->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1)
    return fail(fmt::format("the version of the format is not a number: {}", shown(text)));
  if (number > kStateFormat)
    fail(fmt::format("written in format version {}, newer than version {} that this program reads", number, kStateFormat));
}

// Whether the name belongs to a part that is loaded.
bool asked_for(const std::string& name, const StateParts& state) {
  return (state.net && name.starts_with("net/")) || (state.optimizer && name.starts_with("optimizer/")) ||
         (state.scaler && name.starts_with("scaler/")) || (state.step && name.starts_with("schedule/")) ||
         (state.rng && name == "rng") || (!state.tensors.empty() && name.starts_with("tensors/"));
}

// A value of the file, for a part of the same type.
struct Fit {
  const Part* part;
  const Tensor* value;
};

LoadReport compare(const TensorFile& file, const Parts& parts, const StateParts& state, std::vector<Fit>* fits) {
  LoadReport report;
  std::map<std::string, std::string> skipped;
  for (const SkippedTensor& t : file.skipped) skipped.emplace(t.name, to_string(t));
  for (const auto& [name, part] : parts) {
    const auto found = file.tensors.find(name);
    const auto foreign = skipped.find(name);
    if (found != file.tensors.end() && found->second.type() == part.value.type())
      fits->push_back({&part, &found->second});
    else if (found != file.tensors.end())
      report.mismatched.push_back({name, to_string(found->second.type()), to_string(part.value.type())});
    else if (foreign != skipped.end())
      report.mismatched.push_back({name, foreign->second, to_string(part.value.type())});
    else
      report.missing.push_back(name);
  }
  for (const auto& [name, tensor] : file.tensors)
    if (!parts.count(name) && asked_for(name, state)) report.unexpected.push_back(name);
  for (const auto& [name, type] : skipped)
    if (!parts.count(name) && asked_for(name, state)) report.unexpected.push_back(name);
  return report;
}

RandomPosition position_in(const TensorFile& file, const Tensor& rng) {
  const std::vector<std::int64_t> raw = rng.to_vector<std::int64_t>();
  RandomPosition position{raw[0], raw[1], {}};
  const auto draws = file.metadata.find(kDrawsKey);
  try {
    if (draws != file.metadata.end()) position.draws = parse_draws(draws->second);
  } catch (const JsonError& e) {
    throw FileError(fmt::format("{}: {}: {}", file.path, kDrawsKey, e.what()));
  }
  return position;
}

}  // namespace

void save_state(const std::string& path, const StateParts& parts, Site site) {
  refuse_inside_capture("save_state", site);
  std::map<std::string, std::string> metadata = {{kStateFormatKey, std::to_string(kStateFormat)}};
  if (parts.rng) metadata[kDrawsKey] = draws_text(random_position());
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, part] : parts_of(parts)) tensors.emplace(name, part.value);
  save_safetensors(path, tensors, metadata);
}

LoadReport load_state(const std::string& path, const StateParts& state, LoadOptions options, Site site) {
  refuse_inside_capture("load_state", site);
  const TensorFile file = load_tensor_file(path);
  check_format(file);
  const Parts parts = parts_of(state);
  std::vector<Fit> fits;
  LoadReport report = compare(file, parts, state, &fits);
  if (options.strict && !report.complete())
    throw FileError(fmt::format("{}: the state does not fit:\n{}", path, report.to_string()));
  RandomPosition position;
  for (const Fit& fit : fits) {
    if (fit.part->value.abstract())
      throw UsageError(error_text("load_state",
                                  fmt::format("{} is abstract and holds no value", shown(fit.part->value.name().str())), site));
    if (fit.part->kind == PartKind::rng) position = position_in(file, *fit.value);
  }

  const NoGrad no_grad;
  for (const Fit& fit : fits) {
    const Part& part = *fit.part;
    switch (part.kind) {
      case PartKind::tensor:
        copy_(part.value, Arg(*fit.value, site.file, site.line));
        break;
      case PartKind::rate:
        state.optimizer->set_lr(fit.value->item(), part.group);
        break;
      case PartKind::step:
        *state.step = fit.value->item<std::int64_t>();
        break;
      case PartKind::rng:
        set_random_position(position, site);
        break;
    }
  }
  return report;
}

}  // namespace tapedeck
