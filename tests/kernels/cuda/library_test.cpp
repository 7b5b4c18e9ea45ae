// Tests the lazy loader of libraries: the folders it searches, its messages when it finds no library or an unfit one, and
// calls from many threads.
#include <tapedeck/kernels/cuda/library.h>

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace tapedeck::kernels::cuda {
namespace {

struct MathTable {  // stands in for a vendor library, because every machine has the C math library
#define MATH_FUNCTIONS(F) F(cos, double, (double)) F(hypot, double, (double, double))
  MATH_FUNCTIONS(TAPEDECK_TABLE_FIELD)
};
#define TAPEDECK_TABLE MathTable
constexpr TableEntry kMathEntries[] = {MATH_FUNCTIONS(TAPEDECK_TABLE_ENTRY)};
#undef TAPEDECK_TABLE

constexpr LibraryName kMath = {"the math library", "libm.so.6", "nvidia/none/lib"};
constexpr LibraryName kAbsent = {"cuNothing", "libtapedeck_absent.so.1", "nvidia/none/lib"};

// Sets an environment variable for one scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old, had_ = true;
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (had_)
      ::setenv(name_, old_.c_str(), 1);
    else
      ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

// A temporary folder for one test.
class ScopedFolder {
 public:
  ScopedFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tapedeck_library_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data()) ? pattern : "";
  }
  ~ScopedFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(CudaLibrary, FillsInTheTable) {
  MathTable table;
  const LoadedTable loaded = load_table(kMath, kMathEntries, &table);
  ASSERT_EQ(loaded.state, LoadState::loaded) << loaded.why;
  EXPECT_EQ(loaded.why, "");
  EXPECT_EQ(table.hypot(3, 4), 5);
  EXPECT_EQ(table.cos(0), 1);
}

TEST(CudaLibrary, MissingIsAReasonInOneLine) {
  MathTable table;
  const LoadedTable loaded = load_table(kAbsent, kMathEntries, &table);
  EXPECT_EQ(loaded.state, LoadState::missing);
  EXPECT_EQ(loaded.why.find("cuNothing (libtapedeck_absent.so.1) is not installed; looked for libtapedeck_absent.so.1"), 0u)
      << loaded.why;
  EXPECT_EQ(loaded.why.find('\n'), std::string::npos);
}

TEST(CudaLibrary, TheNamedFolderComesFirst) {
  const ScopedVariable folder("TAPEDECK_CUDA_LIBDIR", "/some/folder");
  const auto candidates = library_candidates(kAbsent);
  ASSERT_GE(candidates.size(), 3u);
  EXPECT_EQ(candidates[0], "/some/folder/libtapedeck_absent.so.1");
  EXPECT_EQ(candidates[1], "libtapedeck_absent.so.1");
  EXPECT_NE(std::find(candidates.begin(), candidates.end(), "/usr/local/cuda/lib64/libtapedeck_absent.so.1"), candidates.end());
}

TEST(CudaLibrary, LooksInPythonEnvironments) {
  const ScopedFolder environment;
  std::filesystem::create_directories(environment.path() + "/lib/python3.11/site-packages");
  const ScopedVariable active("VIRTUAL_ENV", environment.path());
  const auto candidates = library_candidates(kAbsent);
  const std::string wanted = environment.path() + "/lib/python3.11/site-packages/nvidia/none/lib/libtapedeck_absent.so.1";
  EXPECT_NE(std::find(candidates.begin(), candidates.end(), wanted), candidates.end());
}

TEST(CudaLibrary, AFileThatDoesNotLoadIsBroken) {
  const ScopedFolder folder;
  std::ofstream(folder.path() + "/" + kAbsent.file) << "no shared library\n";
  const ScopedVariable chosen("TAPEDECK_CUDA_LIBDIR", folder.path());
  MathTable table;
  const LoadedTable loaded = load_table(kAbsent, kMathEntries, &table);
  EXPECT_EQ(loaded.state, LoadState::broken);
  EXPECT_EQ(loaded.why.find("cuNothing does not load: " + folder.path()), 0u) << loaded.why;
}

TEST(CudaLibrary, ABrokenFileDoesNotHideAGoodOne) {
  const ScopedFolder folder;
  std::ofstream(folder.path() + "/" + kMath.file) << "no shared library\n";
  const ScopedVariable chosen("TAPEDECK_CUDA_LIBDIR", folder.path());
  MathTable table;
  const LoadedTable loaded = load_table(kMath, kMathEntries, &table);
  EXPECT_EQ(loaded.state, LoadState::loaded) << loaded.why;
  EXPECT_EQ(loaded.path, kMath.file);
}

TEST(CudaLibrary, AnAbsentFunctionIsNamed) {
  constexpr TableEntry entries[] = {{"cos", 0}, {"tapedeck_no_such_function", sizeof(void*)}};
  MathTable table;
  const LoadedTable loaded = load_table(kMath, entries, &table);
  EXPECT_EQ(loaded.state, LoadState::incomplete);
  EXPECT_NE(loaded.why.find("has no function tapedeck_no_such_function"), std::string::npos) << loaded.why;
}

TEST(CudaLibrary, LazyTableIsFilledOnceForAllThreads) {
  LazyTable<MathTable> lazy(kMath, kMathEntries);
  std::vector<const MathTable*> seen(8);
  std::vector<std::thread> threads;
  for (auto& slot : seen) threads.emplace_back([&] { slot = lazy.get(nullptr); });
  for (std::thread& thread : threads) thread.join();
  for (const MathTable* table : seen) {
    ASSERT_NE(table, nullptr);
    EXPECT_EQ(table, seen[0]);
  }
}

TEST(CudaLibrary, LazyTableKeepsItsReason) {
  LazyTable<MathTable> lazy(kAbsent, kMathEntries);
  std::string first, second;
  EXPECT_EQ(lazy.get(&first), nullptr);
  EXPECT_EQ(lazy.get(&second), nullptr);
  EXPECT_EQ(lazy.get(nullptr), nullptr);
  EXPECT_NE(first, "");
  EXPECT_EQ(first, second);
}

TEST(CudaLibrary, FakeStandsInForAMissingLibrary) {
  LazyTable<MathTable> lazy(kAbsent, kMathEntries);
  MathTable fake;
  fake.cos = [](double) { return 42.0; };
  EXPECT_EQ(lazy.set_fake(&fake), nullptr);
  ASSERT_EQ(lazy.get(nullptr), &fake);
  EXPECT_EQ(lazy.get(nullptr)->cos(0), 42);
  EXPECT_EQ(lazy.set_fake(nullptr), &fake);
  EXPECT_EQ(lazy.get(nullptr), nullptr);
}

}  // namespace
}  // namespace tapedeck::kernels::cuda
