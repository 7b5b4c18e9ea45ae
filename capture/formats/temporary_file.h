// The file that is written first and then becomes the target: made beside it, and renamed over it.
//
//     .tapedeck-HASH-K     HASH: of the name of the target, so that the name is short; K: 0, 1, 2, ...
//
// A writer locks its file (flock) until it is done or dead. So the next writer of the same target can tell the leftovers of
// dead processes from the files of living ones, and removes them.
#pragma once

#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck TAPEDECK_API {

// Each function that can fail returns the error number of the system, or 0. Not thread safe.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  ~TemporaryFile() { remove(); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int make_beside(const std::string& target);  // only the user of this process can read or write it
  int rename_over(const std::string& target);
  void remove();  // does nothing if there is no file

  bool is_open() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }

 private:
  int try_name(const std::string& path);

  std::string path_;
  int fd_ = -1;
};

// Removes the temporary files of all writers of this process, and lets no writer make or rename one any more: whoever tries it
// waits for ever. For a process that is about to end by a signal; not to be called in a signal handler.
void remove_temporary_files();

}  // namespace TAPEDECK_API
