// How a convolution is cut, and the size of its workspace. A chunk of images is one task; a group of images is one call of
// oneDNN. Both depend on the shape alone, so that neither bits nor memory depend on the number of threads.
#pragma once

#include <tapedeck/kernels/cpu/convolution/conv.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {

// How the images of a batch are cut.
struct ConvPlan {
  std::int64_t chunks = 1;
  std::int64_t images_per_chunk = 1;
  std::int64_t group = 1;  // the number of images in one call of oneDNN
};

inline constexpr std::int64_t kMaxConvChunks = 8;
inline constexpr std::int64_t kConvChunkWork = 5'000'000;  // the flops of a task that is worth a thread: about 25 microseconds
inline constexpr std::int64_t kConvWorkspaceFloor = 64 * 1024;  // bytes of workspace that every convolution may use
inline constexpr std::int64_t kConvScratchpad = 1024;           // bytes per chunk for oneDNN itself

inline std::int64_t align64(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
inline std::int64_t round_up_16(std::int64_t channels) { return (channels + 15) / 16 * 16; }

// Upper bounds of the bytes of one image, and of the weights, in any of oneDNN's fast layouts. These layouts pad channels to a
// multiple of 8 or 16. Channels inside groups are not padded; depthwise weights are padded along the groups.
inline std::int64_t conv_image_bytes(const ConvShape& s) {
  return align64(4 * round_up_16(s.in_channels) * s.in_plane()) + align64(4 * round_up_16(s.out_channels) * s.out_plane());
}
inline std::int64_t conv_weight_bytes(const ConvShape& s) {
  if (s.depthwise()) return align64(4 * round_up_16(s.groups) * s.taps());
  if (s.groups > 1) return align64(4 * s.weight_size());
  return align64(4 * round_up_16(s.out_channels) * round_up_16(s.in_channels) * s.taps());
}

inline double conv_flops(const ConvShape& s) {
  return 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.out_size()) *
         static_cast<double>(s.in_per_group() * s.taps());
}

// Cuts a convolution so that the workspace is about a quarter of the bytes of the larger activation.
inline ConvPlan conv_plan(ConvPass pass, const ConvShape& s) {
  const std::int64_t allowance = std::max(kConvWorkspaceFloor, s.batch * std::max(s.in_size(), s.out_size()));
  const double tasks = conv_flops(s) / kConvChunkWork + 1;
  std::int64_t most = tasks < kMaxConvChunks ? static_cast<std::int64_t>(tasks) : kMaxConvChunks;
  if (pass == ConvPass::weight_grad) most = std::min(most, std::max<std::int64_t>(2, allowance / (2 * conv_weight_bytes(s))));
  ConvPlan plan;
  plan.images_per_chunk = (s.batch - 1) / most + 1;
  plan.chunks = (s.batch - 1) / plan.images_per_chunk + 1;
  plan.group = std::clamp<std::int64_t>(allowance / (plan.chunks * conv_image_bytes(s)), 1,
                                        std::min<std::int64_t>(plan.images_per_chunk, 16));
  return plan;
}

inline std::int64_t conv_workspace(ConvPass pass, const ConvShape& s) {
  const ConvPlan plan = conv_plan(pass, s);
  const std::int64_t chunk = plan.group * conv_image_bytes(s) + kConvScratchpad;
  const std::int64_t weights = conv_weight_bytes(s);
  return pass == ConvPass::weight_grad ? plan.chunks * (chunk + 2 * weights) : plan.chunks * chunk + weights;
}

}  // namespace tapedeck::kernels::cpu
