#include <tapedeck/capture/tool/files/script_cache.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/capture/formats/cache_folder.h>
#include <tapedeck/capture/formats/file_checksum.h>
#include <tapedeck/engine/ir/error.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

namespace tapedeck::tool {

namespace {

namespace fs = std::filesystem;

fs::path cache_home() {
  fs::path folder = user_cache_folder();
  if (folder.empty())
    throw FileError("run: there is no folder for compiled scripts: neither XDG_CACHE_HOME nor HOME names a folder");
  return folder;
}

// A program that another user has put into the cache would run as this user. The folder of the programs belongs to the user
// alone. Above it, others must not be able to replace a folder by their own.
void check_writers(const fs::path& folder, bool has_programs) {
  struct stat s = {};
  if (::stat(folder.c_str(), &s) < 0) throw FileError(fmt::format("{}: {}", folder.string(), std::strerror(errno)));
  if (!S_ISDIR(s.st_mode)) throw FileError(fmt::format("{}: it is no folder", folder.string()));
  const bool is_own = s.st_uid == ::geteuid();
  const bool is_safe = has_programs ? is_own && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0
                                    : (is_own || s.st_uid == 0) && ((s.st_mode & S_IWOTH) == 0 || (s.st_mode & S_ISVTX) != 0);
  if (!is_safe)
    throw FileError(
        fmt::format("{}: others may write to this folder, so no program of it is run; remove it or change its permissions "
                    "(chmod go-w), or name another folder in XDG_CACHE_HOME",
                    folder.string()));
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// A compiler that died has left its folder.
void remove_dead_folders(const fs::path& folder) {
  std::error_code error;
  const fs::file_time_type dead = fs::file_time_type::clock::now() - std::chrono::hours(24);
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const fs::file_time_type used = it->last_write_time(gone);
    if (!gone && used < dead && it->is_directory(gone)) fs::remove_all(it->path(), gone);
  }
}

// The first program stays, whatever its size. A list counts as a part of its program.
void remove_old(const fs::path& folder) {
  remove_dead_folders(folder);
  std::uintmax_t bytes = 0;
  std::size_t files = 0;
  for (const CachedFile& file : files_by_use(folder)) {
    bytes += file.bytes;
    std::error_code gone;
    if (++files > 2 && (files > 2 * kMostPrograms || bytes > kMostProgramBytes)) fs::remove(file.path, gone);
  }
}

}  // namespace

ScriptCache::ScriptCache(std::string key) : key_(std::move(key)) {
  const fs::path home = cache_home();
  folder_ = home / "tapedeck" / "run";
  std::error_code error;
  fs::create_directories(folder_.parent_path(), error);
  if (error) throw FileError(fmt::format("{}: cannot make the folder: {}", folder_.parent_path().string(), error.message()));
  if (::mkdir(folder_.c_str(), S_IRWXU) < 0 && errno != EEXIST)
    throw FileError(fmt::format("{}: cannot make the folder: {}", folder_.string(), std::strerror(errno)));
  check_writers(home, false);
  check_writers(folder_.parent_path(), false);
  check_writers(folder_, true);
}

std::string ScriptCache::program_of(const std::vector<std::string>& inputs) const {
  std::vector<std::string> parts;
  for (const std::string& input : inputs) {
    parts.push_back(input);
    parts.push_back(file_checksum(input));
  }
  return (folder_ / fmt::format("{}-{}", key_, strings_checksum(parts))).string();
}

std::string ScriptCache::find() const try {
  const std::vector<std::string> inputs = lines_of(list());
  if (inputs.empty()) return "";
  const std::string program = program_of(inputs);
  if (::access(program.c_str(), X_OK) != 0) return "";
  for (const std::string& used : {program, list()}) ::utimensat(AT_FDCWD, used.c_str(), nullptr, 0);
  return program;
} catch (const FileError&) {
  return "";  // an input is gone
}

fs::path ScriptCache::beginning_of_making() const { return folder_ / ".making-"; }

std::string ScriptCache::keep(const std::string& program, const std::vector<std::string>& inputs) const {
  const std::string kept = program_of(inputs);
  std::error_code error;
  fs::rename(program, kept, error);
  if (error) throw FileError(fmt::format("{}: cannot write: {}", kept, error.message()));
  AtomicWriter writer(list());
  for (const std::string& input : inputs) writer.write(input + "\n");
  writer.commit();
  remove_old(folder_);
  return kept;
}

}  // namespace tapedeck::tool
