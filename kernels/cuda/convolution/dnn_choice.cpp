#include <tapedeck/kernels/cuda/convolution/dnn_choice.h>

#include <algorithm>

namespace tapedeck::kernels::cuda {
namespace {

// Engines that compute f32 in f32, by their global index, with the tiles that they call 2, 4 and 12.
enum Engine : std::int64_t { kForwardFft = 3, kForwardTiles = 70, kInputGrad = 2, kInputGradTiles = 74, kWeightGradTiles = 17 };

// The times were taken in f32, for images with two dimensions and one group.
bool is_known(const DnnConvolution& p) { return p.dtype == DType::f32 && !p.tf32 && p.dims == 2 && p.shape.groups == 1; }

DnnPreference with_tile(std::int64_t engine, std::int64_t tile) {
  return {engine, {{dnn::CUDNN_KNOB_TYPE_TILE_SIZE, tile}, {dnn::CUDNN_KNOB_TYPE_IDX_MODE, 0}}};
}

// The Fourier transform wins where a whole image fits its tile of 32 x 32 and fills much of it, and where the transform of the
// weights serves many images.
bool suits_fft(const cpu::ConvShape& s) {
  bool suits = s.batch >= 16 && s.in_channels >= 128 && s.out_channels >= 128 && s.taps() > 1;
  for (const std::size_t i : {1, 2}) suits = suits && s.in[i] >= 12 && s.in[i] <= 30 && s.stride[i] == 1;
  return suits;
}

std::vector<DnnPreference> for_forward(const cpu::ConvShape& s) {
  if (suits_fft(s)) return {{kForwardFft, {}}, with_tile(kForwardTiles, 2), with_tile(kForwardTiles, 12)};
  if (s.batch * s.out_size() < 1 << 20) return {with_tile(kForwardTiles, 12), with_tile(kForwardTiles, 2)};
  return {with_tile(kForwardTiles, 4), with_tile(kForwardTiles, 2), with_tile(kForwardTiles, 12)};
}

bool has_all(const DnnConfiguration& configuration, const DnnPreference& wanted) {
  const auto& knobs = configuration.knobs;
  return std::all_of(wanted.knobs.begin(), wanted.knobs.end(),
                     [&](const auto& knob) { return std::find(knobs.begin(), knobs.end(), knob) != knobs.end(); });
}

}  // namespace

std::vector<DnnPreference> dnn_preferences(const DnnConvolution& problem) {
  const cpu::ConvShape& s = problem.shape;
  if (!is_known(problem)) return {};
  if (problem.pass == cpu::ConvPass::forward) return for_forward(s);
  if (problem.pass == cpu::ConvPass::input_grad && s.in_plane() < 256)
    return {with_tile(kInputGradTiles, 12), {kInputGrad, {{dnn::CUDNN_KNOB_TYPE_TILE_SIZE, 2}}}};
  return {};
}

std::size_t dnn_rank(const std::vector<DnnPreference>& preferences, const DnnConfiguration& configuration) {
  std::size_t rank = 0;
  while (rank < preferences.size() &&
         !(preferences[rank].engine == configuration.engine && has_all(configuration, preferences[rank])))
    ++rank;
  return rank;
}

// The gradient of the weights sums over the pixels of all results. Only one engine of cuDNN shares long sums among many blocks,
// and it takes few shapes.
bool own_kernels_are_faster(const DnnConvolution& problem, const std::vector<DnnConfiguration>& proposed) {
  if (!is_known(problem) || problem.pass != cpu::ConvPass::weight_grad) return false;
  const std::int64_t pixels = problem.shape.batch * problem.shape.out_plane();
  if (pixels < 2048 || pixels < problem.shape.weight_size() / 16) return false;
  return std::none_of(proposed.begin(), proposed.end(),
                      [](const DnnConfiguration& c) { return c.usable && c.engine == kWeightGradTiles; });
}

}  // namespace tapedeck::kernels::cuda
