// The walk of a fused kernel over its operands and results. It depends on sizes and strides alone, not on the addresses:
//
//     x f32[64,100]   strides 100,1    linear      element i of the walk is element i of the memory
//     b f32[100]      strides 0,1      row         side by side in the innermost dimension
//     c f32[64,1]     strides 1,0      repeated    one element for the innermost dimension
//     t f32[100,64]^T strides 1,64     gathered    any strides
//
// The source of a kernel names the access of each view and the number of dimensions. Sizes and strides are arguments, so that
// kernels of other sizes share one source.
#pragma once

#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck::codegen {

enum class Access : std::uint8_t { linear, row, repeated, gathered };

struct FusedLayout {
  struct Walked {
    DType dtype = DType::f32;
    Access access = Access::linear;
    std::int64_t strides[kMaxRank] = {};  // of the dimensions of the walk
  };

  std::int64_t n = 0;  // elements
  // Dimensions of size 1 are dropped, and neighbours are merged where every view allows it. There is at least one.
  int rank = 1;
  std::int64_t sizes[kMaxRank] = {};
  std::vector<Walked> views;  // the operands, then the results
  int n_inputs = 0;
  int lanes = 1;            // the elements that a thread of the wide kernel takes at a time; 1: there is no wide kernel
  bool long_index = false;  // element numbers need 64 bits

  int n_outputs() const { return static_cast<int>(views.size()) - n_inputs; }
};

// The layout of a call. REQUIRES: all views have the sizes of the first result; a broadcast operand has strides of 0.
FusedLayout fused_layout(std::span<const View> inputs, std::span<const View> outputs);

// The places of the words of the one argument that a kernel takes. Each word has 64 bits:
//
//     n | sizes[rank] | data[views] | strides[rank] of each view that is not linear, in turn
struct ArgumentPlaces {
  int sizes = 1, data = 0, strides = 0, words = 0;
};
ArgumentPlaces argument_places(const FusedLayout& layout);

// The most words of an argument: 4 KiB, which every device takes.
inline constexpr int kMostWords = 512;

// A launch: the kernel, its argument and the number of blocks; 0 blocks for a call without elements.
struct FusedLaunch {
  bool wide = false;
  unsigned blocks = 0;
  std::uint64_t words[kMostWords];
};
inline constexpr unsigned kFusedThreads = 256;  // of a block

// The launch for the addresses of a call. REQUIRES: the views of the call are those of the layout, but for their addresses.
void fill_launch(const FusedLayout& layout, const KernelCall& call, FusedLaunch* launch);

}  // namespace tapedeck::codegen
