#include <tapedeck/capture/live/live_folder.h>

#include <tapedeck/capture/live/live_status.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tapedeck::live {

Descriptor& Descriptor::operator=(Descriptor&& o) noexcept {
  std::swap(fd_, o.fd_);
  return *this;
}
Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}
int Descriptor::release() noexcept { return std::exchange(fd_, -1); }

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& why) { throw FileError(fmt::format("{}: {}", path, why)); }
[[noreturn]] void fail_of_system(const std::string& path) { fail(path, std::strerror(errno)); }

std::string users_base() {
  const char* const runtime = ::secure_getenv("XDG_RUNTIME_DIR");
  if (runtime && runtime[0] == '/') return std::string(runtime) + "/tapedeck-live";
  std::error_code ignored;
  std::filesystem::path temporary = std::filesystem::temp_directory_path(ignored);
  if (temporary.empty()) temporary = "/tmp";
  return fmt::format("{}/tapedeck-live-{}", temporary.string(), ::geteuid());
}

// A folder in which nobody but this user can have made or replaced anything.
void require_private(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) fail_of_system(path);
  if (S_ISLNK(found.st_mode)) fail(path, "is a link, and a live view is written to a folder alone");
  if (!S_ISDIR(found.st_mode)) fail(path, "is no folder");
  if (found.st_uid != ::geteuid()) fail(path, "belongs to another user");
  if ((found.st_mode & 022) != 0) fail(path, "other users may write in it");
}

constexpr std::size_t kMostInfoBytes = 4096;

bool read_number(std::string_view text, std::int64_t* number) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *number);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && *number >= 0;
}

Descriptor open_file(int folder, const char* name, int flags) {
  return Descriptor(::openat(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
}

bool is_plain_file(int fd) {
  struct stat found {};
  return ::fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
}

// Removes the files of a folder, and the folder. Nothing inside is followed, and no folder inside is entered.
void remove_folder(const std::string& path) noexcept {
  try {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path)) names.push_back(entry.path().string());
    for (const std::string& name : names) ::unlink(name.c_str());
  } catch (const std::exception&) {
    return;  // it is gone already, or cannot be read
  }
  ::rmdir(path.c_str());
}

}  // namespace

std::string base_folder(const std::string& base) {
  const std::string path = base.empty() ? users_base() : base;
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail_of_system(path);
  require_private(path);
  return path;
}

std::string make_program_folder(const std::string& base, const std::string& name) {
  const std::string parent = base_folder(base);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  for (int i = 0; i < 100; ++i) {
    std::string path = fmt::format("{}/{}-{}-{}", parent, clean_name(name), ::getpid(), ms + i);
    if (::mkdir(path.c_str(), 0700) == 0) return path;
    if (errno != EEXIST) fail_of_system(path);
  }
  fail(parent, "holds too many folders of this process");
}

Descriptor open_folder(const std::string& folder) {
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) fail_of_system(folder);
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) fail_of_system(folder);
  if (found.st_uid != ::geteuid()) fail(folder, "belongs to another user");
  return fd;
}

std::string clean_name(const std::string& name) {
  std::string clean;
  for (const char c : name)
    if (clean.size() < 40) clean += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ? c : '_';
  if (clean.empty() || clean[0] == '.') clean.insert(0, "program");
  return clean;
}

std::string own_program_name() {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  return clean_name(failed ? "program" : self.filename().string());
}

// ---- who writes it ----

void write_info(int folder, const ProgramInfo& info) {
  const std::string text = fmt::format("format=1\nname={}\nprocess={}\nstarted={}\n", info.name, info.process, info.started);
  const Descriptor file = open_file(folder, "info", O_WRONLY | O_CREAT | O_EXCL);
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    fail_of_system("info of the live view");
}

bool read_info(int folder, ProgramInfo* info) {
  const Descriptor file = open_file(folder, "info", O_RDONLY);
  if (!file || !is_plain_file(file.get())) return false;
  char bytes[kMostInfoBytes];
  const ssize_t n = ::read(file.get(), bytes, sizeof(bytes));
  if (n <= 0) return false;
  std::string_view text(bytes, static_cast<std::size_t>(n));
  int found = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = line.substr(0, equals), value = line.substr(equals + 1);
    if (key == "format" && value != "1") return false;
    if (key == "name") info->name = clean_name(std::string(value)), ++found;
    if (key == "process" && !read_number(value, &info->process)) return false;
    if (key == "started" && !read_number(value, &info->started)) return false;
  }
  return found == 1 && info->process > 0;
}

// ---- locks ----

Descriptor lock_alive(int folder) {
  Descriptor file = open_file(folder, "alive", O_RDWR | O_CREAT);
  if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) fail_of_system("alive of the live view");
  return file;
}

Descriptor lock_watched(int folder) {
  Descriptor file = open_file(folder, "watched", O_RDWR | O_CREAT);
  if (!file || !is_plain_file(file.get()) || ::flock(file.get(), LOCK_SH | LOCK_NB) != 0) return {};
  return file;
}

bool is_alive(int folder) noexcept {
  const Descriptor file = open_file(folder, "alive", O_RDONLY);
  return file && is_plain_file(file.get()) && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void remove_if_unused(const std::string& path) noexcept {
  try {
    const Descriptor folder = open_folder(path);
    if (is_alive(folder.get())) return;
    const Descriptor watched = open_file(folder.get(), "watched", O_RDWR | O_CREAT);
    if (watched && ::flock(watched.get(), LOCK_EX | LOCK_NB) != 0) return;
    remove_folder(path);
  } catch (const std::exception&) {
    return;  // it is gone, or it is none of ours
  }
}

// ---- the list ----

namespace {

// A program locks its folder before it writes `info`, so a folder without it is not finished, or none of ours.
bool look_at(const std::string& path, RunningProgram* program) {
  const Descriptor folder = open_folder(path);
  program->folder = path;
  if (!read_info(folder.get(), &program->info)) return false;
  program->alive = is_alive(folder.get());
  Status status;
  if (read_status(folder.get(), &status)) {
    program->ops = status.ops;
    program->live_bytes = status.live;
  }
  if (program->alive) return true;
  remove_if_unused(path);
  return std::filesystem::exists(path);
}

// Only a folder that bears the name of a program's folder is looked at: NAME-PROCESS-START.
bool is_program_folder(const std::string& name) {
  const std::size_t last = name.rfind('-');
  if (last == std::string::npos || last == 0) return false;
  const std::size_t before = name.rfind('-', last - 1);
  if (before == std::string::npos) return false;
  std::int64_t number = 0;
  return read_number(std::string_view(name).substr(last + 1), &number) &&
         read_number(std::string_view(name).substr(before + 1, last - before - 1), &number);
}

}  // namespace

std::vector<RunningProgram> running_programs(const std::string& base) noexcept {
  std::vector<RunningProgram> programs;
  try {
    const std::string parent = base.empty() ? users_base() : base;
    require_private(parent);
    for (const auto& entry : std::filesystem::directory_iterator(parent)) {
      RunningProgram program;
      try {
        if (is_program_folder(entry.path().filename().string()) && look_at(entry.path().string(), &program))
          programs.push_back(std::move(program));
      } catch (const std::exception&) {
        continue;  // a folder that went away meanwhile, or that is none of ours
      }
    }
    std::stable_sort(programs.begin(), programs.end(), [](const RunningProgram& a, const RunningProgram& b) {
      if (a.alive != b.alive) return a.alive;
      return a.info.started != b.info.started ? a.info.started > b.info.started : a.folder < b.folder;
    });
  } catch (const std::exception&) {
    return programs;  // there is no folder of folders yet, or it is not to be trusted
  }
  return programs;
}

}  // namespace tapedeck::live
