// A file that appears whole or not at all: it is written beside its place, synced, then renamed over it. A failure on the way,
// such as a full disk or a size limit, leaves the old file as it was and no debris.
#pragma once

#include <tapedeck/capture/formats/checksum.h>
#include <tapedeck/capture/formats/temporary_file.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Not thread safe; two writers of one path do not disturb each other, the last to commit wins. All failures are FileErrors with
// the path and the system's reason. A symbolic link stays: the file it leads to is replaced, or made. A target that is no
// regular file (/dev/null, a pipe) is written directly. Others can read the new file once it stands in its place, not before:
// then it has the permissions of the old file, or those that the umask gives.
//
// A process that is killed while it writes leaves its temporary file. The next writer of the same target removes it.
class AtomicWriter {
 public:
  explicit AtomicWriter(const std::string& path);
  ~AtomicWriter();  // without commit(): removes the temporary file
  AtomicWriter(const AtomicWriter&) = delete;
  AtomicWriter& operator=(const AtomicWriter&) = delete;

  void write(Bytes bytes);
  void write(std::string_view text) { write(Bytes(reinterpret_cast<const unsigned char*>(text.data()), text.size())); }
  void commit();

 private:
  void flush();
  void write_through(Bytes bytes);
  [[noreturn]] void fail(int error);

  std::string path_;    // as the user wrote it, for messages
  std::string target_;  // links followed
  TemporaryFile temporary_;
  unsigned mode_ = 0;                  // the permissions of the file in its place
  int direct_ = -1;                    // the descriptor of a target that is no regular file
  std::vector<unsigned char> buffer_;  // small writes are gathered
};

}  // namespace TAPEDECK_API
