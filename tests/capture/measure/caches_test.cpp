// Tests what is read from folders that are laid out as Linux lays them out, sound ones and damaged ones.
#include <tapedeck/capture/measure/caches.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <filesystem>

namespace tapedeck {
namespace {

void write_entry(const TemporaryFolder& folder, int index, const char* level, const char* type, const char* size,
                 const char* cores) {
  const std::string entry = folder.file("index" + std::to_string(index));
  std::filesystem::create_directories(entry);
  write_all(entry + "/level", std::string(level) + "\n");
  write_all(entry + "/type", std::string(type) + "\n");
  write_all(entry + "/size", std::string(size) + "\n");
  write_all(entry + "/shared_cpu_list", std::string(cores) + "\n");
}

TEST(Caches, AreReadInTheOrderOfLevels) {
  const TemporaryFolder folder;
  write_entry(folder, 0, "3", "Unified", "32M", "0-3,8-11");
  write_entry(folder, 1, "1", "Instruction", "64K", "0,8");
  write_entry(folder, 2, "1", "Data", "48K", "0,8");
  write_entry(folder, 3, "2", "Unified", "1024K", "0");
  EXPECT_EQ(data_caches(16, folder.file("")), (std::vector<Cache>{{48 << 10, 2}, {1 << 20, 1}, {32 << 20, 8}}));
}

TEST(Caches, EntriesThatCannotBeTrueAreLeftOut) {
  for (const char* size : {"", "K", "-32K", "0K", "12", "32X", "99999999999999999999K", "9000000000000M", "32K"}) {
    const TemporaryFolder folder;
    write_entry(folder, 0, "1", "Data", "32K", "0-70000000000");  // a list that no machine has: one core
    write_entry(folder, 1, "2", "Unified", size, "0");            // the last one is no larger than the level before
    EXPECT_EQ(data_caches(4, folder.file("")), (std::vector<Cache>{{32 << 10, 1}})) << size;
  }
}

TEST(Caches, ThereAreSomeWhereTheFolderTellsNothing) {
  const TemporaryFolder folder;
  const std::vector<Cache> caches = data_caches(6, folder.file(""));
  ASSERT_FALSE(caches.empty());
  for (std::size_t i = 0; i < caches.size(); ++i) {
    EXPECT_GT(caches[i].bytes, i > 0 ? caches[i - 1].bytes : 0);
    EXPECT_EQ(caches[i].sharers, caches.size() > 1 && i + 1 == caches.size() ? 6 : 1);
  }
}

}  // namespace
}  // namespace tapedeck
