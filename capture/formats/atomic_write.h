// A file that appears whole or not at all: it is written beside its place, synced, then renamed over it. A failure on the way,
// such as a full disk or a size limit, leaves the old file as it was and no debris.
#pragma once

#include <tapedeck/capture/formats/checksum.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Not thread safe; two writers of one path do not disturb each other, the last to commit wins. All failures are FileErrors with
// the path and the system's reason. A symbolic link stays: the file it leads to is replaced. A target that is no
// regular file (/dev/null, a pipe) is written directly.
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
  void open_beside();
  void flush();
  void write_through(Bytes bytes);
  [[noreturn]] void fail(int error);

  std::string path_;       // as the user wrote it, for messages
  std::string target_;     // links followed
  std::string temporary_;  // empty: the target is written directly
  int fd_ = -1;
  std::vector<unsigned char> buffer_;  // small writes are gathered
};

}  // namespace TAPEDECK_API
