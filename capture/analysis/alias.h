// Which values are windows on the bytes of others, and where a result may take over the bytes of an operand.
//
//     %t: f32[10,784] = transpose(%w) {axes=[1,0]}
//     %d: f32[64,784] = matmul(%g, %t)
//
// %t is a window on %w: matmul takes row- and column-major matrices, so no copy is needed. A view becomes a window if its rule
// can express the strides and every reader takes them. Otherwise the view has bytes of its own, and its kernel copies.
#pragma once

#include <tapedeck/capture/analysis/liveness.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/ir/strides.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

struct Window {
  ValueId root = kNone;     // the value whose bytes these are; the value itself if it is no window
  std::int64_t offset = 0;  // bytes from the start of the root
  bool dense = true;
  std::int64_t strides[kMaxRank] = {};
  ValueId viewed = kNone;  // the value that it is a view of, through any number of views; the value itself if it is no view
  ValueId joined = kNone;  // of a part (parts.h): the value that joins it with others
};

// The window of the result of node n on its operand. root == kNone if the op has no view rule, or if strides cannot express the
// window.
Window view_window(const Graph& graph, const Node& node, const Window& operand);

// A value that is no window.
Window own_bytes_of(const Graph& graph, ValueId v);

// Whether the node takes v in these strides, wherever v is an operand.
bool takes_strides(const Graph& graph, NodeId node, ValueId v, const std::int64_t* strides);

// Result `output` may overwrite operand `input` once no reader of that operand is left.
struct Takeover {
  std::int32_t input = 0;
  std::int32_t output = 0;
};

// Values that cannot be windows, because their bytes are kept: results of the graph and sources of its updates.
std::vector<char> values_with_own_bytes(const Graph& graph);

// The window of each value. A value with an entry in `parts` (root != kNone) lies there, and its views are windows on that
// place. REQUIRES: operands are defined before they are read (verify()); `parts` is empty or has an entry for each value.
std::vector<Window> find_windows(const Graph& graph, const Readers& readers, const std::vector<char>& own_bytes,
                                 const std::vector<Window>& parts = {});

// The takeovers that the op declares and the bytes allow: the operand is dense and covers its root exactly, both have the same
// size, and no other operand lies on that root. The same value may be an operand twice if the kernel works element by element.
std::vector<Takeover> find_takeovers(const Graph& graph, NodeId node, const std::vector<Window>& windows);

}  // namespace tapedeck
