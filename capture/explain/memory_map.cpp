// Makes the boxes of a plan. External values get one box each through the whole step; a value of the arena gets the box of its
// placement; a chain of values that hand on the same bytes becomes boxes that follow each other in one buffer.
#include <tapedeck/capture/explain/memory_map.h>

#include <tapedeck/capture/plan/byte_owners.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

const char* memory_role_name(MemoryRole role) {
  constexpr const char* names[] = {"parameter/state", "input",    "constant",  "output",   "saved",
                                   "recomputed",      "gradient", "temporary", "workspace"};
  return names[static_cast<int>(role)];
}

std::uint32_t memory_role_colour(MemoryRole role) {
  constexpr std::uint32_t colours[] = {0x2662a8, 0x60bef0, 0xced2d8, 0xf5e85c, 0xe89814,
                                       0xe27abe, 0x0a9676, 0x788296, 0x444a58};
  return colours[static_cast<int>(role)];
}

namespace {

class MapMaker {
 public:
  explicit MapMaker(const Plan& plan)
      : plan_(plan),
        g_(plan.graph),
        owner_(byte_owners(plan)),
        first_(plan.values.size()),
        last_(plan.values.size()),
        saved_(plan.values.size()) {}

  MemoryMap make() {
    find_lifetimes();
    end_where_bytes_change_hands();
    add_externals();
    add_arena();
    add_workspaces();
    return std::move(map_);
  }

 private:
  ValueId end() const { return g_.value_count(); }
  bool owns(ValueId v) const { return owner_[v] == v && plan_.values[v].where == Where::arena; }

  void find_lifetimes() {
    for (ValueId v = 0; v < end(); ++v) first_[v] = last_[v] = std::max(plan_.values[v].birth, 0);
    for (ValueId v = 0; v < end(); ++v) {
      const Placement& p = plan_.values[v];
      if (memory_role(plan_, v) == MemoryRole::saved) saved_[owner_[v]] = 1;
      NodeId& last = last_[owner_[v]];
      last = std::max({last, std::min(p.death, g_.node_count() - 1), p.birth});
    }
  }

  // A taken-over operand ends before its heir begins.
  void end_where_bytes_change_hands() {
    for (ValueId v = 0; v < end(); ++v) {
      const Placement& p = plan_.values[v];
      if (!owns(v) || p.reason != Reason::in_place) continue;
      const ValueId other = owner_[p.other];
      if (owns(other)) last_[other] = std::min(last_[other], first_[v] - 1);
    }
  }

  // In the order of slots; each at its first value, since several may name one buffer.
  void add_externals() {
    std::vector<MemoryBox> found;
    std::vector<char> seen[4];
    const auto index = [](Where where) {
      return where == Where::state ? 0 : where == Where::input ? 1 : where == Where::constant ? 2 : 3;
    };
    for (ValueId v = 0; v < end(); ++v) {
      const Placement& p = plan_.values[v];
      if (owner_[v] != v || p.where == Where::arena || p.where == Where::nowhere || p.slot < 0) continue;
      std::vector<char>& slots = seen[index(p.where)];
      if (static_cast<std::size_t>(p.slot) >= slots.size()) slots.resize(static_cast<std::size_t>(p.slot) + 1);
      if (std::exchange(slots[p.slot], 1) || g_.values[v].type.bytes() == 0) continue;
      found.push_back({v, g_.values[v].node, p.where, p.slot, memory_role(plan_, v), 0, g_.values[v].type.bytes(), 0,
                       std::max(g_.node_count() - 1, 0), kNone});
    }
    std::stable_sort(found.begin(), found.end(),
                     [&](const MemoryBox& a, const MemoryBox& b) { return index(a.where) < index(b.where); });
    std::int64_t offset = 0;
    for (MemoryBox& box : found) {
      box.offset = offset;
      offset += box.bytes;
    }
    map_.external = std::move(found);
  }

  void add_arena() {
    std::vector<std::int32_t> buffer(g_.values.size(), kNone);
    for (ValueId v = 0; v < end(); ++v) {
      const Placement& p = plan_.values[v];
      if (!owns(v) || g_.values[v].type.bytes() == 0) continue;
      const bool heir = p.reason == Reason::in_place && owns(owner_[p.other]);  // of an earlier value, so its number is known
      const std::int32_t n = buffer[v] = heir ? buffer[owner_[p.other]] : map_.buffers++;
      if (last_[v] < first_[v]) continue;  // handed on where it is made: the heir's box stands for both
      const MemoryRole role = memory_role(plan_, v);
      map_.arena.push_back({v, g_.values[v].node, Where::arena, kNone,
                            role == MemoryRole::temporary && saved_[v] ? MemoryRole::saved : role, plan_.values[v].offset,
                            g_.values[v].type.bytes(), first_[v], last_[v], n});
    }
    std::stable_sort(map_.arena.begin(), map_.arena.end(),
                     [](const MemoryBox& a, const MemoryBox& b) { return a.first < b.first; });
  }

  void add_workspaces() {
    for (NodeId n = 0; n < g_.node_count(); ++n)
      if (const Scratch& s = plan_.workspace[n]; s.bytes > 0)
        map_.arena.push_back({kNone, n, Where::arena, kNone, MemoryRole::workspace, s.offset, s.bytes, n, n, map_.buffers++});
  }

  const Plan& plan_;
  const Graph& g_;
  std::vector<ValueId> owner_;        // by value: whose bytes it looks at, or is a part of
  std::vector<NodeId> first_, last_;  // by owner
  std::vector<char> saved_;           // by owner: backward reads it, or a window on it
  MemoryMap map_;
};

}  // namespace

MemoryMap map_memory(const Plan& plan) { return MapMaker(plan).make(); }

MemoryRole memory_role(const Plan& plan, ValueId v) {
  const Placement& p = plan.values[v];
  switch (p.where) {
    case Where::input:
      return MemoryRole::input;
    case Where::state:
      return MemoryRole::state;
    case Where::constant:
      return MemoryRole::constant;
    case Where::output:
      return MemoryRole::output;
    case Where::arena:
    case Where::nowhere:
      break;
  }
  if (p.reason == Reason::saved) return MemoryRole::saved;
  if (p.reason == Reason::recomputed) return MemoryRole::recomputed;
  if (p.reason == Reason::gradient) return MemoryRole::gradient;
  const NodeId n = plan.graph.values[v].node;
  if (n == kNone) return MemoryRole::temporary;
  const Origin& origin = plan.graph.nodes[n].origin;
  if (origin.clone) return MemoryRole::recomputed;
  if (origin.phase == Phase::backward) return MemoryRole::gradient;
  const bool read_by_backward = p.reader >= 0 && p.reader < plan.graph.node_count() &&
                                plan.graph.nodes[p.reader].origin.phase == Phase::backward &&
                                !plan.graph.nodes[p.reader].origin.clone;
  return origin.phase == Phase::forward && read_by_backward ? MemoryRole::saved : MemoryRole::temporary;
}

std::string box_name(const Plan& plan, const MemoryBox& box) {
  if (box.value != kNone) return "%" + plan.graph.value_name(box.value);
  return "workspace of `" + plan.graph.node_text(box.node) + "`";
}

}  // namespace tapedeck
