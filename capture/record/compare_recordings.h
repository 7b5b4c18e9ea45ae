// Whether two recordings of a step are the same program.
#pragma once

#include <tapedeck/capture/record/capture.h>

namespace tapedeck {

// Throws CaptureMismatch at the first difference and says what to do: for another op, other attributes, a constant that
// differs, or a tensor made anew in every call. O(nodes).
void compare_recordings(const Captured& first, const Captured& second);

// Says why two recordings cannot be one step that was called with two sizes: they do not read and write the same tensors from
// outside, or they do not rely on the same conditions of a call (call_conditions.h). Empty if they may be one step.
std::string tensors_difference(const Captured& first, const Captured& second);

}  // namespace tapedeck
