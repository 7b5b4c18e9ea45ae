// Runs zlib's decompressor over the compressed bytes, which are read from the file 64 KiB at a time.
#include <tapedeck/capture/formats/inflated_source.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/interruption.h>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::size_t kInputBytes = 1 << 16;
constexpr std::size_t kPieceBytes = 1 << 18;  // between two of these an interruption is heeded
constexpr int kRawDeflate = -15;              // no header of zlib; the window has 2^15 bytes

}  // namespace

struct InflatedSource::Stream {
  Stream(const ByteSource& source, std::uint64_t first, std::uint64_t packed, std::string name)
      : file(source), begin(first), end(first + packed), next(first), path(std::move(name)), input(kInputBytes) {
    if (::inflateInit2(&zlib, kRawDeflate) != Z_OK) throw ExecutionError(path + ": no memory is left to decompress it");
  }
  ~Stream() { ::inflateEnd(&zlib); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[noreturn]] void fail(const std::string& reason) const {
    throw FileError(fmt::format("{}: cannot be decompressed: {}", path, reason));
  }

  void begin_again() {
    ::inflateReset(&zlib);
    zlib.avail_in = 0;
    next = begin;
    done = 0;
    sum = 0;
    ended = false;
  }

  // Fills `to` with the bytes that come next.
  void take(std::span<unsigned char> to) {
    while (!to.empty()) {
      const std::size_t n = take_some(to.first(std::min(to.size(), kPieceBytes)));
      if (n == 0 && ended) fail(fmt::format("its compressed bytes give only {} bytes", done));
      sum = static_cast<std::uint32_t>(::crc32_z(sum, to.data(), n));
      done += n;
      to = to.subspan(n);
    }
  }

  // Returns how many bytes came. Each call consumes compressed bytes, gives bytes, or meets the end.
  std::size_t take_some(std::span<unsigned char> to) {
    stop_if_interrupted();
    if (ended) return 0;
    if (zlib.avail_in == 0) refill();
    zlib.next_out = to.data();
    zlib.avail_out = static_cast<uInt>(to.size());
    const int code = ::inflate(&zlib, Z_NO_FLUSH);
    const std::size_t n = to.size() - zlib.avail_out;
    if (code == Z_MEM_ERROR) throw ExecutionError(path + ": no memory is left to decompress it");
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
      fail(fmt::format("it is damaged before byte {} of the file ({})", consumed(), zlib.msg ? zlib.msg : "not deflate"));
    ended = code == Z_STREAM_END;
    if (n == 0 && !ended && zlib.avail_in == 0 && next == end) fail("its compressed bytes end in the middle");
    return n;
  }

  void refill() {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kInputBytes, end - next));
    file.read(next, std::span(input).first(n));
    next += n;
    zlib.next_in = input.data();
    zlib.avail_in = static_cast<uInt>(n);
  }

  std::uint64_t consumed() const { return next - zlib.avail_in; }  // the place of the first byte that was not consumed

  const ByteSource& file;
  std::uint64_t begin, end, next;  // of the compressed bytes in the file; `next` is the first that was not read
  std::string path;
  std::vector<unsigned char> input;
  z_stream zlib = {};
  std::uint64_t done = 0;  // how many bytes were given
  std::uint32_t sum = 0;   // their CRC-32
  bool ended = false;      // the stream has said that it ends here
};

InflatedSource::InflatedSource(const ByteSource& file, std::uint64_t begin, std::uint64_t packed, std::uint64_t size,
                               std::string path)
    : ByteSource(std::move(path)), stream_(std::make_unique<Stream>(file, begin, packed, path_)) {
  size_ = size;
}

InflatedSource::~InflatedSource() = default;

void InflatedSource::read(std::uint64_t at, std::span<unsigned char> to) const {
  if (at < stream_->done) stream_->begin_again();
  std::vector<unsigned char> skipped(static_cast<std::size_t>(std::min<std::uint64_t>(at - stream_->done, kPieceBytes)));
  while (stream_->done < at)
    stream_->take(std::span(skipped).first(static_cast<std::size_t>(std::min<std::uint64_t>(at - stream_->done, kPieceBytes))));
  stream_->take(to);
}

std::uint32_t InflatedSource::finish() const {
  unsigned char more = 0;
  while (!stream_->ended)
    if (stream_->take_some({&more, 1}) != 0) stream_->fail(fmt::format("its compressed bytes give more than {} bytes", size_));
  if (const std::uint64_t behind = stream_->end - stream_->consumed(); behind != 0)
    stream_->fail(fmt::format("{} bytes follow the end of its compressed data", behind));
  return stream_->sum;
}

}  // namespace tapedeck
