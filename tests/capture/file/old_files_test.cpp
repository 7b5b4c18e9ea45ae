// Tests that files of every version of the format can be read and replayed: tests/capture/file/old holds a file that each
// version wrote. A new version adds its file and changes none that is there; TAPEDECK_UPDATE_GOLDEN=1 writes the file of the
// version of now if it is lacking. The oracle of a replay is a plain loop.
#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/file/load_executor.h>
#include <tapedeck/capture/file/tape_file.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace tapedeck {
namespace {

using Floats = std::vector<float>;

const std::filesystem::path kOld = TAPEDECK_SOURCE_DIR "/tests/capture/file/old";

Floats numbers(float first, float step) {
  Floats values(24);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + step * static_cast<float>(i);
  return values;
}
const Floats kX = numbers(-1, 0.125F), kC = numbers(-3, 0.25F), kW = numbers(2, -0.25F);
constexpr float kRate = 0.5F;

// The step: the result y, and the new w.
Floats plain_step(Floats* w) {
  Floats y(24);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float b = std::max(kX[i] * (*w)[i], 0.0F);
    y[i] = b + kC[i];
    (*w)[i] = (*w)[i] - y[i] * b * kRate;
  }
  return y;
}

// An input, a parameter, a constant that lies outside of the text, a checkpoint region and an update. The ops give the same
// bits on every processor.
void write_file(const std::string& path) {
  const Shape shape = {4, 6};
  Tensor w = from_vector(kW, shape);
  w.name(Name("w")).role(Role::parameter);
  const Tensor c = from_vector(kC, shape);
  Capture capture("step");
  const Tensor x = capture.input("x", from_vector(kX, shape));
  const Tensor b = checkpoint([&] { return relu(x * w); });
  const Tensor y = b + c;
  capture.output("y", y);
  sub_(w, y * b * static_cast<double>(kRate));
  const Captured captured = capture.finish();
  save_tape(path, captured, make_plan(captured.graph), {{"model", "old_files_test"}});
}

TEST(OldFiles, EveryVersionIsReadAndReplays) {
  for (int version = 1; version <= tape_file::kFormat; ++version) {
    const std::string path = (kOld / (std::to_string(version) + ".tape")).string();
    if (version == tape_file::kFormat && std::getenv("TAPEDECK_UPDATE_GOLDEN") && !std::filesystem::exists(path))
      write_file(path);
    ASSERT_TRUE(std::filesystem::exists(path)) << path << " is lacking: see the head of this test";
    const TapeFile file = load_tape(path);
    EXPECT_EQ(file.metadata.at("model"), "old_files_test");
    ASSERT_TRUE(file.plan);
    EXPECT_EQ(file.plan->level, OptimizationLevel::all) << "the level of files from before plans said theirs";

    Floats w = kW;
    plain_step(&w);  // the file was written after the captured step had run
    EXPECT_EQ(file.state.at("w").to_vector<float>(), w);
    Executor executor = load_executor(path);
    for (int i = 0; i < 2; ++i) {
      executor.run();
      EXPECT_EQ(executor.output("y").to_vector<float>(), plain_step(&w)) << path;
      EXPECT_EQ(executor.state("w").to_vector<float>(), w) << path;
    }
    EXPECT_EQ(executor.observed_peak_bytes(), file.plan->peak_bytes);
  }
}

}  // namespace
}  // namespace tapedeck
