// What a replay does to the marks of gradients (engine/gradient/fresh_gradient.h), read off the graph of the step.
//
//     %g = ...                                        [phase backward]      the step leaves %g in grad() of w:   fresh
//     %w2 = sgd(%w, %g, %lr)   update %w = %w2        [phase update]        it updates w with it as well:        used
#pragma once

#include <tapedeck/capture/record/capture.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

enum class GradientMark : std::uint8_t { unchanged, fresh, used };

// For each of captured.uses. A gradient is used if the tensor is updated by a node of the update phase that reads it, itself or
// through other nodes of that phase. O(nodes of the update phase) for each use at most, and in practice a few nodes.
std::vector<GradientMark> gradient_marks(const Captured& captured);

}  // namespace tapedeck
