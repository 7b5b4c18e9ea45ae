// Pictures without a person: renders to a file and ends.
#pragma once

#include <tapedeck/viewer/options.h>

namespace tapedeck::viewer {

// Writes the picture options.shot and returns an exit code; prints errors to stderr. Equal input gives equal bytes. REQUIRES a
// QApplication, on any platform of Qt.
int take_shot(const Options& options);

}  // namespace tapedeck::viewer
