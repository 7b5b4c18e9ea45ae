// Writes a temporary file in the folder of the target, syncs it and renames it over the target. A writer that is destroyed
// before commit() removes the temporary file.
#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tapedeck {
namespace {

constexpr std::size_t kBufferBytes = 1 << 18;
constexpr int kTries = 100;  // names left behind by a killed process of the same number

// Syncs the folder, so that the rename itself survives a power cut. A file system that cannot sync a folder answers EINVAL and
// has no need of it.
int sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return 0;  // a folder that may be written to but not listed
  const int error = ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
  ::close(fd);
  return error;
}

std::string follow_link(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
  return error ? path : target.string();
}

}  // namespace

AtomicWriter::AtomicWriter(const std::string& path) : path_(path), target_(follow_link(path)) {
  buffer_.reserve(kBufferBytes);
  struct stat info;
  const bool there = ::stat(target_.c_str(), &info) == 0;
  if (there && S_ISDIR(info.st_mode)) fail(EISDIR);
  if (there && !S_ISREG(info.st_mode)) {
    fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail(errno);
    return;
  }
  if (there && ::access(target_.c_str(), W_OK) != 0) fail(errno);  // a rename would succeed without this permission
  open_beside();
  if (there && ::fchmod(fd_, info.st_mode & 07777) != 0) fail(errno);
}

AtomicWriter::~AtomicWriter() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicWriter::open_beside() {
  static std::atomic<unsigned> serial{0};
  for (int i = 0; i < kTries && fd_ < 0; ++i) {
    temporary_ = fmt::format("{}.tmp.{}.{}", target_, ::getpid(), serial++);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  if (fd_ >= 0) return;
  temporary_.clear();  // the file belongs to another writer
  fail(errno);
}

// Removes the temporary file itself: the destructor does not run for a constructor that throws.
void AtomicWriter::fail(int error) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
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
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void AtomicWriter::commit() {
  flush();
  if (!temporary_.empty() && ::fsync(fd_) != 0) fail(errno);
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0) fail(errno);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
  const std::string folder = std::filesystem::path(target_).parent_path().string();
  if (const int error = sync_folder(folder.empty() ? "." : folder)) fail(error);
}

}  // namespace tapedeck
