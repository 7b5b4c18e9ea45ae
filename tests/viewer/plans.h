// Makes random plans by hand, without the planner: values are placed first-fit, and a slow loop counts the curve of live
// bytes.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::viewer {

inline const Op& made_op() {
  static const Op op = [] {
    Op o;
    o.name = "made";
    o.doc = "stands for anything";
    return o;
  }();
  return op;
}

inline Type bytes_type(std::int64_t bytes) { return Type{DType::u8, Shape{bytes}}; }

// A plan, and facts about its values that tests compare with the model.
struct MadePlan {
  Plan plan;
  std::vector<ValueId> holder;      // the value whose bytes each value uses; itself if it has its own
  std::vector<std::int64_t> curve;  // live bytes, counted node by node from holders and lifetimes
};

// A program of `n` nodes, half forward and half backward, with windows, in-place results, clones, workspace and state.
inline MadePlan make_random_plan(unsigned seed, NodeId n) {
  std::mt19937 random(seed);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  MadePlan made;
  Plan& plan = made.plan;
  Graph& g = plan.graph;
  g.name = "made";
  g.add_input("x", bytes_type(1000));
  g.add_state("w", bytes_type(5000), Role::parameter);
  for (NodeId i = 0; i < n; ++i) {
    const ValueId known = g.value_count();
    std::vector<ValueId> inputs{static_cast<ValueId>(known - 1 - below(std::min(known, 12)))};
    if (below(2) == 0) inputs.push_back(below(known));
    Origin origin;
    origin.phase = i < n / 2 ? Phase::forward : Phase::backward;
    origin.clone = i > n / 2 && below(5) == 0;
    if (origin.clone) origin.of = g.value_name(below(known));
    const std::vector<Type> outputs{bytes_type(64 * (1 + below(100)))};
    g.add_node(made_op(), inputs, nullptr, outputs, origin);
    if (below(3) > 0) g.values.back().name = "v" + std::to_string(i);
  }
  const auto values = static_cast<std::size_t>(g.value_count());
  plan.values.resize(values);
  plan.workspace.resize(static_cast<std::size_t>(n));
  made.holder.resize(values);
  std::vector<NodeId> last_reader(values, kNone);
  for (NodeId i = 0; i < n; ++i)
    for (ValueId operand : g.inputs(g.nodes[i])) last_reader[operand] = i;
  std::vector<char> shares_bytes(values, 0);  // another value uses the bytes of this one
  for (std::size_t v = 0; v < values; ++v) {
    Placement& p = plan.values[v];
    made.holder[v] = static_cast<ValueId>(v);
    p.birth = g.values[v].node;
    p.death = p.birth;
    if (last_reader[v] != kNone) p.death = p.reader = last_reader[v];
    if (g.is_input(static_cast<ValueId>(v)) || g.is_state(static_cast<ValueId>(v))) {
      const bool input = g.is_input(static_cast<ValueId>(v));
      p.where = input ? Where::input : Where::state;
      p.reason = input ? Reason::input : Reason::state;
      p.slot = 0;
      p.death = n;
      continue;
    }
    p.where = Where::arena;
    const Origin& origin = g.nodes[p.birth].origin;
    const bool late = p.reader != kNone && g.nodes[p.reader].origin.phase == Phase::backward;
    p.reason = origin.clone                      ? Reason::recomputed
               : origin.phase == Phase::backward ? Reason::gradient
               : late                            ? Reason::saved
                                                 : Reason::temporary;
    // Some values use the bytes of their first operand: as a window, or in place if this is the operand's last reader.
    const ValueId operand = g.inputs(g.nodes[p.birth])[0];
    const Placement& from = plan.values[operand];
    if (from.where != Where::arena) continue;
    const std::int64_t operand_bytes = g.values[operand].type.bytes();
    const bool windowed = from.reason == Reason::alias || shares_bytes[operand];
    if (below(4) == 0 && from.reason != Reason::in_place) {
      g.values[v].type = bytes_type(std::max<std::int64_t>(64, operand_bytes / 2));
      p.reason = Reason::alias;
    } else if (below(3) == 0 && !windowed && from.death == p.birth) {
      g.values[v].type = bytes_type(operand_bytes);
      p.reason = Reason::in_place;
    } else {
      continue;
    }
    if (p.reason == Reason::alias && g.values[v].type.bytes() > operand_bytes) g.values[v].type = bytes_type(operand_bytes);
    p.other = operand;
    shares_bytes[operand] = 1;
    made.holder[v] = made.holder[operand];
  }
  // If a value computed in place overwrites bytes that a window still shows, the value gets bytes of its own.
  for (std::size_t v = 0; v < values; ++v) {
    if (plan.values[v].reason != Reason::in_place) continue;
    for (std::size_t u = 0; u < values; ++u)
      if (u != v && made.holder[u] == made.holder[v] && plan.values[u].reason == Reason::alias &&
          plan.values[u].death >= plan.values[v].birth && plan.values[u].birth < plan.values[v].birth) {
        plan.values[v].reason = Reason::gradient;
        plan.values[v].other = kNone;
        // Finds the holder of every value anew.
        for (std::size_t w = 0; w < values; ++w) {
          ValueId root = static_cast<ValueId>(w);
          while (plan.values[root].other != kNone) root = plan.values[root].other;
          made.holder[w] = root;
        }
        break;
      }
  }
  struct Storage {
    std::int64_t bytes = 0, offset = 0;
    NodeId birth = 0, death = -1;
  };
  std::vector<Storage> storages(values);
  for (std::size_t v = 0; v < values; ++v) {
    if (plan.values[v].where != Where::arena) continue;
    Storage& s = storages[made.holder[v]];
    if (s.bytes == 0) s = {g.values[v].type.bytes(), 0, plan.values[v].birth, plan.values[v].death};
    s.death = std::max(s.death, plan.values[v].death);
  }
  for (std::size_t s = 0; s < values; ++s) {
    if (storages[s].bytes == 0) continue;
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t o = 0; o < s; ++o) {
        Storage& a = storages[s];
        const Storage& b = storages[o];
        if (b.bytes == 0 || a.death < b.birth || b.death < a.birth || a.offset + a.bytes <= b.offset ||
            b.offset + b.bytes <= a.offset)
          continue;
        a.offset = b.offset + b.bytes;
        moved = true;
      }
    }
    plan.arena_bytes = std::max(plan.arena_bytes, storages[s].offset + storages[s].bytes);
  }
  for (std::size_t v = 0; v < values; ++v)
    if (plan.values[v].where == Where::arena) plan.values[v].offset = storages[made.holder[v]].offset;
  plan.external_bytes = 6000;
  for (NodeId i = 0; i < n; ++i) {
    std::int64_t live = plan.external_bytes, top = 0;
    for (const Storage& s : storages) {
      if (s.bytes == 0 || i < s.birth || i > s.death) continue;
      live += s.bytes;
      top = std::max(top, s.offset + s.bytes);
    }
    if (below(6) == 0) {
      plan.workspace[i] = {top, 640};
      plan.arena_bytes = std::max(plan.arena_bytes, top + 640);
      live += 640;
    }
    made.curve.push_back(live);
  }
  plan.peak_bytes = plan.keep_all_peak_bytes = plan.external_bytes + plan.arena_bytes;
  plan.lower_bound_bytes = made.curve.empty() ? plan.external_bytes : *std::max_element(made.curve.begin(), made.curve.end());
  plan.floor_bytes = plan.lower_bound_bytes;
  plan.nodes = n;
  return made;
}

// The text of a graph that resembles a training step of `layers` layers: backward reads forward's values in reverse order.
inline std::string training_graph(int layers) {
  std::string inputs, state, forward, backward, updates;
  const auto s = [](int i) { return std::to_string(i); };
  for (int i = 0; i < layers; ++i) {
    state += (i ? ", " : "") + ("%w" + s(i)) + ": f32[64,64]";
    forward +=
        "  %h" + s(i + 1) + ": f32[256,64] = opaque(%h" + s(i) + ", %w" + s(i) + ") {us=100.0} [path=\"layer" + s(i) + "\"]\n";
  }
  for (int i = layers - 1; i >= 0; --i) {
    const std::string notes = " [phase=backward, twin=%h" + s(i + 1) + ", path=\"layer" + s(i) + "\"]\n";
    backward += "  %dw" + s(i) + ": f32[64,64] = opaque(%d" + s(i + 1) + ", %h" + s(i) + ") {us=100.0}" + notes;
    backward +=
        "  %d" + s(i) + ": f32[256,64] = opaque(%d" + s(i + 1) + ", %h" + s(i + 1) + ", %w" + s(i) + ") {us=100.0}" + notes;
    backward += "  %u" + s(i) + ": f32[64,64] = opaque(%w" + s(i) + ", %dw" + s(i) + ") {us=5.0} [phase=update]\n";
    updates += (updates.empty() ? "%w" : ", %w") + s(i) + " = %u" + s(i);
  }
  return "graph step(%h0: f32[256,64]) state(" + state + ") {\n" + forward + "  %d" + s(layers) + ": f32[256,64] = opaque(%h" +
         s(layers) + ") {us=20.0}\n" + backward + "  return %h" + s(layers) + "\n  update " + updates + "\n}\n";
}

}  // namespace tapedeck::viewer
