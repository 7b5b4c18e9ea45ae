// A slow and simple judge of plans. It runs a plan on simulated memory in which every byte remembers the value that was
// written there last, and checks that every reader finds the values it reads. It does not use lifetimes.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace tapedeck::test {

class ByteSimulation {
 public:
  explicit ByteSimulation(const Plan& plan) : plan_(plan), arena_(static_cast<std::size_t>(plan.arena_bytes), kNone) {}

  // Runs the segments in a random order that their DAG allows. Returns the first complaint, or "".
  std::string run(unsigned seed) {
    std::mt19937 random(seed);
    for (ValueId v = 0; v < plan_.graph.n_inputs + plan_.graph.n_state; ++v) write(v);
    for (const Node& node : plan_.graph.nodes)
      if (plan_.graph.literal(node)) write(node.first_output);  // a constant is copied once, before any run
    std::vector<std::int32_t> waits, ready;
    for (std::size_t s = 0; s < plan_.segments.size(); ++s) {
      waits.push_back(plan_.segments[s].n_predecessors);
      if (waits.back() == 0) ready.push_back(static_cast<std::int32_t>(s));
    }
    std::size_t done = 0;
    for (; !ready.empty(); ++done) {
      std::swap(ready[random() % ready.size()], ready.back());
      const Segment& segment = plan_.segments[ready.back()];
      ready.pop_back();
      for (NodeId n : segment.nodes) run_node(n);
      for (std::int32_t next : segment.successors)
        if (--waits[next] == 0) ready.push_back(next);
    }
    if (done != plan_.segments.size()) complain("the segments wait for each other");
    for (ValueId v : plan_.graph.outputs) read(v, "return");
    for (const Update& u : plan_.graph.updates)
      if (*byte(Where::state, u.state - plan_.graph.n_inputs, 0) != content(u.value) &&
          plan_.graph.values[u.value].type.bytes() > 0)
        complain("a state is not updated");
    return complaint_;
  }

 private:
  void complain(const std::string& text) {
    if (complaint_.empty()) complaint_ = text;
  }

  // The value whose bytes a reader of v must find. A window holds the bytes of its base.
  ValueId content(ValueId v) const {
    while (plan_.values[v].reason == Reason::alias) v = plan_.values[v].other;
    return v;
  }

  ValueId* byte(Where where, std::int32_t slot, std::int64_t at) {
    if (where != Where::arena) return &others_.try_emplace({static_cast<int>(where), slot, at}, kNone).first->second;
    return at >= 0 && at < static_cast<std::int64_t>(arena_.size()) ? &arena_[at] : nullptr;
  }

  template <class Visit>
  void each_byte(ValueId v, Visit visit) {
    const Placement& p = plan_.values[v];
    const Type& type = plan_.graph.values[v].type;
    std::vector<std::int64_t> index(static_cast<std::size_t>(type.shape.rank), 0);
    for (std::int64_t i = 0; i < type.numel(); ++i) {
      std::int64_t element = 0;
      for (int d = 0; d < type.shape.rank; ++d) element += index[d] * p.strides[d];
      if (p.dense) element = i;
      const auto size = static_cast<std::int64_t>(dtype_size(type.dtype));
      for (std::int64_t b = 0; b < size; ++b) {
        ValueId* at = byte(p.where, p.slot, p.offset + element * size + b);
        if (!at) return complain("%" + plan_.graph.value_name(v) + " is outside its buffer");
        visit(at);
      }
      for (int d = type.shape.rank - 1; d >= 0 && ++index[d] == type.shape[d]; --d) index[d] = 0;
    }
  }

  // True if `writer` is v, a part of v, or a part of such a part.
  bool is_part(ValueId writer, ValueId v) const {
    while (writer != kNone && writer != v)
      writer = plan_.values[writer].reason == Reason::part ? plan_.values[writer].other : kNone;
    return writer == v;
  }

  // A join does not write the bytes of parts that already lie in place.
  void write(ValueId v) {
    each_byte(v, [&](ValueId* at) {
      if (!is_part(*at, v)) *at = v;
    });
  }
  void read(ValueId v, const std::string& reader) {
    const ValueId wanted = content(v);
    each_byte(v, [&](ValueId* at) {
      if (!is_part(*at, wanted)) complain(reader + " does not find %" + plan_.graph.value_name(v));
    });
  }

  void run_node(NodeId n) {
    const Node& node = plan_.graph.nodes[n];
    if (plan_.graph.literal(node)) return;
    for (ValueId v : plan_.graph.inputs(node)) read(v, plan_.graph.node_text(n));
    const Scratch& scratch = plan_.workspace[n];
    for (std::int64_t b = 0; b < scratch.bytes; ++b) *byte(Where::arena, kNone, scratch.offset + b) = kNone;
    for (ValueId v : plan_.graph.inputs(node)) read(v, plan_.graph.node_text(n) + " after clearing its workspace");
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      if (plan_.values[v].reason != Reason::alias) write(v);
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) read(v, "its own maker");
  }

  struct At {
    int where;
    std::int32_t slot;
    std::int64_t offset;
    bool operator<(const At& o) const { return std::tie(where, slot, offset) < std::tie(o.where, o.slot, o.offset); }
  };

  const Plan& plan_;
  std::vector<ValueId> arena_;
  std::map<At, ValueId> others_;
  std::string complaint_;
};

}  // namespace tapedeck::test
