// The caches of the user on disk: where they are, and which of their files were used last.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tapedeck TAPEDECK_API {

// $XDG_CACHE_HOME, else $HOME/.cache. Empty if neither names an absolute folder: by the rules of XDG a relative one is ignored.
std::filesystem::path user_cache_folder();

struct CachedFile {
  std::filesystem::file_time_type used;  // the time of the last write; a cache sets it anew at each use
  std::filesystem::path path;
  std::uint64_t bytes = 0;
};

// The files of the folder, without the folders in it, the last used first. Files that another process removes meanwhile are
// left out. Empty for a folder that cannot be read.
std::vector<CachedFile> files_by_use(const std::filesystem::path& folder);

}  // namespace TAPEDECK_API
