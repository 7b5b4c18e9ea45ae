// Tests the error of a step that is another program than its capture: its kind, its message and both of its sides, for each
// kind of difference, in checked calls and in the second recording. The expected kinds follow from how the steps are written.
#include <tapedeck/capture/record/capture_mismatch.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

using Tensors = std::vector<Tensor>;
using Kind = MismatchKind;

// The error of the first call that runs `other`, after `before` calls that run `usual`.
CaptureMismatch mismatch_after(int before, CaptureMode mode, const StepFunction& usual, const StepFunction& other,
                               const Tensors& in) {
  bool changed = false;
  CapturedStepOptions options;
  options.mode = mode;
  options.input_names = {"x", "y"};
  options.input_names.resize(in.size());
  CapturedStep step = capture([&](const Tensors& xs) { return changed ? other(xs) : usual(xs); }, options);
  for (int i = 0; i < before; ++i) step(in);
  changed = true;
  try {
    step(in);
  } catch (const CaptureError& e) {  // existing code catches this class
    if (const auto* mismatch = dynamic_cast<const CaptureMismatch*>(&e)) return *mismatch;
    ADD_FAILURE() << "not a CaptureMismatch: " << e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {Kind::op, {}, {}, ErrorText{}};
}

CaptureMismatch checked(const StepFunction& usual, const StepFunction& other, const Tensors& in) {
  return mismatch_after(3, CaptureMode::checked, usual, other, in);
}

CaptureMismatch recorded_again(const StepFunction& usual, const StepFunction& other, const Tensors& in) {
  return mismatch_after(1, CaptureMode::replay, usual, other, in);
}

void expect(const CaptureMismatch& e, Kind kind, const std::string& captured, const std::string& called,
            const std::string& message) {
  EXPECT_STREQ(mismatch_name(e.mismatch()), mismatch_name(kind)) << e.what();
  EXPECT_EQ(e.captured().name, captured) << e.what();
  EXPECT_EQ(e.called().name, called) << e.what();
  EXPECT_MENTIONS(e.message(), message);
  EXPECT_STREQ(e.kind(), "CaptureMismatch");
}

std::string at(int line) { return "capture_mismatch_test.cpp:" + std::to_string(line); }

// ---- kinds of nodes ----

TEST(CaptureMismatch, Op) {
  const int then = __LINE__ + 1, now = __LINE__ + 2;
  const StepFunction usual = [](const Tensors& in) -> Tensors { return {exp(in[0])}; };
  const StepFunction other = [](const Tensors& in) -> Tensors { return {sin(in[0])}; };
  const CaptureMismatch live = checked(usual, other, {tensor({1})});
  expect(live, Kind::op, "exp", "sin", "operator mismatch at node 0");
  const CaptureMismatch again = recorded_again(usual, other, {tensor({1})});
  expect(again, Kind::op, "exp", "sin", "op mismatch: exp, then sin");
  for (const CaptureMismatch& e : {live, again}) {
    EXPECT_EQ(e.captured().site, at(then));
    EXPECT_EQ(e.called().site, at(now));
  }
}

TEST(CaptureMismatch, OpCount) {
  const StepFunction one = [](const Tensors& in) -> Tensors { return {exp(in[0])}; };
  const int line = __LINE__ + 3;
  const StepFunction two = [](const Tensors& in) -> Tensors {
    const Tensor y = exp(in[0]);
    sin(y);
    return {y};
  };
  const Tensors in{tensor({1})};
  const CaptureMismatch more = checked(one, two, in), fewer = checked(two, one, in);
  expect(more, Kind::op_count, "the end", "sin", "too many ops at node 1");
  expect(fewer, Kind::op_count, "sin", "the end", "too few ops at node 1");
  const CaptureMismatch again = recorded_again(one, two, in);
  expect(again, Kind::op_count, "the end", "sin", "recorded 1 nodes on its first call and 2 on its second");
  expect(recorded_again(two, one, in), Kind::op_count, "sin", "the end", "recorded 2 nodes on its first call");
  for (const CaptureMismatch& e : {more, again}) {
    EXPECT_EQ(e.captured().site, "");
    EXPECT_EQ(e.called().site, at(line));
  }
  EXPECT_EQ(fewer.captured().site, at(line));
  EXPECT_EQ(fewer.called().site, "");
}

TEST(CaptureMismatch, OperandCount) {
  const StepFunction usual = [](const Tensors& in) -> Tensors { return {concat({in[0], in[0]}, 0)}; };
  const StepFunction other = [](const Tensors& in) -> Tensors { return {concat({in[0], in[0], in[0]}, 0)}; };
  expect(checked(usual, other, {tensor({1})}), Kind::operand_count, "2 operands", "3 operands",
         "(2 operands, then 3) at node 0");
  expect(recorded_again(usual, other, {tensor({1})}), Kind::operand_count, "2 operands", "3 operands",
         "number of operands mismatch: 2 operands, then 3 operands");
}

TEST(CaptureMismatch, Type) {
  const Tensor f = tensor({1, 2}).role(Role::parameter), d = tensor({1, 2}, DType::f64).role(Role::parameter);
  const StepFunction usual = [f](const Tensors&) -> Tensors { return {exp(f)}; };
  expect(checked(usual, [d](const Tensors&) -> Tensors { return {exp(d)}; }, {}), Kind::type, "f32[2]", "f64[2]",
         "dtype mismatch of operand 0");
  const Tensors in{tensor({1}), tensor({1, 2})};
  expect(recorded_again([](const Tensors& xs) -> Tensors { return {exp(xs[0])}; },
                        [](const Tensors& xs) -> Tensors { return {exp(xs[1])}; }, in),
         Kind::type, "f32[1]", "f32[2]", "type mismatch: f32[1], then f32[2]");
}

TEST(CaptureMismatch, Attribute) {
  const StepFunction usual = [](const Tensors& in) -> Tensors { return {sum(in[0], {0})}; };
  const StepFunction other = [](const Tensors& in) -> Tensors { return {sum(in[0], {1})}; };
  expect(checked(usual, other, {ones({2, 2})}), Kind::attribute, "axes", "axes", "attribute mismatch at node 0");
  expect(recorded_again(usual, other, {ones({2, 2})}), Kind::attribute, "axes", "axes", "attribute mismatch: axes, then axes");
}

// ---- kinds of operands ----

TEST(CaptureMismatch, Input) {
  const StepFunction usual = [](const Tensors& in) -> Tensors { return {exp(in[0])}; };
  const StepFunction other = [](const Tensors& in) -> Tensors { return {exp(in[1])}; };
  const Tensors in{tensor({1}), tensor({2})};
  expect(checked(usual, other, in), Kind::input, "'x' f32[1]", "'y' f32[1]", "input mismatch: 'x' f32[1], then 'y' f32[1]");
  expect(recorded_again(usual, other, in), Kind::input, "%x", "%y", "input mismatch: %x, then %y");
}

TEST(CaptureMismatch, InternalValue) {
  const int then = __LINE__ + 3, now = __LINE__ + 7;
  const StepFunction usual = [](const Tensors& in) -> Tensors {
    const Tensor a = exp(in[0]), b = sin(in[0]);
    return {tanh(b)};
  };
  const StepFunction other = [](const Tensors& in) -> Tensors {
    const Tensor a = exp(in[0]), b = sin(in[0]);
    return {tanh(in[0])};
  };
  const CaptureMismatch live = checked(usual, other, {tensor({1})});
  expect(live, Kind::internal_value, "%2", "'x' f32[1]", "operand 0 is another value) at node 2");
  EXPECT_MENTIONS(live.message(), "; internal value mismatch: %2, then 'x' f32[1]");
  const CaptureMismatch again = recorded_again(usual, other, {tensor({1})});
  expect(again, Kind::internal_value, "%sin", "%x", "internal value mismatch: %sin, then %x");
  for (const CaptureMismatch& e : {live, again}) {
    EXPECT_EQ(e.captured().site, at(then));
    EXPECT_EQ(e.called().site, at(now));
  }
}

TEST(CaptureMismatch, ExternalTensor) {
  Tensor a = tensor({1}), b = tensor({1});
  a.name("a").role(Role::parameter);
  b.name("b").role(Role::parameter);
  const int then = __LINE__ + 1, now = __LINE__ + 2;
  const StepFunction usual = [a](const Tensors& in) -> Tensors { return {in[0] * a}; };
  const StepFunction other = [b](const Tensors& in) -> Tensors { return {in[0] * b}; };
  const CaptureMismatch live = checked(usual, other, {tensor({1})});
  expect(live, Kind::external_tensor, "'a' f32[1]", "'b' f32[1]", "operand 1 was the tensor 'a' f32[1]");
  const CaptureMismatch again = recorded_again(usual, other, {tensor({1})});
  expect(again, Kind::external_tensor, "a", "b", "the state 'b' is another tensor on the second call of the step");
  for (const CaptureMismatch& e : {live, again}) {
    EXPECT_EQ(e.captured().site, at(then));
    EXPECT_EQ(e.called().site, at(now));
  }
  const StepFunction both = [a, b](const Tensors& in) -> Tensors { return {in[0] * a, in[0] * b}; };
  expect(recorded_again(usual, both, {tensor({1})}), Kind::external_tensor, "1 state tensors", "2 state tensors",
         "the step used 1 state tensors on its first call and 2 on its second");
}

TEST(CaptureMismatch, Constant) {
  const StepFunction usual = [](const Tensors& in) -> Tensors { return {in[0] * 2}; };
  const StepFunction other = [](const Tensors& in) -> Tensors { return {in[0] * 3}; };
  const Tensors in{tensor({1})};
  expect(checked(usual, other, in), Kind::constant, "f32[]", "f32[]", "constant differs (operand 1");
  expect(recorded_again(usual, other, in), Kind::constant, "%constant", "%constant", "a constant f32[] differs");
  const StepFunction none = [](const Tensors& xs) -> Tensors { return {xs[0] * xs[1]}; };
  const Tensors two{tensor({1}), scalar(2)};
  expect(checked(usual, none, two), Kind::constant, "f32[]", "'y' f32[]", "constant mismatch: f32[], then 'y' f32[]");
}

// ---- kinds of whole steps ----

TEST(CaptureMismatch, ResultCount) {
  const StepFunction usual = [](const Tensors& in) -> Tensors { return {exp(in[0])}; };
  const StepFunction other = [](const Tensors& in) -> Tensors {
    const Tensor y = exp(in[0]);
    return {y, y};
  };
  expect(checked(usual, other, {tensor({1})}), Kind::result_count, "1 results", "2 results",
         "the step returned 2 results, 1 in the capture");
  expect(recorded_again(usual, other, {tensor({1})}), Kind::result_count, "1 results", "2 results",
         "the step returned other results on its second call");
}

TEST(CaptureMismatch, Result) {
  const int line = __LINE__ + 2;
  const auto body = [](const Tensors& in, bool first) -> Tensors {
    const Tensor a = exp(in[0]), b = sin(in[0]);
    return {first ? a : b};
  };
  const StepFunction usual = [&](const Tensors& in) { return body(in, true); };
  const StepFunction other = [&](const Tensors& in) { return body(in, false); };
  const CaptureMismatch live = checked(usual, other, {tensor({1})});
  expect(live, Kind::result, "%1", "%2", "result 0 of the step is another value than in the capture");
  const CaptureMismatch again = recorded_again(usual, other, {tensor({1})});
  expect(again, Kind::result, "%exp", "%sin", "the step returned other results on its second call");
  for (const CaptureMismatch& e : {live, again}) {
    EXPECT_EQ(e.captured().site, at(line));
    EXPECT_EQ(e.called().site, at(line));
  }
}

TEST(CaptureMismatch, Write) {
  Tensor w = tensor({1});
  w.name("w").role(Role::statistic);
  const int line = __LINE__ + 1;
  const StepFunction usual = [w](const Tensors& in) -> Tensors { return {add_(w, in[0]) * 1}; };
  const StepFunction other = [w](const Tensors& in) -> Tensors { return {add(w, in[0]) * 1}; };
  const CaptureMismatch live = checked(usual, other, {tensor({1})});
  expect(live, Kind::write, "'w' f32[1]", "'w' f32[1]", "the step wrote 'w' f32[1] otherwise than in the capture");
  EXPECT_EQ(live.captured().site, at(line));
  EXPECT_EQ(live.called().site, "");
  expect(recorded_again(usual, other, {tensor({1})}), Kind::write, "w", "nothing",
         "the step wrote other state on its second call");
}

TEST(CaptureMismatch, EveryKindHasAName) {
  for (int k = 0; k <= static_cast<int>(Kind::write); ++k) EXPECT_STRNE(mismatch_name(static_cast<Kind>(k)), "");
}

// A step that catches the error fails at its end with the same kind.
TEST(CaptureMismatch, StaysWhatItWas) {
  const StepFunction usual = [](const Tensors& in) -> Tensors { return {exp(in[0])}; };
  const StepFunction other = [](const Tensors& in) -> Tensors {
    try {
      sin(in[0]);
    } catch (const CaptureError&) {
    }
    return {exp(in[0])};
  };
  expect(checked(usual, other, {tensor({1})}), Kind::op, "exp", "sin", "operator mismatch at node 0");
}

}  // namespace
}  // namespace tapedeck
