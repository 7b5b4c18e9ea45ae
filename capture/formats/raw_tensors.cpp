// Tensors without a container, from a file or from a stream.
#include <tapedeck/capture/formats/tensor_files.h>

#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/capture/formats/npy.h>
#include <tapedeck/capture/formats/safetensors.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/interruption.h>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace tapedeck {

namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::size_t kNpyStart = 12;  // magic, version, and the length of the header in its longest form
constexpr std::size_t kMostNpyHeader = 1 << 16;
constexpr std::size_t kMostAtOnce = 1 << 20;
constexpr int kWaitMs = 100;

}  // namespace

Tensor load_raw(const std::string& path, const Type& type) {
  const InputFile file(path);
  const auto wanted = static_cast<std::uint64_t>(type.bytes());
  if (file.size() != wanted)
    throw FileError(fmt::format("{}: {} bytes, but {} takes {}", path, file.size(), to_string(type), wanted));
  Tensor tensor = read_tensor(file, {"the tensor", type, 0});
  file.check_unchanged();
  return tensor;
}

std::optional<Tensor> TensorStream::next(const Type& type) {
  const auto raw = static_cast<std::size_t>(type.bytes());
  if (!fill(std::max<std::size_t>(raw, 1)) && ahead_.empty()) return std::nullopt;
  if (begins_like_npy() && fill(kNpyMagic.size()) && begins_like_npy()) return take_npy(type);
  if (ahead_.size() < raw)
    throw FileError(fmt::format("{}: it ended after {} of the {} bytes of {}", name_, ahead_.size(), raw, to_string(type)));
  Tensor tensor = read_tensor(MemorySource({ahead_.data(), raw}, name_), {"the tensor", type, 0});
  ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(raw));
  return tensor;
}

// As far as bytes have been read. A writer may wait for the step that follows, so no more are read than are needed.
bool TensorStream::begins_like_npy() const {
  return std::memcmp(ahead_.data(), kNpyMagic.data(), std::min(ahead_.size(), kNpyMagic.size())) == 0;
}

// The header says how many bytes follow only once it is parsed, so the type that is wanted says it. An array of another type
// is either too short or fails in read_npy().
Tensor TensorStream::take_npy(const Type& type) {
  const auto ended = [&] { return FileError(fmt::format("{}: it ended in the middle of an .npy array", name_)); };
  if (!fill(kNpyStart)) throw ended();
  const bool is_short = ahead_[6] == 1;
  std::uint32_t length = 0;
  std::memcpy(&length, &ahead_[8], is_short ? 2 : 4);
  const std::size_t begin = is_short ? 10 : 12;
  if (length > kMostNpyHeader) throw FileError(fmt::format("{}: not a readable .npy array: its header is too long", name_));
  const std::size_t size = begin + length + static_cast<std::size_t>(type.bytes());
  if (!fill(size)) throw ended();
  Tensor tensor = read_npy(MemorySource({ahead_.data(), size}, name_));
  ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(size));
  return tensor;
}

// A signal ends poll() early, and read() would not heed what the signal asks for.
void TensorStream::wait_for_bytes() const {
  struct pollfd wanted = {fd_, POLLIN, 0};
  int ready = 0;
  do {
    stop_if_interrupted();
    ready = ::poll(&wanted, 1, kWaitMs);
  } while (ready == 0 || (ready < 0 && errno == EINTR));
}

bool TensorStream::fill(std::size_t bytes) {
  while (ahead_.size() < bytes) {
    wait_for_bytes();
    const std::size_t before = ahead_.size(), more = std::min(bytes - before, kMostAtOnce);
    ahead_.resize(before + more);
    const ssize_t n = ::read(fd_, &ahead_[before], more);
    const int error = errno;
    ahead_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && error != EINTR) throw FileError(fmt::format("{}: cannot read: {}", name_, std::strerror(error)));
    if (n == 0) return false;
  }
  return true;
}

}  // namespace tapedeck
