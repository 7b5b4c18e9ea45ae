// ONNX models written byte by byte, so that tests can write what no program would.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::wire {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}
inline std::string number(int field, std::int64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(static_cast<std::uint64_t>(value));
}
inline std::string bytes(int field, const std::string& value) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(value.size()) + value;
}

inline std::string all(int field, const std::vector<std::string>& values) {
  std::string result;
  for (const std::string& v : values) result += bytes(field, v);
  return result;
}

// ---- attributes ----
inline std::string integer(const std::string& name, std::int64_t value) {
  return bytes(1, name) + number(3, value) + number(20, 2);
}
inline std::string text(const std::string& name, const std::string& value) {
  return bytes(1, name) + bytes(4, value) + number(20, 3);
}
inline std::string integers(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string result = bytes(1, name) + number(20, 7);
  for (std::int64_t v : values) result += number(8, v);
  return result;
}
inline std::string real(const std::string& name, float value) {
  return bytes(1, name) + varint(2 << 3 | 5) + std::string(reinterpret_cast<const char*>(&value), 4) + number(20, 1);
}
inline std::string reals(const std::string& name, const std::vector<float>& values) {
  return bytes(1, name) + number(20, 6) + bytes(7, {reinterpret_cast<const char*>(values.data()), 4 * values.size()});
}
inline std::string graph_in(const std::string& name, const std::string& graph) {
  return bytes(1, name) + bytes(6, graph) + number(20, 5);
}

struct NodeText {
  std::string op;
  std::vector<std::string> inputs, outputs, attributes = {};
  std::string domain = {};
};
inline std::string node(const NodeText& n) {
  return all(1, n.inputs) + all(2, n.outputs) + bytes(4, n.op) + all(5, n.attributes) +
         (n.domain.empty() ? "" : bytes(7, n.domain));
}

// ---- values ----
inline std::string value(const std::string& name, const std::vector<std::int64_t>& sizes, int type = 1) {
  std::string dims;
  for (std::int64_t size : sizes) dims += bytes(1, number(1, size));
  return bytes(1, name) + bytes(2, bytes(1, number(1, type) + bytes(2, dims)));
}
inline std::string tensor(const std::string& name, const std::vector<std::int64_t>& sizes, int type, const std::string& raw) {
  std::string result;
  for (std::int64_t size : sizes) result += number(1, size);
  return result + number(2, type) + bytes(8, name) + bytes(9, raw);
}
inline std::string int64s(const std::string& name, const std::vector<std::int64_t>& values) {
  return tensor(name, {static_cast<std::int64_t>(values.size())}, 7,
                {reinterpret_cast<const char*>(values.data()), 8 * values.size()});
}
inline std::string external(const std::string& name, const std::vector<std::int64_t>& sizes,
                            const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string result;
  for (std::int64_t size : sizes) result += number(1, size);
  result += number(2, 1) + bytes(8, name) + number(14, 1);
  for (const auto& [key, v] : entries) result += bytes(13, bytes(1, key) + bytes(2, v));
  return result;
}

// ---- graphs and models ----
struct GraphText {
  std::vector<std::string> nodes, inputs, outputs, initializers = {};
  std::vector<std::string> values = {};  // types that the file states of results
};
inline std::string graph(const GraphText& g) {
  return all(1, g.nodes) + bytes(2, "g") + all(5, g.initializers) + all(11, g.inputs) + all(12, g.outputs) + all(13, g.values);
}
inline std::string model(const std::string& graph, int opset = 20, const std::string& more = "") {
  return number(1, 9) + bytes(7, graph) + bytes(8, bytes(1, "") + number(2, opset)) + more;
}

}  // namespace tapedeck::wire
