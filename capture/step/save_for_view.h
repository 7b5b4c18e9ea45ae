// Saves a captured step whose life ends, where the environment asks for it.
#pragma once

#include <tapedeck/capture/step/captured_step.h>

namespace tapedeck {

// Writes the program of the step that ran last to the file that the environment variable TAPEDECK_SAVE_STEP names. Does nothing
// without the variable, and for a step that has recorded nothing. The file of a later step replaces that of an earlier one.
// Never throws: the reason of a failure is a warning on stderr.
void save_for_view(const CapturedStep& step) noexcept;

}  // namespace tapedeck
