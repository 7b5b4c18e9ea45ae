// The tape of a recorded step, kept so that a later run of the step can be compared with it node by node.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck {

struct TapeScript {
  enum class Kind : std::uint8_t { input, tensor, gradient, constant };
  // A value that came from outside.
  struct Source {
    Kind kind = Kind::constant;
    std::int32_t input = kNone;  // of an input: which
    Tensor tensor;               // which tensor; of a gradient: whose
    Literal literal;             // of a constant: what it holds
    ValueId last = kNone;        // the value at the end of the step
    std::string name;
  };

  Graph graph;                          // values and nodes as on the tape; nodes carry their site
  NodeId n_nodes = 0;                   // of the step itself
  std::vector<std::int32_t> source_of;  // by value: into sources, or kNone
  std::vector<Source> sources;
  std::vector<ValueId> outputs;
};

}  // namespace tapedeck
