#include <tapedeck/capture/formats/cache_folder.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

namespace tapedeck {

namespace fs = std::filesystem;

fs::path user_cache_folder() {
  const auto folder = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value && value[0] == '/' ? value : "");
  };
  if (fs::path cache = folder("XDG_CACHE_HOME"); !cache.empty()) return cache;
  if (const fs::path home = folder("HOME"); !home.empty()) return home / ".cache";
  return {};
}

std::vector<CachedFile> files_by_use(const fs::path& folder) {
  std::vector<CachedFile> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone) || gone) continue;
    const CachedFile file{it->last_write_time(gone), it->path(), it->file_size(gone)};
    if (!gone) found.push_back(file);
  }
  std::sort(found.begin(), found.end(), [](const CachedFile& a, const CachedFile& b) { return a.used > b.used; });
  return found;
}

}  // namespace tapedeck
