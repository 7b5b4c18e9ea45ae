// Loading has three steps: the net's tensors get PyTorch's names and layouts (targets_of), the tensors of the file are matched
// with them (match), and then all values are written.
#include <tapedeck/capture/file/pytorch_weights.h>

#include <tapedeck/capture/file/own_weights.h>
#include <tapedeck/capture/file/pytorch_notes.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace tapedeck {
namespace {

// How PyTorch's layout differs from ours.
enum class Layout : std::uint8_t {
  same,
  transposed,   // a matrix, and ours is its transpose
  per_channel,  // a vector, and ours has dimensions of size 1 behind it
  left_out,     // PyTorch has it, and we have no counterpart
};

struct Target {
  Tensor tensor;  // undefined if left out
  Layout layout = Layout::same;
};
using Targets = std::map<std::string, Target>;

template <class... Layers>
bool is_any_of(const Module& m) {
  return ((dynamic_cast<const Layers*>(&m) != nullptr) || ...);
}

struct NameAndLayout {
  std::string name;
  Layout layout = Layout::same;
};

// The name and the layout in PyTorch of the parameter or buffer `own` of a layer.
NameAndLayout in_pytorch(const Module& m, const std::string& own) {
  const bool is_bias = own == "bias";
  if (is_any_of<Linear>(m)) return {own, own == "weight" ? Layout::transposed : Layout::same};
  if (is_any_of<Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d>(m))
    return {own, is_bias ? Layout::per_channel : Layout::same};
  if (is_any_of<RecurrentModule>(m)) return {own, own.starts_with("weight") ? Layout::transposed : Layout::same};
  if (is_any_of<MultiheadAttention>(m)) {
    if (own == "in_weight") return {"in_proj_weight", Layout::transposed};
    if (own == "in_bias") return {"in_proj_bias", Layout::same};
    if (own == "out_weight") return {"out_proj.weight", Layout::transposed};
    if (own == "out_bias") return {"out_proj.bias", Layout::same};
  }
  return {own, Layout::same};
}

// The tensors of the module itself come first in the list of all; those of its children follow.
template <class List>
std::vector<Tensor> own_tensors(const Module& m, List&& list_of) {
  std::vector<Tensor> all = list_of(m);
  std::size_t of_children = 0;
  for (const Module* child : m.children()) of_children += list_of(*child).size();
  all.resize(all.size() - of_children);
  return all;
}

void add_targets(const Module& m, Targets* targets) {
  const std::string prefix = m.path().empty() ? "" : m.path() + ".";
  const auto add = [&](const Tensor& t) {
    const std::string name = t.name().str();
    if (!name.starts_with(prefix)) return;  // a tied parameter, which has the name of another module
    NameAndLayout there = in_pytorch(m, name.substr(prefix.size()));
    targets->emplace(prefix + there.name, Target{t, there.layout});
  };
  for (const Tensor& t : own_tensors(m, [](const Module& n) { return n.parameters(); })) add(t);
  for (const Tensor& t : own_tensors(m, [](const Module& n) { return n.buffers(); })) add(t);
  if (is_any_of<BatchNorm>(m)) targets->emplace(prefix + "num_batches_tracked", Target{Tensor(), Layout::left_out});
  for (const Module* child : m.children()) add_targets(*child, targets);
}

// The net's own names and layouts, for files that this library wrote.
Targets own_targets(const std::map<std::string, Tensor>& tensors) {
  Targets targets;
  for (const auto& [name, tensor] : tensors) targets.emplace(name, Target{tensor, Layout::same});
  return targets;
}

Targets targets_of(const Module& net) {
  Targets targets;
  add_targets(net, &targets);
  return targets;
}

// The shape of the tensor in a file.
Shape shape_in_file(const Target& target, bool input_first) {
  const Shape& own = target.tensor.shape();
  if (target.layout == Layout::transposed && !input_first) return {own[1], own[0]};
  if (target.layout == Layout::per_channel) return {own[0]};
  return own;
}

// The value of the file in the layout of the net.
Tensor laid_out(const Tensor& value, const Target& target, bool input_first) {
  if (target.layout == Layout::transposed && !input_first) return transpose_last(value);
  if (target.layout == Layout::per_channel) return reshape(value, target.tensor.shape());
  return value;
}

struct Match {
  Tensor target, value;
};

// Matches the tensors of one file with the targets of a net.
class Matcher {
 public:
  Matcher(const Module& net, const TensorFile& file, const WeightNames& names, const Targets& targets)
      : net_(net), file_(file), names_(names), targets_(targets) {}

  void run() {
    for (const auto& [in_file, value] : file_.tensors) match(in_file, &value, to_string(value.type()));
    for (const SkippedTensor& t : file_.skipped) match(t.name, nullptr, to_string(t));
    for (const auto& [name, target] : targets_)
      if (target.layout != Layout::left_out && !taken_.count(name)) miss(name);
  }

  LoadReport report;
  std::vector<Match> matches;

 private:
  // `value` is null for a tensor that was skipped.
  void match(const std::string& in_file, const Tensor* value, const std::string& type) {
    const FileWeight weight = names_(in_file);
    if (weight.name.empty()) return;
    const auto found = targets_.find(weight.name);
    if (found == targets_.end()) {
      report.unexpected.push_back(in_file);
      return note(in_file, note_on_unexpected(net_, weight.name));
    }
    const Target& target = found->second;
    if (target.layout == Layout::left_out) return;
    const auto [earlier, first] = taken_.emplace(weight.name, in_file);
    if (!first)
      throw FileError(fmt::format("{}: tensors {} and {} are both {} of the net", file_.path, shown(earlier->second),
                                  shown(in_file), shown(weight.name)));
    const Type own = target.tensor.type();
    const Shape wanted = shape_in_file(target, weight.input_first);
    const bool converts = value && (value->dtype() == own.dtype || (is_floating(value->dtype()) && is_floating(own.dtype)));
    if (!converts || value->shape() != wanted)
      return report.mismatched.push_back({weight.name, type, to_string(Type{own.dtype, wanted})});
    matches.push_back({target.tensor, laid_out(*value, target, weight.input_first)});
  }

  // A note is of use only if the file has other parameters of the layer.
  void miss(const std::string& name) {
    report.missing.push_back(name);
    const std::string prefix = name.substr(0, name.rfind('.') + 1);
    const auto neighbour = taken_.lower_bound(prefix);
    if (neighbour != taken_.end() && neighbour->first.starts_with(prefix)) note(name, note_on_missing(net_, name));
  }

  void note(const std::string& name, std::string text) {
    if (!text.empty()) report.notes.push_back({name, std::move(text)});
  }

  const Module& net_;
  const TensorFile& file_;
  const WeightNames& names_;
  const Targets& targets_;
  std::map<std::string, std::string> taken_;  // by name in the net: the name in the file
};

}  // namespace

FileWeight pytorch_names(const std::string& in_file) { return {in_file}; }

std::map<std::string, Shape> pytorch_shapes(const Module& net) {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, target] : targets_of(net))
    if (target.layout != Layout::left_out) shapes.emplace(name, shape_in_file(target, false));
  return shapes;
}

LoadReport load_weights(Module& net, const std::string& path, const WeightNames& names, LoadOptions options, Site site) {
  const Recorder& tape = *thread_state().tape;
  if (tape.capturing)
    refuse_in_capture(tape,
                      error_text("load_weights", "writes parameters inside a capture, which a replay could not repeat", site));
  if (abstract_mode()) throw UsageError(error_text("load_weights", "has no data to work on in abstract mode", site));
  const NoGrad no_grad;
  const TensorFile file = load_tensor_file(path);
  const std::optional<std::string> own_prefix = own_weights_prefix(file);
  const std::map<std::string, Tensor> own = own_tensors_of(net);
  const Targets targets = own_prefix ? own_targets(own) : targets_of(net);
  const WeightNames chosen = own_prefix ? own_names(file, *own_prefix, own) : names;
  Matcher matcher(net, file, chosen, targets);
  matcher.run();
  if (options.strict && !matcher.report.complete())
    throw FileError(fmt::format("{}: the weights do not fit:\n{}", path, matcher.report.to_string()));
  for (const Match& m : matcher.matches)
    if (m.target.abstract())
      throw UsageError(
          error_text("load_weights", fmt::format("{} is abstract and holds no value", shown(m.target.name().str())), site));
  for (const Match& m : matcher.matches) copy_(m.target, Arg(m.value, site.file, site.line));
  return std::move(matcher.report);
}

}  // namespace tapedeck
