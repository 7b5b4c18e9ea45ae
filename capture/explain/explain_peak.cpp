// Finds the node with the most live bytes and explains every value that is alive there: its maker, its next reader, the cost
// and the effect of recomputing it. Then it lists the nodes that reach the lower bound by themselves, and the reason for the
// gap between the peak and the bound.
#include <tapedeck/capture/explain/explain_memory.h>

#include <tapedeck/capture/analysis/takeovers.h>
#include <tapedeck/capture/explain/recompute_cost.h>
#include <tapedeck/capture/planner/place/place_problem.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tapedeck {

namespace {

constexpr std::size_t kMostAdvised = 32;  // values for which recomputing is looked into
constexpr std::size_t kMostBinding = 5;

class PeakExplainer {
 public:
  PeakExplainer(const Plan& plan, const std::vector<double>& us)
      : plan_(plan),
        g_(plan.graph),
        us_(us),
        map_(map_memory(plan)),
        bytes_(plan),
        live_(bytes_.live()),
        windows_(find_windows(g_, Readers(g_), values_with_own_bytes(g_))) {}

  PeakExplanation explain() {
    e_.external_bytes = plan_.external_bytes;
    e_.arena_bytes = plan_.arena_bytes;
    e_.peak_bytes = plan_.peak_bytes;
    e_.gap_bytes = plan_.peak_bytes - plan_.lower_bound_bytes;
    e_.live_bytes = plan_.external_bytes;
    if (live_.empty()) return std::move(e_);
    find_peak();
    list_alive();
    for (std::size_t i = 0; i < std::min(e_.alive.size(), kMostAdvised); ++i) advise(&e_.alive[i]);
    find_binding();
    explain_gap();
    return std::move(e_);
  }

 private:
  std::string site_of(NodeId n) const { return n == kNone ? "" : g_.nodes[n].origin.site.str(); }
  double us(const std::vector<NodeId>& nodes) const {
    double sum = 0;
    for (const NodeId n : nodes) sum += n < static_cast<NodeId>(us_.size()) ? us_[n] : 0.0;
    return sum;
  }

  void find_peak() {
    const auto top = std::max_element(live_.begin(), live_.end());
    e_.node = static_cast<NodeId>(top - live_.begin());
    e_.live_bytes = *top;
    e_.arena_live_bytes = *top - plan_.external_bytes;
    e_.nodes_at_peak = static_cast<std::int32_t>(std::count(live_.begin(), live_.end(), *top));
    e_.text = g_.node_text(e_.node);
    e_.site = site_of(e_.node);
    e_.phase = phase_name(g_.nodes[e_.node].origin.phase);
  }

  void list_alive() {
    for (const MemoryBox& box : map_.arena) {
      if (box.first > e_.node || box.last < e_.node) continue;
      PeakTenant t;
      t.value = box.value;
      t.name = box_name(plan_, box);
      t.role = box.role;
      t.bytes = box.bytes;
      t.offset = box.offset;
      t.first = box.first;
      t.last = box.last;
      t.reason = box.value == kNone ? "workspace" : reason_name(plan_.values[box.value].reason);
      if (box.value != kNone) t.type = to_string(g_.values[box.value].type);
      t.maker = g_.node_text(box.node);
      t.made_at = site_of(box.node);
      t.module = g_.nodes[box.node].origin.path.str();
      e_.alive.push_back(std::move(t));
    }
    std::stable_sort(e_.alive.begin(), e_.alive.end(),
                     [](const PeakTenant& a, const PeakTenant& b) { return a.bytes > b.bytes; });
    for (PeakTenant& t : e_.alive) find_reader(&t);
  }

  // The next to read the value, from the peak's node on.
  void find_reader(PeakTenant* t) const {
    t->used_at_peak = t->value == kNone || t->first == e_.node;
    if (t->value == kNone) return;
    const std::vector<NodeId>& readers = bytes_.readers(t->value);
    const auto next = std::lower_bound(readers.begin(), readers.end(), e_.node);
    if (next == readers.end()) return;
    t->used_at_peak |= *next == e_.node;
    t->reader = g_.node_text(*next);
    t->read_at = site_of(*next);
  }

  // ---- what would lower the peak ----

  void advise(PeakTenant* t) const {
    if (t->value == kNone) {
      t->advice = "workspace: there while its node runs";
    } else if (t->used_at_peak) {
      t->advice = "the node of the peak uses it" + (t->first == e_.node ? "; " + why_not_in_place(t->value) : std::string());
    } else if (t->reader.empty()) {
      t->advice = "kept for what is computed in its bytes, or joined from them";
    } else {
      advise_recomputing(t);
      advise_order(t);
    }
  }

  // Its last reader may have all it needs before the peak already: then another order would free the value.
  void advise_order(PeakTenant* t) const {
    const NodeId reader = bytes_.readers(t->value).back();
    const Node& node = g_.nodes[reader];
    NodeId earliest = t->first;
    for (const ValueId v : g_.inputs(node)) earliest = std::max(earliest, g_.values[bytes_.owner(v)].node);
    std::int64_t made = 0;
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
      if (plan_.values[v].where == Where::arena && plan_.values[v].reason != Reason::in_place)
        made += g_.values[v].type.bytes();
      if (plan_.values[v].where != Where::state) continue;
      for (const NodeId other : bytes_.readers(g_.n_inputs + plan_.values[v].slot))  // the old state has to have been read
        if (other != reader) earliest = std::max(earliest, other);
    }
    if (earliest >= e_.node || made >= t->bytes || bytes_.readers(t->value).size() > 1) return;
    t->order_helps = true;
    t->advice +=
        fmt::format("; its only reader could run right after node {}: another order would free it before the peak", earliest);
    t->advice += how_to_order();
  }

  // What a reader can do about the order.
  std::string how_to_order() const {
    const char* taken = plan_.order == "recorded" ? "the plan has the program's order; --order auto looks for others, and "
                                                    "keeps this one if it finds none with a lower peak"
                                                  : "--order auto has looked at many, and this one has the lowest peak of them";
    return fmt::format(" ({}; a program that computes the reader there offers that order, too)", taken);
  }

  void advise_recomputing(PeakTenant* t) const {
    const std::vector<NodeId>& readers = bytes_.readers(t->value);
    const auto next = std::lower_bound(readers.begin(), readers.end(), e_.node);
    Rerun rerun = best_rerun(t->value, next == readers.begin() ? t->first : *std::prev(next), *next);
    if (rerun.nodes.empty()) {
      t->advice = "cannot be made again for its next reader: " + rerun.obstacle;
      return;
    }
    t->recomputable = true;
    t->recompute_us = us(rerun.nodes);
    t->rerun = std::move(rerun.nodes);
    t->rerun_before = rerun.before;
    t->peak_after = rerun.peak_bytes;
    const std::string where =
        rerun.before == *next ? "" : fmt::format(" just before node {}, while what it needs is there,", rerun.before);
    t->advice = fmt::format("made again from {} node{} ({:.1f} us){} for its next reader instead of kept, {}", t->rerun.size(),
                            t->rerun.size() == 1 ? "" : "s", t->recompute_us, where, effect_of(*t));
  }

  // The lowest peak, then the least cost, then the latest place; if it can be done nowhere, why not before the reader.
  Rerun best_rerun(ValueId v, NodeId kept_until, NodeId reader) const {
    Rerun best;
    for (const NodeId place : bytes_.places(v, e_.node, reader)) {
      Rerun rerun = bytes_.find(v, kept_until, place);
      if (place == reader || (!rerun.nodes.empty() && (best.nodes.empty() || is_better(rerun, best)))) best = std::move(rerun);
    }
    return best;
  }

  bool is_better(const Rerun& a, const Rerun& b) const {
    if (a.peak_bytes != b.peak_bytes) return a.peak_bytes < b.peak_bytes;
    return us(a.nodes) != us(b.nodes) ? us(a.nodes) < us(b.nodes) : a.nodes.size() < b.nodes.size();
  }

  std::string effect_of(const PeakTenant& t) const {
    const std::int64_t more = t.peak_after - e_.live_bytes;
    if (more < 0) return fmt::format("the peak would be {} bytes, {} less", t.peak_after, -more);
    if (more == 0) return "the peak would stay: as much is alive elsewhere, or while it is made again";
    return fmt::format("the peak would be {} bytes, {} more: so much is alive while it is made again", t.peak_after, more);
  }

  // Of a value that is made at the peak: why it lies beside its operands and not in the place of one.
  std::string why_not_in_place(ValueId v) const {
    if (plan_.values[v].reason == Reason::in_place)
      return "it is computed in place of %" + g_.value_name(plan_.values[v].other);
    const NodeId n = g_.values[v].node;
    const Node& node = g_.nodes[n];
    std::string why;
    for (const InplacePair& pair : node.op->inplace) {
      if (pair.output != v - node.first_output || pair.input < 0 || pair.input >= node.n_inputs) continue;
      const ValueId operand = g_.inputs(node)[pair.input];
      const std::string reason = obstacle(v, operand, n);
      why += fmt::format("{}not in place of %{}: {}", why.empty() ? "" : ", ", g_.value_name(operand), reason);
    }
    return why.empty() ? fmt::format("{} cannot work in place", node.op->name) : why;
  }

  std::string obstacle(ValueId v, ValueId operand, NodeId n) const {
    const ValueId own = bytes_.owner(operand);
    if (plan_.values[own].where != Where::arena)
      return fmt::format("its bytes are no part of the arena ({})", memory_role_name(memory_role(plan_, own)));
    if (g_.values[own].type.bytes() != g_.values[v].type.bytes()) return "its bytes are not as many";
    if (!bytes_.readers(own).empty() && bytes_.readers(own).back() > n)
      return fmt::format("`{}` still reads it", g_.node_text(bytes_.readers(own).back()));
    for (ValueId w = 0; w < g_.value_count(); ++w)
      if (plan_.values[w].reason == Reason::in_place && w != v && bytes_.owner(plan_.values[w].other) == own)
        return fmt::format("%{} has taken it over", g_.value_name(w));
    if (!plan_.values[operand].dense) return "it is a window with strides";
    return "another operand shares its bytes, or the plan was made without it";
  }

  // ---- the bytes that bind ----

  // The bytes that must exist while the node runs, in every order and for every placement. A window counts the whole value that
  // it looks at. A part counts its own bytes, unless the node also reads or makes the value that the part is joined into. A
  // join and its parts count once, as the whole. An operand and a result that may be computed in its bytes count once.
  std::int64_t own_bytes(NodeId n) const {
    std::vector<ValueId> held;
    const Node& node = g_.nodes[n];
    const auto hold = [&](ValueId v) {
      while (plan_.values[v].reason == Reason::alias) v = plan_.values[v].other;
      if (plan_.values[v].where == Where::arena) held.push_back(v);
    };
    for (const ValueId v : g_.inputs(node))
      if (!node.op->part || plan_.values[v].reason == Reason::alias) hold(v);
    const std::vector<char> in_place = may_be_in_place(n);
    for (std::int32_t k = 0; k < node.n_outputs; ++k)
      if (!in_place[k] && plan_.values[node.first_output + k].reason != Reason::in_place) hold(node.first_output + k);
    std::sort(held.begin(), held.end());
    held.erase(std::unique(held.begin(), held.end()), held.end());
    std::int64_t bytes = plan_.workspace[n].bytes + plan_.external_bytes;
    for (const ValueId v : held)
      if (!lies_in_one_of(v, held)) bytes += g_.values[v].type.bytes();
    return bytes;
  }

  // By result: were an operand needed by nobody else, its bytes could be taken.
  std::vector<char> may_be_in_place(NodeId n) const {
    const Node& node = g_.nodes[n];
    std::vector<char> may(static_cast<std::size_t>(node.n_outputs), 0);
    const std::vector<RootPair> pairs =
        takeovers_in_arena(g_, n, windows_, [&](ValueId v) { return plan_.values[v].where == Where::arena; });
    take_over_in_place(
        std::span<const RootPair>(pairs), [](ValueId) { return true; },
        [&](const RootPair& pair) { may[pair.to - node.first_output] = 1; });
    return may;
  }

  bool lies_in_one_of(ValueId v, const std::vector<ValueId>& sorted) const {
    while (plan_.values[v].reason == Reason::part) {
      v = plan_.values[v].other;
      if (std::binary_search(sorted.begin(), sorted.end(), v)) return true;
    }
    return false;
  }

  void find_binding() {
    for (NodeId n = 0; n < g_.node_count(); ++n) e_.binding.push_back({n, "", "", own_bytes(n), false});
    const auto count = std::min(kMostBinding, e_.binding.size());
    std::partial_sort(e_.binding.begin(), e_.binding.begin() + static_cast<std::ptrdiff_t>(count), e_.binding.end(),
                      [](const BindingNode& a, const BindingNode& b) {
                        return a.own_bytes != b.own_bytes ? a.own_bytes > b.own_bytes : a.node < b.node;
                      });
    e_.binding.resize(count);
    for (BindingNode& b : e_.binding) {
      b.text = g_.node_text(b.node);
      b.site = site_of(b.node);
      b.binds = b.own_bytes >= plan_.lower_bound_bytes;
    }
  }

  // ---- the peak over the bound ----

  void explain_gap() {
    const MemoryBox* top = nullptr;
    for (const MemoryBox& box : map_.arena)
      if (!top || box.offset + box.bytes > top->offset + top->bytes) top = &box;
    if (!top) return;
    e_.top = box_name(plan_, *top);
    e_.top_text = g_.node_text(top->node);
    e_.alignment_bytes = std::min(e_.gap_bytes, rounding_at(e_.node).all);
    if (plan_.segment_rule.placement == "apart")
      e_.apart_bytes = std::max<std::int64_t>(plan_.peak_bytes - plan_.segment_rule.tight_peak_bytes, 0);
    if (e_.gap_bytes <= 0)
      e_.gap_reason = "the arena ends where the most bytes are alive: no placement of this order is smaller";
    else if (e_.apart_bytes > 0)
      e_.gap_reason = why_apart();
    else if (plan_.chunks.size() > 1)
      e_.gap_reason = fmt::format(
          "nothing lies across a joint of the arena's {} chunks; whether other chunks would be smaller in all is not known",
          plan_.chunks.size());
    else if (plan_.arena_bytes <= least_arena())
      e_.gap_reason =
          fmt::format("all of it is sizes rounded up to {} bytes: no placement of this order is smaller", plan_.alignment);
    else
      e_.gap_reason = fmt::format(
          "what ends highest is {}, alive during nodes {}..{}; whether a placement of this order is smaller is not known",
          e_.top, top->first, top->last);
  }

  std::string why_apart() const {
    const SegmentRule& r = plan_.segment_rule;
    return fmt::format(
        "{} of it because bytes are kept apart, so that branches on {} threads need not wait for each other's: placed tightly "
        "the peak is "
        "{}, and a step takes {:.1f} us by the model instead of {:.1f}. --threads 1, --parallel-peak 1 or --budget {} place "
        "tightly",
        e_.apart_bytes, plan_.threads, r.tight_peak_bytes, r.tight_makespan_us, r.makespan_us, r.tight_peak_bytes);
  }

  struct Rounding {
    std::int64_t used = 0, all = 0, largest = 0;  // bytes alive; what rounding up adds to them, and to one of them at most
  };
  Rounding rounding_at(NodeId n) const {
    Rounding r;
    for (const MemoryBox& box : map_.arena) {
      if (box.first > n || box.last < n) continue;
      const std::int64_t padding = align_up(box.bytes, plan_.alignment) - box.bytes;
      r.used += box.bytes;
      r.all += padding;
      r.largest = std::max(r.largest, padding);
    }
    return r;
  }

  // A proven one: boxes that are alive at once lie one above the other, each at a multiple of the alignment, and only the
  // topmost needs no rounding up. Looked at where most is alive so rounded.
  std::int64_t least_arena() const {
    std::vector<Interval> rounded;
    for (const MemoryBox& box : map_.arena) rounded.push_back({align_up(box.bytes, plan_.alignment), box.first, box.last});
    const std::vector<std::int64_t> load = sum_alive(rounded, g_.node_count());
    const Rounding r = rounding_at(static_cast<NodeId>(std::max_element(load.begin(), load.end()) - load.begin()));
    return r.used + r.all - r.largest;
  }

  const Plan& plan_;
  const Graph& g_;
  const std::vector<double>& us_;
  const MemoryMap map_;
  const Reruns bytes_;
  const std::vector<std::int64_t>& live_;
  const std::vector<Window> windows_;  // had no value a place in what joins it
  PeakExplanation e_;
};

}  // namespace

PeakExplanation explain_peak(const Plan& plan, const std::vector<double>& node_us) {
  return PeakExplainer(plan, node_us).explain();
}

}  // namespace tapedeck
