#include <tapedeck/capture/explain_memory.h>

#include <tapedeck/capture/arena_chunks.h>
#include <tapedeck/capture/analysis/liveness.h>
#include <tapedeck/capture/place/problem.h>
#include <tapedeck/capture/plan_check_parts.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <iterator>

namespace tapedeck {

namespace {

constexpr std::size_t kMostAdvised = 32;      // values for which recomputing is looked into
constexpr std::size_t kMostBinding = 5;
constexpr std::int32_t kMostRecomputed = 64;  // nodes run again for one value; beyond that it is not worth a thought


class PeakExplainer {
 public:
  PeakExplainer(const Plan& plan, const std::vector<double>& us)
      : plan_(plan), g_(plan.graph), us_(us), map_(map_memory(plan)), live_(live_bytes(plan)), owner_(bytes_owner(plan)), users_(g_.values.size()) {
    for (NodeId n = 0; n < g_.node_count(); ++n)
      for (const ValueId v : g_.inputs(g_.nodes[n]))
        if (std::vector<NodeId>& list = users_[owner_[v]]; list.empty() || list.back() != n) list.push_back(n);
  }

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
  double us(NodeId n) const { return n < static_cast<NodeId>(us_.size()) ? us_[n] : 0.0; }

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
    std::stable_sort(e_.alive.begin(), e_.alive.end(), [](const PeakTenant& a, const PeakTenant& b) { return a.bytes > b.bytes; });
    for (PeakTenant& t : e_.alive) find_reader(&t);
  }

  // The next to read the value, from the peak's node on.
  void find_reader(PeakTenant* t) const {
    t->used_at_peak = t->value == kNone || t->first == e_.node;
    if (t->value == kNone) return;
    const std::vector<NodeId>& readers = users_[t->value];
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
    const NodeId reader = users_[t->value].back();
    const Node& node = g_.nodes[reader];
    NodeId earliest = t->first;
    for (const ValueId v : g_.inputs(node)) earliest = std::max(earliest, g_.values[owner_[v]].node);
    std::int64_t made = 0;
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
      if (plan_.values[v].where == Where::arena && plan_.values[v].reason != Reason::in_place) made += g_.values[v].type.bytes();
      if (plan_.values[v].where != Where::state) continue;
      for (const NodeId other : users_[g_.n_inputs + plan_.values[v].slot])   // the old state has to have been read
        if (other != reader) earliest = std::max(earliest, other);
    }
    if (earliest >= e_.node || made >= t->bytes || users_[t->value].size() > 1) return;
    t->order_helps = true;
    t->advice += fmt::format("; its only reader could run right after node {}: another order would free it before the peak", earliest);
  }

  void advise_recomputing(PeakTenant* t) const {
    const std::vector<NodeId>& readers = users_[t->value];
    const auto next = std::lower_bound(readers.begin(), readers.end(), e_.node);
    const NodeId again = *next, until = next == readers.begin() ? t->first : *std::prev(next);
    std::vector<NodeId> nodes;
    std::string why;
    if (!collect(g_.values[t->value].node, again, &nodes, &why)) {
      t->advice = "cannot be made again for its next reader: " + why;
      return;
    }
    t->recomputable = true;
    t->recompute_nodes = static_cast<std::int32_t>(nodes.size());
    for (const NodeId n : nodes) t->recompute_us += us(n);
    t->peak_after = peak_without(t->bytes, until, again);
    t->advice = fmt::format("made again from {} node{} ({:.1f} us) for its next reader instead of kept, {}", nodes.size(), nodes.size() == 1 ? "" : "s",
                            t->recompute_us,
                            t->peak_after < e_.live_bytes ? fmt::format("the peak would be {} bytes, {} less", t->peak_after, e_.live_bytes - t->peak_after)
                                                          : std::string("the peak would stay: as much is alive elsewhere"));
  }

  // The nodes to run just before `reader` so that what `n` makes is there again: n, and the makers of what is not alive then. False, and
  // why, if that cannot be done.
  bool collect(NodeId n, NodeId reader, std::vector<NodeId>* nodes, std::string* why) const {
    if (std::find(nodes->begin(), nodes->end(), n) != nodes->end()) return true;
    if (joins_parts(n)) return *why = fmt::format("`{}` joins parts that were written in place", g_.node_text(n)), false;
    if (static_cast<std::int32_t>(nodes->size()) >= kMostRecomputed) return *why = "too much would have to run with it", false;
    if (g_.nodes[n].op->is(kEffect)) return *why = fmt::format("`{}` has an effect", g_.node_text(n)), false;
    nodes->push_back(n);
    for (const ValueId v : g_.inputs(g_.nodes[n])) {
      const ValueId own = owner_[v];
      const Placement& p = plan_.values[own];
      if (p.where == Where::arena) {
        const bool there = !users_[own].empty() && users_[own].back() >= reader;
        if (!there && !collect(g_.values[own].node, reader, nodes, why)) return false;
      } else if (p.where == Where::state && g_.is_state(own)) {
        for (const Update& u : g_.updates)
          if (u.state == own && u.value != own && g_.values[u.value].node < reader)
            return *why = fmt::format("%{} has been updated by then", g_.value_name(own)), false;
      }
    }
    return true;
  }

  bool joins_parts(NodeId n) const {
    for (const ValueId v : g_.inputs(g_.nodes[n]))
      if (plan_.values[v].reason == Reason::part && owner_[v] == owner_[g_.nodes[n].first_output]) return true;
    return false;
  }

  // Most bytes alive if `bytes` less were between the two nodes.
  std::int64_t peak_without(std::int64_t bytes, NodeId first, NodeId last) const {
    std::int64_t most = 0;
    for (NodeId n = 0; n < g_.node_count(); ++n) most = std::max(most, live_[n] - (n > first && n < last ? bytes : 0));
    return most;
  }

  // Of a value that is made at the peak: why it lies beside its operands and not in the place of one.
  std::string why_not_in_place(ValueId v) const {
    if (plan_.values[v].reason == Reason::in_place) return "it is computed in place of %" + g_.value_name(plan_.values[v].other);
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
    const ValueId own = owner_[operand];
    if (plan_.values[own].where != Where::arena) return fmt::format("its bytes are no part of the arena ({})", memory_role_name(memory_role(plan_, own)));
    if (g_.values[own].type.bytes() != g_.values[v].type.bytes()) return "its bytes are not as many";
    if (!users_[own].empty() && users_[own].back() > n) return fmt::format("`{}` still reads it", g_.node_text(users_[own].back()));
    for (ValueId w = 0; w < g_.value_count(); ++w)
      if (plan_.values[w].reason == Reason::in_place && w != v && owner_[plan_.values[w].other] == own) return fmt::format("%{} has taken it over", g_.value_name(w));
    if (!plan_.values[operand].dense) return "it is a window with strides";
    return "another operand shares its bytes, or the plan was made without it";
  }

  // ---- what binds ----

  std::int64_t own_bytes(NodeId n) const {
    std::vector<ValueId> held;
    const Node& node = g_.nodes[n];
    const auto hold = [&](ValueId v) {
      if (plan_.values[owner_[v]].where == Where::arena) held.push_back(owner_[v]);
    };
    for (const ValueId v : g_.inputs(node)) hold(v);
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      if (plan_.values[v].reason != Reason::in_place) hold(v);
    std::sort(held.begin(), held.end());
    held.erase(std::unique(held.begin(), held.end()), held.end());
    std::int64_t bytes = plan_.workspace[n].bytes + plan_.external_bytes;
    for (const ValueId v : held) bytes += g_.values[v].type.bytes();
    return bytes;
  }

  void find_binding() {
    for (NodeId n = 0; n < g_.node_count(); ++n) e_.binding.push_back({n, "", "", own_bytes(n), false});
    const auto count = std::min(kMostBinding, e_.binding.size());
    std::partial_sort(e_.binding.begin(), e_.binding.begin() + static_cast<std::ptrdiff_t>(count), e_.binding.end(),
                      [](const BindingNode& a, const BindingNode& b) { return a.own_bytes != b.own_bytes ? a.own_bytes > b.own_bytes : a.node < b.node; });
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
    std::int64_t used = 0, used_rounded = 0;
    for (const MemoryBox& box : map_.arena) {
      if (box.first > e_.node || box.last < e_.node) continue;
      used += box.bytes;
      used_rounded += align_up(box.bytes, plan_.alignment);
    }
    e_.alignment_bytes = std::min(e_.gap_bytes, used_rounded - used);
    if (e_.gap_bytes <= 0)
      e_.gap_reason = "the arena ends where the most bytes are alive: no placement of this order is smaller";
    else if (plan_.chunks.size() > 1)
      e_.gap_reason = fmt::format("nothing lies across a joint of the arena's {} chunks, and what is free in each is too little for what lies elsewhere",
                                  plan_.chunks.size());
    else if (e_.gap_bytes <= e_.alignment_bytes)
      e_.gap_reason = fmt::format("all of it is sizes rounded up to {} bytes", plan_.alignment);
    else
      e_.gap_reason = fmt::format("around nodes {}..{} the bytes that are free lie in pieces too small for what ends highest, {}", top->first, top->last, e_.top);
  }

  const Plan& plan_;
  const Graph& g_;
  const std::vector<double>& us_;
  const MemoryMap map_;
  const std::vector<std::int64_t> live_;
  const std::vector<ValueId> owner_;
  std::vector<std::vector<NodeId>> users_;  // by owner: who reads it or a window on it
  PeakExplanation e_;
};

}  // namespace

PeakExplanation explain_peak(const Plan& plan, const std::vector<double>& node_us) { return PeakExplainer(plan, node_us).explain(); }

namespace {

void add_to(std::vector<MemoryTotal>* totals, const char* name, std::int64_t bytes, bool at_peak) {
  auto it = std::find_if(totals->begin(), totals->end(), [&](const MemoryTotal& t) { return t.name == name; });
  if (it == totals->end()) it = totals->insert(it, {name, 0, 0, 0});
  ++it->count;
  it->bytes += bytes;
  it->peak_bytes += at_peak ? bytes : 0;
}

template <class Name>
void sort_as(std::vector<MemoryTotal>* totals, int n, Name name) {
  const auto rank = [&](const MemoryTotal& t) {
    int i = 0;
    while (i < n && t.name != name(i)) ++i;
    return i;
  };
  std::sort(totals->begin(), totals->end(), [&](const MemoryTotal& a, const MemoryTotal& b) { return rank(a) < rank(b); });
}

std::vector<MemoryTotal> chunks_of(const Plan& plan, const MemoryMap& map, NodeId peak) {
  const ArenaChunks chunks(plan);
  std::vector<MemoryTotal> totals;
  if (plan.chunks.empty()) return totals;
  for (std::int32_t c = 0; c < chunks.count(); ++c) totals.push_back({fmt::format("chunk {}", c), 0, chunks.bytes(c), 0});
  std::vector<char> counted(static_cast<std::size_t>(map.buffers), 0);
  for (const MemoryBox& box : map.arena) {
    MemoryTotal& total = totals[static_cast<std::size_t>(chunks.of(box.offset))];
    total.count += !std::exchange(counted[static_cast<std::size_t>(box.buffer)], 1);
    if (box.first <= peak && box.last >= peak) total.peak_bytes += box.bytes;
  }
  return totals;
}

std::vector<SharingUse> sharing_of(const Plan& plan) {
  std::vector<SharingUse> uses = {{"windows", 0, 0}, {"in_place", 0, 0}, {"parts", 0, 0}, {"updates", 0, 0}};
  const auto count = [&](int rule, std::int64_t bytes) {
    ++uses[rule].count;
    uses[rule].bytes += bytes;
  };
  for (ValueId v = plan.graph.n_inputs + plan.graph.n_state; v < plan.graph.value_count(); ++v) {
    const std::int64_t bytes = plan.graph.values[v].type.bytes();
    const Placement& p = plan.values[v];
    if (bytes == 0) continue;
    if (p.reason == Reason::alias) count(0, bytes);
    else if (p.reason == Reason::in_place) count(1, bytes);
    else if (p.reason == Reason::part) count(2, bytes);
    else if (p.where == Where::state) count(3, bytes);
  }
  return uses;
}

}  // namespace

MemoryExplanation explain_memory(const Plan& plan) {
  const PeakExplanation peak = explain_peak(plan, {});
  const MemoryMap map = map_memory(plan);
  MemoryExplanation e;
  e.peak_bytes = plan.peak_bytes;
  e.lower_bound_bytes = plan.lower_bound_bytes;
  e.external_bytes = plan.external_bytes;
  e.arena_bytes = plan.arena_bytes;
  e.chunk_bytes = plan.chunk_bytes;
  e.chunks = chunks_of(plan, map, peak.node);
  e.order = plan.order;
  e.alignment = plan.alignment;
  e.alignment_bytes = peak.alignment_bytes;
  e.gap_bytes = peak.gap_bytes;
  e.unshared_bytes = plan.external_bytes;
  e.arena_buffers = map.buffers;
  const auto add = [&](const MemoryBox& box, bool external) {
    const bool at_peak = external || (box.first <= peak.node && box.last >= peak.node);
    add_to(&e.roles, memory_role_name(box.role), box.bytes, at_peak);
    add_to(&e.reasons, box.value == kNone ? "workspace" : reason_name(plan.values[box.value].reason), box.bytes, at_peak);
    if (!external) e.unshared_bytes += box.bytes;
    if (!external && box.value != kNone) ++e.arena_values;
  };
  for (const MemoryBox& box : map.external) add(box, true);
  for (const MemoryBox& box : map.arena) add(box, false);
  sort_as(&e.roles, kMemoryRoleCount, [](int i) { return memory_role_name(static_cast<MemoryRole>(i)); });
  sort_as(&e.reasons, static_cast<int>(Reason::unread) + 1, [](int i) { return reason_name(static_cast<Reason>(i)); });
  e.sharing = sharing_of(plan);
  return e;
}

// ---- as text ----

namespace {

std::string at_site(const std::string& site) { return site.empty() ? "" : " (" + site + ")"; }

constexpr std::size_t kMostListed = 40, kMostDetailed = 12;
constexpr std::size_t kLongestLine = 150, kLongestText = 110, kLongestName = 28;

bool continues_a_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }   // in UTF-8

std::string cut(const std::string& text, std::size_t most = kLongestText) {
  if (text.size() <= most) return text;
  std::size_t end = most - 3;
  while (end > 0 && continues_a_character(text[end])) --end;
  return text.substr(0, end) + "...";
}

// At blanks, below each other.
std::string wrapped(std::string text, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string lines;
  while (text.size() > kLongestLine - indent) {
    const std::size_t blank = text.rfind(' ', kLongestLine - indent);
    if (blank == std::string::npos || blank == 0) break;
    lines += margin + text.substr(0, blank) + "\n";
    text.erase(0, blank + 1);
  }
  return lines + margin + cut(text, kLongestLine - indent) + "\n";
}

std::string tenant_line(const PeakTenant& t) {
  return cut(fmt::format("  {:>14}  {:<28} {:<20} {:<15} nodes {}..{}{}", t.bytes, cut(t.name, kLongestName), t.type, t.reason, t.first, t.last,
                         t.module.empty() ? "" : ", " + t.module), kLongestLine) + "\n";
}

std::string binding_line(const BindingNode& b) {
  const std::string mark = b.binds ? "  BINDS" : "";
  return cut(fmt::format("  {:>14}  node {}: {}{}", b.own_bytes, b.node, cut(b.text, kLongestText - 25), at_site(b.site)), kLongestLine - mark.size()) + mark + "\n";
}

}  // namespace

std::string to_text(const PeakExplanation& e) {
  if (e.node == kNone) return fmt::format("the graph has no nodes: inputs, state, constants and outputs, {} bytes, are all there is\n", e.external_bytes);
  std::string text = fmt::format("the most bytes are alive at node {}: {}\n  {}{}, and at {} more node{}\n", e.node, e.live_bytes, cut(e.text), at_site(e.site),
                                 e.nodes_at_peak - 1, e.nodes_at_peak == 2 ? "" : "s");
  text += fmt::format("  {} bytes are inputs, state, constants and outputs; {} in the arena, in {} pieces:\n", e.external_bytes, e.arena_live_bytes, e.alive.size());
  for (std::size_t i = 0; i < std::min(e.alive.size(), kMostListed); ++i) {
    const PeakTenant& t = e.alive[i];
    text += tenant_line(t);
    if (i >= kMostDetailed) continue;
    if (t.value != kNone) text += wrapped(fmt::format("made by {}{}", cut(t.maker), at_site(t.made_at)), 18);
    if (!t.reader.empty()) text += wrapped(fmt::format("kept for {}{}", cut(t.reader), at_site(t.read_at)), 18);
    if (!t.advice.empty()) text += wrapped(t.advice, 18);
  }
  if (e.alive.size() > kMostListed) {
    std::int64_t rest = 0;
    for (std::size_t i = kMostListed; i < e.alive.size(); ++i) rest += e.alive[i].bytes;
    text += fmt::format("  {:>14}  in {} smaller ones\n", rest, e.alive.size() - kMostListed);
  }
  text += "nodes that need the most by themselves (always held + operands, results, workspace); BINDS: no order and no recomputing gets below:\n";
  for (const BindingNode& b : e.binding) text += binding_line(b);
  text += fmt::format("peak {} = lower bound {} + {} by placement:\n", e.peak_bytes, e.peak_bytes - e.gap_bytes, e.gap_bytes);
  text += cut("  " + e.gap_reason, kLongestLine) + "\n";
  return text;
}

std::string to_text(const MemoryExplanation& e) {
  std::string text = fmt::format("peak {} bytes: {} always held + arena {}; lower bound {} (x{:.4f}), {} bytes by placement, of which {} by alignment to {}\n", e.peak_bytes,
                                 e.external_bytes, e.arena_bytes, e.lower_bound_bytes,
                                 e.lower_bound_bytes > 0 ? static_cast<double>(e.peak_bytes) / static_cast<double>(e.lower_bound_bytes) : 1.0, e.gap_bytes,
                                 e.alignment_bytes, e.alignment);
  text += fmt::format("order: {}; {} values lie in the arena, in {} buffers, workspaces counted; side by side all would be {} bytes\n", e.order, e.arena_values,
                      e.arena_buffers, e.unshared_bytes);
  if (!e.chunks.empty())
    text += fmt::format("the arena is {} chunk{} of no more than {} bytes, but for what is larger by itself\n", e.chunks.size(),
                        e.chunks.size() == 1 ? "" : "s", e.chunk_bytes);
  const auto table = [&](const char* title, const std::vector<MemoryTotal>& rows) {
    text += fmt::format("{:<18} {:>8} {:>16} {:>16}\n", title, "count", "bytes", "at the peak");
    for (const MemoryTotal& t : rows) text += fmt::format("  {:<16} {:>8} {:>16} {:>16}\n", t.name, t.count, t.bytes, t.peak_bytes);
  };
  table("by role", e.roles);
  table("by reason", e.reasons);
  if (!e.chunks.empty()) table("by chunk", e.chunks);
  text += fmt::format("{:<18} {:>8} {:>16}\n", "sharing rules", "used", "bytes not needed");
  for (const SharingUse& u : e.sharing) text += fmt::format("  {:<16} {:>8} {:>16}\n", u.rule, u.count, u.bytes);
  text += "  add_to: pieces that are added where they arise are no values of the plan, so none are counted; see its bound\n";
  return text;
}

}  // namespace tapedeck
