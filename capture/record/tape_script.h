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
  // A value that comes from outside.
  struct Source {
    Kind kind = Kind::constant;
    std::int32_t input = kNone;  // of an input: its number
    Tensor tensor;               // the tensor; of a gradient: the tensor that has it
    Literal literal;             // of a constant: its bytes
    ValueId last = kNone;        // the value at the end of the step
    std::string name;
  };

  Graph graph;                          // values and nodes as on the tape; nodes carry their site
  NodeId n_nodes = 0;                   // the number of nodes that the step itself recorded
  std::vector<std::int32_t> source_of;  // by value: into sources, or kNone
  std::vector<Source> sources;
  std::vector<ValueId> outputs;
};

}  // namespace tapedeck
