// A folder for files of one command.
#pragma once

#include <tapedeck/engine/ir/error.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace tapedeck::tool {

// A new folder that only this user can enter. It is removed, with its files, when the object is destroyed.
class TemporaryFolder {
 public:
  // `beginning` is the path without the letters that make the name a new one. Throws FileError.
  explicit TemporaryFolder(const std::filesystem::path& beginning) {
    std::string name = beginning.string() + "XXXXXX";
    if (!::mkdtemp(name.data())) throw FileError(name + ": " + std::strerror(errno));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace tapedeck::tool
