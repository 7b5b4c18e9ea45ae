// Sums of gradient pieces, each in the form that keeps the fewest bytes alive. Backward writes a sum as a chain: the first
// piece, to which the other pieces are added one after another, in reverse order of the nodes that read the value.
//     %d = matmul(%t, %g); %s = add(%sum, %d)            becomes      %s = addmm(%sum, %t, %g)
// if the op that makes a piece declares a form that adds to a running sum (ops/accumulate.h). Then the piece is never stored.
// The form takes the place of the op, so the sum must exist by then. The form overwrites the bytes of the sum if nobody else
// reads them.
//     %s = add(%p, %q); %u = add(%s, %r)                 becomes      %u = add_n(%p, %q, %r)
// if at most one of the pieces would be dead before the last is added. The others live on for other readers anyway, so holding
// them costs no more than holding the sum so far. All other chains stay as they are; the plan runs them in place.
//
// The order of additions is the order of the chain in every form, so no bit changes. Leaves alone: sums of f16 and bf16, which
// round after each addition; sums outside of backward; pieces that other nodes read too; clones and nodes with order edges.
// Cost: O(nodes and operands).
#include <tapedeck/capture/passes/marks.h>
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/engine/ops/accumulate.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace tapedeck {

namespace {

class Sums {
 public:
  Sums(Graph graph, std::vector<GradientSum>* chosen)
      : graph_(std::move(graph)),
        chosen_(chosen),
        uses_(graph_.values.size()),
        last_(graph_.values.size(), kNone),
        made_at_(graph_.values.size()),
        role_(graph_.nodes.size()),
        partner_(graph_.nodes.size(), kNone) {}

  Graph rewrite() {
    count();
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      for (const Value& v : graph_.output_values(node(n))) made_at_[index(v)] = n;
      if (is_sum(n)) accumulate(n);
    }
    find_runs();
    if (std::all_of(role_.begin(), role_.end(), [](Part role) { return role == Part::none; })) return std::move(graph_);
    return emit();
  }

 private:
  // Sums in a row that might become one sum.
  struct Run {
    std::vector<NodeId> sums;
    std::vector<ValueId> pieces;
    std::set<std::pair<NodeId, std::size_t>> alive;  // by last other reader: the number of a piece that other nodes read
    std::unordered_set<ValueId> seen;
    std::vector<std::size_t> dead;

    void add(ValueId v, const std::vector<NodeId>& last) {
      if (seen.insert(v).second) alive.emplace(last[v], pieces.size());
      pieces.push_back(v);
    }
    // Whether after node n no more is held than the sum would take: at most one dead piece, over which the result can be
    // written.
    bool may_go_on(NodeId n) {
      for (; !alive.empty() && alive.begin()->first <= n; alive.erase(alive.begin())) dead.push_back(alive.begin()->second);
      if (dead.empty()) return true;
      return dead.size() == 1 &&
             std::any_of(ops::add_n.inplace.begin(), ops::add_n.inplace.end(),
                         [&](const InplacePair& pair) { return static_cast<std::size_t>(pair.input) == dead[0]; });
    }
  };

  enum class Part : std::uint8_t { none, gone, form, n_ary };  // of a node: dropped; becomes the form of its sum; becomes add_n

  const Node& node(NodeId n) const { return graph_.nodes[n]; }
  std::size_t index(const Value& v) const { return static_cast<std::size_t>(&v - graph_.values.data()); }
  ValueId operand(NodeId n, int i) const { return graph_.inputs(node(n))[i]; }
  ValueId result(NodeId n) const { return node(n).first_output; }
  int uses(ValueId v) const { return uses_[v]; }
  NodeId maker(ValueId v) const { return graph_.values[v].node; }
  Part& role(NodeId n) { return role_[n]; }

  void count();
  bool movable(NodeId n) const {
    return node(n).origin.phase == Phase::backward && !node(n).origin.clone && node(n).n_after == 0;
  }
  bool is_sum(NodeId n) const;
  void accumulate(NodeId n);
  void find_runs();
  void take_run(const std::vector<NodeId>& run);
  void close(const Run& run);
  bool begins_run(NodeId n);
  void note(NodeId n, const char* form, int pieces, std::string reason);
  Graph emit();

  Graph graph_;
  std::vector<GradientSum>* chosen_;
  std::vector<int> uses_;        // by value: operands, outputs and updates that name it
  std::vector<NodeId> last_;     // by value: the last node that reads it; node_count() if it lives to the end
  std::vector<NodeId> made_at_;  // by value: the node that will make it
  std::vector<Part> role_;       // by node
  std::vector<NodeId> partner_;  // of a node that becomes a form: the sum
  std::unordered_map<NodeId, std::vector<ValueId>> pieces_;  // of a node that becomes add_n
};

void Sums::count() {
  for (NodeId n = 0; n < graph_.node_count(); ++n)
    for (ValueId v : graph_.inputs(node(n))) {
      ++uses_[v];
      last_[v] = n;
    }
  const auto keep = [&](ValueId v) {
    ++uses_[v];
    last_[v] = graph_.node_count();
  };
  for (ValueId v : graph_.outputs) keep(v);
  for (const Update& u : graph_.updates) keep(u.value);
  for (ValueId v = 0; v < graph_.n_inputs + graph_.n_state; ++v) last_[v] = graph_.node_count();
  for (const Node& n : graph_.nodes)  // values that order edges name must stay
    for (ValueId v : graph_.after(n)) ++uses_[v];
}

// Whether node n adds operands as large as the result, in a type whose sums round alike if they are made at once.
bool Sums::is_sum(NodeId n) const {
  if (node(n).op != &ops::add || !movable(n)) return false;
  const auto type = [&](ValueId v) -> const Type& { return graph_.values[v].type; };
  if (type(operand(n, 0)) != type(result(n)) || type(operand(n, 1)) != type(result(n))) return false;
  const std::vector<Type> in = graph_.input_types(node(n)), out = graph_.output_types(node(n));
  return !runs_in_f32(*node(n).op, in, out);
}

void Sums::accumulate(NodeId n) {
  const ValueId sum = operand(n, 0), piece = operand(n, 1);
  const NodeId made = maker(piece);
  if (sum == piece || made == kNone || uses(piece) != 1 || !movable(made) || node(made).n_outputs != 1 ||
      role(made) != Part::none)
    return;
  if (maker(sum) != kNone && made_at_[sum] >= made) return;
  const std::vector<Type> in = graph_.input_types(node(made)), out = graph_.output_types(node(made));
  if (!accumulating_form(*node(made).op, in, out)) return;
  role(n) = Part::gone;
  role(made) = Part::form;
  graph_.nodes[made].origin.wish = node(n).origin.wish;  // the piece is no value any more
  partner_[made] = n;
  made_at_[result(n)] = made;
  note(n, "add-to", 2, fmt::format("{} adds to a running sum: the piece is not stored", node(made).op->name));
}

bool Sums::begins_run(NodeId n) {
  const NodeId before = maker(operand(n, 0));
  return before == kNone || role(before) != Part::none || uses(result(before)) != 1 || !is_sum(before);
}

void Sums::find_runs() {
  std::vector<NodeId> next(graph_.nodes.size(), kNone);
  std::vector<NodeId> first;
  for (NodeId n = 0; n < graph_.node_count(); ++n) {
    if (role(n) != Part::none || !is_sum(n)) continue;
    if (begins_run(n))
      first.push_back(n);
    else
      next[maker(operand(n, 0))] = n;
  }
  for (NodeId n : first) {
    std::vector<NodeId> run;
    for (NodeId k = n; k != kNone; k = next[k]) run.push_back(k);
    take_run(run);
  }
}

// Cuts the run where a second dead piece would be held. A run of three pieces or more becomes one node.
void Sums::take_run(const std::vector<NodeId>& run) {
  Run so_far;
  so_far.add(operand(run[0], 0), last_);
  for (NodeId n : run) {
    so_far.sums.push_back(n);
    so_far.add(operand(n, 1), last_);
    if (n != run.back() && so_far.may_go_on(n)) continue;
    close(so_far);
    so_far = Run();
    so_far.add(result(n), last_);
  }
}

void Sums::close(const Run& run) {
  const NodeId last = run.sums.back();
  if (run.sums.size() == 1) return note(last, "chain", 2, "two pieces");
  for (NodeId n : run.sums) role(n) = Part::gone;
  for (NodeId n : run.sums) hand_on_mark(node(n).origin.wish, result(last), &graph_);
  role(last) = Part::n_ary;
  pieces_[last] = run.pieces;
  note(last, "add_n", static_cast<int>(run.pieces.size()), "its pieces live on anyway");
}

void Sums::note(NodeId n, const char* form, int pieces, std::string reason) {
  if (chosen_) chosen_->push_back({graph_.value_name(result(n)), form, pieces, std::move(reason)});
}

Graph Sums::emit() {
  Rewriter to(graph_);
  Graph& g = to.graph();
  const auto replace_by = [&](NodeId sum, NodeId origin_of, const Op& op, std::span<const ValueId> operands) {
    std::vector<ValueId> in;
    for (ValueId v : operands) in.push_back(to.at(v));
    const std::vector<Type> out = graph_.output_types(node(sum));
    const NodeId made = g.add_node(op, in, graph_.attributes(node(origin_of)), out, node(origin_of).origin);
    const ValueId v = g.nodes[made].first_output;
    g.values[v].name = graph_.values[result(sum)].name;
    to.replace(result(sum), v);
  };
  for (NodeId n = 0; n < graph_.node_count(); ++n) {
    if (role(n) == Part::none) {
      to.copy(n);
    } else if (role(n) == Part::n_ary) {
      replace_by(n, n, ops::add_n, pieces_[n]);
    } else if (role(n) == Part::form) {
      const NodeId sum = partner_[n];
      std::vector<ValueId> operands = {operand(sum, 0)};
      operands.insert(operands.end(), graph_.inputs(node(n)).begin(), graph_.inputs(node(n)).end());
      const std::vector<Type> in = graph_.input_types(node(n)), out = graph_.output_types(node(n));
      replace_by(sum, n, *accumulating_form(*node(n).op, in, out), operands);
    }
  }
  return to.finish();
}

}  // namespace

Graph gradient_sums(Graph graph, std::vector<GradientSum>* chosen) { return Sums(std::move(graph), chosen).rewrite(); }

namespace {
const bool gradient_sums_pass = register_pass({
    .name = "gradient_sums",
    .doc = "sums of gradient pieces in the form that keeps the fewest bytes alive",
    .before = "graph g(%s: f32[2,2], %a: f32[2,3], %b: f32[3,2]) {\n  %d: f32[2,2] = matmul(%a, %b)                      "
              "[phase=backward]\n"
              "  %t: f32[2,2] = add(%s, %d)                         [phase=backward]\n  return %t\n}\n",
    .after = "graph g(%s: f32[2,2], %a: f32[2,3], %b: f32[3,2]) {\n  %t: f32[2,2] = addmm(%s, %a, %b)                   "
             "[phase=backward]\n"
             "  return %t\n}\n",
    .run = [](Graph g, const PassOptions&) { return gradient_sums(std::move(g)); },
});
}  // namespace

}  // namespace tapedeck
