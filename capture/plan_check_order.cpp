// Invariants (1) and (3) of a plan between values. Within a segment nodes run in order; between segments only the paths of the
// segment DAG order them. So bytes may change hands only if everybody who used the old ones stands before the new writer,
// either in its segment or in one with a path to it.
#include <tapedeck/capture/plan_check_parts.h>
#include <tapedeck/capture/plan_check_sweep.h>

#include <tapedeck/capture/analysis/traits.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

constexpr std::size_t kMostReachBytes = std::size_t{256} << 20;

bool check_segments(const Plan& plan, Violations* out) {
  const auto n_segments = static_cast<std::int32_t>(plan.segments.size());
  std::vector<std::int32_t> predecessors(plan.segments.size(), 0);
  std::vector<bool> held(plan.graph.nodes.size(), false);
  std::int64_t n_held = 0;
  for (std::int32_t s = 0; s < n_segments; ++s) {
    const Segment& segment = plan.segments[s];
    NodeId before = kNone;
    for (const NodeId n : segment.nodes) {
      if (n <= before || n >= plan.graph.node_count() || held[n]) {
        out->push_back(fmt::format("the nodes of segment {} are not ascending, or not its own", s));
        return false;
      }
      held[before = n] = true;
      ++n_held;
    }
    if (segment.nodes.empty()) out->push_back(fmt::format("segment {} holds no nodes", s));
    std::int32_t last = s;
    for (std::int32_t t : segment.successors) {
      if (t <= last || t >= n_segments) {
        out->push_back(fmt::format("the successors of segment {} are not later segments in ascending order", s));
        return false;
      }
      last = t;
      ++predecessors[t];
    }
  }
  if (n_held != plan.graph.node_count()) out->push_back("the segments do not hold every node once");
  for (std::int32_t s = 0; s < n_segments; ++s)
    if (plan.segments[s].n_predecessors != predecessors[s])
      out->push_back(fmt::format("segment {} waits for the wrong number of segments", s));
  return out->empty();
}

// Which segments have a path to which: a bit per pair, for source segments [first, first + width) at a time so that memory is
// bounded.
class Reach {
 public:
  explicit Reach(const Plan& plan) : plan_(plan), segment_of_(plan.graph.nodes.size()) {
    for (std::size_t s = 0; s < plan.segments.size(); ++s)
      for (const NodeId n : plan.segments[s].nodes) segment_of_[n] = static_cast<std::int32_t>(s);
    const std::size_t n = std::max<std::size_t>(plan.segments.size(), 1);
    words_ = std::clamp<std::size_t>(kMostReachBytes / 8 / n, 1, (n + 63) / 64);
  }

  std::int32_t width() const { return static_cast<std::int32_t>(words_ * 64); }

  void cover(std::int32_t first) {
    first_ = first;
    bits_.assign(plan_.segments.size() * words_, 0);
    for (std::size_t s = static_cast<std::size_t>(first); s < plan_.segments.size(); ++s) {
      std::uint64_t* row = &bits_[s * words_];
      const std::size_t bit = s - static_cast<std::size_t>(first);
      if (bit < words_ * 64) row[bit / 64] |= std::uint64_t{1} << (bit % 64);
      for (std::int32_t t : plan_.segments[s].successors)
        for (std::size_t w = 0; w < words_; ++w) bits_[static_cast<std::size_t>(t) * words_ + w] |= row[w];
    }
  }

  std::int32_t segment_of(NodeId n) const { return segment_of_[n]; }

  bool covers(NodeId n) const { return segment_of_[n] >= first_ && segment_of_[n] < first_ + width(); }

  // REQUIRES: covers(a).
  bool before(NodeId a, NodeId b) const {
    const std::int32_t sa = segment_of_[a], sb = segment_of_[b];
    if (sa == sb) return a < b;
    const auto bit = static_cast<std::size_t>(sa - first_);
    return bits_[static_cast<std::size_t>(sb) * words_ + bit / 64] >> (bit % 64) & 1;
  }

 private:
  const Plan& plan_;
  std::vector<std::int32_t> segment_of_;
  std::size_t words_ = 1;
  std::int32_t first_ = 0;
  std::vector<std::uint64_t> bits_;
};

// A stretch of the arena: a value's own bytes, or a node's workspace.
struct Tenant {
  std::int64_t first = 0, end = 0;
  NodeId writer = kNone;      // the first
  ValueId value = kNone;      // kNone for workspace
  std::vector<NodeId> users;  // writers and readers, ascending
  std::vector<NodeId> writers;  // the maker; or those of parts, and what joins them
};

class OrderChecker {
 public:
  OrderChecker(const Plan& plan, Violations* out)
      : plan_(plan), g_(plan.graph), out_(out), owner_(bytes_owner(plan)), reach_(plan), users_(g_.values.size()), writers_(g_.values.size()) {
    for (ValueId v = g_.n_inputs + g_.n_state; v < g_.value_count(); ++v) users_[owner_[v]].push_back(g_.values[v].node);
    for (ValueId v = g_.n_inputs + g_.n_state; v < g_.value_count(); ++v)  // ascending, as values are
      if (plan.values[v].reason != Reason::alias) writers_[owner_[v]].push_back(g_.values[v].node);
    for (NodeId n = 0; n < g_.node_count(); ++n)
      for (ValueId v : g_.inputs(g_.nodes[n])) users_[owner_[v]].push_back(n);
    for (auto& list : users_) keep_last_of_segments(&list);
    find_tenants();
  }

  void check() {
    for (std::int32_t first = 0; first < static_cast<std::int32_t>(plan_.segments.size()) && more(); first += reach_.width()) {
      reach_.cover(first);
      check_dependences();
      check_states();
      check_overlaps();
    }
  }

 private:
  bool more() const { return out_->size() < kMostViolations; }

  // Of the users in one segment the last is done last: the others are ordered before whatever it is ordered before.
  void keep_last_of_segments(std::vector<NodeId>* users) const {
    const auto later_first = [&](NodeId a, NodeId b) {
      const std::int32_t sa = reach_.segment_of(a), sb = reach_.segment_of(b);
      return sa != sb ? sa < sb : a > b;
    };
    std::sort(users->begin(), users->end(), later_first);
    const auto same = [&](NodeId a, NodeId b) { return reach_.segment_of(a) == reach_.segment_of(b); };
    users->erase(std::unique(users->begin(), users->end(), same), users->end());
    std::sort(users->begin(), users->end());
  }

  bool ordered(NodeId before, NodeId after) const { return !reach_.covers(before) || reach_.before(before, after); }

  std::string name(const Tenant& t) const {
    return t.value != kNone ? "%" + g_.value_name(t.value) : "the workspace of `" + g_.node_text(t.writer) + "`";
  }

  void check_dependences() {
    for (NodeId n = 0; n < g_.node_count() && more(); ++n) {
      const auto check = [&](ValueId v) {
        const NodeId maker = g_.values[v].node;
        if (maker != kNone && !is_constant(maker) && !is_constant(n) && !ordered(maker, n))
          out_->push_back(fmt::format("`{}` may run before %{} is there", g_.node_text(n), g_.value_name(v)));
      };
      for (ValueId v : g_.inputs(g_.nodes[n])) check(v);
      for (ValueId v : g_.after(g_.nodes[n])) check(v);
    }
    check_effects();
    for (const Edge& e : plan_.reuse_edges) {
      const bool known = e.before >= 0 && e.before < e.after && e.after < g_.node_count();
      if (!known || !ordered(e.before, e.after)) return out_->push_back("a reuse edge is not in the segment DAG");
    }
  }

  // Constants are copied before a run and only looked at by it.
  bool is_constant(NodeId n) const { return g_.literal(g_.nodes[n]) && plan_.values[g_.nodes[n].first_output].where == Where::constant; }

  // What the host is told comes in the order of the program.
  void check_effects() {
    NodeId last = kNone;
    for (NodeId n = 0; n < g_.node_count() && more(); ++n) {
      if ((traits_within(g_, g_.nodes[n]) & kEffect) == 0) continue;
      if (last != kNone && !ordered(last, n))
        out_->push_back(fmt::format("`{}` may run before `{}`, and both have effects", g_.node_text(n), g_.node_text(last)));
      last = n;
    }
  }

  void check_states() {
    for (const Update& u : g_.updates) {
      const NodeId writer = g_.values[u.value].node;
      for (NodeId user : users_[u.state])
        if (u.state != u.value && user != writer && !ordered(user, writer) && more())
          out_->push_back(
              fmt::format("%{} may be overwritten before `{}` has read it", g_.value_name(u.state), g_.node_text(user)));
    }
  }

  void find_tenants() {
    for (ValueId v = g_.n_inputs + g_.n_state; v < g_.value_count(); ++v) {
      const Placement& p = plan_.values[v];
      const std::int64_t bytes = g_.values[v].type.bytes();
      if (p.where == Where::arena && owner_[v] == v && bytes > 0)
        tenants_.push_back({p.offset, p.offset + bytes, writers_[v].front(), v, users_[v], writers_[v]});
    }
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      const Scratch& s = plan_.workspace[n];
      if (s.bytes > 0) tenants_.push_back({s.offset, s.offset + s.bytes, n, kNone, {n}, {n}});
    }
    std::vector<Stretch> stretches;
    for (const Tenant& t : tenants_) stretches.push_back({t.first, t.end, t.writer});
    pairs_ = successions(stretches);
  }

  // Whoever gets bytes gets them from somebody who is done with them.
  void check_overlaps() {
    for (const auto& [earlier, later] : pairs_) {
      if (!more()) return;
      check_pair(tenants_[earlier], tenants_[later]);
    }
  }

  // `later` writes bytes that `earlier` holds: all of its users must be done before any writer, but for the writer itself where it computes
  // in place.
  void check_pair(const Tenant& earlier, const Tenant& later) {
    const bool takes_over = later.value != kNone && plan_.values[later.value].reason == Reason::in_place &&
                            owner_[plan_.values[later.value].other] == earlier.value;
    for (NodeId user : earlier.users) {
      const auto done_before = [&](NodeId writer) { return (takes_over && user == writer) || ordered(user, writer); };
      if (std::all_of(later.writers.begin(), later.writers.end(), done_before)) continue;
      out_->push_back(fmt::format("{} and {} share bytes, and `{}` may still need the first", name(earlier), name(later),
                                  g_.node_text(user)));
      return;
    }
  }

  const Plan& plan_;
  const Graph& g_;
  Violations* out_;
  std::vector<ValueId> owner_;
  Reach reach_;
  std::vector<std::vector<NodeId>> users_;    // by owner: who makes and reads it, its windows and its parts
  std::vector<std::vector<NodeId>> writers_;  // by owner: who makes it and its parts
  std::vector<Tenant> tenants_;
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs_;  // of tenants: the second has bytes next after the first
};

}  // namespace

void check_order(const Plan& plan, Violations* out) {
  if (check_segments(plan, out)) OrderChecker(plan, out).check();
}

}  // namespace tapedeck
