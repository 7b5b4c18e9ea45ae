// Tests peaks as data: the level for a number of bytes, the text and back, and texts of peaks that no machine has.
#include <tapedeck/capture/cost/machine_peaks.h>

#include <tapedeck/capture/cost/calibration.h>
#include <tapedeck/capture/formats/json.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace tapedeck {
namespace {

ThreadPeaks sample_peaks() { return {2, 200, 180.5, 390.25, {{64, 1000}, {1024, 400.5}, {0, 20}}}; }

TEST(MachinePeaks, LevelIsTheSmallestThatHoldsTheBytes) {
  const ThreadPeaks peaks = sample_peaks();
  const std::pair<double, std::size_t> cases[] = {{0, 0}, {1, 0}, {64, 0}, {65, 1}, {1024, 1}, {1025, 2}, {1e18, 2}};
  for (const auto& [bytes, level] : cases) EXPECT_EQ(level_of(peaks, bytes), level) << bytes;
  EXPECT_EQ(level_name(peaks, 0), "L1");
  EXPECT_EQ(level_name(peaks, 1), "L2");
  EXPECT_EQ(level_name(peaks, 2), "memory");
  const ThreadPeaks flat = {1, 1, 1, 1, {{0, 7}}};
  EXPECT_EQ(level_of(flat, 5), 0u);
  EXPECT_EQ(level_name(flat, 0), "memory");
}

TEST(MachinePeaks, AreFoundByThreads) {
  const std::vector<ThreadPeaks> peaks = {{1, 1, 1, 1, {{0, 1}}}, {4, 2, 2, 2, {{0, 1}}}};
  EXPECT_EQ(peaks_for(peaks, 4), &peaks[1]);
  EXPECT_EQ(peaks_for(peaks, 1), &peaks[0]);
  EXPECT_EQ(peaks_for(peaks, 2), nullptr);
  EXPECT_EQ(peaks_for({}, 1), nullptr);
}

std::string text_of(const std::vector<ThreadPeaks>& peaks) {
  JsonWriter json;
  write_peaks(&json, peaks);
  return json.take();
}

std::vector<ThreadPeaks> read_text(const std::string& text) {
  const JsonDocument document(text);
  return read_peaks(document.root());
}

TEST(MachinePeaks, TextComesBack) {
  const std::vector<ThreadPeaks> peaks = {{1, 100.125, 99, 100.125, {{32, 210}, {0, 21.7}}}, sample_peaks()};
  EXPECT_EQ(read_text(text_of(peaks)), peaks);
  EXPECT_TRUE(read_text("[]").empty());
}

TEST(MachinePeaks, ImpossibleOnesAreRefused) {
  const auto refused = [](const std::string& from, const std::string& to) {
    std::string text = text_of({sample_peaks()});
    const std::size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    if (at == text.npos) return std::string();
    text.replace(at, from.size(), to);
    try {
      read_text(text);
    } catch (const JsonError& e) {
      return std::string(e.what());
    }
    ADD_FAILURE() << "accepted " << text;
    return std::string();
  };
  const std::string flops = "\"gflop_per_s\":200";
  EXPECT_EQ(refused(flops, "\"gflop_per_s\":-200"), "gflop_per_s is -200, on line 2");
  EXPECT_EQ(refused(flops, "\"gflop_per_s\":0"), "gflop_per_s is 0, on line 2");
  EXPECT_EQ(refused(flops, "\"gflop_per_s\":\"nan\""), "gflop_per_s is nan, on line 2");
  EXPECT_EQ(refused(flops, "\"gflop_per_s\":\"inf\""), "gflop_per_s is inf, on line 2");
  EXPECT_EQ(refused(flops, "\"gflop_per_s\":1e300"), "gflop_per_s is 1e+300, on line 2");
  EXPECT_EQ(refused(flops, "\"flops\":200"), "there is no gflop_per_s");
  EXPECT_NE(refused(flops, "\"gflop_per_s\":\"fast\""), "");
  EXPECT_NE(refused(flops, "\"gflop_per_s\":180").find("contradict"), std::string::npos);
  EXPECT_NE(refused("\"half_gflop_per_s\":390.25", "\"half_gflop_per_s\":100").find("contradict"), std::string::npos);
  EXPECT_EQ(refused("\"threads\":2", "\"threads\":0"), "threads is 0, on line 2");
  EXPECT_EQ(refused("\"threads\":2", "\"threads\":99999999999"), "threads is 99999999999, on line 2");
  EXPECT_EQ(refused("\"gb_per_s\":400.5", "\"gb_per_s\":-1"), "gb_per_s is -1, on line 2");
  EXPECT_EQ(refused("\"bytes\":1024", "\"bytes\":64"), "bytes is 64, on line 2");  // no larger than the level before
  EXPECT_EQ(refused("\"bytes\":1024", "\"bytes\":-1"), "bytes is -1, on line 2");
  EXPECT_EQ(refused("\"bytes\":1024", "\"bytes\":0"), "bytes is 0, on line 2");         // memory, but not the last
  EXPECT_EQ(refused("{\"bytes\":0,", "{\"bytes\":4096,"), "bytes is 4096, on line 2");  // the last, but not memory
  EXPECT_NE(
      refused("[{\"bytes\":64,\"gb_per_s\":1000},{\"bytes\":1024,\"gb_per_s\":400.5},{\"bytes\":0,\"gb_per_s\":20}]", "[]")
          .find("levels"),
      std::string::npos);
}

TEST(MachinePeaks, EachNumberOfThreadsStandsOnceAndInOrder) {
  ThreadPeaks one = sample_peaks();
  one.threads = 1;
  EXPECT_EQ(read_text(text_of({one, sample_peaks()})).size(), 2u);
  EXPECT_THROW(read_text(text_of({sample_peaks(), one})), JsonError);
  EXPECT_THROW(read_text(text_of({one, one})), JsonError);
}

TEST(MachinePeaks, CalibrationKeepsThem) {
  Calibration c;
  c.machine = "m", c.program = "p";
  c.ops["add"] = {1, 0.25, 0, 3.5e-5, 1e-5, 7};
  EXPECT_EQ(calibration_to_json(c).find("peaks"), std::string::npos);
  EXPECT_EQ(parse_calibration(calibration_to_json(c)), c) << "a file of before";
  c.peaks = {sample_peaks()};
  EXPECT_EQ(parse_calibration(calibration_to_json(c)), c);
  std::string text = calibration_to_json(c);
  text.replace(text.find("\"gb_per_s\":20}"), 13, "\"gb_per_s\":\"nan\"");
  EXPECT_THROW(parse_calibration(text), FileError);
}

}  // namespace
}  // namespace tapedeck
