// Whether two recordings of a step are the same program.
#pragma once

#include <tapedeck/capture/record/capture.h>

namespace tapedeck {

// Throws CaptureError at the first difference, saying what to do: another op, other attributes, a constant that differs, a
// tensor made anew in every call. O(nodes).
void compare_recordings(const Captured& first, const Captured& second);

// What keeps two recordings from being one step at two sizes: other tensors read or written, or other things relied on in them.
// Empty if nothing does.
std::string tensors_difference(const Captured& first, const Captured& second);

}  // namespace tapedeck
