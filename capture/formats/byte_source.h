// Bytes of known number that are read range by range: a file, or memory.
#pragma once

#include <tapedeck/capture/formats/checksum.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace tapedeck {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  const std::string& path() const { return path_; }  // for messages
  std::uint64_t size() const { return size_; }
  // Copies the bytes from `at` on. REQUIRES: at + to.size() <= size(). Throws FileError.
  virtual void read(std::uint64_t at, std::span<unsigned char> to) const = 0;
  // Throws FileError if the bytes have changed since the source was made, as far as that can be seen.
  virtual void check_unchanged() const {}

 protected:
  explicit ByteSource(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::uint64_t size_ = 0;
};

class MemorySource final : public ByteSource {
 public:
  // REQUIRES: the bytes outlive this object.
  MemorySource(Bytes bytes, std::string path);
  void read(std::uint64_t at, std::span<unsigned char> to) const override;

 private:
  Bytes bytes_;
};

// The XXH64 of a range, which is read piece by piece.
std::uint64_t checksum(const ByteSource& source, std::uint64_t at, std::uint64_t size);
// Whether all bytes of a range are zero.
bool all_zero(const ByteSource& source, std::uint64_t at, std::uint64_t size);

}  // namespace tapedeck
