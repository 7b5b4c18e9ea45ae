#include <tapedeck/capture/formats/cache_folder.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

// Gives a variable of the environment another value until its end; null removes it.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~ScopedVariable() { set(before_ ? before_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;

 private:
  void set(const char* value) const { value ? ::setenv(name_, value, 1) : ::unsetenv(name_); }
  const char* const name_;
  std::optional<std::string> before_;
};

fs::path cache_folder_for(const char* cache, const char* home) {
  const ScopedVariable cache_home("XDG_CACHE_HOME", cache), user_home("HOME", home);
  return user_cache_folder();
}

TEST(CacheFolder, IsThatOfTheUser) {
  EXPECT_EQ(cache_folder_for("/c", "/h"), "/c");
  EXPECT_EQ(cache_folder_for(nullptr, "/h"), "/h/.cache");
  EXPECT_EQ(cache_folder_for("", "/h"), "/h/.cache");
  EXPECT_EQ(cache_folder_for("relative", "/h"), "/h/.cache");
  EXPECT_EQ(cache_folder_for(nullptr, "relative"), "");
  EXPECT_EQ(cache_folder_for(nullptr, nullptr), "");
}

TEST(CacheFolder, ListsItsFilesTheLastUsedFirst) {
  const fs::path folder = fs::path(::testing::TempDir()) / "cache_folder_test";
  fs::remove_all(folder);
  EXPECT_TRUE(files_by_use(folder).empty()) << "the folder is not there";
  fs::create_directories(folder / "inside");
  const auto now = fs::file_time_type::clock::now();
  for (const auto& [name, age] : {std::pair("b", 3), {"a", 1}, {"c", 2}}) {
    std::ofstream(folder / name) << std::string(static_cast<std::size_t>(age) * 10, 'x');
    fs::last_write_time(folder / name, now - std::chrono::hours(age));
  }
  std::string order;
  for (const CachedFile& file : files_by_use(folder)) order += file.path.filename().string() + std::to_string(file.bytes) + " ";
  EXPECT_EQ(order, "a10 c20 b30 ");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tapedeck
