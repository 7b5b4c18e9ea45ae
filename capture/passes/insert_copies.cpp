// Copies that the plan needs, so that no output lies in the bytes of a state that the step overwrites, and every update can be
// written straight into its state.
//     state(%a, %b) { return %a  update %a = %b, %b = %a }
// becomes
//     %0 = copy(%a); %1 = copy(%a); %2 = copy(%b); %3 = copy(%1); return %0  update %a = %2, %b = %3
// After it: (1) the source of an update is made by a node, and is neither returned nor stored twice. It may be written straight
// into its state, because every reader of the old bytes stands before that node, or is that node and reads them through a
// declared in-place pair. (2) No state value with an update is returned. Copies for outputs stand first, because outputs have
// their bytes all the time. Copies for updates stand last, and go through the arena if updates form a cycle. Updates of a state
// by itself are dropped.
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>

#include <tapedeck/capture/analysis/alias.h>
#include <tapedeck/engine/ir/core_ops.h>

#include <algorithm>
#include <span>

namespace tapedeck {

namespace {

// An update that costs a copy at the end.
struct Pending {
  ValueId state = kNone;
  ValueId value = kNone;
  ValueId reads =
      kNone;  // the state whose bytes the copy reads: `value` itself, or the state that it is a window on; kNone if none
};

struct Copies {
  std::vector<Pending> pending;
  std::vector<char> copied_output;  // by value: a returned state value whose old bytes will be overwritten
};

// Whether node n reads `state` in another way than through an in-place pair that turns it into output `made`.
bool reads_otherwise(const Graph& graph, NodeId n, ValueId state, ValueId made, const std::vector<Window>& windows) {
  const Node& node = graph.nodes[n];
  const auto operands = graph.inputs(node);
  const bool reads = std::any_of(operands.begin(), operands.end(), [&](ValueId v) { return windows[v].root == state; });
  if (!reads) return false;
  for (const Takeover& t : find_takeovers(graph, n, windows))
    if (node.first_output + t.output == made && windows[operands[t.input]].root == state) return false;
  return true;
}

// Whether the node that makes the source of update `u` may write it straight into the state.
bool writes_directly(const Graph& graph, const Update& u, NodeId last_reader, const std::vector<Window>& windows) {
  const NodeId maker = graph.values[u.value].node;
  if (maker == kNone || graph.literal(graph.nodes[maker]) || last_reader > maker) return false;
  return !reads_otherwise(graph, maker, u.state, u.value, windows);
}

// By value that an update stores: the state whose bytes it would look at, if updates did not keep it from being a window; kNone
// if there is none. For a value that is no view, this is the value itself.
std::vector<ValueId> states_looked_at(const Graph& graph, const Readers& readers) {
  std::vector<ValueId> states(graph.values.size(), kNone);
  bool any_view = false;
  for (const Update& u : graph.updates) {
    const NodeId maker = graph.values[u.value].node;
    if (graph.is_state(u.value)) states[u.value] = u.value;
    any_view = any_view || (maker != kNone && graph.nodes[maker].op->is(kView));
  }
  if (!any_view) return states;
  std::vector<char> own(graph.values.size(), 0);
  for (ValueId v : graph.outputs) own[v] = 1;
  const std::vector<Window> windows = find_windows(graph, readers, own);
  for (const Update& u : graph.updates) states[u.value] = graph.is_state(windows[u.value].root) ? windows[u.value].root : kNone;
  return states;
}

Copies find_copies(const Graph& graph, bool straight) {
  const Readers readers(graph);
  const std::vector<Window> windows = find_windows(graph, readers, values_with_own_bytes(graph));
  const std::vector<ValueId> looks_at = states_looked_at(graph, readers);
  std::vector<NodeId> last_reader(graph.values.size(), kNone);  // by root
  for (ValueId v = 0; v < graph.value_count(); ++v)
    last_reader[windows[v].root] = std::max(last_reader[windows[v].root], readers.last(v));

  Copies copies;
  copies.copied_output.resize(graph.values.size(), 0);
  std::vector<char> taken(graph.values.size(), 0);  // returned, or already the source of an update
  for (ValueId v : graph.outputs) taken[v] = 1;
  // By value, for state only: whether a copy that this pass appends at the end of the graph may read its old bytes.
  std::vector<char> read_at_end(graph.values.size(), 0);
  for (const Update& u : graph.updates)
    if (u.state != u.value && looks_at[u.value] != kNone) read_at_end[looks_at[u.value]] = 1;
  for (const Update& u : graph.updates) {
    if (u.state == u.value) continue;
    copies.copied_output[u.state] = taken[u.state] && graph.is_state(u.state);
    const bool direct =
        straight && !taken[u.value] && !read_at_end[u.state] && writes_directly(graph, u, last_reader[u.state], windows);
    if (direct)
      taken[u.value] = 1;
    else
      copies.pending.push_back({u.state, u.value, looks_at[u.value]});
  }
  return copies;
}

class CopyWriter {
 public:
  CopyWriter(const Graph& from, Graph& to) : from_(from), to_(to) {}

  ValueId copy(ValueId v, Phase phase) {
    Origin origin;
    origin.phase = phase;
    const ValueId operand[] = {v};
    const Type type[] = {to_.values[v].type};
    return to_.nodes[to_.add_node(ops::copy, operand, nullptr, type, origin)].first_output;
  }

  // Copies `pending` (in ids of `to`) in an order in which each state is read before it is written. Values that a cycle reads
  // are copied into the arena first.
  void store(std::vector<Pending> pending) {
    std::vector<int> unread(from_.values.size(), 0);  // by state: pending copies that still read its old bytes
    for (const Pending& p : pending)
      if (p.reads != kNone) ++unread[p.reads];
    for (auto first = pending.begin(); first != pending.end();) {
      const auto next = std::find_if(first, pending.end(), [&](const Pending& p) { return unread[p.state] == 0; });
      if (next == pending.end()) {
        stage({first, pending.end()}, first->state);
        unread[first->state] = 0;
        continue;
      }
      if (next->reads != kNone) --unread[next->reads];
      to_.updates.push_back({next->state, copy(next->value, Phase::update)});
      std::rotate(first, next, next + 1);  // it is done, and the others keep their order
      ++first;
    }
  }

 private:
  // Copies into the arena every value of `state` that pending copies read. Each value is copied once.
  void stage(std::span<Pending> pending, ValueId state) {
    for (std::size_t i = 0; i < pending.size(); ++i) {
      if (pending[i].reads != state) continue;
      const ValueId value = pending[i].value, staged = copy(value, Phase::update);
      for (std::size_t k = i; k < pending.size(); ++k)
        if (pending[k].value == value) pending[k] = {pending[k].state, staged, kNone};
    }
  }

  const Graph& from_;
  Graph& to_;
};

}  // namespace

Graph insert_copies(Graph graph, bool straight) {
  const Copies copies = find_copies(graph, straight);
  const bool identity =
      std::any_of(graph.updates.begin(), graph.updates.end(), [](const Update& u) { return u.state == u.value; });
  const bool returns_state =
      std::find(copies.copied_output.begin(), copies.copied_output.end(), 1) != copies.copied_output.end();
  if (copies.pending.empty() && !identity && !returns_state) return graph;

  Rewriter rewriter(graph);
  Graph& to = rewriter.graph();
  CopyWriter writer(graph, to);
  std::vector<ValueId> returned(graph.values.size(), kNone);
  for (ValueId v = 0; v < graph.value_count(); ++v)
    if (copies.copied_output[v]) returned[v] = writer.copy(v, Phase::forward);
  for (NodeId n = 0; n < graph.node_count(); ++n) rewriter.copy(n);

  std::vector<Pending> pending = copies.pending;
  std::vector<char> is_pending(graph.values.size(), 0);  // by state
  for (Pending& p : pending) {
    is_pending[p.state] = 1;
    p.value = rewriter.at(p.value);
  }
  writer.store(pending);
  std::vector<Update> stored = to.updates;
  for (const Update& u : graph.updates)
    if (u.state != u.value && !is_pending[u.state]) stored.push_back({u.state, rewriter.at(u.value)});

  Graph result = rewriter.finish();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    if (returned[graph.outputs[i]] != kNone) result.outputs[i] = returned[graph.outputs[i]];
  result.updates = std::move(stored);
  std::sort(result.updates.begin(), result.updates.end(), [](const Update& a, const Update& b) { return a.state < b.state; });
  return result;
}

namespace {
const bool insert_copies_pass = register_pass({
    .name = "insert_copies",
    .doc = "gives every output and every updated state bytes that the plan can write",
    .before = "graph g() state(%a: f32[4], %b: f32[4]) {\n  return %a\n  update %a = %b, %b = %a\n}\n",
    .after = "graph g() state(%a: f32[4], %b: f32[4]) {\n"
             "  %2: f32[4] = copy(%a)\n"
             "  %3: f32[4] = copy(%a)                              [phase=update]\n"
             "  %4: f32[4] = copy(%b)                              [phase=update]\n"
             "  %5: f32[4] = copy(%3)                              [phase=update]\n"
             "  return a=%2\n  update %a = %4, %b = %5\n}\n",
    .run = [](Graph g, const PassOptions&) { return insert_copies(std::move(g)); },
    .always = true,
    .in_regions = false,
});
}  // namespace

}  // namespace tapedeck
