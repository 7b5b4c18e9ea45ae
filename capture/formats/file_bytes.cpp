#include <tapedeck/capture/formats/file_bytes.h>
#include <tapedeck/engine/ir/error.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tapedeck {
namespace {

// A pipe has no size; the limit keeps a source without an end from taking all memory.
constexpr std::size_t kMaxPipeBytes = std::size_t{1} << 30;

[[noreturn]] void fail(const std::string& path, int error) {
  throw FileError(fmt::format("{}: cannot read: {}", path, std::strerror(error)));
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::vector<unsigned char> read_to_end(const std::string& path, int fd) {
  std::vector<unsigned char> bytes;
  std::vector<unsigned char> piece(1 << 16);
  for (;;) {
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, errno);
    if (n == 0) return bytes;
    bytes.insert(bytes.end(), piece.begin(), piece.begin() + n);
    if (bytes.size() > kMaxPipeBytes) throw FileError(fmt::format("{}: not a regular file, and longer than 1 GiB", path));
  }
}

}  // namespace

FileBytes::FileBytes(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info;
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0) fail(path, errno);
  if (S_ISDIR(info.st_mode)) fail(path, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    read_ = read_to_end(path, file.fd);
    bytes_ = read_;
    return;
  }
  if (info.st_size == 0) return;
  const auto size = static_cast<std::size_t>(info.st_size);
  void* map = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.fd, 0);
  if (map == MAP_FAILED) fail(path, errno);
  map_ = map;
  bytes_ = {static_cast<const unsigned char*>(map), size};
}

FileBytes::~FileBytes() {
  if (map_) ::munmap(map_, bytes_.size());
}

}  // namespace tapedeck
