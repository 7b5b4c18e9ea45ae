// Tests subscripts and the printing of tensors inside a capture. The oracle is the eager run of the same code.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/print.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <sstream>

namespace tapedeck {
namespace {

using testing::message_of;

Tensor table(float scale) {
  std::vector<float> values;
  for (int i = 0; i < 24; ++i) values.push_back(scale * static_cast<float>(i * i % 17));
  return from_vector(values, {4, 3, 2});
}

TEST(SubscriptCapture, ReplaysWhatEagerCodeReads) {
  const StepFunction fn = [](const std::vector<Tensor>& in) {
    const Tensor &x = in[0], &rows = in[1];
    const Tensor part = x[{Range{.start = 1}, Range{}, newaxis, -1}], turned = x[{Range{.step = -2}, 1}];
    return std::vector<Tensor>{part * 2, turned + 1, x[rows] * 3, x[{rows, Range{}, tensor({1, 0}, DType::i64)}] - 1};
  };
  CapturedStep step = capture(fn);
  for (int i = 0; i < 5; ++i) {
    const std::vector<Tensor> in = {table(static_cast<float>(i + 1)), tensor({i % 4, -1}, DType::i64)};
    const std::vector<Tensor> expected = fn(in), outputs = step(in);
    ASSERT_EQ(outputs.size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) EXPECT_TRUE(bit_equal(outputs[k], expected[k])) << i << ' ' << k;
  }
  EXPECT_GT(step.replays(), 0);
}

TEST(SubscriptCapture, ReplaysAMaskThatChoosesAnotherNumberOfElements) {
  const StepFunction fn = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{sum(in[0][{Range{}, in[1]}] * 3)}; };
  CapturedStep step = capture(fn);
  for (int i = 0; i < 6; ++i) {
    const std::vector<Tensor> in = {table(2), tensor({i % 2 == 0, i % 3 == 0, true})};
    EXPECT_TRUE(bit_equal(step(in)[0], fn(in)[0])) << i;
  }
  EXPECT_GT(step.replays(), 0);
}

TEST(SubscriptCapture, RefusesAMaskBesideTensors) {
  Capture recording("step");
  const Tensor x = recording.input("x", table(1)), mask = recording.input("mask", tensor({true, false, true, true}));
  const std::string message = message_of<CaptureError>([&] { x[{mask, tensor({0, 1, 2}, DType::i64)}]; });
  EXPECT_MENTIONS(message, "[index] a mask beside other tensors cannot be captured");
  EXPECT_MENTIONS(message, "subscript_capture_test.cpp:");
}

TEST(SubscriptCapture, RefusesToPrintElements) {
  Capture recording("step");
  const Tensor x = recording.input("x", table(1));
  std::ostringstream out;
  const int line = __LINE__ + 1;
  const std::string message = message_of<CaptureError>([&] { out << "x: " << x; });
  EXPECT_MENTIONS(message, "[to_string] reads a tensor on the host inside a capture");
  EXPECT_MENTIONS(message, "subscript_capture_test.cpp:" + std::to_string(line));
  EXPECT_THROW(to_string(x), CaptureError);
  EXPECT_EQ(to_string(abstract_tensor({DType::f32, {2}})), "abstract f32[2]");
}

}  // namespace
}  // namespace tapedeck
