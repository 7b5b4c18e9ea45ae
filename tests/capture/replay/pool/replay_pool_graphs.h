// Graphs for the tests of pools. They share one set of weights. expected_peak() computes the bytes that a pool of their
// plans needs.
#pragma once

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/engine/text/text.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tapedeck {

inline std::shared_ptr<ReplayPool> new_pool() { return std::make_shared<ReplayPool>(); }

// A net whose arena grows with `batch`. All nets share the weights %w and %b.
inline Graph net(const char* name, int batch, bool train) {
  std::string text =
      "graph " + std::string(name) + "(%x: f32[" + std::to_string(batch) + ",16]) state(%w: f32[16,16], %b: f32[16]) {\n";
  const std::string wide = "f32[" + std::to_string(batch) + ",16]";
  text += "  %h: " + wide + " = matmul(%x, %w)\n  %z: " + wide + " = add(%h, %b)\n  %y: " + wide + " = tanh(%z)\n";
  text += "  %v: " + wide + " = matmul(%y, %w)\n  %s: f32[16] = sum(%v) {axes=[0]}\n";
  if (train) {
    text += "  %xt: f32[16," + std::to_string(batch) + "] = transpose(%x) {axes=[1,0]}\n  %g: f32[16,16] = matmul(%xt, %y)\n";
    text +=
        "  %t: f32[16,16] = tanh(%g)\n  %w2: f32[16,16] = add(%w, %t)\n  %u: f32[16] = tanh(%s)\n  %b2: f32[16] = add(%b, "
        "%u)\n";
  }
  return parse(text + "  return %s\n" + (train ? "  update %w = %w2, %b = %b2\n" : "") + "}");
}

inline Tensor value(const char* name, const Type& type, std::uint64_t seed = 1) { return default_value(type, seed, name); }
inline Tensor copied(const Tensor& t) { return from_bytes(t.type(), t.data()); }
inline Type f32(const Shape& shape) { return {DType::f32, shape}; }

// The bytes of a pool of these plans, computed from the definition.
inline std::int64_t expected_peak(const std::vector<Plan>& plans) {
  std::int64_t arena = 0, own = 0, state = 0;
  std::set<std::string> seen;
  for (const Plan& p : plans) {
    arena = std::max(arena, p.arena_bytes);
    own += p.external_bytes;
    for (ValueId v = p.graph.n_inputs; v < p.graph.n_inputs + p.graph.n_state; ++v) {
      const std::int64_t bytes = p.graph.values[v].type.bytes();
      own -= bytes;
      if (seen.insert(p.graph.value_name(v)).second) state += bytes;
    }
  }
  return arena + own + state;
}

inline void set_weights(Executor& member) {
  member.set_state("w", value("w", f32({16, 16})));
  member.set_state("b", value("b", f32({16})));
}

}  // namespace tapedeck
