// Tests that the table of ops in kernels/cuda/README.md names the ops that have a kernel, and marks those without halves.
#include <tapedeck/kernels/cuda/kernel_table.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace tapedeck::kernels {
namespace {

// The ops of the page by name; true: the kernel takes f16 and bf16 itself.
std::map<std::string, bool> ops_of_page() {
  std::ifstream page(TAPEDECK_SOURCE_DIR "/kernels/cuda/README.md");
  std::map<std::string, bool> all;
  bool in_section = false;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("## ", 0) == 0) in_section = line == "## The ops that have a kernel";
    if (!in_section || line.rfind("| [", 0) != 0) continue;
    std::istringstream cells(line.substr(line.find('|', 1) + 1));
    std::string ops, tests;
    std::getline(cells, ops, '|');
    std::getline(cells, tests, '|');
    const std::size_t begin = tests.find('`') + 1;
    const std::string folder = tests.substr(begin, tests.find('`', begin) - begin);
    EXPECT_TRUE(std::filesystem::is_directory(TAPEDECK_SOURCE_DIR "/" + folder)) << folder;
    std::istringstream words(ops);
    for (std::string op; words >> op;) {
      const bool native = op.back() != '*';
      if (!native) op.pop_back();
      EXPECT_TRUE(all.emplace(op, native).second) << op << " stands there twice";
    }
  }
  return all;
}

TEST(CudaKernelTable, IsTheTableOfThePage) {
  std::map<std::string, bool> kernels;
  for (const cuda::KernelEntry& entry : cuda::kernel_table()) kernels[entry.op] = entry.native_half;
  const std::map<std::string, bool> page = ops_of_page();
  EXPECT_GT(page.size(), 0u);
  for (const auto& [op, native] : kernels) {
    const auto row = page.find(op);
    if (row == page.end())
      ADD_FAILURE() << op << " is not on the page";
    else
      EXPECT_EQ(row->second, native) << op;
  }
  for (const auto& row : page) EXPECT_EQ(kernels.count(row.first), 1u) << row.first << " has no kernel";
}

}  // namespace
}  // namespace tapedeck::kernels
