// Which values are windows on the bytes of others, and where an output may take over an operand's bytes.
//
//     %t: f32[10,784] = transpose(%w) {axes=[1,0]}
//     %d: f32[64,784] = matmul(%g, %t)
//
// %t is a window on %w: matmul takes row- or column-major matrices, so nothing need be copied. A view becomes a window if its
// rule can express the strides and every reader takes them; otherwise it has bytes of its own and its kernel copies.
#pragma once

#include <tapedeck/capture/analysis/liveness.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/ir/strides.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

struct Window {
  ValueId root = kNone;     // whose bytes these are; the value itself if it is no window
  std::int64_t offset = 0;  // bytes from the start of the root
  bool dense = true;
  std::int64_t strides[kMaxRank] = {};
  ValueId viewed = kNone;  // what it is a view of, through any number of views; the value itself if it is none
  ValueId joined = kNone;  // of a part (parts.h): the value that joins it with others
};

// The window that node n's output would be on its operand's, or root == kNone if its op has no view rule or strides cannot
// express it.
Window view_window(const Graph& graph, const Node& node, const Window& operand);

// A value that is no window.
Window own_bytes_of(const Graph& graph, ValueId v);

// May the node read v in these strides, wherever it is an operand?
bool takes_strides(const Graph& graph, NodeId node, ValueId v, const std::int64_t* strides);

// Input `input` of a node may be overwritten by its output `output` once nobody reads that input's bytes any more.
struct Takeover {
  std::int32_t input = 0;
  std::int32_t output = 0;
};

// Values that cannot be windows because somebody keeps their bytes: what the graph returns, and what its updates store.
std::vector<char> values_with_own_bytes(const Graph& graph);

// By value. What has an entry in `parts` (root != kNone) lies there, and views of it are windows on that. REQUIRES: operands
// are defined before they are read (verify()); parts is empty or has an entry for each value.
std::vector<Window> find_windows(const Graph& graph, const Readers& readers, const std::vector<char>& own_bytes,
                                 const std::vector<Window>& parts = {});

// The takeovers that the op declares and the bytes allow: operand dense and covering its root exactly, equal sizes, and no
// other operand on the same root (but the same value twice, where the kernel works element by element).
std::vector<Takeover> find_takeovers(const Graph& graph, NodeId node, const std::vector<Window>& windows);

}  // namespace tapedeck
