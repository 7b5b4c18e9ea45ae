// Functions of a model are calls by name. Each call is replaced by the nodes of its function, whose values get the number of
// the call in front. Nodes that are made count, across all graphs: a few functions that call each other could else make any
// number of nodes.
#include <tapedeck/capture/onnx/onnx_model.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <deque>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace tapedeck::onnx {

namespace {

constexpr std::size_t kLongestName = 200;      // of a call that becomes the beginning of the names of its nodes
constexpr int kMostCalls = 64;                 // functions that call functions
constexpr int kMostGraphs = 32;                // graphs inside nodes of graphs
constexpr std::size_t kMostNodes = 1'000'000;  // that are made
constexpr std::size_t kMostBytes = 256 << 20;  // of names, lists and tensors that are copied for them

using Names = std::unordered_map<std::string, std::string>;

std::string key_of(const std::string& domain, const std::string& name, const std::string& overload) {
  return domain + '\n' + name + '\n' + overload;
}

// A node, or a graph, and how many calls it is inside of.
struct Waiting {
  Node node;
  int calls = 0;
};
struct WaitingGraph {
  Graph* graph = nullptr;
  int calls = 0, graphs = 0;
};

class Inliner {
 public:
  Inliner(const Model& model, const std::string& path) : path_(path) {
    for (const Function& f : model.functions)
      functions_[key_of(f.domain == "ai.onnx" ? "" : f.domain, f.name, f.overload)] = &f;
  }

  void run(Graph& outer) {
    std::deque<WaitingGraph> graphs = {{&outer, 0, 0}};
    while (!graphs.empty()) {
      const WaitingGraph at = graphs.front();
      graphs.pop_front();
      if (at.graphs > kMostGraphs) fail(fmt::format("more than {} graphs are inside each other", kMostGraphs));
      std::vector<Waiting> made = inlined(std::move(at.graph->nodes), at.calls);
      at.graph->nodes.clear();
      at.graph->nodes.reserve(made.size());
      for (Waiting& w : made) {
        for (auto& [name, a] : w.node.attributes)
          if (a.graph) graphs.push_back({a.graph.get(), w.calls, at.graphs + 1});
        at.graph->nodes.push_back(std::move(w.node));
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw ParseError(path_ + ": " + message); }

  void count(std::size_t nodes, std::size_t bytes) {
    nodes_ += nodes;
    bytes_ += bytes;
    if (nodes_ > kMostNodes) fail("its functions make more than 1,000,000 nodes");
    if (bytes_ > kMostBytes) fail("its functions copy more than 256 MiB");
  }

  std::vector<Waiting> inlined(std::vector<Node> nodes, int calls) {
    std::deque<Waiting> waiting;
    for (Node& n : nodes) waiting.push_back({std::move(n), calls});
    std::vector<Waiting> result;
    while (!waiting.empty()) {
      Waiting w = std::move(waiting.front());
      waiting.pop_front();
      const auto it = functions_.find(key_of(w.node.domain, w.node.op, w.node.overload));
      if (it == functions_.end()) {
        result.push_back(std::move(w));
        continue;
      }
      if (w.calls >= kMostCalls) fail("its functions call each other without an end");
      std::vector<Waiting> body = expanded(w, *it->second);
      waiting.insert(waiting.begin(), std::make_move_iterator(body.begin()), std::make_move_iterator(body.end()));
    }
    return result;
  }

  std::vector<Waiting> expanded(const Waiting& w, const Function& f) {
    const Node& call = w.node;
    const std::string prefix = fmt::format("call{}/", ++calls_);
    const std::string scope =
        (call.name.empty() || call.name.size() > kLongestName ? f.name : call.name).substr(0, kLongestName);
    Names names;
    for (std::size_t i = 0; i < f.inputs.size(); ++i) names[f.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : "";
    for (std::size_t i = 0; i < f.outputs.size(); ++i)
      if (i < call.outputs.size() && !call.outputs[i].empty()) names[f.outputs[i]] = call.outputs[i];
    const auto set = f.opsets.find("");
    std::vector<Waiting> body;
    for (const Node& inner : f.nodes) {
      Node n = copied(inner);
      n.name = scope + "/" + inner.name;
      for (const auto& [key, value] : call.metadata) n.metadata.emplace(key, value);
      give_attributes(n, call, f);
      rename(n, names, prefix, set == f.opsets.end() ? 0 : set->second);
      body.push_back({std::move(n), w.calls + 1});
    }
    return body;
  }

  // A copy that shares no graph with its original.
  Node copied(const Node& original) {
    Node copy = original;
    std::deque<Node*> waiting = {&copy};
    while (!waiting.empty()) {
      Node& n = *waiting.front();
      waiting.pop_front();
      count(1, size_of(n));
      for (auto& [name, a] : n.attributes) {
        if (!a.graph) continue;
        a.graph = std::make_shared<Graph>(*a.graph);
        for (const TensorData& t : a.graph->initializers) count(0, t.bytes.size());
        for (const auto& [value, info] : a.graph->values) count(0, value.size() + 64 * info.shape.size());
        a.graph->values.clear();  // they have other names in the copy
        for (Node& inner : a.graph->nodes) waiting.push_back(&inner);
      }
    }
    return copy;
  }

  static std::size_t size_of(const Node& n) {
    std::size_t bytes = n.name.size();
    for (const std::string& name : n.inputs) bytes += name.size();
    for (const std::string& name : n.outputs) bytes += name.size();
    for (const auto& [key, value] : n.metadata) bytes += key.size() + value.size();
    for (const auto& [name, a] : n.attributes)
      bytes += name.size() + a.text.size() + 8 * (a.reals.size() + a.integers.size() + 4 * a.texts.size());
    return bytes;
  }

  static std::string renamed(const std::string& name, Names& names, const std::string& prefix) {
    if (name.empty()) return name;
    return names.emplace(name, prefix + name).first->second;
  }

  // Graphs inside a function may read its values, so their names change with those of the function. Graphs that the call gave
  // keep theirs.
  static void rename(Node& outer, Names& names, const std::string& prefix, std::int64_t opset) {
    std::deque<Node*> waiting = {&outer};
    while (!waiting.empty()) {
      Node& n = *waiting.front();
      waiting.pop_front();
      if (n.opset == 0) n.opset = opset;
      for (std::string& input : n.inputs) input = renamed(input, names, prefix);
      for (std::string& output : n.outputs) output = renamed(output, names, prefix);
      for (auto& [key, a] : n.attributes) {
        if (!a.graph || a.is_given) continue;
        for (TensorData& t : a.graph->initializers) t.name = renamed(t.name, names, prefix);
        for (ValueInfo& v : a.graph->inputs) v.name = renamed(v.name, names, prefix);
        for (Node& inner : a.graph->nodes) waiting.push_back(&inner);
        for (ValueInfo& v : a.graph->outputs) v.name = renamed(v.name, names, prefix);
      }
    }
  }

  // Attributes that refer to the call get its values, else the function's own, else they are left out.
  void give_attributes(Node& outer, const Node& call, const Function& f) {
    std::deque<Node*> waiting = {&outer};
    while (!waiting.empty()) {
      Node& n = *waiting.front();
      waiting.pop_front();
      for (auto it = n.attributes.begin(); it != n.attributes.end();) {
        if (it->second.outer_name.empty()) {
          if (it->second.graph)
            for (Node& inner : it->second.graph->nodes) waiting.push_back(&inner);
          ++it;
          continue;
        }
        const auto given = call.attributes.find(it->second.outer_name);
        const auto own = f.defaults.find(it->second.outer_name);
        if (given == call.attributes.end() && own == f.defaults.end()) {
          it = n.attributes.erase(it);
          continue;
        }
        Node holder;  // so that the graph of the value is copied and counted
        holder.attributes["value"] = given != call.attributes.end() ? given->second : own->second;
        it->second = copied(holder).attributes["value"];
        it->second.is_given = given != call.attributes.end();
        ++it;
      }
    }
  }

  const std::string& path_;
  std::unordered_map<std::string, const Function*> functions_;
  std::int64_t calls_ = 0;
  std::size_t nodes_ = 0, bytes_ = 0;
};

}  // namespace

void inline_functions(Model& model, const std::string& path) {
  if (!model.functions.empty()) Inliner(model, path).run(model.graph);
}

}  // namespace tapedeck::onnx
