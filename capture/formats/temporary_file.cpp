#include <tapedeck/capture/formats/temporary_file.h>

#include <tapedeck/capture/formats/checksum.h>
#include <tapedeck/capture/formats/file_calls.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

namespace tapedeck {

namespace {

constexpr int kCleanedNames = 16;  // leftovers are looked for under so many names
constexpr int kNames = 1000;       // more writers at one time are an error

// The files of this process. A file is made, renamed and removed under the lock, so that the list is true at any time.
struct Made {
  std::mutex mutex;
  std::set<std::string> paths;
};

Made& made() {
  static Made& all = *new Made;  // never destroyed: a signal may come while the process ends
  return all;
}

std::string name_of(const std::string& target, int k) {
  const std::filesystem::path path(target);
  const std::string name = path.filename().string();
  const std::uint64_t hash = checksum({reinterpret_cast<const unsigned char*>(name.data()), name.size()});
  return (path.parent_path() / fmt::format(".tapedeck-{}-{}", checksum_text(hash), k)).string();
}

bool is_locked_by_another(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

// Whether the descriptor is the file that has this name. A descriptor whose file was removed or renamed is not.
bool has_name(int fd, const std::string& path) {
  struct stat open_file, named;
  return ::fstat(fd, &open_file) == 0 && ::lstat(path.c_str(), &named) == 0 && open_file.st_dev == named.st_dev &&
         open_file.st_ino == named.st_ino;
}

// Without locks on this file system nobody can tell, and the file stays.
void remove_leftover(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && has_name(fd, path)) ::unlink(path.c_str());
  ::close(fd);
}

}  // namespace

int TemporaryFile::make_beside(const std::string& target) {
  const std::lock_guard lock(made().mutex);
  int error = 0;
  for (int k = 0; k < kCleanedNames || (fd_ < 0 && k < kNames); ++k) {
    const std::string path = name_of(target, k);
    remove_leftover(path);
    if (fd_ >= 0) continue;
    error = try_name(path);
    if (error != 0 && error != EEXIST) return error;
  }
  return error;
}

int TemporaryFile::try_name(const std::string& path) {
  const int fd = is_refused(FileCall::open) ? -1 : ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  // Between open and flock another writer may take the file for a leftover.
  if (is_locked_by_another(fd) || !has_name(fd, path)) {
    ::close(fd);
    return EEXIST;
  }
  made().paths.insert(path);
  path_ = path;
  fd_ = fd;
  return 0;
}

// The file keeps its lock until it has its new name.
int TemporaryFile::rename_over(const std::string& target) {
  const std::lock_guard lock(made().mutex);
  if (is_refused(FileCall::rename) || ::rename(path_.c_str(), target.c_str()) != 0) return errno;
  made().paths.erase(path_);
  ::close(std::exchange(fd_, -1));
  return 0;
}

void TemporaryFile::remove() {
  if (fd_ < 0) return;
  const std::lock_guard lock(made().mutex);
  ::unlink(path_.c_str());
  made().paths.erase(path_);
  ::close(std::exchange(fd_, -1));
}

void remove_temporary_files() {
  made().mutex.lock();  // for ever
  for (const std::string& path : made().paths) ::unlink(path.c_str());
}

}  // namespace tapedeck
