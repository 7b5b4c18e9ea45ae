// Whether two recordings of a step are the same program.
#pragma once

#include <tapedeck/capture/capture.h>

namespace tapedeck {

// Throws CaptureError at the first difference, saying what to do: another op, other attributes, a constant that differs, a tensor made
// anew in every call. O(nodes).
void compare_recordings(const Captured& first, const Captured& second);

// Whether both read and write the very same tensors, and rely on the same of them: recordings of one step at other sizes.
bool same_tensors(const Captured& first, const Captured& second);

}  // namespace tapedeck
