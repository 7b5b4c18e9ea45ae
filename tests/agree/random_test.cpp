// Runs random programs in every way of harness.h and expects the same bits. TAPEDECK_TEST_SEED sets the first seed.
// `tests/fuzz_programs` runs more programs.
#include <tapedeck/tests/agree/shrink.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <set>

namespace tapedeck::agree {
namespace {

std::uint64_t number_of(const char* variable, std::uint64_t fallback) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : fallback;
}

#ifdef TAPEDECK_SANITIZED
constexpr int kPrograms = 60, kShards = 20;  // this build is several times as slow; the release build runs all programs
#else
constexpr int kPrograms = 500, kShards = 20;  // tests/fuzz_programs runs as many as one has time for
#endif

class RandomPrograms : public ::testing::TestWithParam<int> {};

TEST_P(RandomPrograms, Agree) {
  const std::uint64_t first = number_of("TAPEDECK_TEST_SEED", 1) + static_cast<std::uint64_t>(GetParam() * kPrograms / kShards);
  fmt::print("seeds {} to {}\n", first, first + kPrograms / kShards - 1);
  for (std::uint64_t seed = first; seed < first + kPrograms / kShards; ++seed) {
    const std::string failure = failure_of(seed, {.files = seed % 4 == 0});
    EXPECT_EQ(failure, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomPrograms, ::testing::Range(0, kShards));

// The random programs together use every kind of line and most ops, and run in every way.
TEST(RandomProgramsCover, OpsKindsAndWays) {
  std::set<std::string> ops, kinds;
  std::int64_t lines = 0;
  std::function<void(const std::vector<Line>&)> look = [&](const std::vector<Line>& some) {
    for (const Line& line : some) {
      if (line.op) ops.insert(line.op->name);
      kinds.insert(std::to_string(static_cast<int>(line.kind)));
      look(line.body);
    }
  };
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const RandomProgram program = random_program(seed);
    look(program.lines);
    lines += line_count(program);
    if (seed <= 3) fmt::print("{}\n", text_of(program));
  }
  fmt::print("{} ops, {} kinds of lines, {} lines\n", ops.size(), kinds.size(), lines);
  for (const Op* op : all_ops())
    if (!ops.count(op->name)) fmt::print("{} ", op->name);
}

// `tests/fuzz_programs` runs this test for a number of programs or a number of minutes. Without these settings the test skips
// itself.
TEST(Fuzz, AsLongAsAsked) {
  const std::uint64_t programs = number_of("TAPEDECK_FUZZ_PROGRAMS", 0), minutes = number_of("TAPEDECK_FUZZ_MINUTES", 0);
  if (!programs && !minutes) GTEST_SKIP() << "for tests/fuzz_programs";
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(minutes);
  const std::uint64_t first = number_of("TAPEDECK_TEST_SEED", 1);
  std::uint64_t done = 0, failed = 0;
  for (; (!programs || done < programs) && (!minutes || std::chrono::steady_clock::now() < end) && failed < 10; ++done) {
    const std::string failure = failure_of(first + done, {});
    EXPECT_EQ(failure, "");
    failed += !failure.empty();
  }
  fmt::print("{} programs from seed {}, {} failed\n", done, first, failed);
}

}  // namespace
}  // namespace tapedeck::agree
