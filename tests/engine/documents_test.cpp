// Tests that the tables of engine/README.md agree with the code, and the settings that they describe, and that the page of the
// first week names tests and samples that exist.
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/eager/threads.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/engine/messages.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tapedeck {
namespace {

using testing::message_of;

std::vector<std::string> lines_of_readme() {
  std::ifstream file(TAPEDECK_SOURCE_DIR "/engine/README.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> all;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, '|');) {
    const std::size_t first = cell.find_first_not_of(" *"), last = cell.find_last_not_of(" *");
    all.push_back(first == cell.npos ? "" : cell.substr(first, last - first + 1));
  }
  return all;
}

DType dtype_named(const std::string& name) {
  for (int d = 0; d < kDTypeCount; ++d)
    if (name == dtype_name(static_cast<DType>(d))) return static_cast<DType>(d);
  ADD_FAILURE() << "no dtype " << name;
  return DType::f32;
}

TEST(Documents, PromotionIsWhatTheTableSays) {
  const std::vector<std::string> lines = lines_of_readme();
  std::vector<std::string> columns;
  int checked = 0;
  for (const std::string& line : lines) {
    const std::vector<std::string> row = cells(line);
    if (line.rfind("| | bool", 0) == 0) columns = row;
    if (columns.empty() || line.rfind("| **", 0) != 0) continue;
    for (std::size_t i = 2; i < columns.size(); ++i) {
      const DType a = dtype_named(row[1]), b = dtype_named(columns[i]);
      EXPECT_EQ(dtype_name(promote(a, b)), row[i]) << row[1] << " with " << columns[i];
      const Tensor sum = where(equal(zeros({2}, DType::f32), 0), full({2}, 1, a), full({2}, 1, b));
      EXPECT_EQ(dtype_name(sum.dtype()), row[i]);
      ++checked;
    }
  }
  EXPECT_EQ(checked, kDTypeCount * kDTypeCount);
}

TEST(Documents, EverySettingStandsInTheTable) {
  const std::vector<std::string> lines = lines_of_readme();
  for (const SettingDoc& s : setting_docs()) {
    const std::string row = fmt::format("| `{}` | {} | {} | {} |", s.name, s.values, s.fallback, s.meaning);
    EXPECT_NE(std::find(lines.begin(), lines.end(), row), lines.end()) << row;
  }
}

struct Environment {
  Environment(const char* name, const char* value) : name(name) { ::setenv(name, value, 1); }
  ~Environment() { ::unsetenv(name); }
  const char* name;
};

// ---- samples/FIRST_WEEK.md ----

// The names of files in backquotes: "tests/a_test.cpp", and "08_resume.cpp", which is a sample.
std::vector<std::string> files_named_in(const std::string& cell) {
  std::vector<std::string> files;
  std::istringstream stream(cell);
  std::string text;
  for (bool quoted = false; std::getline(stream, text, '`'); quoted = !quoted)
    if (quoted && (text.ends_with(".cpp") || text.ends_with(".sh")))
      files.push_back(text.starts_with("tests/") ? text : "samples/" + text);
  return files;
}

TEST(Documents, EveryRowOfTheFirstWeekNamesWhatShowsIt) {
  std::ifstream page(TAPEDECK_SOURCE_DIR "/samples/FIRST_WEEK.md");
  int rows = 0;
  for (std::string line; std::getline(page, line);) {
    const std::vector<std::string> row = cells(line);
    if (row.size() < 4 || row[2].rfind("yes", 0) != 0) continue;
    ++rows;
    const std::vector<std::string> files = files_named_in(row[3]);
    EXPECT_FALSE(files.empty()) << line;
    for (const std::string& file : files)
      EXPECT_TRUE(std::filesystem::is_regular_file(TAPEDECK_SOURCE_DIR "/" + file)) << file << " is not there: " << line;
  }
  EXPECT_GT(rows, 40);
}

TEST(SettingsTest, AreReadFromTheEnvironment) {
  const Environment debug("TAPEDECK_DEBUG", "2"), nan("TAPEDECK_CHECK_NAN", "1"),
      passes("TAPEDECK_DISABLE_PASSES", "cse,,dead_code"), threads("TAPEDECK_THREADS", "12");
  const Settings s = settings_from_environment();
  EXPECT_EQ(s.debug, 2);
  EXPECT_TRUE(s.check_nan);
  EXPECT_EQ(s.threads, 12);
  EXPECT_EQ(s.disabled_passes, (std::vector<std::string>{"cse", "dead_code"}));
}

TEST(SettingsTest, RefuseOtherValues) {
  {
    const Environment debug("TAPEDECK_DEBUG", "5");
    EXPECT_EQ(message_of<UsageError>([] { settings_from_environment(); }), "TAPEDECK_DEBUG=5: takes 0 to 4");
  }
  for (const char* wrong : {"-1", "1025", "two", "2x", "99999999999"}) {
    const Environment threads("TAPEDECK_THREADS", wrong);
    EXPECT_EQ(message_of<UsageError>([] { settings_from_environment(); }),
              fmt::format("TAPEDECK_THREADS={}: takes 0 to 1024", wrong));
  }
  const Environment nan("TAPEDECK_CHECK_NAN", "yes");
  EXPECT_EQ(message_of<UsageError>([] { settings_from_environment(); }), "TAPEDECK_CHECK_NAN=yes: takes 0 to 1");
}

TEST(SettingsTest, TheNumberOfThreadsCanBeSet) {
  const int before = thread_count();
  set_threads(3);
  EXPECT_EQ(thread_count(), 3);
  EXPECT_NE(message_of<UsageError>([] { set_threads(-1); }).find("[set_threads] -1 threads: takes 0 to 1024 ("),
            std::string::npos);
  EXPECT_EQ(thread_count(), 3);
  set_threads(0);
  EXPECT_GE(thread_count(), 1);
  set_threads(before);
}

TEST(SettingsTest, TheNanCheckNamesTheFirstOp) {
  Settings s;
  s.check_nan = true;
  const ScopedSettings checked(s);
  const Tensor x = tensor({1, 0, -1});
  EXPECT_NO_THROW(exp(x));
  const int line = __LINE__ + 1;
  const std::string text = message_of<ExecutionError>([&] { sum(log(x) * 2); });
  EXPECT_MENTIONS(text, "[log] made an infinity at element 1 of f32[3] from (f32[3])");
  EXPECT_MENTIONS(text, "documents_test.cpp:" + std::to_string(line));
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { sqrt(x); }), "[sqrt] made NaN at element 2 of f32[3]");
}

TEST(SettingsTest, DebugListsEveryOpWithItsValues) {
  Settings s;
  s.debug = 4;
  const ScopedSettings listing(s);
  ::testing::internal::CaptureStderr();
  add(tensor({1, 3}), tensor({2}));
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_MENTIONS(text, "tapedeck: add(f32[2], f32[1]) -> f32[2] in [3, 5] mean 4  ");
  EXPECT_MENTIONS(text, "documents_test.cpp:");
}

}  // namespace
}  // namespace tapedeck
