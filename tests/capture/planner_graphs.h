// Graphs for tests of the planner: chains, and random programs with all features that make planning hard.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/text/text.h>

#include <random>
#include <string>
#include <vector>

namespace tapedeck::test {

// A training step of `layers` equal layers: a_i = f(a_i-1), then g_i-1 = b(g_i, a_i).
inline Graph chain(int layers, int bytes, double us = 10) {
  const std::string type = "u8[" + std::to_string(bytes) + "]", cost = " {us=" + std::to_string(us) + "}";
  const auto a = [](int i) { return i == 0 ? std::string("%x") : "%a" + std::to_string(i); };
  const auto g = [](int i) { return "%g" + std::to_string(i); };
  std::string text = "graph chain(%x: " + type + ") {\n";
  for (int i = 1; i <= layers; ++i) text += a(i) + ": " + type + " = opaque(" + a(i - 1) + ")" + cost + "\n";
  text += g(layers) + ": " + type + " = opaque(" + a(layers) + ")" + cost + " [phase=backward]\n";
  for (int i = layers; i >= 1; --i)
    text += g(i - 1) + ": " + type + " = opaque(" + g(i) + ", " + a(i) + ")" + cost + " [phase=backward]\n";
  return parse(text + "return %g0\n}\n", "chain");
}

// A step of training: every layer reads the layer before it and sometimes an earlier one, and so on the way back. Sizes and
// costs are random.
inline Graph there_and_back(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int layers = 4 + pick(10);
  const auto node = [&](const std::string& name, const std::string& reads) {
    return "  %" + name + ": u8[" + std::to_string(1 + pick(90)) + "] = opaque(" + reads +
           ") {us=" + std::to_string(1 + pick(20)) + ".0}\n";
  };
  const auto layer = [](int i) { return i < 0 ? std::string("%x") : "%a" + std::to_string(i); };
  std::string text = "graph g(%x: u8[1]) {\n";
  for (int i = 0; i < layers; ++i)
    text += node("a" + std::to_string(i), layer(i - 1) + (pick(3) == 0 ? ", " + layer(pick(i + 1) - 1) : ""));
  for (int i = layers - 1; i >= 0; --i)
    text += node("g" + std::to_string(i), (i + 1 < layers ? "%g" + std::to_string(i + 1) + ", " : "") + layer(i));
  return parse(text + "  return %g0\n}\n");
}

// Layers of eight nodes with uneven sizes. Each node reads two of the layer before; three in ten read a value from anywhere,
// too.
inline Graph uneven_layers(unsigned seed, int layers) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto name = [](int value) { return value < 0 ? std::string("%x") : "%v" + std::to_string(value); };
  std::string text = "graph layers(%x: f32[100]) {\n", last;
  for (int i = 0; i < 8 * layers; ++i) {
    const int layer = i - i % 8;
    std::string reads = name(i - 8);
    if (const int other = layer - 8 + below(8); layer > 0 && other != i - 8) reads += ", " + name(other);
    if (const int any = below(std::max(layer - 8, 1)); layer > 16 && below(10) < 3) reads += ", " + name(any);
    text += "  " + name(i) + ": f32[" + std::to_string(100 + below(4900)) + "] = opaque(" + reads +
            ") {us=" + std::to_string(1 + below(60)) + ".0}\n";
    if (i >= 8 * layers - 8) last += (last.empty() ? "" : ", ") + name(i);
  }
  return parse(text + "  return " + last + "\n}\n");
}

// A training step of `layers` layers of one byte, as planners of recomputation are compared on: forward takes 1 us and backward
// 2 us for each. `tests/bench/remat_optima.py chain:N` proves its optima.
inline Graph unit_chain(int layers) {
  const auto f = [](int i) { return i == 0 ? std::string("%x") : "%f" + std::to_string(i); };
  const auto g = [](int i) { return "%g" + std::to_string(i); };
  std::string text = "graph chain(%x: u8[1]) {\n";
  for (int i = 1; i <= layers; ++i) text += f(i) + ": u8[1] = opaque(" + f(i - 1) + ") {us=1.0}\n";
  text += g(layers) + ": u8[1] = opaque(" + f(layers) + ") {us=0.0}\n";
  for (int i = layers; i >= 1; --i)
    text += g(i - 1) + ": u8[1] = opaque(" + g(i) + ", " + f(i) + ") {us=2.0} [phase=backward]\n";
  return parse(text + "%end: u8[0] = opaque(%g0) {us=0.0} [phase=backward]\nreturn %end\n}\n", "chain");
}

// A step with state, a window %t on %b, and a constant %c.
inline constexpr const char* kStepWithState = R"(graph g(%x: f32[4,6], %lr: f32[]) state(%w: f32[4,6], %m: f32[4,6]) {
  %k: f32[4,6] = full() {shape=[4,6], dtype=f32, value=2.0}
  %c: f32[2] = constant() {value=[1.0,2.0]}
  %a: f32[4,6] = mul(%x, %w)
  %b: f32[4,6] = exp(%a)
  %t: f32[6,4] = transpose(%b) {axes=[1,0]}
  %p: f32[6,6] = matmul(%t, %k)
  %o: u8[500] = opaque(%p, %b) {us=1.0}
  %g: f32[4,6] = opaque(%o, %c) {us=1.0} [phase=backward]
  %w2: f32[4,6], %m2: f32[4,6] = sgd_momentum(%w, %g, %m, %lr) [phase=update]
  %q: u8[8] = opaque(%o) {us=1.0}
  return %q
  update %w = %w2, %m = %m2
})";

// Two values of one size, and one costs a hundred times as much as the other. %soon reads both early: a value that is only read
// at the end would simply be computed there, at no cost.
inline constexpr const char* kCheapAndDear = R"(graph g(%x: u8[8]) {
  %cheap: u8[1000] = opaque(%x) {us=1.0}
  %dear: u8[1000] = opaque(%x) {us=100.0}
  %soon: u8[8] = opaque(%cheap, %dear) {us=1.0}
  %big: u8[3000] = opaque(%x) {us=1.0}
  %mid: u8[8] = opaque(%big) {us=1.0}
  %end: u8[8] = opaque(%mid, %cheap, %dear) {us=1.0} [phase=backward]
  return %end, %soon
})";

// Random programs as text: views, in-place ops, several results, several readers, long lifetimes, regions; state that is
// updated in place, from another value, swapped or returned; outputs that are inputs, views, or the same value twice.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed, int most_nodes = 40) : random_(seed), n_nodes_(2 + pick(most_nodes)) {
    values_.reserve(static_cast<std::size_t>(n_nodes_) * 2 + 16);  // no reallocation, so that references into it stay valid
  }

  std::string text() {
    std::string head = "graph random(";
    for (int i = 0, n = 1 + pick(3); i < n; ++i) head += (i ? ", " : "") + define("x" + std::to_string(i), pick(kTypes));
    head += ")";
    n_states_ = pick(4);
    first_state_ = values_.size();
    for (int i = 0; i < n_states_; ++i) head += (i ? ", " : " state(") + define("s" + std::to_string(i), pick(kTypes));
    if (n_states_ > 0) head += ")";
    std::string body;
    for (int i = 0; i < n_nodes_; ++i) body += "  " + node(i) + "\n";
    return head + " {\n" + body + ending() + "}\n";
  }

  Graph graph() { return parse(text(), "random"); }

 private:
  static constexpr int kTypes = 5;
  static const char* type_text(int type) {
    constexpr const char* texts[kTypes] = {"f32[4,6]", "f32[6,4]", "f32[24]", "f32[6,6]", "u8[100]"};
    return texts[type];
  }
  struct Known {
    std::string name;
    int type;
  };

  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return pick(100) < percent; }

  std::string define(const std::string& name, int type) {
    values_.push_back({name, type});
    return "%" + name + ": " + type_text(type);
  }

  // Chooses mostly a recent value and sometimes any value, so that some lifetimes are short and some long.
  const Known& any() {
    const int n = static_cast<int>(values_.size());
    return chance(60) ? values_[n - 1 - pick(std::min(n, 4))] : values_[pick(n)];
  }
  const Known* of_type(int type) {
    for (int tries = 0; tries < 12; ++tries)
      if (const Known& v = any(); v.type == type) return &v;
    return nullptr;
  }

  std::string notes(int i) {
    if (i > n_nodes_ / 2) return i > n_nodes_ * 4 / 5 ? " [phase=update]" : " [phase=backward]";
    return i % 8 < 5 && n_nodes_ % 2 ? " [region=" + std::to_string(i / 8) + "]" : "";
  }

  std::string node(int i) {
    const std::string name = "v" + std::to_string(i);
    const Known a = any();
    if (a.type < 4 && chance(30)) {
      if (const Known* b = of_type(a.type))
        return define(name, a.type) + " = " + (chance(50) ? "add" : "mul") + "(%" + a.name + ", %" + b->name + ")" + notes(i);
    }
    if (a.type < 4 && chance(25))
      return define(name, a.type) + " = " + (chance(50) ? "relu" : "exp") + "(%" + a.name + ")" + notes(i);
    if (a.type < 2 && chance(40)) return define(name, 1 - a.type) + " = transpose(%" + a.name + ") {axes=[1,0]}" + notes(i);
    if (a.type < 3 && chance(40)) {
      const int to = pick(3);
      constexpr const char* shapes[] = {"[4,6]", "[6,4]", "[24]"};
      return define(name, to) + " = reshape(%" + a.name + ") {shape=" + shapes[to] + "}" + notes(i);
    }
    if (a.type == 3 && chance(40)) return define(name, 0) + " = slice(%" + a.name + ") {starts=[1,0], stops=[5,6]}" + notes(i);
    if (a.type == 1 && chance(60)) {
      if (const Known* b = of_type(0)) return define(name, 3) + " = matmul(%" + a.name + ", %" + b->name + ")" + notes(i);
    }
    std::string operands;
    for (int k = 0, n = pick(4); k < n; ++k) operands += (k ? ", %" : "%") + any().name;
    std::string results = define(name, pick(kTypes));
    if (chance(25)) results += ", " + define(name + "b", pick(kTypes));
    return results + " = opaque(" + operands + ") {us=" + std::to_string(1 + pick(20)) + ".0}" + notes(i);
  }

  std::string ending() {
    std::string text = "  return ";
    for (int i = 0, n = 1 + pick(3); i < n; ++i)
      text += (i ? ", %" : "%") + (chance(70) ? any() : values_[pick(static_cast<int>(values_.size()))]).name;
    text += "\n";
    std::string updates;
    for (int s = 0; s < n_states_; ++s) {
      const Known& state = values_[first_state_ + s];
      const Known* source = chance(80) ? of_type(state.type) : nullptr;
      if (source) updates += (updates.empty() ? "  update %" : ", %") + state.name + " = %" + source->name;
    }
    return text + (updates.empty() ? "" : updates + "\n");
  }

  std::mt19937 random_;
  int n_nodes_;
  int n_states_ = 0;
  std::size_t first_state_ = 0;
  std::vector<Known> values_;
};

}  // namespace tapedeck::test
