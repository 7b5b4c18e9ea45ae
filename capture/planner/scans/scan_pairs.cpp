#include <tapedeck/capture/planner/scans/scan_pairs.h>

#include <tapedeck/capture/analysis/alias.h>
#include <tapedeck/capture/analysis/traits.h>
#include <tapedeck/engine/ops/control.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tapedeck {

namespace {

constexpr std::int64_t kFewPasses = 2;

const LoopAttrs& attributes_of(const Graph& g, const Node& node) { return *static_cast<const LoopAttrs*>(g.attributes(node)); }

LoopLayout layout_in(const Graph& g, const Node& node) {
  return layout_of(attributes_of(g, node), g.input_types(node), *g.regions_of(node)[0]);
}

bool is_scan_of(const Graph& g, NodeId n, Phase phase) {
  if (n == kNone) return false;
  const Node& node = g.nodes[n];
  return node.op == &ops::scan && node.origin.phase == phase && !node.origin.clone && node.n_outputs > 0;
}

// The scanned operands of a scan.
std::span<const ValueId> scanned_by(const Graph& g, const Node& node) {
  const LoopAttrs& a = attributes_of(g, node);
  return g.inputs(node).subspan(static_cast<std::size_t>(a.carried), static_cast<std::size_t>(a.scanned));
}

// The forward whose stacked result `v` is, if `backward` goes the other way over as many passes; else kNone.
NodeId forward_of(const Graph& g, ValueId v, const Node& backward, const LoopLayout& back) {
  const NodeId n = g.values[v].node;
  if (!is_scan_of(g, n, Phase::forward)) return kNone;
  const Node& forward = g.nodes[n];
  const LoopAttrs& a = attributes_of(g, forward);
  const bool fits = v - forward.first_output >= a.carried && a.reverse != attributes_of(g, backward).reverse &&
                    layout_in(g, forward).trips == back.trips;
  return fits ? n : kNone;
}

// The pair that ends with node n; without a forward if there is none.
ScanPair pair_of(const Graph& g, NodeId n) {
  const Node& backward = g.nodes[n];
  ScanPair pair;
  pair.backward = n;
  pair.back = layout_in(g, backward);
  std::map<NodeId, std::int64_t> bytes;
  for (ValueId v : scanned_by(g, backward))
    if (const NodeId forward = forward_of(g, v, backward, pair.back); forward != kNone)
      bytes[forward] += g.values[v].type.bytes();
  for (const auto& [forward, read] : bytes)
    if (pair.forward == kNone || read > bytes[pair.forward]) pair.forward = forward;
  if (pair.forward == kNone) return pair;
  pair.ahead = layout_in(g, g.nodes[pair.forward]);
  for (ValueId v : scanned_by(g, backward))
    pair.stacks.push_back(g.values[v].node == pair.forward ? v - g.nodes[pair.forward].first_output : kNone);
  return pair;
}

// Whether the forward reads a state whose bytes are overwritten before the backward has run.
bool reads_overwritten_state(const Graph& g, const ScanPair& pair) {
  if (g.updates.empty()) return false;
  const std::vector<Window> windows = find_windows(g, Readers(g), values_with_own_bytes(g));
  const auto operands = g.inputs(g.nodes[pair.forward]);
  return std::any_of(g.updates.begin(), g.updates.end(), [&](const Update& u) {
    const NodeId maker = g.values[u.value].node;
    return maker != kNone && maker <= pair.backward &&
           std::any_of(operands.begin(), operands.end(), [&](ValueId v) { return windows[v].root == u.state; });
  });
}

}  // namespace

std::vector<ScanPair> find_scan_pairs(const Graph& g) {
  std::vector<ScanPair> pairs;
  std::map<NodeId, int> uses;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    if (!is_scan_of(g, n, Phase::backward)) continue;
    ScanPair pair = pair_of(g, n);
    if (pair.forward == kNone) continue;
    ++uses[pair.forward];
    pairs.push_back(std::move(pair));
  }
  std::erase_if(pairs, [&](const ScanPair& pair) { return uses[pair.forward] > 1; });
  return pairs;
}

std::string why_values_stay(const Graph& g, const ScanPair& pair) {
  const Node &forward = g.nodes[pair.forward], &backward = g.nodes[pair.backward];
  if (((traits_within(g, forward) | traits_within(g, backward)) & kEffect) != 0)
    return "keeps its recorded values: its body has an effect outside of the graph";
  if (pair.ahead.trips <= kFewPasses) return "keeps its recorded values: it makes too few passes";
  if (reads_overwritten_state(g, pair)) return "keeps its recorded values: the step overwrites a state that the loop reads";
  return "";
}

}  // namespace tapedeck
