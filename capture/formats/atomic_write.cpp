// Writes a temporary file in the folder of the target, syncs it and renames it over the target. A writer that is destroyed
// before commit() removes the temporary file. A limit on the size of files is an error like a full disk.
#include <tapedeck/capture/formats/atomic_write.h>

#include <tapedeck/capture/formats/file_calls.h>
#include <tapedeck/engine/ir/error.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <utility>

namespace tapedeck {
namespace {

constexpr std::size_t kBufferBytes = 1 << 18;
constexpr int kMostLinks = 40;  // as the kernel

// Syncs the folder, so that the rename itself survives a power cut. A file system that cannot sync a folder answers EINVAL and
// has no need of it.
int sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return 0;  // a folder that may be written to but not listed
  const bool synced = !is_refused(FileCall::sync) && ::fsync(fd) == 0;
  const int error = synced || errno == EINVAL || errno == EROFS ? 0 : errno;
  ::close(fd);
  return error;
}

// The name that the links lead to, whether there is such a file or not. Of a circle of links some member, which cannot be
// opened.
std::string follow_links(const std::string& path) {
  std::filesystem::path at(path);
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(at, error); ++i) {
    const std::filesystem::path to = std::filesystem::read_symlink(at, error);
    if (error) break;
    at = at.parent_path() / to;  // `to` alone if it is absolute
  }
  return at.string();
}

// Asked from the system, because umask() would change the mask for a moment, for all threads.
unsigned creation_mask() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Umask:")) return static_cast<unsigned>(std::stoul(line.substr(6), nullptr, 8)) & 0777;
  return 077;
}

// While it lives, a write beyond the limit on the size of files fails with EFBIG. Without it the signal ends the process.
class SizeLimitIsError {
 public:
  SizeLimitIsError() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~SizeLimitIsError() {
    const struct timespec now = {};
    if (!was_pending_) ::sigtimedwait(&signal_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SizeLimitIsError(const SizeLimitIsError&) = delete;
  SizeLimitIsError& operator=(const SizeLimitIsError&) = delete;

 private:
  sigset_t signal_, before_;
  bool was_pending_ = false;
};

}  // namespace

AtomicWriter::AtomicWriter(const std::string& path) : path_(path), target_(follow_links(path)) {
  buffer_.reserve(kBufferBytes);
  struct stat info;
  const bool there = ::stat(target_.c_str(), &info) == 0;
  if (!there && errno != ENOENT) fail(errno);
  if (there && S_ISDIR(info.st_mode)) fail(EISDIR);
  if (target_.empty() || target_.back() == '/') fail(target_.empty() ? ENOENT : EISDIR);
  if (there && !S_ISREG(info.st_mode)) {
    direct_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (direct_ < 0) fail(errno);
    return;
  }
  if (there && ::access(target_.c_str(), W_OK) != 0) fail(errno);  // a rename would succeed without this permission
  mode_ = there ? info.st_mode & 07777 : 0666 & ~creation_mask();
  if (const int error = temporary_.make_beside(target_)) fail(error);
}

AtomicWriter::~AtomicWriter() {
  if (direct_ >= 0) ::close(direct_);
}

void AtomicWriter::fail(int error) {
  temporary_.remove();
  throw FileError(fmt::format("{}: cannot write: {}", path_, std::strerror(error)));
}

void AtomicWriter::write(Bytes bytes) {
  const bool large = bytes.size() > kBufferBytes / 2;  // not worth copying; the bytes in the buffer are written first
  if (large || buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (large)
    write_through(bytes);
  else
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void AtomicWriter::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void AtomicWriter::write_through(Bytes bytes) {
  const SizeLimitIsError scope;
  const int fd = direct_ >= 0 ? direct_ : temporary_.descriptor();
  while (!bytes.empty()) {
    const ssize_t n = is_refused(FileCall::write) ? -1 : ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void AtomicWriter::commit() {
  flush();
  if (direct_ >= 0) {
    if (::close(std::exchange(direct_, -1)) != 0) fail(errno);
    return;
  }
  const int fd = temporary_.descriptor();
  if (::fchmod(fd, mode_) != 0) fail(errno);
  if (is_refused(FileCall::sync) || ::fsync(fd) != 0) fail(errno);
  if (const int error = temporary_.rename_over(target_)) fail(error);
  const std::string folder = std::filesystem::path(target_).parent_path().string();
  if (const int error = sync_folder(folder.empty() ? "." : folder)) fail(error);
}

}  // namespace tapedeck
