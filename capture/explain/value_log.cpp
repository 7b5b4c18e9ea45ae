// First the copies of each value are brought together: a clone's results are copies of the results of the node that it repeats.
// Then one walk over all operands finds the readers. At last each entry gets its rule, the first of a list that applies:
//
//     not in the arena, a view, a part     where its bytes are instead
//     made more than once                  the wish or the decision behind it, or the clone that it is made for
//     made once                            a wish, an effect, no reader, a late run, or where it stands to the peak
#include <tapedeck/capture/explain/value_log.h>

#include <tapedeck/capture/analysis/parts.h>
#include <tapedeck/capture/plan/byte_owners.h>
#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/engine/text/suggest.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace tapedeck {

namespace {

constexpr std::size_t kMostNodesNamed = 6;

// "nodes 3, 41"; of many the first.
std::string nodes_text(std::span<const NodeId> nodes) {
  const std::size_t n = std::min(nodes.size(), kMostNodesNamed);
  std::string text = fmt::format("node{} {}", nodes.size() == 1 ? "" : "s", fmt::join(nodes.first(n), ", "));
  return nodes.size() > n ? text + fmt::format(" and {} more", nodes.size() - n) : text;
}

class LogWriter {
 public:
  LogWriter(const Plan& plan, std::span<const double> node_us, const std::vector<Wish>& wishes)
      : plan_(plan),
        g_(plan.graph),
        node_us_(node_us),
        wishes_(wishes),
        wish_of_(find_wished(g_, wishes).wish_of),
        owner_(byte_owners(plan)),
        entry_of_(plan.values.size(), kNone),
        seen_(plan.values.size()) {
    for (std::size_t d = 0; d < plan.decisions.size(); ++d) decision_of_.emplace(plan.decisions[d].value, d);
    find_peaks();
  }

  std::vector<ValueEntry> write() {
    log_.reserve(plan_.values.size());
    gather_copies();
    gather_readers();
    for (ValueEntry& e : log_) describe(&e);
    return std::move(log_);
  }

 private:
  // ---- copies ----

  void gather_copies() {
    for (ValueId v = 0; v < g_.n_inputs + g_.n_state; ++v) begin_entry(v, kNone, 0);
    const std::vector<NodeId> original = originals();
    for (NodeId n = 0; n < g_.node_count(); ++n)
      if (original[n] == n) add_results(n, n);
    for (NodeId n = 0; n < g_.node_count(); ++n)
      if (original[n] != n) add_results(n, original[n]);
    for (ValueEntry& e : log_) std::sort(e.runs.begin(), e.runs.end());
    for (ValueEntry& e : log_) std::sort(e.copies.begin(), e.copies.end());  // results are numbered in the order of nodes
  }

  // By node: the node that it repeats; itself unless it is a clone of a node of the plan.
  std::vector<NodeId> originals() const {
    std::vector<NodeId> original(g_.nodes.size());
    std::iota(original.begin(), original.end(), 0);
    if (std::none_of(g_.nodes.begin(), g_.nodes.end(), [](const Node& node) { return node.origin.clone; })) return original;
    std::unordered_map<std::string_view, NodeId> made_by;
    for (NodeId n = 0; n < g_.node_count(); ++n)
      if (const Node& node = g_.nodes[n];
          !node.origin.clone && node.n_outputs > 0 && !g_.values[node.first_output].name.empty())
        made_by.emplace(g_.values[node.first_output].name.view(), n);
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      const Node& node = g_.nodes[n];
      const auto found = node.origin.clone ? made_by.find(node.origin.of.view()) : made_by.end();
      const bool repeats = found != made_by.end() && g_.nodes[found->second].n_outputs == node.n_outputs;
      original[n] = repeats ? found->second : n;
    }
    return original;
  }

  void add_results(NodeId n, NodeId original) {
    const Node& node = g_.nodes[n];
    for (std::int32_t i = 0; i < node.n_outputs; ++i) {
      if (original == n)
        begin_entry(node.first_output + i, n, i);
      else
        add_copy(node.first_output + i, n, entry_of_[g_.nodes[original].first_output + i]);
    }
  }

  void begin_entry(ValueId v, NodeId maker, std::int32_t result) {
    ValueEntry e;
    e.name = g_.value_name(v);
    e.type = to_string(g_.values[v].type);
    e.bytes = g_.values[v].type.bytes();
    e.reason = plan_.values[v].reason;
    e.result = result;
    if (maker != kNone) e.us = run_us(maker);
    log_.push_back(std::move(e));
    add_copy(v, maker, static_cast<std::int32_t>(log_.size()) - 1);
  }

  void add_copy(ValueId v, NodeId maker, std::int32_t entry) {
    entry_of_[v] = entry;
    log_[entry].copies.push_back(v);
    if (maker != kNone) log_[entry].runs.push_back(maker);
  }

  // A view costs nothing, and a join costs what it has to copy.
  double run_us(NodeId n) const {
    const Node& node = g_.nodes[n];
    if (node.n_outputs == 0) return node_us_[n];
    if (plan_.values[node.first_output].reason == Reason::alias) return 0;
    const std::int64_t joined = joined_already(g_, node, [&](ValueId v) { return window_of(v); });
    if (joined == 0) return node_us_[n];
    return node_us_[n] * (1 - static_cast<double>(joined) / static_cast<double>(g_.values[node.first_output].type.numel()));
  }

  Window window_of(ValueId v) const {
    const Placement& at = plan_.values[v];
    Window window;
    window.root = owner_[v];
    window.offset = at.offset;
    window.dense = at.dense;
    if (at.dense)
      dense_strides(g_.values[v].type.shape, window.strides);
    else
      std::copy(std::begin(at.strides), std::end(at.strides), std::begin(window.strides));
    return window;
  }

  // ---- readers ----

  // The value behind a view, of a view. A view comes after what it looks at.
  void gather_readers() {
    for (ValueId v = 0; v < g_.value_count(); ++v)
      seen_[v] = plan_.values[v].reason == Reason::alias && plan_.values[v].other < v ? seen_[plan_.values[v].other] : v;
    for (NodeId n = 0; n < g_.node_count(); ++n)
      for (const ValueId v : g_.inputs(g_.nodes[n])) {
        note_reader(v, n);
        note_reader(seen_[v], n);
      }
  }

  void note_reader(ValueId v, NodeId n) {
    std::vector<NodeId>& readers = log_[entry_of_[v]].readers;
    if (readers.empty() || readers.back() != n) readers.push_back(n);
  }

  // ---- rules ----

  void find_peaks() {
    const std::vector<std::int64_t> live = live_bytes(plan_);
    const std::int64_t most = live.empty() ? 0 : *std::max_element(live.begin(), live.end());
    peaks_before_.assign(1, 0);
    for (const std::int64_t bytes : live) peaks_before_.push_back(peaks_before_.back() + (bytes == most));
  }

  bool is_peak(NodeId n) const { return n >= 0 && n < g_.node_count() && has_peak(n, n); }
  bool has_peak(NodeId first, NodeId last) const {
    if (first < 0 || last < first) return false;
    return peaks_before_[std::min(last, g_.node_count() - 1) + 1] > peaks_before_[first];
  }

  void describe(ValueEntry* e) const {
    const ValueId v = e->copies.front();
    const Placement& at = plan_.values[v];
    if (const std::string where = place_elsewhere(*e, at); !where.empty()) {
      e->choice = ValueChoice::elsewhere;
      e->rule = where + (e->runs.size() > 1 ? fmt::format("; made again by {}", nodes_text(again(*e))) : "");
      return;
    }
    e->choice = e->runs.size() > 1 ? ValueChoice::recomputed : ValueChoice::kept;
    e->rule = e->choice == ValueChoice::recomputed ? why_recomputed(*e) : why_kept(*e, at);
  }

  std::string place_elsewhere(const ValueEntry& e, const Placement& at) const {
    switch (at.reason) {
      case Reason::input:
        return "an input: the caller holds it";
      case Reason::state:
        return "state: it is there before and after the step";
      case Reason::alias:
        return fmt::format("a view of %{}: it has no bytes of its own", g_.value_name(at.other));
      case Reason::part:
        return fmt::format("a part of %{}: it is written into its place there", g_.value_name(at.other));
      default:
        break;
    }
    if (at.where == Where::constant) return "a constant";
    if (at.where == Where::output) return "a result of the graph: it is handed to the caller";
    if (at.where == Where::state) return "becomes a state's new value, and lies in its bytes";
    return at.where == Where::arena || e.bytes == 0 ? "" : "it has no bytes";
  }

  static std::span<const NodeId> again(const ValueEntry& e) { return std::span(e.runs).subspan(1); }

  const Wish* wish_for(ValueId v, WishKind kind) const {
    const std::int32_t w = wish_of_[v];
    return w != kNone && wishes_[w].kind == kind ? &wishes_[w] : nullptr;
  }

  std::string why_recomputed(const ValueEntry& e) const {
    if (const Wish* wish = wish_for(e.copies.front(), WishKind::recompute))
      return fmt::format("made again: wished for by `{}`", wish_text(*wish));
    if (const auto d = decision_of_.find(e.name); d != decision_of_.end())
      return "made again: " + plan_.decisions[d->second].reason;
    return why_made_again(e);
  }

  // By the node that reads the second copy: another clone, or the node that the value is made again for.
  std::string why_made_again(const ValueEntry& e) const {
    const auto reader = std::upper_bound(e.readers.begin(), e.readers.end(), e.runs[1]);
    if (reader == e.readers.end()) return "made again beside another result of its maker, or by the captured graph";
    const Node& node = g_.nodes[*reader];
    if (!node.origin.clone) return fmt::format("made again just before node {}, which reads it", *reader);
    return fmt::format("made again at {}, for %{}, which is made again too", nodes_text(again(e)), node.origin.of.view());
  }

  std::string why_kept(const ValueEntry& e, const Placement& at) const {
    if (const Wish* wish = wish_for(e.copies.front(), WishKind::keep))
      return fmt::format("kept: wished for by `{}`", wish_text(*wish));
    const Node& maker = g_.nodes[e.first_maker()];
    if (maker.op->is(kEffect)) return fmt::format("kept: {} has an effect, so it runs once", maker.op->name);
    if (e.readers.empty()) return "kept: nobody reads it, so its bytes are free at once";
    if (maker.n_after > 0)
      return fmt::format("kept, but made late: an order edge holds it back until just before node {}, which reads it",
                         e.readers.front());
    return kept_at_peak(e, at);
  }

  std::string kept_at_peak(const ValueEntry& e, const Placement& at) const {
    if (!has_peak(std::min(at.birth, e.first_maker()), std::max(at.death, e.last_reader())))
      return "kept: nobody needs its bytes at the peak";
    const bool used =
        is_peak(e.first_maker()) || std::any_of(e.readers.begin(), e.readers.end(), [&](NodeId n) { return is_peak(n); });
    if (used) return "kept: a node at the peak makes or reads it";
    if (plan_.recomputed_nodes == 0) return "kept across the peak: this plan recomputes nothing";
    return "kept across the peak: the plan gives up other values";
  }

  const Plan& plan_;
  const Graph& g_;
  std::span<const double> node_us_;
  const std::vector<Wish>& wishes_;
  const std::vector<std::int32_t> wish_of_;                   // by value
  const std::vector<ValueId> owner_;                          // by value: in whose bytes it lies
  std::vector<std::int32_t> entry_of_;                        // by value: the index of its entry
  std::vector<ValueId> seen_;                                 // by value: what it shows
  std::unordered_map<std::string, std::size_t> decision_of_;  // by the name of the value: the first decision about it
  std::vector<std::int32_t> peaks_before_;                    // by node: the nodes before it where the most bytes are alive
  std::vector<ValueEntry> log_;
};

bool has_copy_named(const ValueEntry& e, const Graph& graph, const std::string& name) {
  return std::any_of(e.copies.begin(), e.copies.end(), [&](ValueId v) { return graph.value_name(v) == name; });
}

std::string line_of(const ValueEntry& e) {
  return fmt::format("  {:<28} {:>12} {:<10} {:>5} {:>10.1f} {:>7} {:>7}  {}\n", "%" + e.name, e.bytes,
                     value_choice_name(e.choice), e.runs.size(), e.us,
                     e.first_maker() == kNone ? "-" : std::to_string(e.first_maker()),
                     e.last_reader() == kNone ? "-" : std::to_string(e.last_reader()), e.rule);
}

}  // namespace

const char* value_choice_name(ValueChoice choice) {
  constexpr const char* names[] = {"kept", "recomputed", "elsewhere"};
  return names[static_cast<int>(choice)];
}

std::vector<ValueEntry> value_log(const Plan& plan, std::span<const double> node_us, const std::vector<Wish>& wishes) {
  return LogWriter(plan, node_us, wishes).write();
}

const ValueEntry& find_entry(const std::vector<ValueEntry>& log, const Plan& plan, const std::string& name) {
  for (const ValueEntry& e : log)
    if (e.name == name) return e;
  for (const ValueEntry& e : log)
    if (has_copy_named(e, plan.graph, name)) return e;
  std::vector<std::string_view> names;
  for (const ValueEntry& e : log) names.push_back(e.name);
  throw UsageError(fmt::format("no value of the plan has the name '{}'{}", name, did_you_mean(name, names)));
}

std::string value_log_text(const std::vector<ValueEntry>& log, int most) {
  std::vector<const ValueEntry*> order;
  for (const ValueEntry& e : log) order.push_back(&e);
  std::stable_sort(order.begin(), order.end(), [](const ValueEntry* a, const ValueEntry* b) { return a->bytes > b->bytes; });
  const std::size_t shown = most < 0 ? order.size() : std::min(order.size(), static_cast<std::size_t>(most));
  std::string text = fmt::format("  {:<28} {:>12} {:<10} {:>5} {:>10} {:>7} {:>7}  {}\n", "value", "bytes", "choice", "runs",
                                 "us a run", "made at", "read to", "rule");
  for (std::size_t i = 0; i < shown; ++i) text += line_of(*order[i]);
  if (shown < order.size()) text += fmt::format("  and {} more; --json has all of them\n", order.size() - shown);
  return text;
}

}  // namespace tapedeck
