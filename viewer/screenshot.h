// Pictures and tables without a person: writes files and ends.
#pragma once

#include <tapedeck/viewer/options.h>

namespace tapedeck::viewer {

// Writes the picture options.shot, the table options.csv or both, and returns an exit code; prints errors to stderr. Equal
// input gives equal bytes. REQUIRES a QApplication, on any platform of Qt.
int take_shot(const Options& options);

}  // namespace tapedeck::viewer
