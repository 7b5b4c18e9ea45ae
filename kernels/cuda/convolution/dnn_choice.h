// The choice among the configurations that cuDNN proposes for a convolution. It depends on the problem and on the lists of
// cuDNN alone, never on a measurement, so that every process chooses alike. The README of this room says from which times it
// comes.
#pragma once

#include <tapedeck/kernels/cuda/convolution/dnn_conv.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

// A configuration that is wanted: an engine by its global index, with some values of its knobs.
struct DnnPreference {
  std::int64_t engine = -1;
  std::vector<std::pair<int, std::int64_t>> knobs;
};

// The preferences for a problem, the best first. Where there is none, the order of cuDNN's heuristic decides.
std::vector<DnnPreference> dnn_preferences(const DnnConvolution& problem);

// The place of the first preference that the configuration meets, or their number if it meets none. 0 is the best rank.
std::size_t dnn_rank(const std::vector<DnnPreference>& preferences, const DnnConfiguration& configuration);

// True if our own kernels are faster than all that mode A of the heuristic proposes.
bool own_kernels_are_faster(const DnnConvolution& problem, const std::vector<DnnConfiguration>& proposed);

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
