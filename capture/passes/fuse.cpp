// Elementwise nodes that hand values to each other become one node, `fused`, which goes once over its operands. A value that
// only they read takes no memory any more.
//     %a = mul(%x, %w); %b = exp(%a)       becomes       %b = fused(%x, %w) (..) { %a = mul(%x, %w); %b = exp(%a); return %b }
//
// analysis/fusion.h finds the nodes that could belong together. Of such a group a run is taken: nodes in their order, as
// long as no node outside reads a result of the run before the run ends. So the fused node stands where the last node of the
// run stood, and nothing else moves. The operands of the run live until there; a run that holds more bytes longer than it saves
// is left alone. So is a run whose values are all read outside too: it would save no bytes, and rematerialization could no
// longer compute one of them from another that is kept (gelu(%h) from %h, which the gradient of gelu reads). Left alone are
// also clones, nodes with order edges or marks, and results so small that a kernel is only its call.
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/passes/splice.h>

#include <tapedeck/capture/analysis/fusion.h>
#include <tapedeck/engine/ops/fused.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tapedeck {

namespace {

using Run = std::vector<NodeId>;

// The runs of a graph, found in one walk. The run of a group that is still open may grow.
class RunFinder {
 public:
  RunFinder(const Graph& graph, std::int64_t least)
      : g_(graph),
        least_(least),
        groups_(find_fusion_groups(graph, kMostFusedNodes)),
        last_reader_(graph.values.size(), kNone) {
    for (NodeId n = 0; n < g_.node_count(); ++n)
      for (ValueId v : g_.inputs(g_.nodes[n])) last_reader_[v] = n;
    for (ValueId v : g_.outputs) last_reader_[v] = g_.node_count();
    for (const Update& u : g_.updates) last_reader_[u.value] = g_.node_count();
    for (const Node& node : g_.nodes)
      computed_before_.push_back(computed_before_.back() + (node.op->is(kView) || g_.literal(node) ? 0 : 1));
  }

  std::vector<Run> find() {
    open_.assign(static_cast<std::size_t>(groups_.count), kNone);
    run_of_.assign(g_.nodes.size(), kNone);
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      close_read_runs(n);
      if (groups_.of_node[n] != kNone && may_fuse(g_.nodes[n])) join(n);
    }
    std::vector<Run> worth;
    for (const Run& run : runs_)
      for (Run& part : connected_parts(run))
        if (part.size() > 1 && saves_bytes(part)) worth.push_back(std::move(part));
    return worth;
  }

 private:
  bool may_fuse(const Node& node) const {
    return can_be_fused(node) && node.n_after == 0 && !node.origin.clone && node.origin.wish == NodeWish::none &&
           g_.values[node.first_output].type.numel() >= least_;
  }

  // Node n reads what a run makes, and is no part of it: the run ends before n.
  void close_read_runs(NodeId n) {
    for (ValueId v : g_.inputs(g_.nodes[n])) {
      const NodeId maker = g_.values[v].node;
      if (maker == kNone || run_of_[maker] == kNone) continue;
      const bool joins = groups_.of_node[n] == groups_.of_node[maker] && may_fuse(g_.nodes[n]);
      std::int32_t& open = open_[groups_.of_node[maker]];
      if (!joins && open == run_of_[maker]) open = kNone;
    }
    for (ValueId v : g_.after(g_.nodes[n]))
      if (const NodeId maker = g_.values[v].node; maker != kNone && run_of_[maker] != kNone)
        open_[groups_.of_node[maker]] = kNone;
  }

  void join(NodeId n) {
    std::int32_t& open = open_[groups_.of_node[n]];
    if (open == kNone || !belongs(n, runs_[open])) {
      open = static_cast<std::int32_t>(runs_.size());
      runs_.emplace_back();
    }
    runs_[open].push_back(n);
    run_of_[n] = open;
  }

  // One checkpoint region and one phase.
  bool belongs(NodeId n, const Run& run) const {
    const Origin &a = g_.nodes[run[0]].origin, &b = g_.nodes[n].origin;
    return a.region == b.region && a.phase == b.phase &&
           operands_of(run) + g_.inputs(g_.nodes[n]).size() <= static_cast<std::size_t>(kMostFusedOperands);
  }

  std::size_t operands_of(const Run& run) const {
    std::size_t n = 0;
    for (NodeId m : run) n += static_cast<std::size_t>(g_.nodes[m].n_inputs);
    return n;
  }

  // The nodes of a run that hand values to each other, together or over others. A run is cut where its group is held together
  // by a node that did not join.
  std::vector<Run> connected_parts(const Run& run) {
    std::unordered_map<NodeId, NodeId> part_of;  // by node: a node of its part, at last the first one
    const auto find = [&](NodeId n) {
      while (part_of.at(n) != n) n = part_of.at(n);
      return n;
    };
    for (NodeId n : run) {
      part_of[n] = n;
      for (ValueId v : g_.inputs(g_.nodes[n]))
        if (const NodeId maker = g_.values[v].node; maker != kNone && part_of.contains(maker)) {
          const NodeId a = find(maker), b = find(n);
          part_of[std::max(a, b)] = std::min(a, b);
        }
    }
    std::vector<Run> parts;
    std::unordered_map<NodeId, std::size_t> number;
    for (NodeId n : run) {
      const auto [it, fresh] = number.emplace(find(n), parts.size());
      if (fresh) parts.emplace_back();
      parts[it->second].push_back(n);
    }
    return parts;
  }

  // Do values vanish, and have they as many bytes as the operands that now live on while other nodes run?
  bool saves_bytes(const Run& run) const {
    std::int64_t saved = 0, held = 0;
    for (std::size_t i = 0; i < run.size(); ++i) {
      const ValueId made = g_.nodes[run[i]].first_output;
      if (last_reader_[made] != kNone && last_reader_[made] <= run.back()) saved += g_.values[made].type.bytes();
      for (ValueId v : g_.inputs(g_.nodes[run[i]])) {
        const bool died_here = last_reader_[v] == run[i] && g_.values[v].node != kNone && !in(run, g_.values[v].node);
        if (died_here && others_between(run, i) > 0) held += g_.values[v].type.bytes();
      }
    }
    return saved > 0 && held <= saved;
  }

  // The number of nodes that compute something and run between node i of the run and its last one, without those of the run.
  std::int64_t others_between(const Run& run, std::size_t i) const {
    if (i + 1 == run.size()) return 0;
    return computed_before_[run.back()] - computed_before_[run[i] + 1] - static_cast<std::int64_t>(run.size() - 2 - i);
  }

  static bool in(const Run& run, NodeId n) { return std::binary_search(run.begin(), run.end(), n); }

  const Graph& g_;
  const std::int64_t least_;
  const FusionGroups groups_;
  std::vector<NodeId> last_reader_;                  // by value; node_count() if the graph returns or stores it
  std::vector<std::int64_t> computed_before_ = {0};  // by node: how many nodes before it compute something
  std::vector<std::int32_t> open_;                   // by group: the run that may grow
  std::vector<std::int32_t> run_of_;                 // by node
  std::vector<Run> runs_;
};

class Fuser {
 public:
  Fuser(const Graph& graph, const std::vector<Run>& runs) : g_(graph), to_(graph), run_of_(graph.nodes.size(), nullptr) {
    for (const Run& run : runs)
      for (NodeId n : run) run_of_[n] = &run;
    read_outside_.assign(graph.values.size(), 1);  // a dead value stays a result, as a dead node stays a node
    for (ValueId v : graph.refs) read_outside_[v] = 0;
    for (const Node& node : graph.nodes) {
      const Run* own = run_of_[static_cast<std::size_t>(&node - graph.nodes.data())];
      for (ValueId v : graph.inputs(node))
        if (const NodeId maker = graph.values[v].node; maker != kNone && run_of_[maker] != own) read_outside_[v] = 1;
      for (ValueId v : graph.after(node)) read_outside_[v] = 1;
    }
    for (ValueId v : graph.outputs) read_outside_[v] = 1;
    for (const Update& u : graph.updates) read_outside_[u.value] = 1;
  }

  Graph fuse() {
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      if (!run_of_[n])
        to_.copy(n);
      else if (n == run_of_[n]->back())
        add(*run_of_[n]);
    }
    return to_.finish();
  }

 private:
  void add(const Run& run) {
    Graph body;
    body.name = "fused";
    std::vector<ValueId> operands, results;
    add_inputs(run, &body, &operands);
    for (NodeId n : run) {
      const ValueId made = copy_into(&body, g_.nodes[n]);
      if (!read_outside_[g_.nodes[n].first_output]) continue;
      results.push_back(g_.nodes[n].first_output);
      body.outputs.push_back(made);
      body.output_names.emplace_back();
    }
    replace(results, operands, std::move(body), g_.nodes[run.back()].origin);
  }

  // The values that the run reads from outside, once each. Inputs of a graph have names.
  void add_inputs(const Run& run, Graph* body, std::vector<ValueId>* operands) {
    inside_.clear();
    std::vector<ValueId> read;
    TakenNames names;
    for (NodeId n : run) {
      names.take(g_.values[g_.nodes[n].first_output].name);
      for (ValueId v : g_.inputs(g_.nodes[n]))
        if (!made_in(run, v) && inside_.emplace(v, static_cast<ValueId>(read.size())).second) read.push_back(v);
    }
    for (ValueId v : read) names.take(g_.values[v].name);
    for (ValueId v : read) {
      body->add_input(g_.values[v].name.empty() ? names.fresh("in") : g_.values[v].name, g_.values[v].type);
      operands->push_back(to_.at(v));
    }
  }

  bool made_in(const Run& run, ValueId v) const { return g_.values[v].node != kNone && run_of_[g_.values[v].node] == &run; }

  ValueId copy_into(Graph* body, const Node& node) {
    std::vector<ValueId> operands;
    for (ValueId v : g_.inputs(node)) operands.push_back(inside_.at(v));
    const std::vector<Type> types = g_.output_types(node);
    const NodeId n = body->add_node(*node.op, operands, g_.attributes(node), types, node.origin);
    const ValueId made = body->nodes[n].first_output;
    body->values[made].name = g_.values[node.first_output].name;
    inside_[node.first_output] = made;
    return made;
  }

  void replace(const std::vector<ValueId>& results, const std::vector<ValueId>& operands, Graph body, const Origin& origin) {
    std::vector<Type> types;
    for (ValueId v : results) types.push_back(g_.values[v].type);
    const Region region = std::make_shared<const Graph>(std::move(body));
    Graph& to = to_.graph();
    const NodeId n = to.add_node(ops::fused, operands, nullptr, types, origin, {}, {&region, 1});
    for (std::size_t k = 0; k < results.size(); ++k) {
      const ValueId made = to.nodes[n].first_output + static_cast<ValueId>(k);
      to.values[made].name = g_.values[results[k]].name;
      to_.replace(results[k], made);
    }
  }

  const Graph& g_;
  Rewriter to_;
  std::vector<const Run*> run_of_;               // by node; null for nodes that stay
  std::vector<char> read_outside_;               // by value: read by a node of another run or of none, returned or stored
  std::unordered_map<ValueId, ValueId> inside_;  // of the run that is copied: values of its region
};

}  // namespace

Graph fuse(Graph graph, const PassOptions& options) {
  const std::vector<Run> runs = RunFinder(graph, options.fuse_elements).find();
  return runs.empty() ? graph : Fuser(graph, runs).fuse();
}

namespace {
const bool fuse_pass = register_pass({
    .name = "fuse",
    .aliases = {"fusion"},
    .doc = "makes one node of elementwise nodes that hand values to each other",
    .before = "graph g(%x: f32[16,32], %w: f32[32]) {\n  %a: f32[16,32] = mul(%x, %w)\n  %y: f32[16,32] = exp(%a)\n"
              "  return %y\n}\n",
    .after = "graph g(%x: f32[16,32], %w: f32[32]) {\n  %y: f32[16,32] = fused(%x, %w) (%x: f32[16,32], %w: f32[32]) {\n"
             "    %a: f32[16,32] = mul(%x, %w)\n    %y: f32[16,32] = exp(%a)\n    return %y\n  }\n  return %y\n}\n",
    .run = [](Graph g, const PassOptions& options) { return fuse(std::move(g), options); },
    .level = OptimizationLevel::fused,
});
}  // namespace

}  // namespace tapedeck
