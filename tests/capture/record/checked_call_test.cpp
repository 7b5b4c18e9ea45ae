// Tests checked mode (C8, I14): the first op that differs from the captured one is reported at its call, with both ops. The
// step stays usable. The oracle is the same step in eager code.
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>

#include <tapedeck/tests/engine/messages.h>

namespace tapedeck {
namespace {

using Tensors = std::vector<Tensor>;
using testing::message_of;

// A step that runs `usual`, or `other` while `changed` is set.
struct Switch {
  StepFunction usual, other;
  bool changed = false;
  CapturedStep step = capture([this](const Tensors& in) { return changed ? other(in) : usual(in); }, checked());

  Switch(StepFunction a, StepFunction b) : usual(std::move(a)), other(std::move(b)) {}
  static CapturedStepOptions checked() {
    CapturedStepOptions options;
    options.mode = CaptureMode::checked;
    return options;
  }
  // Returns the message of the first changed call. The calls before and after it must agree with the capture and with eager
  // code.
  std::string report(const Tensors& in) {
    changed = false;
    for (int i = 0; i < 3; ++i) agree(in);
    changed = true;
    const std::string text = testing::without_folders(message_of<CaptureError>([&] { step(in); }));
    changed = false;
    for (int i = 0; i < 2; ++i) agree(in);
    EXPECT_EQ(step.recordings(), 2);
    EXPECT_EQ(step.checks(), 3);
    return text;
  }
  void agree(const Tensors& in) {
    const Tensors a = step(in), b = usual(in);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bit_equal(a[i], b[i]));
  }
};

std::string line(int n) { return "(checked_call_test.cpp:" + std::to_string(n) + ")"; }

TEST(Checked, OperatorMismatch) {
  int then = 0, now = 0;
  Switch s(
      [&](const Tensors& in) -> Tensors {
        const Tensor a = in[0] + in[0];
        then = __LINE__ + 1;
        return {exp(a)};
      },
      [&](const Tensors& in) -> Tensors {
        const Tensor a = in[0] + in[0];
        now = __LINE__ + 1;
        return {sin(a)};
      });
  const std::string text = s.report({tensor({1, 2})});
  EXPECT_MENTIONS(text, "operator mismatch at node 1: the capture has `");
  EXPECT_MENTIONS(text, "exp(");
  EXPECT_MENTIONS(text, line(then) + ", this call `");
  EXPECT_MENTIONS(text, "sin(");
  EXPECT_MENTIONS(text, line(now));
}

TEST(Checked, OperandMismatch) {
  Switch s(
      [](const Tensors& in) -> Tensors {
        const Tensor a = exp(in[0]), b = sin(in[0]);
        return {a - b};
      },
      [](const Tensors& in) -> Tensors {
        const Tensor a = exp(in[0]), b = sin(in[0]);
        return {b - a};
      });
  EXPECT_MENTIONS(s.report({tensor({1})}), "operand mismatch (operand 0 is another value) at node 2");
}

TEST(Checked, OperandCountMismatch) {
  Switch s(
      [](const Tensors& in) -> Tensors {
        return {concat({in[0], in[0]}, 0)};
      },
      [](const Tensors& in) -> Tensors {
        return {concat({in[0], in[0], in[0]}, 0)};
      });
  EXPECT_MENTIONS(s.report({tensor({1})}), "operand mismatch (2 operands, then 3) at node 0");
}

TEST(Checked, AnotherInput) {
  Switch s([](const Tensors& in) -> Tensors { return {exp(in[0])}; },
           [](const Tensors& in) -> Tensors { return {exp(in[1])}; });
  EXPECT_MENTIONS(s.report({tensor({1}), tensor({2})}), "operand mismatch (operand 0 is another value) at node 0");
}

TEST(Checked, DtypeAndTypeMismatch) {
  const Tensor f = tensor({1, 2}), d = from_bytes({DType::f64, {2}}, std::vector<double>{1, 2}.data()), g = tensor({1, 2, 3});
  Switch dtypes([&](const Tensors&) -> Tensors { return {exp(f)}; }, [&](const Tensors&) -> Tensors { return {exp(d)}; });
  EXPECT_MENTIONS(dtypes.report({}), "dtype mismatch of operand 0 (f32[2], then f64[2]) at node 0");
  Switch shapes([&](const Tensors&) -> Tensors { return {exp(f)}; }, [&](const Tensors&) -> Tensors { return {exp(g)}; });
  EXPECT_MENTIONS(shapes.report({}), "type mismatch of operand 0 (f32[2], then f32[3]) at node 0");
}

TEST(Checked, AttributeMismatch) {
  Switch s([](const Tensors& in) -> Tensors { return {sum(in[0], {0})}; },
           [](const Tensors& in) -> Tensors { return {sum(in[0], {1})}; });
  EXPECT_MENTIONS(s.report({ones({2, 2})}), "attribute mismatch at node 0");
}

TEST(Checked, ConstantDiffers) {
  Switch s([](const Tensors& in) -> Tensors { return {in[0] * 2}; }, [](const Tensors& in) -> Tensors { return {in[0] * 3}; });
  EXPECT_MENTIONS(s.report({tensor({1})}),
                  "constant differs (operand 1, f32[]; pass it as an input, or make it a HostScalar) at node 0");
}

TEST(Checked, AnotherStateTensor) {
  Tensor a = tensor({1}), b = tensor({1});
  a.name("a").role(Role::parameter);
  b.name("b").role(Role::parameter);
  Switch s([&](const Tensors& in) -> Tensors { return {in[0] * a}; },
           [&](const Tensors& in) -> Tensors { return {in[0] * b}; });
  EXPECT_MENTIONS(s.report({tensor({1})}), "operand 1 was the tensor 'a' f32[1], and is another tensor now");
}

TEST(Checked, TooManyAndTooFew) {
  Switch more([](const Tensors& in) -> Tensors { return {exp(in[0])}; },
              [](const Tensors& in) -> Tensors {
                const Tensor y = exp(in[0]);
                sin(y);
                return {y};
              });
  EXPECT_MENTIONS(more.report({tensor({1})}), "too many ops at node 1: the capture has the end, this call `");
  Switch fewer(
      [](const Tensors& in) -> Tensors {
        const Tensor y = exp(in[0]);
        sin(y);
        return {y};
      },
      [](const Tensors& in) -> Tensors { return {exp(in[0])}; });
  const std::string text = fewer.report({tensor({1})});
  EXPECT_MENTIONS(text, "too few ops at node 1: the capture has `");
  EXPECT_MENTIONS(text, ", this call the end");
}

TEST(Checked, OtherResultsAndOtherWrites) {
  Switch results(
      [](const Tensors& in) -> Tensors {
        const Tensor a = exp(in[0]), b = sin(in[0]);
        return {a};
      },
      [](const Tensors& in) -> Tensors {
        const Tensor a = exp(in[0]), b = sin(in[0]);
        return {b};
      });
  EXPECT_MENTIONS(results.report({tensor({1})}), "result 0 of the step is another value than in the capture");
  Tensor w = tensor({1});
  w.name("w").role(Role::statistic);
  CapturedStepOptions options;
  options.mode = CaptureMode::checked;
  bool in_place = true;
  CapturedStep writes =
      capture([&](const Tensors& in) -> Tensors { return {in_place ? add_(w, in[0]) * 1 : add(w, in[0]) * 1}; }, options);
  for (int i = 0; i < 3; ++i) writes({tensor({1})});
  in_place = false;
  EXPECT_MENTIONS(message_of<CaptureError>([&] { writes({tensor({1})}); }),
                  "the step wrote 'w' f32[1] otherwise than in the capture");
}

// The check stops the step at the wrong op: later ops have not run, and the effects of earlier ops stand.
TEST(Checked, StopsAtTheOp) {
  Tensor before = tensor({0}), after = tensor({0});
  before.name("before").role(Role::counter);
  after.name("after").role(Role::counter);
  auto body = [&](bool odd) {
    return [&, odd](const Tensors& in) -> Tensors {
      add_(before, 1);
      const Tensor y = odd ? sin(in[0]) : exp(in[0]);
      add_(after, 1);
      return {y};
    };
  };
  CapturedStepOptions options;
  options.mode = CaptureMode::checked;
  bool odd = false;
  CapturedStep step = capture([&](const Tensors& in) { return body(odd)(in); }, options);
  for (int i = 0; i < 3; ++i) step({tensor({1})});
  odd = true;
  EXPECT_THROW(step({tensor({1})}), CaptureError);
  EXPECT_EQ(before.item(), 4);
  EXPECT_EQ(after.item(), 3);
}

// The check fails even if the step catches the error.
TEST(Checked, AFailedCheckStaysFailed) {
  bool odd = false;
  CapturedStepOptions options;
  options.mode = CaptureMode::checked;
  CapturedStep step = capture(
      [&](const Tensors& in) -> Tensors {
        if (odd) {
          try {
            sin(in[0]);
          } catch (const CaptureError&) {
          }
        }
        return {exp(in[0])};
      },
      options);
  for (int i = 0; i < 3; ++i) step({tensor({1})});
  odd = true;
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({1})}); }), "operator mismatch at node 0");
}

// A whole training step in checked mode equals its eager twin, and the check reports nothing.
TEST(Checked, ATrainingStepAgrees) {
  struct Net : Module {
    Linear fc1{*this, "fc1", 4, 8};
    BatchNorm1d bn{*this, "bn", 8};
    Dropout drop{*this, "drop", 0.5};
    Linear fc2{*this, "fc2", 8, 2};
    Tensor operator()(const Tensor& x) { return fc2(drop(relu(bn(fc1(x))))); }
  };
  auto run = [](bool captured) {
    manual_seed(2);
    Net net;
    AdamW optimizer(net.parameters(), {.lr = 0.01});
    auto body = [&](const Tensors& in) -> Tensors {
      const Tensor loss = mean(square(net(in[0])));
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      return {loss};
    };
    CapturedStepOptions options;
    options.mode = CaptureMode::checked;
    CapturedStep step = capture(body, options);
    Tensors all;
    for (int i = 0; i < 6; ++i) {
      const Tensor x = reshape(arange(12, DType::f32), {3, 4}) * (0.1 * i);
      all.push_back((captured ? step({x}) : body({x}))[0].detach());
    }
    for (const Tensor& p : net.parameters()) all.push_back(copy(p.detach()));
    if (captured) {
      EXPECT_EQ(step.checks(), 4);
      EXPECT_EQ(step.replays(), 0);
    }
    return all;
  };
  const Tensors eager = run(false), captured = run(true);
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << i;
}

}  // namespace
}  // namespace tapedeck
