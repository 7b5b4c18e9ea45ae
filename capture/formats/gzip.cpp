// Runs zlib's decompressor, which checks the header and the checksum of each member, piece by piece.
#include <tapedeck/capture/formats/gzip.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/interruption.h>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

namespace tapedeck {

namespace {

constexpr std::string_view kGzipStart = "\x1f\x8b";
constexpr int kOnlyGzip = 15 + 16;                                 // a window of 2^15 bytes; the header and the trailer of gzip
constexpr std::size_t kUnpackedPieceBytes = std::size_t{1} << 18;  // that come out between two looks for an interruption
constexpr std::size_t kPackedBytes = std::size_t{1} << 20;         // that go in at once

class Gunzip {
 public:
  Gunzip(std::string_view packed, const std::string& path, std::size_t most) : left_(packed), path_(path), most_(most) {
    if (::inflateInit2(&zlib_, kOnlyGzip) != Z_OK) out_of_memory();
  }
  ~Gunzip() { ::inflateEnd(&zlib_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  std::string run() {
    do take_member();
    while (begins_another());
    text_.resize(size_);
    return std::move(text_);
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw FileError(fmt::format("{}: cannot be decompressed: {}", path_, reason));
  }
  [[noreturn]] void out_of_memory() const { throw ExecutionError(path_ + ": no memory is left to decompress it"); }

  void take_member() {
    for (bool ended = false; !ended;) {
      stop_if_interrupted();
      ended = take_piece();
      if (size_ > most_) fail(fmt::format("it gives more than {} bytes, the most for a text", most_));
    }
  }

  // Returns whether the member ends here.
  bool take_piece() {
    if (text_.size() - size_ < kUnpackedPieceBytes)
      text_.resize(size_ + std::max(kUnpackedPieceBytes, std::min(size_, most_ - size_)));
    const std::size_t given = std::min(left_.size(), kPackedBytes);
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(left_.data()));  // zlib reads only
    zlib_.avail_in = static_cast<uInt>(given);
    zlib_.next_out = reinterpret_cast<Bytef*>(&text_[size_]);
    zlib_.avail_out = static_cast<uInt>(kUnpackedPieceBytes);
    const int code = ::inflate(&zlib_, Z_NO_FLUSH);
    left_.remove_prefix(given - zlib_.avail_in);
    size_ += kUnpackedPieceBytes - zlib_.avail_out;
    if (code == Z_MEM_ERROR) out_of_memory();
    if (code == Z_BUF_ERROR) fail("its compressed bytes end in the middle");
    if (code != Z_OK && code != Z_STREAM_END) fail(fmt::format("it is damaged ({})", zlib_.msg ? zlib_.msg : "not gzip"));
    return code == Z_STREAM_END;
  }

  // Some programs fill the last block of a tape or a disk with zeros.
  bool begins_another() {
    if (is_gzip(left_)) return ::inflateReset(&zlib_) == Z_OK;
    if (left_.find_first_not_of('\0') != left_.npos)
      fail(fmt::format("{} bytes follow the end of its compressed data", left_.size()));
    return false;
  }

  std::string_view left_;  // was not consumed yet
  const std::string& path_;
  std::size_t most_;
  z_stream zlib_ = {};
  std::string text_;
  std::size_t size_ = 0;  // of `text_` that is filled
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with(kGzipStart); }

std::string gunzip(std::string_view packed, const std::string& path, std::size_t most) {
  return Gunzip(packed, path, most).run();
}

std::string unpacked_text(std::string bytes, const std::string& path, std::size_t most) {
  return is_gzip(bytes) ? gunzip(bytes, path, most) : std::move(bytes);
}

}  // namespace tapedeck
