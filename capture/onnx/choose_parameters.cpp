#include <tapedeck/capture/onnx/choose_parameters.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/text/glob.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace tapedeck::onnx {

namespace {

// Operands that no optimizer could learn: sizes, bounds, ratios, statistics.
bool is_setting(const std::string& op, std::size_t i) {
  static const std::map<std::string_view, std::set<std::size_t>> settings = {
      {"Clip", {1, 2}},  {"Dropout", {1, 2}}, {"Resize", {1, 2, 3}},
      {"Upsample", {1}}, {"Pad", {2}},        {"Range", {0, 1, 2}},
      {"OneHot", {2}},   {"Pow", {1}},        {"BatchNormalization", {3, 4}},
  };
  const auto it = settings.find(op);
  return it != settings.end() && it->second.count(i) > 0;
}

// Is the name one that an exporter makes up? Those of TensorFlow name an op, such as "zeros:0"; a weight has been read from a
// variable.
bool is_made_up(const std::string& name) {
  if (name.find("::") != std::string::npos) return true;
  if (name.ends_with(":0") && name.find("ReadVariableOp") == std::string::npos) return true;
  for (std::string_view prefix : {"val_", "const_", "Constant_", "_"})
    if (name.starts_with(prefix)) return true;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

template <class Element, class Widen>
bool differs_and_is_finite(const std::string& bytes, Widen widen, bool* finite) {
  bool differs = false;
  double first = 0;
  for (std::size_t i = 0; i < bytes.size() / sizeof(Element); ++i) {
    Element e;
    std::memcpy(&e, bytes.data() + i * sizeof(Element), sizeof(Element));
    const double value = widen(e);
    if (i == 0) first = value;
    differs = differs || value != first;
    *finite = *finite && std::isfinite(value);
  }
  return differs;
}

struct Look {
  bool floating = false, several = false, differs = true, finite = true;
};

Look look_at(const TensorData& data) {
  Look look;
  const auto dtype = dtype_of(data.element_type);
  look.floating = dtype && is_floating(*dtype);
  // The sizes of a type that Tapedeck lacks are as the file gives them, and their product may be beyond 64 bits.
  look.several = std::ranges::find(data.sizes, 0) == data.sizes.end() &&
                 std::ranges::any_of(data.sizes, [](std::int64_t size) { return size > 1; });
  if (!look.floating || !data.external.empty()) return look;
  switch (*dtype) {
    case DType::f32:
      look.differs = differs_and_is_finite<float>(
          data.bytes, [](float v) { return static_cast<double>(v); }, &look.finite);
      break;
    case DType::f64:
      look.differs = differs_and_is_finite<double>(
          data.bytes, [](double v) { return v; }, &look.finite);
      break;
    default: {
      const bool half = *dtype == DType::f16;
      look.differs = differs_and_is_finite<std::uint16_t>(
          data.bytes,
          [half](std::uint16_t v) {
            return static_cast<double>(half ? kernels::to_f32(kernels::F16{v}) : kernels::to_f32(kernels::Bf16{v}));
          },
          &look.finite);
    }
  }
  return look;
}

// A model that Tapedeck wrote says which initializers are state and of which role: "fc1.weight=parameter", one a line. Others
// are constants.
std::unordered_map<std::string, Role> stated_uses(const Model& model, const std::string& state) {
  std::unordered_map<std::string, Role> uses;
  std::set<std::string> floating;
  for (const TensorData& data : model.graph.initializers) {
    uses[data.name] = Role::none;
    const auto dtype = dtype_of(data.element_type);
    if (dtype && is_floating(*dtype)) floating.insert(data.name);
  }
  for (std::size_t at = 0, end = 0; (end = state.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = state.substr(at, end - at);
    const std::size_t equals = line.rfind('=');
    const auto it = equals == std::string::npos ? uses.end() : uses.find(line.substr(0, equals));
    if (it == uses.end()) continue;
    for (const Role role : {Role::parameter, Role::moment, Role::statistic, Role::counter, Role::rng})
      if (line.substr(equals + 1) == role_name(role) && (role != Role::parameter || floating.count(it->first) > 0))
        it->second = role;
  }
  return uses;
}

// The ways in which the nodes of the model read each value.
struct Readers {
  std::map<std::string, int> learned;  // how many do where it could be learned
  std::set<std::string> statistics;
};

Readers readers_of(const Model& model) {
  Readers readers;
  std::deque<const Graph*> waiting = {&model.graph};
  while (!waiting.empty()) {
    const Graph& graph = *waiting.front();
    waiting.pop_front();
    for (const Node& node : graph.nodes) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.op == "BatchNormalization" && (i == 3 || i == 4)) readers.statistics.insert(node.inputs[i]);
        if (!is_setting(node.op, i)) ++readers.learned[node.inputs[i]];
      }
      for (const auto& [name, a] : node.attributes)
        if (a.graph) waiting.push_back(a.graph.get());
    }
  }
  return readers;
}

}  // namespace

std::unordered_map<std::string, Role> choose_parameters(const Model& model, const std::vector<std::string>& patterns) {
  const auto stated = model.metadata.find("tapedeck.state");
  if (patterns.empty() && stated != model.metadata.end()) return stated_uses(model, stated->second);
  const Readers readers = readers_of(model);
  std::unordered_map<std::string, Role> uses;
  std::vector<bool> matched(patterns.size());
  for (const TensorData& data : model.graph.initializers) {
    const Look look = look_at(data);
    bool parameter = false;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (!matches_glob(patterns[i], data.name)) continue;
      if (!look.floating)
        throw UsageError(
            fmt::format("'{}' cannot be a parameter: its elements are {}", data.name, element_type_name(data.element_type)));
      matched[i] = parameter = true;
    }
    if (patterns.empty())
      parameter = look.floating && look.finite && readers.learned.count(data.name) > 0 &&
                  (!is_made_up(data.name) || (look.several && look.differs));
    const bool statistic = look.floating && readers.statistics.count(data.name) > 0;
    uses[data.name] = parameter ? Role::parameter : statistic ? Role::statistic : Role::none;
  }
  for (std::size_t i = 0; i < patterns.size(); ++i)
    if (!matched[i]) throw UsageError(fmt::format("no initializer of the model matches '{}'", patterns[i]));
  return uses;
}

std::vector<std::string> joined_initializers(const Model& model) {
  const Readers readers = readers_of(model);
  std::vector<std::string> names;
  for (const TensorData& data : model.graph.initializers) {
    const auto read = readers.learned.find(data.name);
    if (read == readers.learned.end() || read->second < 2 || is_made_up(data.name)) continue;
    const Look look = look_at(data);
    if (look.floating && look.several && !look.differs) names.push_back(data.name);
  }
  return names;
}

}  // namespace tapedeck::onnx
