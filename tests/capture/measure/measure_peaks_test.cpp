// Tests that the loops of peaks compute what their header says, and that measured peaks have the form that readers rely on. No
// test asks for a speed.
#include <tapedeck/capture/measure/measure_peaks.h>

#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/measure/peak_loops.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/interruption.h>
#include <tapedeck/kernels/thread_limit.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace tapedeck {
namespace {

TEST(PeakLoops, FusedMultipliesAndAdds) {
  for (const PeakLoops& loops : peak_loops()) {
    const double elements = loops.flops_per_round / 2;  // a round does two flops to each
    constexpr double kChains = 8;
    for (const int rounds : {0, 1, 2, 10}) {
      double expected = 0;
      for (int chain = 0; chain < kChains; ++chain) {
        double c = chain;
        for (int r = 0; r < rounds; ++r) c = c * 0.5 + 1;
        expected += c * elements / kChains;
      }
      EXPECT_NEAR(loops.fused(rounds), expected, 1e-4 * expected) << loops.name << " " << rounds;
    }
  }
}

struct alignas(64) Block {
  std::uint64_t words[4 * kPeakLoopStep / 8];
};

TEST(PeakLoops, ReadAndUpdateReachEveryWord) {
  std::mt19937_64 random(3);
  for (const PeakLoops& loops : peak_loops()) {
    Block block;
    std::uint64_t mix = 0;
    for (std::uint64_t& w : block.words) mix ^= w = random();
    EXPECT_EQ(loops.read(reinterpret_cast<const std::byte*>(block.words), sizeof block.words), mix) << loops.name;
    Block after = block;
    loops.update(reinterpret_cast<std::byte*>(after.words), sizeof after.words - kPeakLoopStep);
    const std::size_t count = std::size(block.words), reached = count - kPeakLoopStep / 8;
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(after.words[i], block.words[i] + (i < reached ? 1 : 0)) << loops.name << " " << i;
  }
}

void expect_sound(const ThreadPeaks& peaks) {
  const auto positive = [](double rate) { return std::isfinite(rate) && rate > 0; };
  EXPECT_TRUE(positive(peaks.gflop_per_s));
  EXPECT_TRUE(positive(peaks.matmul_gflop_per_s));
  EXPECT_LE(peaks.matmul_gflop_per_s, peaks.gflop_per_s);
  EXPECT_GE(peaks.half_gflop_per_s, peaks.gflop_per_s);
  ASSERT_GE(peaks.levels.size(), 2u);
  for (const LevelRate& level : peaks.levels) EXPECT_TRUE(positive(level.gb_per_s));
}

TEST(MeasurePeaks, GivesNumbersForEachNumberOfThreadsThatAFileTakes) {
  std::vector<double> progress;
  PeakOptions options;
  options.threads = {2, 1, 2};
  options.quick = true;
  options.progress = [&](double fraction) { progress.push_back(fraction); };
  const std::vector<ThreadPeaks> peaks = measure_peaks(options);
  ASSERT_EQ(peaks.size(), static_cast<std::size_t>(peak_threads(2)));
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    EXPECT_EQ(peaks[i].threads, static_cast<int>(i) + 1);
    expect_sound(peaks[i]);
  }
  EXPECT_TRUE(std::is_sorted(progress.begin(), progress.end()));
  ASSERT_FALSE(progress.empty());
  EXPECT_DOUBLE_EQ(progress.back(), 1);
  JsonWriter json;
  write_peaks(&json, peaks);
  const JsonDocument document(json.take());
  EXPECT_EQ(read_peaks(document.root()), peaks);
}

TEST(MeasurePeaks, LevelsGrowAndEndWithMemory) {
  for (const int threads : {1, 2, 3, 64}) {
    const std::vector<LevelRate> levels = memory_levels(threads);
    ASSERT_GE(levels.size(), 2u);
    EXPECT_EQ(levels.back().bytes, 0);
    EXPECT_GE(levels.front().bytes, memory_levels(1).front().bytes);
    EXPECT_LE(levels.front().bytes, peak_threads(threads) * memory_levels(1).front().bytes);
    for (std::size_t i = 0; i + 2 < levels.size(); ++i) EXPECT_LT(levels[i].bytes, levels[i + 1].bytes);
  }
}

TEST(MeasurePeaks, CanBeStoppedAndRefusesNoThreads) {
  const std::atomic<bool> stop{true};
  PeakOptions options;
  options.cancel = &stop;
  EXPECT_THROW(measure_peaks(options), Cancelled);
  options.cancel = nullptr;
  options.threads = {1, 0};
  EXPECT_THROW(measure_peaks(options), UsageError);
}

TEST(MeasurePeaks, MoreThreadsThanCoresHaveThePeaksOfTheCores) {
  const int cores = kernels::hardware_threads();
  EXPECT_EQ(peak_threads(1), 1);
  EXPECT_EQ(peak_threads(cores), cores);
  EXPECT_EQ(peak_threads(cores + 1), cores);
}

}  // namespace
}  // namespace tapedeck
