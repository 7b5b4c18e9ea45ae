// The place from which the random state of a draw comes. Two draws of Tapedeck from one source, with equal attributes, give
// equal numbers, and backward relies on that: it draws the mask of a dropout again. A model must draw such numbers once.
//
//     %r = fold_in(%rng, %i) {path="scan#0"}   in the body of a scan    ->    "rng/scan#0[pass]", in each pass another one
#pragma once

#include <tapedeck/capture/onnx/export/model_builder.h>

#include <optional>
#include <string>

namespace tapedeck::onnx {

struct RandomSource {
  std::string name;  // equal for equal states only
  // The number of loops that give the state another value in each of their passes. If it is one loop, a scan: its number of
  // passes, and the name of the number of the pass where the draw is.
  int loops = 0;
  std::int64_t trips = -1;  // -1: it is no scan
  std::string pass;
};

// Follows the state through regions to the state of the graph. None: other ops than fold_in and
// rng_next make it, or a loop carries it.
std::optional<RandomSource> random_source(const ModelBuilder& at, ValueId state);

}  // namespace tapedeck::onnx
