// A part of a file that is compressed by deflate (RFC 1951), as a source of the bytes that were compressed.
#pragma once

#include <tapedeck/capture/formats/byte_source.h>

#include <cstdint>
#include <memory>
#include <string>

namespace tapedeck {

// Deflate spends at least two bits on a match, and a match is at most 258 bytes. So no stream gives more than this many bytes
// for each of its own.
inline constexpr std::uint64_t kMostInflation = 1032;

// The bytes are decompressed in pieces into the memory of the caller, and interruptions are heeded between the pieces. Beside
// that memory it takes less than 400 KiB. Reads in ascending order decompress every byte once. A read that goes back begins
// again with the first byte. Not thread safe, although read() is const.
class InflatedSource final : public ByteSource {
 public:
  // The source has `size` bytes, which the `packed` bytes of the file from `begin` on must give. `path` is for messages.
  // REQUIRES: `file` outlives this object; begin + packed <= file.size(). Throws ExecutionError if memory runs out.
  InflatedSource(const ByteSource& file, std::uint64_t begin, std::uint64_t packed, std::uint64_t size, std::string path);
  ~InflatedSource() override;

  // Throws FileError if the compressed bytes are damaged, or end before `to` is full.
  void read(std::uint64_t at, std::span<unsigned char> to) const override;
  // The CRC-32 of all bytes. Throws FileError unless the stream ends behind its `size` bytes and with the last of its `packed`
  // bytes. REQUIRES: the last read ended at size().
  std::uint32_t finish() const;

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace tapedeck
