// The live view: a running program writes its tape, the bytes that its tensors hold, and its captured steps to a private folder
// that `tapedeck-viewer --live` watches.
//
//     connect_viewer();              in the program, or without a change to it:  TAPEDECK_VIEW=1 ./program
//
// The results of the program are the same bits with and without it. The program never waits for a viewer, and needs none: what
// a thread of its own cannot write in time is counted and dropped. A full disk, or a folder that was removed, ends the live
// view with one warning on stderr. The folder lies in $XDG_RUNTIME_DIR/tapedeck-live, or in the folder for temporary files, and
// no other user can look inside. It holds at most 150 MB beside captured steps: then the oldest ops go, and the curve of memory
// is kept, thinned. It is removed when the program ends, unless a viewer looks at it; then the viewer removes it.
//
// After fork() the parent goes on, and the child has a live view of its own if TAPEDECK_VIEW asks for one.
#pragma once

#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck TAPEDECK_API {

struct LiveViewOptions {
  std::string folder = {};  // in which the program's folder is made; empty: the user's own. It must belong to this user alone
  std::string name = {};    // of the program in the viewer; empty: that of its executable
};

// A handle to the live view of the process. Destroying it changes nothing. Thread safe.
class LiveView {
 public:
  bool connected() const;      // false: it could not be begun (a warning has said why), or has ended
  std::string folder() const;  // of this program; empty if it is not connected
  // Captures the next whole step as a file, as the viewer's "capture now" does: from one next_step(), which optimizers call, to
  // the following one, or a call of a captured step.
  void capture_step() const;
  void disconnect() const;  // writes what is left, and ends the live view. connect_viewer() may begin another one
};

// Begins the live view of this process and returns at once. If there is one already, this is it. Never throws. Thread safe.
LiveView connect_viewer(const LiveViewOptions& options = {});

}  // namespace TAPEDECK_API
