// Finds the edges in three passes: takeovers in place, updated states, and bytes of the arena that several values hold one
// after the other. The third pass walks the values by birth and keeps, for each stretch of the arena, its last holder:
//
//     bytes 0..4096:  %a until node 1 (reads it)  -->  %b from node 2      edge 1 -> 2, unless an operand implies it
#include <tapedeck/capture/planner/layout/reuse_edges.h>

#include <algorithm>
#include <map>

namespace tapedeck {

namespace {

// The last holder of a stretch of the arena: a value's bytes or a node's workspace.
struct Tenant {
  std::int64_t first = 0, end = 0;  // bytes of the arena
  NodeId birth = kNone;
  std::vector<NodeId> writers;  // the nodes that must wait for the holders before: the maker, or the makers of parts
  std::vector<NodeId> users;    // the nodes that must be done before the bytes are given away
};

class ReuseFinder {
 public:
  ReuseFinder(const Graph& graph, const Layout& layout) : graph_(graph), layout_(layout), readers_(graph.values.size()) {
    for (NodeId n = 0; n < graph.node_count(); ++n) {
      for (ValueId v : graph.inputs(graph.nodes[n])) {
        std::vector<NodeId>& list = readers_[layout.root[v]];
        if (list.empty() || list.back() != n) list.push_back(n);
      }
    }
  }

  std::vector<Edge> find() {
    order_takeovers();
    order_updates();
    order_tenants();
    return take();
  }

  std::vector<Edge> find_of_updates() {
    order_updates();
    return take();
  }

 private:
  std::vector<Edge> take() {
    std::sort(edges_.begin(), edges_.end(),
              [](const Edge& a, const Edge& b) { return a.before != b.before ? a.before < b.before : a.after < b.after; });
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    return std::move(edges_);
  }

  void add(NodeId before, NodeId after) {
    if (before == after || follows_anyway(before, after)) return;
    edges_.push_back({before, after});
  }

  bool follows_anyway(NodeId before, NodeId after) const {
    const Node& node = graph_.nodes[after];
    const auto made_by_before = [&](ValueId v) { return graph_.values[v].node == before; };
    const auto operands = graph_.inputs(node), order = graph_.after(node);
    return std::any_of(operands.begin(), operands.end(), made_by_before) ||
           std::any_of(order.begin(), order.end(), made_by_before);
  }

  void order_takeovers() {
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      if (layout_.values[v].reason != Reason::in_place) continue;
      for (NodeId reader : readers_[layout_.root[layout_.values[v].other]]) add(reader, graph_.values[v].node);
    }
  }

  void order_updates() {
    for (const Update& u : graph_.updates)
      for (NodeId reader : readers_[u.state]) add(reader, graph_.values[u.value].node);
  }

  // A value whose bytes were taken over hands them on to its heir: the buffer's users are those of the last heir.
  std::vector<Tenant> find_tenants() const {
    std::vector<Tenant> tenants;
    std::vector<std::int32_t> tenant_of(graph_.values.size(), kNone);
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      const Placement& p = layout_.values[v];
      const std::int64_t bytes = graph_.values[v].type.bytes();
      if (p.where != Where::arena || layout_.root[v] != v || bytes == 0) continue;
      if (p.reason == Reason::in_place) {
        tenant_of[v] = tenant_of[layout_.root[p.other]];
      } else {
        tenant_of[v] = static_cast<std::int32_t>(tenants.size());
        tenants.push_back({p.offset, p.offset + bytes, p.birth, {graph_.values[v].node}, {}});
      }
      tenants[tenant_of[v]].users = readers_[v].empty() ? std::vector<NodeId>{graph_.values[v].node} : readers_[v];
    }
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      const Placement& p = layout_.values[v];
      if (p.where == Where::arena && p.reason == Reason::part) tenants[tenant_of[layout_.root[v]]].writers.push_back(p.birth);
    }
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      const Scratch& s = layout_.workspace[n];
      if (s.bytes > 0) tenants.push_back({s.offset, s.offset + s.bytes, n, {n}, {n}});
    }
    std::stable_sort(tenants.begin(), tenants.end(), [](const Tenant& a, const Tenant& b) { return a.birth < b.birth; });
    return tenants;
  }

  // Tenants in order of birth; `held` maps the start of each stretch of the arena to its end and its latest tenant.
  void order_tenants() {
    const std::vector<Tenant> tenants = find_tenants();
    std::map<std::int64_t, std::pair<std::int64_t, std::int32_t>> held;
    for (std::int32_t t = 0; t < static_cast<std::int32_t>(tenants.size()); ++t) {
      const Tenant& tenant = tenants[t];
      std::int32_t last_seen = kNone;
      auto it = held.upper_bound(tenant.first);
      if (it != held.begin() && std::prev(it)->second.first > tenant.first) --it;
      while (it != held.end() && it->first < tenant.end) {
        const std::int64_t start = it->first, end = it->second.first;
        const std::int32_t before = it->second.second;
        if (before != last_seen)
          for (NodeId user : tenants[before].users)
            for (NodeId writer : tenant.writers) add(user, writer);
        last_seen = before;
        it = held.erase(it);
        if (start < tenant.first) held[start] = {tenant.first, before};
        if (end > tenant.end) it = held.emplace(tenant.end, std::pair(end, before)).first;
      }
      held[tenant.first] = {tenant.end, t};
    }
  }

  const Graph& graph_;
  const Layout& layout_;
  std::vector<std::vector<NodeId>> readers_;  // by root: readers of it and of its windows
  std::vector<Edge> edges_;
};

}  // namespace

std::vector<Edge> find_reuse_edges(const Graph& graph, const Layout& layout) { return ReuseFinder(graph, layout).find(); }
std::vector<Edge> find_update_edges(const Graph& graph, const Layout& layout) {
  return ReuseFinder(graph, layout).find_of_updates();
}

}  // namespace tapedeck
