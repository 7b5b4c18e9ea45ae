// Values whose elements are all one known number: the result of an op that says so (Op::uniform), a constant of equal elements,
// a view of such.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <optional>
#include <vector>

namespace tapedeck {

// Answers questions about a graph that is being built. Between questions values may be added, but not changed.
class UniformValues {
 public:
  explicit UniformValues(const Graph& graph) : graph_(graph) {}

  // O(1) after the first time; constants of more than 64 elements are not looked at. A NaN is no known number.
  std::optional<double> of(ValueId v);

 private:
  struct Known {
    bool asked = false;
    std::optional<double> number = std::nullopt;
  };
  std::optional<double> find(ValueId v);

  const Graph& graph_;
  std::vector<Known> known_;  // by value
};

}  // namespace tapedeck
