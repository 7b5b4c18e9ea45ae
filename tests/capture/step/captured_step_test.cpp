// Tests CapturedStep: it records two calls and then replays. The oracle is an eager twin, which must have the same bits
// after every step.
#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>

#include <tapedeck/tests/capture/step/small_classifier.h>
#include <tapedeck/tests/engine/messages.h>

#include <cmath>

namespace tapedeck {
namespace {

using testing::message_of;
using testing::sample_x;
using testing::sample_y;
using Net = testing::SmallClassifier;

// A model with its optimizer and an eager training step.
struct Trainer {
  Net net;
  AdamW optimizer{net.parameters(), {.lr = 0.01}};
  std::vector<Tensor> step(const std::vector<Tensor>& in) { return testing::train_classifier(net, optimizer, in); }
  CapturedStep captured(CapturedStepOptions options = {}) {
    return capture([this](const std::vector<Tensor>& in) { return step(in); }, std::move(options));
  }
};

struct Trace {
  std::vector<Tensor> losses, parameters;
  int recordings = 0, replays = 0;
};

// Runs ten steps. `before` runs before each step.
Trace train(bool captured, const std::function<void(Trainer&, int)>& before = {}, CapturedStepOptions options = {}) {
  manual_seed(11);
  Trainer trainer;
  CapturedStep step = trainer.captured(std::move(options));
  Trace trace;
  for (int i = 0; i < 10; ++i) {
    if (before) before(trainer, i);
    const std::vector<Tensor> in{sample_x(i), sample_y(i)};
    trace.losses.push_back((captured ? step(in) : trainer.step(in))[0].detach());
  }
  for (const Tensor& p : trainer.net.parameters()) trace.parameters.push_back(copy(p.detach()));
  trace.recordings = step.recordings();
  trace.replays = step.replays();
  return trace;
}

void expect_same(const Trace& a, const Trace& b) {
  for (std::size_t i = 0; i < a.losses.size(); ++i) EXPECT_TRUE(bit_equal(a.losses[i], b.losses[i])) << "loss of step " << i;
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    EXPECT_TRUE(bit_equal(a.parameters[i], b.parameters[i])) << "parameter " << i;
}

TEST(CapturedStep, EqualsItsEagerTwin) {
  const Trace eager = train(false), captured = train(true);
  EXPECT_EQ(captured.recordings, 2);
  EXPECT_EQ(captured.replays, 8);
  expect_same(eager, captured);
}

TEST(CapturedStep, EqualsItsEagerTwinOnThreadsAndUnderABudget) {
  CapturedStepOptions options;
  options.executor.threads = 2;
  options.plan.budget_percent = 97;
  expect_same(train(false), train(true, {}, options));
}

TEST(CapturedStep, ANewLearningRateTakesEffect) {
  auto decay = [](Trainer& t, int step) { t.optimizer.set_lr(0.01 / (1 + step)); };
  const Trace eager = train(false, decay);
  expect_same(eager, train(true, decay));
  EXPECT_FALSE(bit_equal(eager.losses[9], train(false).losses[9]));
}

// Random draws between steps, outside of any module, must be those of the eager run.
TEST(CapturedStep, DrawsOutsideTheStepStayTheSame) {
  auto run = [](bool captured) {
    std::vector<Tensor> draws;
    train(captured, [&](Trainer&, int) { draws.push_back(uniform({4})); });
    return draws;
  };
  const std::vector<Tensor> eager = run(false), captured = run(true);
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << "step " << i;
}

TEST(CapturedStep, ReseedingActsOnReplays) {
  auto reseed = [](Trainer&, int step) {
    if (step == 6) manual_seed(99);
  };
  const Trace eager = train(false, reseed);
  expect_same(eager, train(true, reseed));
  EXPECT_FALSE(bit_equal(eager.losses[6], train(false).losses[6]));
}

TEST(CapturedStep, StateIsTheUsersTensors) {
  manual_seed(11);
  Trainer trainer;
  CapturedStep step = trainer.captured();
  for (int i = 0; i < 3; ++i) step({sample_x(i), sample_y(i)});
  const Tensor before = copy(trainer.net.fc1.weight.detach());
  step({sample_x(3), sample_y(3)});
  EXPECT_FALSE(bit_equal(before, trainer.net.fc1.weight)) << "replays write the parameters";
  // The next replay reads a parameter that the user has overwritten.
  {
    const NoGrad no_grad;
    for (const Tensor& p : trainer.net.parameters()) apply_in_place(ops::mul, std::vector<Tensor>{p, scalar(0)}, nullptr, {});
  }
  const double loss = step({sample_x(4), sample_y(4)})[0].item();
  EXPECT_NEAR(loss, std::log(4.0), 1e-6) << "all logits are zero";
}

TEST(CapturedStep, ReplaysMakeSavedValuesStale) {
  manual_seed(11);
  Trainer trainer;
  CapturedStep step = trainer.captured();
  for (int i = 0; i < 3; ++i) step({sample_x(i), sample_y(i)});
  const Tensor loss = sum(trainer.net.fc2(relu(trainer.net.fc1(sample_x(0)))));
  step({sample_x(3), sample_y(3)});
  EXPECT_THROW(backward(loss), GradientError);
}

TEST(CapturedStep, OtherTypesAreRecordedAgainAndExplained) {
  manual_seed(11);
  Trainer trainer;
  CapturedStep step = trainer.captured();
  for (int i = 0; i < 3; ++i) step({sample_x(i), sample_y(i)});
  EXPECT_EQ(step.recordings(), 2);
  for (int i = 0; i < 3; ++i) step({sample_x(i, 5), sample_y(i, 5)});
  EXPECT_EQ(step.recordings(), 4);
  step({sample_x(9), sample_y(9)});
  EXPECT_EQ(step.recordings(), 4) << "the first types are still known";
  EXPECT_EQ(step.replays(), 3);
  const std::string text = step.explain();
  EXPECT_MENTIONS(text, "recorded 4 times, replayed 3 times");
  EXPECT_MENTIONS(text, "for (f32[8,6], i32[8]): first call");
  EXPECT_MENTIONS(text, "for (f32[5,6], i32[5]): input types changed to (f32[5,6], i32[5]) from (f32[8,6], i32[8])");
  EXPECT_MENTIONS(text, "fc1.weight: f32[6,16]");
  EXPECT_MENTIONS(text, "planned peak");
}

TEST(CapturedStep, NamesItsInputs) {
  CapturedStepOptions options;
  const auto add = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[1]}; };
  CapturedStep unnamed = capture(add, options);
  unnamed({tensor({1}), tensor({2})});
  EXPECT_MENTIONS(unnamed.explain(), "  in1: f32[1]");
  options.input_names = {"x", "y"};
  CapturedStep named = capture(add, options);
  named({tensor({1}), tensor({2})});
  EXPECT_MENTIONS(named.explain(), "  x: f32[1]");
  EXPECT_MENTIONS(named.explain(), "  y: f32[1]");
}

// ---- steps whose calls are not one program ----

TEST(CapturedStep, AHostNumberThatChangesIsAnError) {
  double scale = 1;
  const int line = __LINE__ + 1;
  CapturedStep step = capture([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * scale}; });
  EXPECT_EQ(step({tensor({2})})[0].item(), 2);
  scale = 3;
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({2})}); }),
                  "a constant f32[] differs between the first two calls of the step (first read at captured_step_test.cpp:" +
                      std::to_string(line) + "); pass it as an input");
}

TEST(CapturedStep, AnAttributeThatChangesIsAnError) {
  double p = 0.5;
  CapturedStep step = capture([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{dropout(in[0], p)}; });
  step({tensor({2})});
  next_step();
  p = 0.25;
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({2})}); }),
                  "the step did something else on its second call: node 0 was `");
}

TEST(CapturedStep, AnotherStreamOfOpsIsAnError) {
  int call = 0;
  CapturedStep step =
      capture([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{call++ ? exp(in[0]) : sin(in[0])}; });
  step({tensor({2})});
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({2})}); }), "the step did something else on its second call");
  call = 0;
  CapturedStep longer = capture([&](const std::vector<Tensor>& in) {
    Tensor y = exp(in[0]);
    for (int i = 0; i < call; ++i) y = exp(y);
    ++call;
    return std::vector<Tensor>{in[0]};
  });
  longer({tensor({2})});
  EXPECT_MENTIONS(message_of<CaptureError>([&] { longer({tensor({2})}); }),
                  "recorded 1 nodes on its first call and 2 on its second");
}

TEST(CapturedStep, OtherResultsAreAnError) {
  int call = 0;
  CapturedStep step = capture([&](const std::vector<Tensor>& in) {
    const Tensor a = exp(in[0]), b = sin(in[0]);
    return std::vector<Tensor>{call++ ? a : b};
  });
  step({tensor({2})});
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({2})}); }), "returned other results on its second call");
}

TEST(CapturedStep, StateMadeAnewInEveryCallIsAnError) {
  CapturedStep step = capture([](const std::vector<Tensor>& in) {
    Tensor total = tensor({0});
    total.name("total").role(Role::statistic);
    apply_in_place(ops::add, std::vector<Tensor>{total, in[0]}, nullptr, {});
    return std::vector<Tensor>{total};
  });
  step({tensor({2})});
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({2})}); }),
                  "the state 'total' is another tensor on the second call of the step");
  CapturedStep rates = capture([](const std::vector<Tensor>& in) {
    Tensor rate = scalar(1);
    rate.name("rate").role(Role::input);
    return std::vector<Tensor>{in[0] * rate};
  });
  rates({tensor({2})});
  EXPECT_MENTIONS(message_of<CaptureError>([&] { rates({tensor({2})}); }),
                  "the input 'rate' is another tensor on the second call of the step");
}

TEST(CapturedStep, AnExceptionPassesAndTheNextCallRecords) {
  bool fail = true;
  CapturedStep step = capture([&](const std::vector<Tensor>& in) {
    const Tensor y = in[0] * 2;
    if (fail) throw std::runtime_error("user");
    return std::vector<Tensor>{y};
  });
  EXPECT_THROW(step({tensor({2})}), std::runtime_error);
  EXPECT_EQ(step.recordings(), 0);
  fail = false;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step({tensor({2})})[0].item(), 4);
  EXPECT_EQ(step.recordings(), 2);
  EXPECT_EQ(step.replays(), 1);
}

TEST(CapturedStep, OutputsBelongToTheCaller) {
  CapturedStep step = capture([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2}; });
  std::vector<Tensor> results;
  for (int i = 0; i < 5; ++i) results.push_back(step({tensor({static_cast<float>(i)})})[0]);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(results[i].item(), 2.0 * i);
}

TEST(CapturedStep, ABudgetThatCannotBeMetIsAnError) {
  CapturedStepOptions options;
  options.plan.budget = 10;
  CapturedStep step = capture([](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0])}; }, options);
  const Tensor x = ones({100});
  step({x});
  try {
    step({x});
    FAIL() << "a plan within 10 bytes";
  } catch (const InfeasiblePlanError& error) {
    EXPECT_STREQ(error.kind(), "InfeasiblePlanError");
    EXPECT_NE(error.file().find("captured_step_test.cpp"), std::string::npos) << error.file();
    EXPECT_GT(error.line(), 0);
    EXPECT_EQ(error.node_op(), "exp");
    EXPECT_EQ(error.op(), "capture");
    EXPECT_EQ(error.budget_bytes(), 10);
    EXPECT_GE(error.floor_bytes(), 2 * 400);  // the input and the result
    EXPECT_NE(std::string(error.what()).find(std::to_string(error.floor_bytes())), std::string::npos) << error.what();
  }
}

TEST(CapturedStep, UndefinedInputsAreRefused) {
  CapturedStep step = capture([](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0])}; });
  EXPECT_THROW(step({Tensor()}), Error);
}

}  // namespace
}  // namespace tapedeck
