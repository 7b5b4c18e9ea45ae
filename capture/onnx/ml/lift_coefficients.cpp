// Linear models of ai.onnx.ml hold their weights as attributes:
//
//     LinearRegressor(x) {coefficients=[...], intercepts=[...]}   ->   LinearRegressor(x, model/coefficients, model/intercepts)
//
// As initializers they are weights like those of other models, which a step of training can learn.
#include <tapedeck/capture/onnx/onnx_model.h>
#include <tapedeck/engine/ir/unique_names.h>

#include <cstring>
#include <deque>
#include <utility>

namespace tapedeck::onnx {

namespace {

std::vector<double> take_reals(Node& node, const char* name) {
  const auto it = node.attributes.find(name);
  if (it == node.attributes.end()) return {};
  std::vector<double> values = std::move(it->second.reals);
  node.attributes.erase(it);
  return values;
}

// The number of scores that the node makes of a row.
std::int64_t scores_of(const Node& node, std::size_t intercepts) {
  const auto targets = node.attributes.find("targets"), labels = node.attributes.find("classlabels_ints");
  if (node.op == "LinearRegressor") return targets == node.attributes.end() ? 1 : targets->second.integer;
  if (intercepts > 0) return static_cast<std::int64_t>(intercepts);
  return labels == node.attributes.end() ? 0 : static_cast<std::int64_t>(labels->second.integers.size());
}

class Lifter {
 public:
  explicit Lifter(Model& model) : model_(model) {
    for (const ValueInfo& v : model.graph.inputs) names_.unique(v.name);
    for (const Node& node : model.graph.nodes)
      for (const std::string& output : node.outputs) names_.unique(output);
    for (const TensorData& data : model.graph.initializers) names_.unique(data.name);
  }

  void run() {
    std::deque<Graph*> waiting = {&model_.graph};
    while (!waiting.empty()) {
      Graph& graph = *waiting.front();
      waiting.pop_front();
      for (Node& node : graph.nodes) {
        if (node.domain == "ai.onnx.ml" && (node.op == "LinearRegressor" || node.op == "LinearClassifier")) lift(node);
        for (auto& [name, a] : node.attributes)
          if (a.graph) waiting.push_back(a.graph.get());
      }
    }
  }

 private:
  // A node whose numbers do not fit stays without them, and its import says so.
  void lift(Node& node) {
    const std::vector<double> coefficients = take_reals(node, "coefficients"), intercepts = take_reals(node, "intercepts");
    const std::int64_t scores = scores_of(node, intercepts.size()), count = static_cast<std::int64_t>(coefficients.size());
    if (node.inputs.size() != 1 || scores <= 0 || count % scores != 0) return;
    const std::string name = node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
    node.inputs.push_back(initializer(name + "/coefficients", {scores, count / scores}, coefficients));
    if (!intercepts.empty())
      node.inputs.push_back(initializer(name + "/intercepts", {static_cast<std::int64_t>(intercepts.size())}, intercepts));
  }

  std::string initializer(const std::string& name, std::vector<std::int64_t> sizes, const std::vector<double>& values) {
    const std::vector<float> narrow(values.begin(), values.end());
    TensorData data;
    data.name = names_.unique(name).str();
    data.element_type = kFloat;
    data.sizes = std::move(sizes);
    data.bytes.resize(narrow.size() * sizeof(float));
    if (!narrow.empty()) std::memcpy(data.bytes.data(), narrow.data(), data.bytes.size());
    model_.graph.initializers.push_back(std::move(data));
    return model_.graph.initializers.back().name;
  }

  Model& model_;
  UniqueNames names_;
};

}  // namespace

void lift_coefficients(Model& model) {
  if (model.opsets.count("ai.onnx.ml") > 0) Lifter(model).run();
}

}  // namespace tapedeck::onnx
