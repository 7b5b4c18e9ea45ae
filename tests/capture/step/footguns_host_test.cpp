// Tests steps that read values on the host: to choose a branch, a number that changes, a number that is baked in. The step
// must be right or refuse.
#include <tapedeck/capture/record/host_scalar.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/host.h>

#include <tapedeck/tests/capture/step/footguns.h>

namespace tapedeck {
namespace {

using testing::message_of;

TEST(Footguns, HostReadThatDecidesABranch) {
  int line = 0;
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    const Tensor y = in[0] * 2;
    line = __LINE__ + 1;
    if (sum(y).item() > 0) return {y};
    return {-y};
  });
  const std::string text = refused(step, {tensor({1, 2})});
  EXPECT_MENTIONS(text, "[item] reads a tensor on the host inside a capture, which a replay could not repeat");
  EXPECT_MENTIONS(text, here(line));
}

TEST(Footguns, HostCopiesAreHostReadsToo) {
  CapturedStep copies = capture([](const Tensors& in) -> Tensors {
    float raw[2];
    in[0].copy_to(raw, sizeof raw, sizeof(float));
    return {in[0] * raw[0]};
  });
  EXPECT_MENTIONS(refused(copies, {tensor({1, 2})}), "on the host inside a capture");
  CapturedStep pointers =
      capture([](const Tensors& in) -> Tensors { return {in[0] * *static_cast<const float*>(in[0].data())}; });
  EXPECT_MENTIONS(refused(pointers, {tensor({1, 2})}), "on the host inside a capture");
}

TEST(Footguns, TheBranchCanStayEager) {
  auto body = [](const Tensors& in) -> Tensors {
    const Tensor y = in[0] * 2;
    return {exclude_from_capture(
                {y}, [](const Tensors& xs) -> Tensors { return {sum(xs[0]).item() > 0 ? xs[0] + 1 : xs[0] * -1}; })[0] *
            3};
  };
  CapturedStep step = capture(body);
  for (float v : {1.f, 2.f, -3.f, 4.f, -5.f}) EXPECT_TRUE(bit_equal(step({tensor({v})})[0], body({tensor({v})})[0])) << v;
  EXPECT_EQ(step.recordings(), 2);
  EXPECT_EQ(step.replays(), 3);
}

TEST(Footguns, AHostNumberThatChangesInTheFirstTwoCalls) {
  double scale = 1;
  const int line = __LINE__ + 1;
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] * scale}; });
  step({tensor({2})});
  scale = 3;
  const std::string text = refused(step, {tensor({2})});
  EXPECT_MENTIONS(text, "a constant f32[] differs between the first two calls of the step (first read at " + here(line) + ")");
  EXPECT_MENTIONS(text, "pass it as an input, or make it a HostScalar");
}

TEST(Footguns, AHostScalarIsAnInput) {
  HostScalar scale(1, "scale");
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] * scale.tensor()}; });
  for (int i = 0; i < 6; ++i) {
    scale.set(i);
    EXPECT_EQ(values(step({tensor({2})})[0]), Floats{2.f * static_cast<float>(i)});
  }
  EXPECT_EQ(step.recordings(), 2);
  EXPECT_MENTIONS(step.explain(), "  scale: f32[]");
  EXPECT_MENTIONS(message_of<CaptureError>([&] {
                    capture([&](const Tensors& in) -> Tensors {
                      scale.set(2);
                      return {in[0]};
                    })({tensor({1})});
                  }),
                  "[mutable_data] writes a tensor from the host inside a capture");
}

// A replay cannot notice that a host number has changed. A checked call finds it at the op, and the step stays usable.
TEST(Footguns, AHostNumberThatChangesLaterIsFoundByACheckedCall) {
  double scale = 2;
  const int line = __LINE__ + 1;
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {exp(in[0]) * scale}; });
  for (int i = 0; i < 3; ++i) step({tensor({1})});
  step.set_mode(CaptureMode::checked);
  step({tensor({1})});
  EXPECT_EQ(step.checks(), 1);
  scale = 3;
  const std::string text = refused(step, {tensor({1})});
  EXPECT_MENTIONS(text, "constant differs (operand 1, f32[]; pass it as an input, or make it a HostScalar) at node 1");
  EXPECT_MENTIONS(text, here(line));
  scale = 2;
  EXPECT_TRUE(bit_equal(step({tensor({1})})[0], exp(tensor({1})) * 2));
  step.set_mode(CaptureMode::replay);
  EXPECT_TRUE(bit_equal(step({tensor({0})})[0], tensor({2})));
  EXPECT_EQ(step.replays(), 2);
}

// The user may write to a tensor that was baked in as a constant. The step notices the write and records again.
TEST(Footguns, AConstantTensorThatIsWrittenIsRecordedAgain) {
  Tensor table = tensor({1, 2});
  table.name("table");
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] + table}; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({tensor({10, 10})})[0]), (Floats{11, 12}));
  static_cast<float*>(table.mutable_data())[0] = 5;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(values(step({tensor({10, 10})})[0]), (Floats{15, 12}));
  EXPECT_EQ(step.recordings(), 4);
  EXPECT_MENTIONS(step.explain(), "the constant 'table' f32[2] was modified");
}

// Another tensor takes the place of the constant; the old one dies. The step notices and records again.
TEST(Footguns, AConstantTensorThatIsReplacedIsRecordedAgain) {
  Tensor table = tensor({1, 2});
  table.name("table");
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] + table}; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({tensor({10, 10})})[0]), (Floats{11, 12}));
  table = tensor({5, 2});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(values(step({tensor({10, 10})})[0]), (Floats{15, 12}));
  EXPECT_EQ(step.recordings(), 4);
  EXPECT_MENTIONS(step.explain(), "a handle to the constant 'table' f32[2] was let go");
}

// The old tensor lives on in a list that was made after the recording, until the constant is replaced.
TEST(Footguns, AReplacedConstantIsNoticedByAnyHandle) {
  Tensor table = tensor({1, 2});
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] + table}; });
  for (int i = 0; i < 3; ++i) step({tensor({10, 10})});
  const Tensors list{table};
  EXPECT_EQ(values(step({tensor({10, 10})})[0]), (Floats{11, 12}));
  table = tensor({5, 2});
  EXPECT_EQ(values(step({tensor({10, 10})})[0]), (Floats{15, 12}));
}

// A constant whose handles come and go is confirmed and replayed on.
TEST(Footguns, AConstantWithOtherHandlesStaysTheSameProgram) {
  Tensor table = tensor({1, 2});
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] + table}; });
  for (int i = 0; i < 3; ++i) step({tensor({10, 10})});
  {
    const Tensor another = table;
    step({tensor({10, 10})});
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({tensor({10, 10})})[0]), (Floats{11, 12}));
  EXPECT_EQ(step.recordings(), 3);
  EXPECT_EQ(step.replays(), 4);
}

// A pointer that the author keeps writes without a sign. So such a tensor is read anew by every replay.
TEST(Footguns, WritesThroughAPointerFromBeforeTheRecording) {
  Tensor table = tensor({1, 2});
  table.name("table");
  float* raw = static_cast<float*>(table.mutable_data());
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] + table}; });
  for (int i = 0; i < 6; ++i) {
    raw[0] = static_cast<float>(i);
    EXPECT_EQ(values(step({tensor({10, 10})})[0]), (Floats{10 + static_cast<float>(i), 12})) << i;
  }
  EXPECT_EQ(step.recordings(), 2);
  EXPECT_MENTIONS(step.explain(), "table: f32[2]  read anew in every replay, because mutable_data() handed out its bytes");
}

TEST(Footguns, WritesThroughAPointerFromLater) {
  for (const int asked_before : {1, 2, 3, 5}) {
    Tensor table = tensor({1, 2});
    CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] + table}; });
    float* raw = nullptr;
    for (int i = 0; i < 10; ++i) {
      if (i == asked_before) raw = static_cast<float*>(table.mutable_data());
      if (raw && i != asked_before) raw[0] = static_cast<float>(i);
      const float first = raw && i != asked_before ? static_cast<float>(i) : 1.f;
      EXPECT_EQ(values(step({tensor({10, 10})})[0]), (Floats{10 + first, 12})) << asked_before << ", call " << i;
    }
    EXPECT_GE(step.replays(), 5);
  }
}

// A mode that is set inside is no op, so a replay keeps what was recorded. Every third call that could replay is checked.
TEST(Footguns, AutocastToggledInsideIsFoundByCheckEvery) {
  bool on = false;
  const Tensor w = full({4, 4}, 0.1);
  CapturedStep step = capture(
      [&](const Tensors& in) -> Tensors {
        const Autocast mode(DType::bf16, on);
        return {matmul(in[0], w)};
      },
      {.check_every = 3});
  const Tensor x = full({4, 4}, 0.3);
  for (int i = 0; i < 8; ++i) step({x});
  EXPECT_EQ(step.recordings(), 2);
  EXPECT_EQ(step.checks(), 2);
  EXPECT_EQ(step.replays(), 4);
  on = true;
  EXPECT_NO_THROW(step({x}));
  EXPECT_NO_THROW(step({x}));
  EXPECT_MENTIONS(refused(step, {x}), "operator mismatch at node 0: the capture has `%2: f32[4,4] = matmul(%0, %1)`");
  on = false;
  EXPECT_NO_THROW(step({x}));
  EXPECT_THROW(capture([](const Tensors& in) -> Tensors { return in; }, {.check_every = -1}), UsageError);
}

}  // namespace
}  // namespace tapedeck
