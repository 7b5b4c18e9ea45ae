// Compiled kernels on disk, so that the next run of a program compiles nothing. A file holds the machine code of one source,
// under the hash of everything that it depends on:
//
//     $XDG_CACHE_HOME/tapedeck/kernels/<key>.kernel     else ~/.cache/tapedeck/kernels
//
// TAPEDECK_KERNEL_CACHE names another folder, or says `off`. A cache that cannot be used is no error: kernels are compiled
// again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tapedeck::codegen {

// The folder that the environment names; empty for none.
std::string kernel_cache_folder();

class KernelCache {
 public:
  // An empty folder keeps nothing. Files are removed, the longest unused first, once all of them take more than `most_bytes`.
  explicit KernelCache(std::string folder, std::int64_t most_bytes = 64 << 20);

  // The image that was kept under the key. A file that is damaged, or that another user could have written, is not read.
  std::optional<std::string> find(const std::string& key) const;
  void keep(const std::string& key, const std::string& image) const;

 private:
  std::string path_of(const std::string& key) const;

  std::string folder_;
  std::int64_t most_bytes_;
};

// The key of a text: 32 hexadecimal digits.
std::string kernel_key(const std::string& text);

}  // namespace tapedeck::codegen
