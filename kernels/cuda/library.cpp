// Finds and opens vendor libraries; library.h describes the search order. The search tries each candidate with dlopen, and
// keeps the reason of the first failure, so that a user learns why a library is not available:
//
//   libcudnn.so.9 not found anywhere       -> missing
//   found, but dlopen refuses the file     -> broken, with the loader's message
//   opened, but dlsym misses a function    -> incomplete
#include <tapedeck/kernels/cuda/library.h>

#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace tapedeck::kernels::cuda {
namespace {

#ifndef TAPEDECK_CUDA_LIBRARY_DIR
#define TAPEDECK_CUDA_LIBRARY_DIR ""
#endif

// The site-packages folders: those of active environments first, then those of the user and of the system.
std::vector<std::string> site_packages() {
  std::vector<std::string> patterns;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* root = std::getenv(variable); root && *root)
      patterns.push_back(std::string(root) + "/lib/python3*/site-packages");
  if (const char* home = std::getenv("HOME"); home && *home)
    patterns.push_back(std::string(home) + "/.local/lib/python3*/site-packages");
  patterns.insert(patterns.end(), {"/usr/local/lib/python3*/site-packages", "/usr/local/lib/python3*/dist-packages",
                                   "/usr/lib/python3*/dist-packages"});
  std::vector<std::string> folders;
  for (const std::string& pattern : patterns) {
    glob_t found{};
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
      folders.insert(folders.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
  }
  return folders;
}

std::string text_of(const char* text) { return text ? text : "unknown error"; }

// Opens the first candidate that loads. If a file exists but does not load, the result keeps the loader's message: this message
// explains more than "not found".
void* open_first(const LibraryName& name, const std::vector<std::string>& candidates, LoadedTable& result) {
  for (const std::string& candidate : candidates) {
    const bool bare = candidate.find('/') == std::string::npos;
    if (!bare && ::access(candidate.c_str(), F_OK) != 0) continue;
    if (void* handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      result.path = candidate;
      return handle;
    }
    const std::string error = text_of(::dlerror());
    const bool absent = bare && error.find(name.file) == 0 && error.find("No such file") != std::string::npos;
    if (absent || result.state == LoadState::broken) continue;
    result.state = LoadState::broken;
    result.why = std::string(name.title) + " does not load: " + error;
  }
  return nullptr;
}

std::string not_found(const LibraryName& name, const std::vector<std::string>& candidates) {
  std::string why = std::string(name.title) + " (" + name.file + ") is not installed; looked for ";
  for (const std::string& candidate : candidates) why += (&candidate == &candidates.front() ? "" : ", ") + candidate;
  return why + "; TAPEDECK_CUDA_LIBDIR names another folder";
}

}  // namespace

std::vector<std::string> library_candidates(const LibraryName& name) {
  std::vector<std::string> candidates;
  const auto in_folder = [&](const std::string& folder) {
    if (!folder.empty()) candidates.push_back(folder + "/" + name.file);
  };
  const char* chosen = std::getenv("TAPEDECK_CUDA_LIBDIR");
  in_folder(chosen ? chosen : "");
  candidates.push_back(name.file);
  in_folder(TAPEDECK_CUDA_LIBRARY_DIR);
  in_folder("/usr/local/cuda/lib64");
  for (const std::string& site : site_packages()) in_folder(site + "/" + name.package);
  return candidates;
}

LoadedTable load_table(const LibraryName& name, std::span<const TableEntry> entries, void* table) {
  LoadedTable result;
  const std::vector<std::string> candidates = library_candidates(name);
  void* handle = open_first(name, candidates, result);
  if (!handle) {
    if (result.state == LoadState::missing) result.why = not_found(name, candidates);
    return result;
  }
  for (const TableEntry& entry : entries) {
    void* address = ::dlsym(handle, entry.symbol);
    if (!address) {
      result.state = LoadState::incomplete;
      result.why =
          std::string(name.title) + " (" + result.path + ") has no function " + entry.symbol + ": another version is needed";
      ::dlclose(handle);
      return result;
    }
    std::memcpy(static_cast<char*>(table) + entry.offset, &address, sizeof address);
  }
  result.state = LoadState::loaded;
  result.why.clear();
  return result;
}

}  // namespace tapedeck::kernels::cuda
