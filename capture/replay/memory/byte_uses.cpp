#include <tapedeck/capture/replay/memory/byte_uses.h>

#include <tapedeck/capture/plan/byte_owners.h>

#include <algorithm>

namespace tapedeck::replay {

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

NodeId ByteUses::reader_of_used_state(std::int32_t slot) const {
  const Graph& g = plan_.graph;
  const auto lies_there = [&](ValueId v) {
    const Placement& p = plan_.values[owner_[v]];
    return p.where == Where::state && p.slot == slot;
  };
  NodeId reader = kNone;
  bool used = false;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    if (!called_[n]) continue;
    const auto operands = g.inputs(g.nodes[n]);
    const bool reads = std::any_of(operands.begin(), operands.end(), lies_there);
    bool uses = reads;
    for (std::int32_t k = 0; k < g.nodes[n].n_outputs; ++k) uses |= lies_there(g.nodes[n].first_output + k);
    if (progress_.has_run(n))
      used |= uses;
    else if (reads && reader == kNone)
      reader = n;
  }
  return used ? reader : kNone;
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

}  // namespace tapedeck::replay
