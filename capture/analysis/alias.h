// Which values are windows on the bytes of others, and where an output may take over an operand's bytes.
//
//     %t: f32[10,784] = transpose(%w) {axes=[1,0]}
//     %d: f32[64,784] = matmul(%g, %t)
//
// %t is a window on %w: matmul takes row- or column-major matrices, so nothing need be copied. A view becomes a window if its
// rule can express the strides and every reader takes them; otherwise it has bytes of its own and its kernel copies.
#pragma once

#include <tapedeck/capture/analysis/liveness.h>
#include <tapedeck/engine/graph.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

struct Window {
  ValueId root = kNone;     // whose bytes these are; the value itself if it is no window
  std::int64_t offset = 0;  // bytes from the start of the root
  bool dense = true;
  std::int64_t strides[kMaxRank] = {};
};

// Row-major without gaps; sizes of one may have any stride, and so may what has no elements.
bool is_dense(const Shape& shape, const std::int64_t* strides);

// Input `input` of a node may be overwritten by its output `output` once nobody reads that input's bytes any more.
struct Takeover {
  std::int32_t input = 0;
  std::int32_t output = 0;
};

// Values that cannot be windows because somebody keeps their bytes: what the graph returns, and what its updates store.
std::vector<char> values_with_own_bytes(const Graph& graph);

// By value. REQUIRES: operands are defined before they are read (verify()).
std::vector<Window> find_windows(const Graph& graph, const Readers& readers, const std::vector<char>& own_bytes);

// The takeovers that the op declares and the bytes allow: operand dense and covering its root exactly, equal sizes, and no
// other operand on the same root (but the same value twice, where the kernel works element by element).
std::vector<Takeover> find_takeovers(const Graph& graph, NodeId node, const std::vector<Window>& windows);

}  // namespace tapedeck
