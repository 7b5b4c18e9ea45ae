// Reads files into memory of the caller. Nothing is mapped: a file that is cut off or rewritten meanwhile gives an error, and
// bytes that were checked stay as they were checked.
#pragma once

#include <tapedeck/capture/formats/byte_source.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tapedeck {

// A regular file whose ranges are read. The constructor throws FileError, with the system's reason, for a file that cannot be
// opened, and for folders, pipes and devices: their size is not known.
class InputFile final : public ByteSource {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile() override;
  void read(std::uint64_t at, std::span<unsigned char> to) const override;
  void check_unchanged() const override;  // compares the size and the time of the last write

 private:
  int fd_ = -1;
  std::int64_t seconds_ = 0, nanoseconds_ = 0;  // the last write
};

inline constexpr std::size_t kMostTextBytes = std::size_t{1} << 28;

// The whole of a text file, a pipe or a terminal. Throws FileError for devices, and for text longer than `most` bytes.
TAPEDECK_API std::string read_text_file(const std::string& path, std::size_t most = kMostTextBytes);
// Reads from a descriptor that is open; `name` is for messages.
TAPEDECK_API std::string read_text_from(int fd, std::string_view name, std::size_t most = kMostTextBytes);

}  // namespace tapedeck
