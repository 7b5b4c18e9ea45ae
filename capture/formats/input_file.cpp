#include <tapedeck/capture/formats/input_file.h>

#include <tapedeck/capture/formats/file_calls.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/interruption.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tapedeck {

namespace {

constexpr std::size_t kFirstTextBytes = 1 << 16;
constexpr std::size_t kMostReadAtOnce = 1 << 26;  // then an interruption is heeded
constexpr int kReadWaitMs = 100;                  // likewise

[[noreturn]] void fail(std::string_view path, std::string_view reason) {
  throw FileError(fmt::format("{}: cannot read: {}", path, reason));
}

[[noreturn]] void fail(std::string_view path, int error) { fail(path, std::string_view(std::strerror(error))); }

int open_to_read(const std::string& path, int more_flags) {
  const int fd = is_refused(FileCall::open) ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | more_flags);
  if (fd < 0) fail(path, errno);
  return fd;
}

struct stat information_on(int fd, std::string_view path) {
  struct stat info;
  if (::fstat(fd, &info) != 0) fail(path, errno);
  return info;
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return std::strerror(EISDIR);
  if (S_ISFIFO(mode)) return "it is a pipe, and its size must be known; copy it to a file first";
  if (S_ISSOCK(mode)) return "it is a socket";
  return "it is a device";
}

// Once more after an interruption. Returns the number of bytes, 0 at the end.
std::size_t read_some(int fd, std::uint64_t at, std::span<unsigned char> to, const std::string& path) {
  for (;;) {
    const ssize_t n = is_refused(FileCall::read) ? -1 : ::pread(fd, to.data(), to.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, errno);
    return static_cast<std::size_t>(n);
  }
}

// Waits for the next bytes of a pipe or terminal, or its end. Returns at once for a file.
void wait_for_bytes(int fd) {
  struct pollfd wanted = {fd, POLLIN, 0};
  do stop_if_interrupted();
  while (::poll(&wanted, 1, kReadWaitMs) == 0);
}

struct Descriptor {
  int fd;
  ~Descriptor() { ::close(fd); }
};

}  // namespace

// ---- a file of known size ----

// Not blocking, because opening a pipe would wait for its writer.
InputFile::InputFile(const std::string& path) : ByteSource(path), fd_(open_to_read(path, O_NONBLOCK)) {
  struct stat info;
  const int error = ::fstat(fd_, &info) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(info.st_mode)) {
    size_ = static_cast<std::uint64_t>(info.st_size);
    seconds_ = info.st_mtim.tv_sec;
    nanoseconds_ = info.st_mtim.tv_nsec;
    return;
  }
  ::close(fd_);
  error != 0 ? fail(path, error) : fail(path, kind_of(info.st_mode));
}

InputFile::~InputFile() { ::close(fd_); }

void InputFile::read(std::uint64_t at, std::span<unsigned char> to) const {
  while (!to.empty()) {
    stop_if_interrupted();
    const std::size_t n = read_some(fd_, at, to.first(std::min(to.size(), kMostReadAtOnce)), path_);
    if (n == 0) fail(path_, fmt::format("it was cut off to {} bytes while it was read", at));
    to = to.subspan(n);
    at += n;
  }
}

void InputFile::check_unchanged() const {
  const struct stat now = information_on(fd_, path_);
  if (static_cast<std::uint64_t>(now.st_size) != size_ || now.st_mtim.tv_sec != seconds_ || now.st_mtim.tv_nsec != nanoseconds_)
    fail(path_, std::string_view("it was changed while it was read"));
}

// ---- text ----

std::string read_text_from(int fd, std::string_view name, std::size_t most) {
  const struct stat info = information_on(fd, name);
  if (S_ISDIR(info.st_mode) || S_ISBLK(info.st_mode) || (S_ISCHR(info.st_mode) && ::isatty(fd) == 0))
    fail(name, std::string_view(kind_of(info.st_mode)));
  const auto too_long = [&] { fail(name, fmt::format("it is longer than {} bytes, the most for a text", most)); };
  const bool is_sized = S_ISREG(info.st_mode);
  if (is_sized && static_cast<std::uint64_t>(info.st_size) > most) too_long();
  std::string text(is_sized ? static_cast<std::size_t>(info.st_size) + 1 : kFirstTextBytes, '\0');
  for (std::size_t size = 0;;) {
    wait_for_bytes(fd);
    const ssize_t n = is_refused(FileCall::read) ? -1 : ::read(fd, &text[size], text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(name, errno);
    size += static_cast<std::size_t>(n);
    if (size > most) too_long();
    if (n == 0) return text.resize(size), text;
    if (size == text.size()) text.resize(size + std::max(size / 2, kFirstTextBytes));
  }
}

std::string read_text_file(const std::string& path, std::size_t most) {
  const Descriptor file{open_to_read(path, 0)};
  return read_text_from(file.fd, path, most);
}

}  // namespace tapedeck
