// A file of the cache:   "TDKERN01" | XXH64 of the image, 8 bytes | the image
#include <tapedeck/capture/codegen/kernel_cache.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/capture/formats/cache_folder.h>
#include <tapedeck/capture/formats/checksum.h>
#include <tapedeck/engine/ir/error.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tapedeck::codegen {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "TDKERN01";
constexpr const char* kExtension = ".kernel";

Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const unsigned char*>(text.data()), text.size()}; }

std::string sum_of(std::string_view image) {
  const std::uint64_t sum = checksum(bytes_of(image));
  return {reinterpret_cast<const char*>(&sum), sizeof sum};
}

// Whether only this user can write to the file or folder: the code in it runs as this user.
bool is_own(const std::string& path) {
  struct stat s = {};
  return ::stat(path.c_str(), &s) == 0 && s.st_uid == ::geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

void remove_oldest(const std::string& folder, std::int64_t most_bytes) {
  std::int64_t bytes = 0;
  for (const CachedFile& file : files_by_use(folder)) {
    if (file.path.extension() != kExtension) continue;
    bytes += static_cast<std::int64_t>(file.bytes);
    std::error_code ignored;
    if (bytes > most_bytes) fs::remove(file.path, ignored);
  }
}

}  // namespace

std::string kernel_cache_folder() {
  const char* const chosen = std::getenv("TAPEDECK_KERNEL_CACHE");
  if (chosen && *chosen) return std::string_view(chosen) == "off" ? std::string() : chosen;
  const fs::path cache = user_cache_folder();
  return cache.empty() ? std::string() : (cache / "tapedeck" / "kernels").string();
}

std::string kernel_key(const std::string& text) {
  return checksum_text(checksum(bytes_of(text))) + checksum_text(checksum(bytes_of(text), 1));
}

KernelCache::KernelCache(std::string folder, std::int64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}

std::string KernelCache::path_of(const std::string& key) const { return folder_ + "/" + key + kExtension; }

std::optional<std::string> KernelCache::find(const std::string& key) const {
  if (folder_.empty()) return {};
  const std::string path = path_of(key);
  if (!is_own(folder_) || !is_own(path)) return {};
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  constexpr std::size_t header = kMagic.size() + sizeof(std::uint64_t);
  if (text.size() <= header || text.compare(0, kMagic.size(), kMagic) != 0) return {};
  std::string image = text.substr(header);
  if (text.substr(kMagic.size(), sizeof(std::uint64_t)) != sum_of(image)) return {};
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // it was used
  return image;
}

void KernelCache::keep(const std::string& key, const std::string& image) const {
  if (folder_.empty() || static_cast<std::int64_t>(image.size()) > most_bytes_ / 2) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error || !is_own(folder_)) return;
  try {
    AtomicWriter file(path_of(key));
    file.write(kMagic);
    file.write(sum_of(image));
    file.write(image);
    file.commit();
  } catch (const FileError&) {
    return;  // a full disk costs a compilation in the next run, no more
  }
  remove_oldest(folder_, most_bytes_);
}

}  // namespace tapedeck::codegen
