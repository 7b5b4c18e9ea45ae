// Where a thread stands in its random stream. A program that is stopped saves the position, and draws the same numbers after it
// has set it again.
#pragma once

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <map>
#include <string>

namespace tapedeck TAPEDECK_API {

struct RandomPosition {
  std::int64_t seed = 0, step = 0;            // rng_state()
  std::map<std::string, std::int32_t> draws;  // by module path: the draws since the last next_step()
};

// The position of this thread.
RandomPosition random_position();
// From now on this thread draws as a thread that stands there. The tensor rng_state() is written in place, so a captured step
// follows. A later manual_seed() or use_random_stream() begins anew, as always. Throws CaptureError inside a capture.
void set_random_position(const RandomPosition& position, Site site = {__builtin_FILE(), __builtin_LINE()});

}  // namespace TAPEDECK_API
