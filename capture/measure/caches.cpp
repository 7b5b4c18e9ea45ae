// Linux describes each cache by a folder of short files:
//     index0/level 1    type Data       size 32K       shared_cpu_list 0
//     index2/level 2    type Unified    size 1024K     shared_cpu_list 0,8
//     index3/level 3    type Unified    size 32768K    shared_cpu_list 0-3,8-11
#include <tapedeck/capture/measure/caches.h>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>

namespace tapedeck {

namespace {

constexpr std::int64_t kLeastBytes = 4096, kMostBytes = std::int64_t{1} << 40;
constexpr int kMostEntries = 16, kMostSharers = 1 << 16;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line.substr(0, 4096);
}

// The number at the start of the text, which is made shorter by it; -1 if there is none.
std::int64_t take_number(std::string_view* text) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || number < 0) return -1;
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return number;
}

// "32K", "1M", "4096"; -1 for a size that no cache has.
std::int64_t parse_size(std::string_view text) {
  const std::int64_t number = take_number(&text);
  const std::int64_t unit = text.empty() ? 1 : text == "K" ? 1 << 10 : text == "M" ? 1 << 20 : 0;
  if (number <= 0 || unit == 0 || number > kMostBytes / unit) return -1;
  return number * unit < kLeastBytes ? -1 : number * unit;
}

// The number of cores in a list such as "0-3,8-11"; 1 if the list cannot be read.
int count_cores(std::string_view text) {
  std::int64_t count = 0;
  while (!text.empty()) {
    const std::int64_t first = take_number(&text);
    std::int64_t last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = take_number(&text);
    }
    if (first < 0 || last < first || last - first >= kMostSharers) return 1;
    count += last - first + 1;
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  return static_cast<int>(std::clamp<std::int64_t>(count, 1, kMostSharers));
}

// By level: those of a level that the folder names twice are the first one.
std::vector<Cache> caches_in(const std::string& folder) {
  std::vector<Cache> caches;
  for (int level = 1; level <= 4; ++level)
    for (int i = 0; i < kMostEntries; ++i) {
      const std::string entry = fmt::format("{}/index{}/", folder, i);
      if (first_line(entry + "level") != std::to_string(level) || first_line(entry + "type") == "Instruction") continue;
      const std::int64_t bytes = parse_size(first_line(entry + "size"));
      if (bytes > (caches.empty() ? 0 : caches.back().bytes))
        caches.push_back({bytes, count_cores(first_line(entry + "shared_cpu_list"))});
      break;
    }
  return caches;
}

std::vector<Cache> caches_of_library() {
  std::vector<Cache> caches;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  for (const int name : {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE}) {
    const std::int64_t bytes = sysconf(name);
    if (bytes >= kLeastBytes && bytes <= kMostBytes && bytes > (caches.empty() ? 0 : caches.back().bytes))
      caches.push_back({bytes, 1});
  }
#endif
  return caches;
}

}  // namespace

std::vector<Cache> data_caches(int cores, const std::string& folder) {
  std::vector<Cache> caches = caches_in(folder);
  if (!caches.empty()) return caches;
  caches = caches_of_library();
  if (caches.empty()) caches = {{32 << 10, 1}, {512 << 10, 1}, {8 << 20, 1}};
  if (caches.size() > 1) caches.back().sharers = std::max(cores, 1);
  return caches;
}

}  // namespace tapedeck
