// A slow and simple judge of plans. It runs a plan on simulated memory in which every byte remembers the value that was
// written there last, and checks that every reader finds the values it reads. It does not use lifetimes.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <map>
#include <random>
#include <string>
#include <utility>
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
      if (plan_.graph.values[u.value].type.bytes() > 0 &&
          *byte(Where::state, buffer_of(Where::state, u.state - plan_.graph.n_inputs), 0) != content(u.value))
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

  // The bytes of one buffer, by the value that was written to each last. A buffer outside of the arena grows as it is used.
  using Bytes = std::vector<ValueId>;
  Bytes& buffer_of(Where where, std::int32_t slot) {
    return where == Where::arena ? arena_ : others_[{static_cast<int>(where), slot}];
  }
  static ValueId* byte(Where where, Bytes& buffer, std::int64_t at) {
    if (at < 0) return nullptr;
    if (at >= static_cast<std::int64_t>(buffer.size())) {
      if (where == Where::arena) return nullptr;
      buffer.resize(static_cast<std::size_t>(at) + 1, kNone);
    }
    return &buffer[static_cast<std::size_t>(at)];
  }

  template <class Visit>
  void each_byte(ValueId v, Visit visit) {
    const Placement& p = plan_.values[v];
    const Type& type = plan_.graph.values[v].type;
    Bytes& buffer = buffer_of(p.where, p.slot);
    const auto size = static_cast<std::int64_t>(dtype_size(type.dtype));
    const std::int64_t numel = type.numel();
    std::vector<std::int64_t> index(static_cast<std::size_t>(type.shape.rank), 0);
    for (std::int64_t i = 0; i < numel; ++i) {
      std::int64_t element = 0;
      for (int d = 0; d < type.shape.rank && !p.dense; ++d) element += index[d] * p.strides[d];
      if (p.dense) element = i;
      for (std::int64_t b = 0; b < size; ++b) {
        ValueId* at = byte(p.where, buffer, p.offset + element * size + b);
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
      if (*at != v && !is_part(*at, v)) *at = v;
    });
  }
  // The reader is a text, or a node with what it has done before.
  void read(ValueId v, const char* reader, NodeId node = kNone) {
    const ValueId wanted = content(v);
    each_byte(v, [&](ValueId* at) {
      if (*at != wanted && !is_part(*at, wanted))
        complain((node == kNone ? "" : plan_.graph.node_text(node)) + reader + " does not find %" + plan_.graph.value_name(v));
    });
  }

  void run_node(NodeId n) {
    const Node& node = plan_.graph.nodes[n];
    if (plan_.graph.literal(node)) return;
    for (ValueId v : plan_.graph.inputs(node)) read(v, "", n);
    const Scratch& scratch = plan_.workspace[n];
    for (std::int64_t b = 0; b < scratch.bytes; ++b) *byte(Where::arena, arena_, scratch.offset + b) = kNone;
    if (scratch.bytes > 0)
      for (ValueId v : plan_.graph.inputs(node)) read(v, " after clearing its workspace", n);
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      if (plan_.values[v].reason != Reason::alias) write(v);
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) read(v, "its own maker");
  }

  const Plan& plan_;
  Bytes arena_;
  std::map<std::pair<int, std::int32_t>, Bytes> others_;  // by kind and slot
  std::string complaint_;
};

}  // namespace tapedeck::test
