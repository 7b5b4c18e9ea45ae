#include <tapedeck/capture/replay/memory/byte_uses.h>

#include <tapedeck/capture/plan/byte_owners.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tapedeck::replay {

namespace {

// Bytes of one buffer that some nodes have written, as ranges that lie apart.
class WrittenBytes {
 public:
  void add(std::int64_t first, std::int64_t end) {
    if (first >= end) return;
    auto at = ranges_.upper_bound(first);
    if (at != ranges_.begin() && std::prev(at)->second >= first) --at;
    while (at != ranges_.end() && at->first <= end) {
      first = std::min(first, at->first);
      end = std::max(end, at->second);
      at = ranges_.erase(at);
    }
    ranges_[first] = end;
  }
  bool overlaps(std::int64_t first, std::int64_t end) const {
    const auto after = ranges_.lower_bound(end);
    return after != ranges_.begin() && std::prev(after)->second > first;
  }

 private:
  std::map<std::int64_t, std::int64_t> ranges_;  // from the first byte to the end
};

}  // namespace

void ByteUses::prepare() {
  if (!owner_.empty()) return;
  owner_ = byte_owners(plan_);
  called_.resize(plan_.graph.nodes.size());
  for (const Instruction& instruction : program_.instructions) called_[instruction.node] = true;
}

NodeId ByteUses::reader_of_input(std::int32_t input) const {
  const Graph& g = plan_.graph;
  for (NodeId n = 0; n < g.node_count(); ++n)
    for (const ValueId v : g.inputs(g.nodes[n]))
      if (owner_[v] == input && called_[n] && progress_.has_run(n)) return n;
  return kNone;
}

bool ByteUses::uses_state(NodeId n, std::int32_t slot, bool only_reads) const {
  const Graph& g = plan_.graph;
  const auto lies_there = [&](ValueId v) {
    const Placement& p = plan_.values[owner_[v]];
    return p.where == Where::state && p.slot == slot;
  };
  if (!called_[n]) return false;
  const auto operands = g.inputs(g.nodes[n]);
  bool uses = std::any_of(operands.begin(), operands.end(), lies_there);
  for (std::int32_t k = 0; k < g.nodes[n].n_outputs && !only_reads; ++k) uses |= lies_there(g.nodes[n].first_output + k);
  return uses;
}

bool ByteUses::has_used_state(std::int32_t slot) const {
  for (NodeId n = 0; n < plan_.graph.node_count(); ++n)
    if (progress_.has_run(n) && uses_state(n, slot, false)) return true;
  return false;
}

NodeId ByteUses::reader_of_used_state(std::int32_t slot) const {
  if (!has_used_state(slot)) return kNone;
  for (NodeId n = 0; n < plan_.graph.node_count(); ++n)
    if (!progress_.has_run(n) && uses_state(n, slot, true)) return n;
  return kNone;
}

// Nodes that share bytes run in the order of their numbers.
NodeId ByteUses::overwriter(ValueId v) const {
  const Graph& g = plan_.graph;
  const ValueId own = owner_[v];
  const Placement& p = plan_.values[own];
  const std::int64_t end = p.offset + g.values[own].type.bytes();
  const auto overlaps = [&](std::int64_t offset, std::int64_t bytes) {
    return bytes > 0 && offset < end && p.offset < offset + bytes;
  };
  for (NodeId n = g.values[own].node + 1; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    bool writes = p.where == Where::arena && overlaps(plan_.workspace[n].offset, plan_.workspace[n].bytes);
    for (ValueId w = node.first_output; w < node.first_output + node.n_outputs; ++w) {
      const ValueId whole = owner_[w];  // an operand that lies in place spoils the bytes where the joined value will be
      const Placement& q = plan_.values[whole];
      if (plan_.values[w].reason == Reason::alias || whole == own || q.where != p.where || q.slot != p.slot) continue;
      writes |= overlaps(q.offset, g.values[whole].type.bytes());
    }
    if (writes && progress_.has_run(n)) return n;
  }
  return kNone;
}

// Goes from the last node to the first, and collects the bytes that later nodes have written.
std::vector<bool> ByteUses::intact() const {
  const Graph& g = plan_.graph;
  std::vector<bool> intact(g.values.size(), true);
  std::map<std::pair<Where, std::int32_t>, WrittenBytes> later;
  const auto ask = [&](ValueId v) {
    const Placement& p = plan_.values[v];
    if (owner_[v] == v) intact[v] = !later[{p.where, p.slot}].overlaps(p.offset, p.offset + g.values[v].type.bytes());
  };
  for (NodeId n = g.node_count() - 1; n >= 0; --n) {
    const Node& node = g.nodes[n];
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) ask(v);
    if (!progress_.has_run(n)) continue;
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
      const Placement& p = plan_.values[owner_[v]];
      if (plan_.values[v].reason != Reason::alias)
        later[{p.where, p.slot}].add(p.offset, p.offset + g.values[owner_[v]].type.bytes());
    }
    const Scratch& workspace = plan_.workspace[n];
    later[{Where::arena, kNone}].add(workspace.offset, workspace.offset + workspace.bytes);
  }
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) ask(v);
  return intact;
}

}  // namespace tapedeck::replay
