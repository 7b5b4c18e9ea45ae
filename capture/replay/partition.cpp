// A piece is found in three steps: levels, connected nodes of one level, borders. With exp and add selected:
//
//     %a = exp(%x)     level 1   piece 0, selected
//     %b = sin(%a)     level 2   piece 1
//     %c = add(%b,%x)  level 3   piece 2, selected
#include <tapedeck/capture/replay/partition.h>

#include <tapedeck/capture/analysis/traits.h>
#include <tapedeck/capture/passes/splice.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tapedeck {

namespace {

class Cutter {
 public:
  Cutter(const Graph& graph, const Predicate& selected)
      : graph_(graph), selected_(graph.nodes.size()), level_(graph.nodes.size(), 0) {
    for (NodeId n = 0; n < graph.node_count(); ++n) selected_[n] = selected(graph, n);
  }

  Partition run() {
    find_levels();
    connect();
    Partition result;
    number_pieces(result);
    for (Piece& piece : result.pieces) find_borders(result, piece);
    for (Piece& piece : result.pieces) extract_piece(piece);
    return result;
  }

 private:
  // Calls f with every node that n waits for.
  template <class F>
  void each_predecessor(NodeId n, F f) const {
    const Node& node = graph_.nodes[n];
    for (ValueId v : graph_.inputs(node))
      if (graph_.values[v].node != kNone) f(graph_.values[v].node);
    for (ValueId v : graph_.after(node))
      if (graph_.values[v].node != kNone) f(graph_.values[v].node);
  }

  // Levels of selected nodes are odd, of others even.
  void find_levels() {
    NodeId last_effect = kNone;
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      std::int32_t level = selected_[n] ? 1 : 0;
      const auto wait_for = [&](NodeId p) { level = std::max(level, level_[p] + (selected_[p] != selected_[n] ? 1 : 0)); };
      each_predecessor(n, wait_for);
      if (traits_within(graph_, graph_.nodes[n]) & kEffect) {
        if (last_effect != kNone) wait_for(last_effect);
        last_effect = n;
      }
      level_[n] = level;
    }
  }

  NodeId find(NodeId n) {
    while (joined_[n] != n) n = joined_[n] = joined_[joined_[n]];
    return n;
  }

  // Selected nodes of one level are one piece if they are connected. Selected nodes of one level that have effects are also
  // one piece, because pieces of one level have no order among themselves. All other nodes of one level are one piece.
  void connect() {
    joined_.resize(graph_.nodes.size());
    std::iota(joined_.begin(), joined_.end(), 0);
    const auto join = [&](NodeId a, NodeId b) {
      a = find(a);
      b = find(b);
      joined_[std::max(a, b)] = std::min(a, b);
    };
    std::vector<NodeId> first_of_level;
    NodeId last_effect = kNone;
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      each_predecessor(n, [&](NodeId p) {
        if (level_[p] == level_[n]) join(p, n);
      });
      if (traits_within(graph_, graph_.nodes[n]) & kEffect) {  // pieces of one level have no order among themselves
        if (last_effect != kNone && level_[last_effect] == level_[n]) join(last_effect, n);
        last_effect = n;
      }
      if (selected_[n]) continue;
      first_of_level.resize(std::max(first_of_level.size(), static_cast<std::size_t>(level_[n]) + 1), kNone);
      NodeId& first = first_of_level[level_[n]];
      if (first == kNone)
        first = n;
      else
        join(first, n);
    }
  }

  void number_pieces(Partition& result) {
    std::vector<NodeId> firsts;
    for (NodeId n = 0; n < graph_.node_count(); ++n)
      if (find(n) == n) firsts.push_back(n);
    std::stable_sort(firsts.begin(), firsts.end(), [&](NodeId a, NodeId b) { return level_[a] < level_[b]; });
    std::vector<std::int32_t> number(graph_.nodes.size(), kNone);
    for (NodeId first : firsts) {
      number[first] = static_cast<std::int32_t>(result.pieces.size());
      result.pieces.emplace_back().selected = selected_[first] != 0;
    }
    result.of_node.resize(graph_.nodes.size());
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      result.of_node[n] = number[find(n)];
      result.pieces[result.of_node[n]].nodes.push_back(n);
    }
    wanted_.assign(graph_.values.size(), 0);
    for (ValueId v : graph_.outputs) wanted_[v] = 1;
    for (const Update& u : graph_.updates) wanted_[u.value] = 1;
    for (NodeId n = 0; n < graph_.node_count(); ++n)
      for (ValueId v : graph_.inputs(graph_.nodes[n]))
        if (graph_.values[v].node != kNone && result.of_node[graph_.values[v].node] != result.of_node[n]) wanted_[v] = 1;
    seen_by_.assign(graph_.values.size(), kNone);
  }

  void find_borders(const Partition& result, Piece& piece) {
    const std::int32_t self = static_cast<std::int32_t>(&piece - result.pieces.data());
    for (NodeId n : piece.nodes) {
      const Node& node = graph_.nodes[n];
      for (ValueId v : graph_.inputs(node)) {
        const NodeId maker = graph_.values[v].node;
        if ((maker != kNone && result.of_node[maker] == self) || seen_by_[v] == self) continue;
        seen_by_[v] = self;
        piece.inputs.push_back(v);
      }
      for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
        if (wanted_[v]) piece.outputs.push_back(v);
    }
    std::sort(piece.inputs.begin(), piece.inputs.end());
  }

  void extract_piece(Piece& piece) {
    TakenNames names;
    map_.resize(graph_.values.size(), kNone);
    Splice splice(graph_, piece.graph, names, std::move(map_));
    piece.graph.name = graph_.name;
    for (ValueId v : piece.inputs) {
      const Name own = graph_.values[v].name;
      const Name name = names.take(own) ? own : names.fresh("in" + std::to_string(v));
      splice.bind(v, piece.graph.add_input(name, graph_.values[v].type));
      piece.graph.values.back().role = Role::input;
    }
    for (NodeId n : piece.nodes) splice.copy(n);
    for (ValueId v : piece.outputs) piece.graph.outputs.push_back(splice.at(v));
    piece.graph.output_names.resize(piece.outputs.size());
    map_ = std::move(splice).take_map();
    for (ValueId v : piece.inputs) map_[v] = kNone;
    for (NodeId n : piece.nodes)
      for (ValueId v = graph_.nodes[n].first_output; v < graph_.nodes[n].first_output + graph_.nodes[n].n_outputs; ++v)
        map_[v] = kNone;
  }

  const Graph& graph_;
  std::vector<char> selected_;
  std::vector<std::int32_t> level_;
  std::vector<NodeId> joined_;
  std::vector<ValueId> map_;           // of the pieces, one after the other
  std::vector<char> wanted_;           // by value: read by another piece, returned or stored
  std::vector<std::int32_t> seen_by_;  // by value: the last piece that listed it as an input
};

}  // namespace

Partition partition(const Graph& graph, const Predicate& selected) { return Cutter(graph, selected).run(); }

EagerResult run_pieces(const Graph& graph, const Partition& parts, const std::vector<Tensor>& inputs,
                       const std::vector<Tensor>& state, const RunPiece& run) {
  if (inputs.size() != static_cast<std::size_t>(graph.n_inputs) || state.size() != static_cast<std::size_t>(graph.n_state))
    throw UsageError(fmt::format("{} inputs and {} state values given, the graph has {} and {}", inputs.size(), state.size(),
                                 graph.n_inputs, graph.n_state));
  std::vector<Tensor> values(graph.values.size());
  std::copy(inputs.begin(), inputs.end(), values.begin());
  std::copy(state.begin(), state.end(), values.begin() + graph.n_inputs);
  for (const Piece& piece : parts.pieces) {
    std::vector<Tensor> given;
    for (ValueId v : piece.inputs) given.push_back(values[v]);
    const std::vector<Tensor> made = run ? run(piece, given) : run_eagerly(piece.graph, given, {}).outputs;
    if (made.size() != piece.outputs.size())
      throw UsageError(fmt::format("a piece of {} outputs gave {} results", piece.outputs.size(), made.size()));
    for (std::size_t i = 0; i < made.size(); ++i) values[piece.outputs[i]] = made[i];
  }
  EagerResult result;
  for (ValueId v : graph.outputs) result.outputs.push_back(values[v]);
  result.state = state;
  for (const Update& u : graph.updates) result.state[u.state - graph.n_inputs] = values[u.value];
  return result;
}

}  // namespace tapedeck
