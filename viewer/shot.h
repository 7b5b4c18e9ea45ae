// Renders unattended.
#pragma once

#include <tapedeck/viewer/options.h>

namespace tapedeck::viewer {

// Writes options.shot and returns an exit code; says on stderr what went wrong. REQUIRES a QApplication, on any platform. The
// same input gives the same bytes.
int take_shot(const Options& options);

}  // namespace tapedeck::viewer
