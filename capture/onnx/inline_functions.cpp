// Functions of a model are calls by name. Each call is replaced by the nodes of its function, whose values get the number of
// the call in front. Calls inside a function are replaced in the next round.
#include <tapedeck/capture/onnx/onnx_model.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <deque>
#include <unordered_map>
#include <utility>

namespace tapedeck::onnx {

namespace {

constexpr std::size_t kLongestName = 200;      // of a call that becomes the beginning of the names of its nodes
constexpr int kMostRounds = 64;                // functions that call functions
constexpr std::size_t kMostNodes = 1'000'000;  // of the result

using Names = std::unordered_map<std::string, std::string>;

std::string key_of(const std::string& domain, const std::string& name, const std::string& overload) {
  return domain + '\n' + name + '\n' + overload;
}

class Inliner {
 public:
  Inliner(const Model& model, const std::string& path) : path_(path) {
    for (const Function& f : model.functions)
      functions_[key_of(f.domain == "ai.onnx" ? "" : f.domain, f.name, f.overload)] = &f;
  }

  // Returns whether it replaced anything in the graph or in a graph inside it.
  bool round(Graph& outer) {
    bool found = false;
    std::deque<Graph*> waiting = {&outer};
    while (!waiting.empty()) {
      Graph& graph = *waiting.front();
      waiting.pop_front();
      found = replace_calls(graph.nodes) || found;
      for (Node& n : graph.nodes)
        for (auto& [name, a] : n.attributes)
          if (a.graph) waiting.push_back(a.graph.get());
    }
    return found;
  }

 private:
  bool replace_calls(std::vector<Node>& nodes) {
    std::vector<Node> result;
    bool found = false;
    for (Node& n : nodes) {
      const auto it = functions_.find(key_of(n.domain, n.op, n.overload));
      if (it == functions_.end()) {
        result.push_back(std::move(n));
      } else {
        found = true;
        expand(n, *it->second, result);
      }
      if (result.size() > kMostNodes) throw ParseError(path_ + ": its functions make more than 1,000,000 nodes");
    }
    nodes = std::move(result);
    return found;
  }

  void expand(const Node& call, const Function& f, std::vector<Node>& result) {
    const std::string prefix = fmt::format("{}#{}/", f.name, ++calls_);
    const std::string& scope = call.name.empty() || call.name.size() > kLongestName ? f.name : call.name;
    Names names;
    for (std::size_t i = 0; i < f.inputs.size(); ++i) names[f.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : "";
    for (std::size_t i = 0; i < f.outputs.size(); ++i)
      if (i < call.outputs.size() && !call.outputs[i].empty()) names[f.outputs[i]] = call.outputs[i];
    for (const Node& inner : f.nodes) {
      Node n = inner;
      n.name = scope + "/" + inner.name;
      if (const auto set = f.opsets.find(""); set != f.opsets.end() && n.opset == 0) n.opset = set->second;
      rename(n, names, prefix);
      give_attributes(n, call, f);
      for (const auto& [key, value] : call.metadata) n.metadata.emplace(key, value);
      result.push_back(std::move(n));
    }
  }

  static std::string renamed(const std::string& name, Names& names, const std::string& prefix) {
    if (name.empty()) return name;
    return names.emplace(name, prefix + name).first->second;
  }

  // Graphs inside a function may read its values, so their names change with those of the function. They are copied, because
  // another call of the function has the same graph.
  static void rename(Node& outer, Names& names, const std::string& prefix) {
    std::deque<Node*> waiting = {&outer};
    while (!waiting.empty()) {
      Node& n = *waiting.front();
      waiting.pop_front();
      for (std::string& input : n.inputs) input = renamed(input, names, prefix);
      for (std::string& output : n.outputs) output = renamed(output, names, prefix);
      for (auto& [key, a] : n.attributes) {
        if (!a.graph) continue;
        a.graph = std::make_shared<Graph>(*a.graph);
        for (TensorData& t : a.graph->initializers) t.name = renamed(t.name, names, prefix);
        for (ValueInfo& v : a.graph->inputs) v.name = renamed(v.name, names, prefix);
        for (Node& inner : a.graph->nodes) waiting.push_back(&inner);
        for (ValueInfo& v : a.graph->outputs) v.name = renamed(v.name, names, prefix);
      }
    }
  }

  // Attributes that refer to the call get its values, else the function's own, else they are left out.
  static void give_attributes(Node& outer, const Node& call, const Function& f) {
    std::deque<Node*> waiting = {&outer};
    while (!waiting.empty()) {
      Node& n = *waiting.front();
      waiting.pop_front();
      for (auto it = n.attributes.begin(); it != n.attributes.end();) {
        if (it->second.graph)
          for (Node& inner : it->second.graph->nodes) waiting.push_back(&inner);
        if (it->second.outer_name.empty()) {
          ++it;
          continue;
        }
        const std::string outer_name = it->second.outer_name;
        if (const auto given = call.attributes.find(outer_name); given != call.attributes.end())
          (it++)->second = given->second;
        else if (const auto own = f.defaults.find(outer_name); own != f.defaults.end())
          (it++)->second = own->second;
        else
          it = n.attributes.erase(it);
      }
    }
  }

  const std::string& path_;
  std::unordered_map<std::string, const Function*> functions_;
  std::int64_t calls_ = 0;
};

}  // namespace

void inline_functions(Model& model, const std::string& path) {
  if (model.functions.empty()) return;
  Inliner inliner(model, path);
  for (int i = 0; i < kMostRounds; ++i)
    if (!inliner.round(model.graph)) return;
  throw ParseError(path + ": its functions call each other without an end");
}

}  // namespace tapedeck::onnx
