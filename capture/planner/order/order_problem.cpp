// Makes the problem of orders from a graph, counts the live bytes of an order, bounds all orders from below, and writes an
// order back as nodes of the graph.
//
//     graph                          items             item 2 waits for 0, reads value 0, makes value 1
//     0 %a = exp(%x)                 0 %a              value 0: made by item 0, read by items 1 and 2
//     1 %t = transpose(%a)           (rides along)     windows and constants are no items: they stand before their first reader
//     2 %s = sum(%a)                 1 %s
//     3 %y = matmul(%t, %a)          2 %y
#include <tapedeck/capture/planner/order/order_problem.h>

#include <tapedeck/capture/analysis/takeovers.h>

#include <tapedeck/capture/analysis/phases.h>
#include <tapedeck/capture/analysis/traits.h>

#include <algorithm>
#include <bit>
#include <span>

namespace tapedeck {

namespace {

// By node: the first node with the same source; itself unless it is a clone that rematerialization made.
std::vector<NodeId> first_copies(const std::vector<NodeId>& source, std::size_t n_sources) {
  std::vector<NodeId> first(n_sources, kNone), copies;
  for (NodeId n = 0; n < static_cast<NodeId>(source.size()); ++n) {
    if (first[source[n]] == kNone) first[source[n]] = n;
    copies.push_back(first[source[n]]);
  }
  return copies;
}

void sort_unique(std::vector<std::int32_t>* list) {
  std::sort(list->begin(), list->end());
  list->erase(std::unique(list->begin(), list->end()), list->end());
}

// The values that node n waits for beside its operands, by the order edges of its source. A node that runs later than recorded
// has one more edge, to the node that stands before it, which another order need not keep.
std::span<const ValueId> waits_for(const Facts& facts, const Graph& graph, NodeId n, NodeId source) {
  const Node& node = graph.nodes[n];
  return graph.after(node).first(static_cast<std::size_t>(std::min(node.n_after, facts.graph->nodes[source].n_after)));
}

class ProblemMaker {
 public:
  ProblemMaker(const Facts& facts, const Graph& graph, const std::vector<NodeId>& source, bool split_phases)
      : facts_(facts),
        graph_(graph),
        source_(source),
        original_(first_copies(source, facts.graph->nodes.size())),
        first_copy_(facts.graph->nodes.size(), kNone),
        root_(graph.values.size()),
        value_(graph.values.size(), kNone),
        item_(graph.nodes.size(), kNone),
        last_reader_(graph.values.size(), kNone) {
    for (NodeId n = graph.node_count(); n-- > 0;) first_copy_[source[n]] = n;
    if (split_phases) phases_ = run_phases(graph);
  }

  OrderProblem make() {
    find_roots();
    find_wholes();
    for (NodeId n = 0; n < graph_.node_count(); ++n)
      for (ValueId v : graph_.inputs(graph_.nodes[n])) last_reader_[v] = n;
    for (NodeId n = 0; n < graph_.node_count(); ++n)
      if (!rides_along(n)) add_item(n);
    wait_for_readers_of_states();
    link();
    return std::move(p_);
  }

 private:
  bool is_new_clone(NodeId n) const { return original_[n] != n; }

  void find_roots() {
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      const NodeId n = graph_.values[v].node;
      root_[v] = v;
      if (n == kNone) continue;
      const ValueId source = source_of(v);
      if (is_part(v)) {
        root_[v] = copy_of(facts_.windows[source].root);
      } else if (facts_.windows[source].root != source) {
        root_[v] = root_[graph_.inputs(graph_.nodes[n])[0]];
      } else if (graph_.values[v].type.bytes() > 0 && (graph_.nodes[n].origin.clone || facts_.in_arena(source))) {
        value_[v] = static_cast<std::int32_t>(p_.bytes.size());
        p_.bytes.push_back(graph_.values[v].type.bytes());
        p_.maker.push_back(kNone);
      }
    }
  }

  void find_wholes() {
    is_whole_.assign(p_.bytes.size(), 0);
    if (!facts_.has_parts) return;
    for (ValueId v = 0; v < graph_.value_count(); ++v)
      if (is_part(v) && value_[root_[v]] != kNone) is_whole_[value_[root_[v]]] = 1;
  }

  // REQUIRES: a node makes v.
  ValueId source_of(ValueId v) const {
    const NodeId n = graph_.values[v].node;
    return facts_.graph->nodes[source_[n]].first_output + (v - graph_.nodes[n].first_output);
  }

  bool is_part(ValueId v) const {
    if (graph_.values[v].node == kNone) return false;
    const ValueId source = source_of(v);
    return facts_.windows[source].viewed == source && facts_.windows[source].root != source;
  }

  // A value of facts.graph, as the graph has it first. What has parts is made but once.
  ValueId copy_of(ValueId source) const {
    const NodeId n = facts_.graph->values[source].node;
    return graph_.nodes[first_copy_[n]].first_output + (source - facts_.graph->nodes[n].first_output);
  }

  // Windows that are read, and constants. Neither does anything when its turn comes.
  bool rides_along(NodeId n) const {
    const Node& node = graph_.nodes[n];
    if (!is_new_clone(n) && !waits_for(facts_, graph_, n, source_[n]).empty()) return false;
    if (graph_.literal(node)) return !node.origin.clone;
    return facts_.is_window(source_[n]) && last_reader_[node.first_output] != kNone;
  }

  // The item that must have run for `v` to be there; kNone if it is there from the start.
  std::int32_t item_behind(ValueId v) const {
    for (;;) {
      const NodeId n = graph_.values[v].node;
      if (n == kNone || item_[n] != kNone) return n == kNone ? kNone : item_[n];
      if (graph_.nodes[n].n_inputs == 0) return kNone;
      v = graph_.inputs(graph_.nodes[n])[0];
    }
  }

  void add_item(NodeId n) {
    const Node& node = graph_.nodes[n];
    if (!phases_.empty() && phases_[n] != phase_ && p_.item_count() > fence_ + 1) add_fence();
    if (!phases_.empty()) phase_ = phases_[n];
    const std::int32_t item = item_[n] = p_.item_count();
    p_.node.push_back(n);
    std::vector<std::int32_t> waits, reads;
    const auto wait_for = [&](std::int32_t other) {
      if (other != kNone) waits.push_back(other);
    };
    for (ValueId v : graph_.inputs(node)) {
      wait_for(item_behind(v));
      if (value_[root_[v]] != kNone) reads.push_back(value_[root_[v]]);
    }
    if (is_new_clone(n))
      wait_for(item_[original_[n]]);
    else
      for (ValueId v : waits_for(facts_, graph_, n, source_[n])) wait_for(item_behind(v));
    if (traits_within(graph_, node) & kEffect) {
      wait_for(last_effect_);
      last_effect_ = item;
    }
    wait_for(fence_);
    waits_.push_back(std::move(waits));
    const std::vector<std::int32_t> wholes = wholes_written_by(n);
    reads.insert(reads.end(), wholes.begin(), wholes.end());
    sort_unique(&reads);
    p_.reads.numbers.insert(p_.reads.numbers.end(), reads.begin(), reads.end());
    p_.reads.close();
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
      if (value_[v] == kNone || is_whole_[value_[v]]) continue;
      p_.makes.numbers.push_back(value_[v]);
      p_.maker[value_[v]] = item;
    }
    p_.makes.close();
    add_opens(n, wholes);
    p_.scratch.push_back(facts_.workspace[source_[n]]);
    add_handovers(n);
  }

  std::vector<std::int32_t> wholes_written_by(NodeId n) const {
    const Node& node = graph_.nodes[n];
    std::vector<std::int32_t> wholes;
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
      const std::int32_t root = value_[root_[v]];
      if (root != kNone && is_whole_[root]) wholes.push_back(root);
    }
    sort_unique(&wholes);
    return wholes;
  }

  // A node that has a part among its operands finds the whole opened.
  void add_opens(NodeId n, const std::vector<std::int32_t>& wholes) {
    for (std::int32_t whole : wholes) {
      const auto operands = graph_.inputs(graph_.nodes[n]);
      if (std::none_of(operands.begin(), operands.end(), [&](ValueId v) { return value_[root_[v]] == whole; }))
        p_.opens.numbers.push_back(whole);
    }
    p_.opens.close();
  }

  void add_handovers(NodeId n) {
    const Node& node = graph_.nodes[n];
    const Node& source = facts_.graph->nodes[source_[n]];
    const auto originals = facts_.graph->inputs(source);
    for (const RootPair& pair : facts_.takeovers(source_[n])) {
      const std::int32_t to = value_[node.first_output + (pair.to - source.first_output)];
      for (std::size_t i = 0; i < originals.size(); ++i) {
        if (facts_.windows[originals[i]].root != pair.from) continue;
        const std::int32_t from = value_[root_[graph_.inputs(node)[i]]];
        if (from != kNone && to != kNone) p_.handovers.push_back({from, to});
        break;
      }
    }
    p_.first_handover.push_back(static_cast<std::int32_t>(p_.handovers.size()));
  }

  // All items of a phase run before it, all of the next behind it.
  void add_fence() {
    std::vector<std::int32_t> waits;
    for (std::int32_t i = std::max(fence_, 0); i < p_.item_count(); ++i) waits.push_back(i);
    fence_ = p_.item_count();
    p_.node.push_back(kNone);
    waits_.push_back(std::move(waits));
    p_.reads.close();
    p_.makes.close();
    p_.opens.close();
    p_.scratch.push_back(0);
    p_.first_handover.push_back(static_cast<std::int32_t>(p_.handovers.size()));
  }

  // A state's bytes are overwritten by the item that makes its new value.
  void wait_for_readers_of_states() {
    std::vector<std::int32_t> writer(graph_.values.size(), kNone);
    for (const Update& u : graph_.updates) writer[u.state] = item_behind(u.value);
    for (std::int32_t i = 0; i < p_.item_count(); ++i) {
      if (p_.node[i] == kNone) continue;
      for (ValueId v : graph_.inputs(graph_.nodes[p_.node[i]])) {
        const std::int32_t w = writer[root_[v]];
        if (w != kNone && w != i) waits_[w].push_back(i);
      }
    }
  }

  void link() {
    std::vector<std::vector<std::int32_t>> behind(waits_.size()), readers(p_.bytes.size()), openers(p_.bytes.size());
    for (std::int32_t i = 0; i < p_.item_count(); ++i) {
      sort_unique(&waits_[i]);
      // The latest first: it is the one most likely not to have run.
      p_.before.numbers.insert(p_.before.numbers.end(), waits_[i].rbegin(), waits_[i].rend());
      p_.before.close();
      for (std::int32_t w : waits_[i]) behind[w].push_back(i);
      for (std::int32_t v : p_.reads[i]) readers[v].push_back(i);
      for (std::int32_t v : p_.opens[i]) openers[v].push_back(i);
    }
    for (const auto& list : behind) {
      p_.behind.numbers.insert(p_.behind.numbers.end(), list.begin(), list.end());
      p_.behind.close();
    }
    for (const auto& list : readers) {
      p_.readers.numbers.insert(p_.readers.numbers.end(), list.rbegin(), list.rend());
      p_.readers.close();
    }
    for (const auto& list : openers) {
      p_.openers.numbers.insert(p_.openers.numbers.end(), list.begin(), list.end());
      p_.openers.close();
    }
  }

  const Facts& facts_;
  const Graph& graph_;
  const std::vector<NodeId>& source_;
  const std::vector<NodeId> original_;      // by node
  std::vector<NodeId> first_copy_;          // by node of facts.graph
  std::vector<ValueId> root_;               // by value of the graph
  std::vector<std::int32_t> value_, item_;  // by value, by node of the graph
  std::vector<char> is_whole_;              // by value of the problem
  std::vector<NodeId> last_reader_;
  std::vector<Phase> phases_;
  Phase phase_ = Phase::forward;
  std::int32_t fence_ = kNone, last_effect_ = kNone;
  std::vector<std::vector<std::int32_t>> waits_;  // by item
  OrderProblem p_;
};

}  // namespace

OrderProblem order_problem(const Facts& facts, const Graph& graph, const std::vector<NodeId>& source, bool split_phases) {
  return ProblemMaker(facts, graph, source, split_phases).make();
}

std::vector<std::int64_t> live_in_order(const OrderProblem& p, const ItemOrder& order) {
  const auto n = static_cast<std::size_t>(p.item_count());
  std::vector<std::int32_t> position(n), last(p.bytes.size());
  for (std::size_t i = 0; i < n; ++i) position[order[i]] = static_cast<std::int32_t>(i);
  std::vector<std::int64_t> live(n + 1, 0);
  for (std::int32_t v = 0; v < p.value_count(); ++v) {
    const std::int32_t first = position[first_maker(p, v, position)];
    last[v] = first;
    for (std::int32_t r : p.readers[v]) last[v] = std::max(last[v], position[r]);
    live[first] += p.bytes[v];
    live[static_cast<std::size_t>(last[v]) + 1] -= p.bytes[v];
  }
  for (std::size_t i = 0; i < n; ++i) live[i + 1] += live[i];
  live.pop_back();
  for (std::int32_t i = 0; i < p.item_count(); ++i) {
    const std::int32_t at = position[i];
    live[at] += p.scratch[i];
    take_over_in_place(
        p.handovers_of(i), [&](std::int32_t v) { return last[v] == at; },
        [&](const Handover& h) { live[at] -= p.bytes[h.from]; });
  }
  return live;
}

namespace {

// Bits by item: the items that it reaches, itself included, through links that lead up or down.
class Reached {
 public:
  // Items in an order in which each is told of those that it is linked to before it is asked.
  explicit Reached(std::int32_t items)
      : words_((static_cast<std::size_t>(items) + 63) / 64), bits_(words_ * static_cast<std::size_t>(items), 0) {}
  void link(std::int32_t i, std::span<const std::int32_t> to) {
    row(i)[i / 64] |= std::uint64_t{1} << (i % 64);
    for (std::int32_t k : to)
      for (std::size_t w = 0; w < words_; ++w) row(i)[w] |= row(k)[w];
  }
  std::size_t words() const { return words_; }
  const std::uint64_t* of(std::int32_t i) const { return &bits_[static_cast<std::size_t>(i) * words_]; }

 private:
  std::uint64_t* row(std::int32_t i) { return &bits_[static_cast<std::size_t>(i) * words_]; }
  const std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

// By item: bytes of values that are made before it and read behind it whatever the order, by others.
std::vector<std::int64_t> kept_across(const OrderProblem& p) {
  Reached before(p.item_count()), behind(p.item_count());
  for (std::int32_t i = 0; i < p.item_count(); ++i) before.link(i, p.before[i]);
  for (std::int32_t i = p.item_count(); i-- > 0;) behind.link(i, p.behind[i]);
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(p.item_count()), 0);
  std::vector<std::uint64_t> between(before.words());
  for (std::int32_t v = 0; v < p.value_count(); ++v) {
    const auto readers = p.readers[v];  // the last first
    if (readers.empty()) continue;
    const std::int32_t maker = p.maker[v];
    const auto openers = maker == kNone ? p.openers[v] : std::span(&maker, 1);
    const auto first = static_cast<std::size_t>(openers.front()) / 64, last = static_cast<std::size_t>(readers.front()) / 64;
    std::fill(between.begin() + static_cast<std::ptrdiff_t>(first), between.begin() + static_cast<std::ptrdiff_t>(last) + 1, 0);
    for (std::int32_t r : readers)
      for (std::size_t w = first; w <= last; ++w) between[w] |= before.of(r)[w];
    for (std::size_t w = first; w <= last; ++w) {
      std::uint64_t behind_any = 0;
      for (std::int32_t m : openers) behind_any |= behind.of(m)[w];
      between[w] &= behind_any;
    }
    const auto drop = [&](std::int32_t i) { between[static_cast<std::size_t>(i) / 64] &= ~(std::uint64_t{1} << (i % 64)); };
    for (std::int32_t m : openers) drop(m);
    for (std::int32_t r : readers) drop(r);
    for (std::size_t w = first; w <= last; ++w)
      for (std::uint64_t left = between[w]; left != 0; left &= left - 1)
        bytes[w * 64 + static_cast<std::size_t>(std::countr_zero(left))] += p.bytes[v];
  }
  return bytes;
}

// What an item itself cannot do without: at best everything it may take over is taken over.
std::int64_t own_bytes(const OrderProblem& p, std::int32_t item) {
  std::int64_t bytes = p.scratch[item];
  for (std::int32_t v : p.reads[item]) bytes += p.bytes[v];
  for (std::int32_t v : p.makes[item]) bytes += p.bytes[v];
  std::vector<std::int32_t> given;
  for (const Handover& h : p.handovers_of(item)) {
    if (std::find(given.begin(), given.end(), h.from) != given.end()) continue;
    given.push_back(h.from);
    bytes -= p.bytes[h.from];
  }
  return bytes;
}

constexpr std::int32_t kMostBounded = 3000;

}  // namespace

std::int64_t order_bound(const OrderProblem& p) {
  std::int64_t bound = 0;
  for (std::int32_t i = 0; i < p.item_count(); ++i) bound = std::max(bound, own_bytes(p, i));
  if (p.item_count() > kMostBounded) return bound;
  const std::vector<std::int64_t> across = kept_across(p);
  for (std::int32_t i = 0; i < p.item_count(); ++i) bound = std::max(bound, own_bytes(p, i) + across[i]);
  return bound;
}

namespace {

class OrderWriter {
 public:
  OrderWriter(const Facts& facts, const Graph& graph, const std::vector<NodeId>& source)
      : facts_(facts), graph_(graph), source_(source), written_(graph.nodes.size(), 0) {
    NodeId n_sources = 0;
    for (NodeId s : source) n_sources = std::max(n_sources, s + 1);
    original_ = first_copies(source, static_cast<std::size_t>(n_sources));
  }

  std::vector<NodeId> write(const OrderProblem& problem, const ItemOrder& order) {
    for (std::int32_t item : order) {
      if (problem.node[item] != kNone) {
        write_node(problem.node[item]);
        continue;
      }
      const NodeId next = problem.node[item + 1];  // a fence has an item behind it; what stood before that stays there
      for (NodeId n = 0; n < next; ++n) write_node(n);
    }
    for (NodeId n = 0; n < graph_.node_count(); ++n) write_node(n);  // constants that nobody reads
    return std::move(nodes_);
  }

 private:
  // A node that will be appended to the order as soon as the makers of all values that it needs are in the order. `next` is the
  // index of the first of these values that was not looked at yet.
  struct Begun {
    NodeId node = kNone;
    std::size_t next = 0;
  };

  // Writes the nodes that ride along with n and are not written yet, then n. Windows on windows may be as many as the nodes of
  // the graph, so the nodes begun are a list.
  void write_node(NodeId n) {
    begin(n);
    while (!begun_.empty()) {
      Begun& at = begun_.back();
      const ValueId v = needed(at.node, at.next++);
      if (v == kNone) {
        nodes_.push_back(at.node);
        begun_.pop_back();
      } else if (graph_.values[v].node != kNone) {
        begin(graph_.values[v].node);
      }
    }
  }

  // A clone comes behind its original.
  void begin(NodeId n) {
    for (const NodeId node : {n, original_[n]}) {
      if (written_[node]) continue;
      written_[node] = 1;
      begun_.push_back({node, 0});
    }
  }

  // Value number i of the values that n reads or waits for; kNone behind the last.
  ValueId needed(NodeId n, std::size_t i) const {
    const auto inputs = graph_.inputs(graph_.nodes[n]);
    if (i < inputs.size()) return inputs[i];
    if (original_[n] != n) return kNone;
    const auto waits = waits_for(facts_, graph_, n, source_[n]);
    return i - inputs.size() < waits.size() ? waits[i - inputs.size()] : kNone;
  }

  const Facts& facts_;
  const Graph& graph_;
  const std::vector<NodeId>& source_;
  std::vector<NodeId> original_;
  std::vector<char> written_;  // by node: written or begun
  std::vector<Begun> begun_;
  std::vector<NodeId> nodes_;
};

}  // namespace

std::vector<NodeId> nodes_in_order(const Facts& facts, const Graph& graph, const std::vector<NodeId>& source,
                                   const OrderProblem& problem, const ItemOrder& order) {
  return OrderWriter(facts, graph, source).write(problem, order);
}

}  // namespace tapedeck
