// Invariants (1) and (3) of a plan between values. Inside a segment nodes run in order; between segments only the paths of the
// segment DAG order them. So bytes may change hands only if every user of the old bytes stands before the new writer, in the
// same segment or in a segment with a path to it.
//     segment 0: %a = exp(%x)  %s = sum(%a)            no path: on two threads %c may be written while sum reads %a,
//     segment 1: %c = tanh(%x)                         so %a and %c may not share bytes
#include <tapedeck/capture/check/byte_successions.h>
#include <tapedeck/capture/check/checks.h>
#include <tapedeck/capture/check/segment_paths.h>

#include <tapedeck/capture/analysis/traits.h>

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace tapedeck {

namespace {

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
  const auto is_known = [&](const Edge& e) { return e.before >= 0 && e.before < e.after && e.after < plan.graph.node_count(); };
  if (!std::all_of(plan.reuse_edges.begin(), plan.reuse_edges.end(), is_known))
    out->push_back("a reuse edge is between no two nodes");
  return out->empty();
}

std::vector<std::int32_t> segment_of_nodes(const Plan& plan) {
  std::vector<std::int32_t> segment_of(plan.graph.nodes.size());
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (const NodeId n : plan.segments[s].nodes) segment_of[n] = static_cast<std::int32_t>(s);
  return segment_of;
}

// A stretch of the arena: a value's own bytes, or a node's workspace.
struct Tenant {
  std::int64_t first = 0, end = 0;
  NodeId writer = kNone;        // the first writer
  ValueId value = kNone;        // kNone for workspace
  std::vector<NodeId> users;    // writers and readers, ascending
  std::vector<NodeId> writers;  // the maker; for a joined value the makers of its parts and the join
};

class OrderChecker {
 public:
  OrderChecker(const Plan& plan, Violations* out)
      : plan_(plan),
        g_(plan.graph),
        out_(out),
        owner_(bytes_owner(plan)),
        segment_of_(segment_of_nodes(plan)),
        reach_(plan.segments),
        is_doubtful_(plan.segments.size(), false),
        users_(g_.values.size()),
        writers_(g_.values.size()) {
    for (ValueId v = g_.n_inputs + g_.n_state; v < g_.value_count(); ++v) users_[owner_[v]].push_back(g_.values[v].node);
    for (ValueId v = g_.n_inputs + g_.n_state; v < g_.value_count(); ++v)  // ascending, as values are
      if (plan.values[v].reason != Reason::alias) writers_[owner_[v]].push_back(g_.values[v].node);
    for (NodeId n = 0; n < g_.node_count(); ++n)
      for (ValueId v : g_.inputs(g_.nodes[n])) users_[owner_[v]].push_back(n);
    for (auto& list : users_) keep_last_of_segments(&list);
    find_tenants();
  }

  // The first look goes over everything by the short search for paths. The second look takes the open questions, a bounded
  // number of segments at a time.
  void check() {
    check_all();
    std::vector<std::int32_t> doubtful;
    for (std::size_t s = 0; s < is_doubtful_.size(); ++s)
      if (is_doubtful_[s]) doubtful.push_back(static_cast<std::int32_t>(s));
    is_exact_ = true;
    for (std::span<const std::int32_t> left = doubtful; !left.empty() && more();) {
      const std::size_t now = std::min(left.size(), reach_.width());
      reach_.cover(left.first(now));
      check_all();
      left = left.subspan(now);
    }
  }

 private:
  bool more() const { return out_->size() < kMostViolations; }

  void check_all() {
    check_dependences();
    check_states();
    check_overlaps();
  }

  // Of the users in one segment only the last matters: the others are ordered before every node that the last is ordered
  // before.
  void keep_last_of_segments(std::vector<NodeId>* users) const {
    const auto later_first = [&](NodeId a, NodeId b) {
      const std::int32_t sa = segment_of_[a], sb = segment_of_[b];
      return sa != sb ? sa < sb : a > b;
    };
    std::sort(users->begin(), users->end(), later_first);
    const auto same = [&](NodeId a, NodeId b) { return segment_of_[a] == segment_of_[b]; };
    users->erase(std::unique(users->begin(), users->end(), same), users->end());
    std::sort(users->begin(), users->end());
  }

  // False only if it is certain. A doubtful pair is noted and called ordered until it is looked at exactly.
  bool ordered(NodeId before, NodeId after) {
    const std::int32_t from = segment_of_[before], to = segment_of_[after];
    if (is_exact_) return !reach_.covers(from) || (from == to ? before < after : reach_.has_path(from, to));
    const bool is_proven = from == to ? before < after : reach_.finds_path(from, to);
    if (!is_proven) is_doubtful_[from] = true;
    return true;
  }

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
    for (const Edge& e : plan_.reuse_edges)
      if (!ordered(e.before, e.after)) return out_->push_back("a reuse edge is not in the segment DAG");
  }

  // Constants are copied before a run, and the run only reads them.
  bool is_constant(NodeId n) const {
    return g_.literal(g_.nodes[n]) && plan_.values[g_.nodes[n].first_output].where == Where::constant;
  }

  // Calls of the host keep the order of the program.
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

  // A value gets bytes only from a value whose users are done.
  void check_overlaps() {
    for (const auto& [earlier, later] : pairs_) {
      if (!more()) return;
      check_pair(tenants_[earlier], tenants_[later]);
    }
  }

  // `later` writes bytes that `earlier` holds. All users of `earlier` must be done before any writer of `later`, except the
  // writer itself if it computes in place.
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
  std::vector<std::int32_t> segment_of_;  // by node
  Reach reach_;
  std::vector<bool> is_doubtful_;             // by segment: the short search did not find a path that was asked for
  bool is_exact_ = false;                     // every answer comes from the paths of the covered segments
  std::vector<std::vector<NodeId>> users_;    // by owner: the nodes that make and read it, its windows and its parts
  std::vector<std::vector<NodeId>> writers_;  // by owner: the nodes that make it and its parts
  std::vector<Tenant> tenants_;
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs_;  // of tenants: the second has the bytes next after the first
};

}  // namespace

void check_order(const Plan& plan, Violations* out) {
  if (check_segments(plan, out)) OrderChecker(plan, out).check();
}

}  // namespace tapedeck
