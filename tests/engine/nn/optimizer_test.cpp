// Tests optimizers against their published formulas in double precision; parameter groups and state; clipping, loss scaling
// and schedules.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/grad_scaler.h>
#include <tapedeck/engine/nn/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/nn/schedule.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tapedeck {
namespace {

using testing::message_of;

const float kInf = std::numeric_limits<float>::infinity();

Tensor parameter(std::initializer_list<float> values, const char* name = "w") {
  Tensor w = tensor(values);
  w.name(name).requires_grad(true);
  return w;
}

// Makes five steps on sum(w^4 / 4 - w), whose gradient is w^3 - 1, with two elements. `update(element, w, g)` computes the
// same steps in double precision.
template <class Update>
void expect_follows(Optimizer& optimizer, Tensor w, Update&& update) {
  std::vector<double> v;
  for (float x : w.to_vector<float>()) v.push_back(x);
  for (int step = 1; step <= 5; ++step) {
    backward(sum(square(square(w)) * 0.25 - w));
    optimizer.step();
    optimizer.zero_grad();
    const std::vector<float> got = w.to_vector<float>();
    for (std::size_t i = 0; i < v.size(); ++i) {
      update(i, step, v[i], v[i] * v[i] * v[i] - 1);
      ASSERT_NEAR(got[i], v[i], 2e-6 * std::max(1.0, std::fabs(v[i]))) << "step " << step << ", element " << i;
    }
  }
}

using Pair = double[2];

TEST(Optimizers, SgdWithNesterovMomentum) {
  Tensor w = parameter({0.5f, -1.25f});
  Sgd optimizer({w}, {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  Pair b = {};
  expect_follows(optimizer, w, [&](std::size_t i, int, double& v, double g) {
    g += 0.01 * v;
    b[i] = 0.9 * b[i] + g;
    v -= 0.05 * (g + 0.9 * b[i]);
  });
}

TEST(Optimizers, SgdDampensAllButTheFirstStep) {
  Tensor w = parameter({0.5f, -1.25f});
  Sgd optimizer({w}, {.lr = 0.05, .momentum = 0.9, .dampening = 0.4});
  Pair b = {};
  expect_follows(optimizer, w, [&](std::size_t i, int t, double& v, double g) {
    b[i] = t == 1 ? g : 0.9 * b[i] + 0.6 * g;
    v -= 0.05 * b[i];
  });
}

// Checks Adam or AdamW, with and without amsgrad (the largest second moment).
template <class AdamKind, class Options>
void check_adam(Options options, bool decoupled) {
  Tensor w = parameter({0.5f, -1.25f});
  AdamKind optimizer({w}, options);
  Pair m = {}, s = {}, largest = {};
  expect_follows(optimizer, w, [&](std::size_t i, int t, double& v, double g) {
    if (decoupled)
      v -= options.lr * options.weight_decay * v;
    else
      g += options.weight_decay * v;
    m[i] = options.beta1 * m[i] + (1 - options.beta1) * g;
    s[i] = options.beta2 * s[i] + (1 - options.beta2) * g * g;
    largest[i] = options.amsgrad ? std::max(largest[i], s[i]) : s[i];
    v -= options.lr * m[i] / (1 - std::pow(options.beta1, t)) /
         (std::sqrt(largest[i] / (1 - std::pow(options.beta2, t))) + options.eps);
  });
}

TEST(Optimizers, Adam) { check_adam<Adam>(AdamOptions{.lr = 0.05, .weight_decay = 0.1}, false); }
TEST(Optimizers, AdamWithAmsgrad) { check_adam<Adam>(AdamOptions{.lr = 0.2, .beta2 = 0.5, .amsgrad = true}, false); }
TEST(Optimizers, AdamW) { check_adam<AdamW>(AdamWOptions{.lr = 0.05, .weight_decay = 0.1}, true); }
TEST(Optimizers, AdamWWithAmsgrad) { check_adam<AdamW>(AdamWOptions{.lr = 0.2, .beta2 = 0.5, .amsgrad = true}, true); }

void check_rmsprop(RmspropOptions o) {
  Tensor w = parameter({0.5f, -1.25f});
  Rmsprop optimizer({w}, o);
  Pair s = {}, a = {}, b = {};
  expect_follows(optimizer, w, [&](std::size_t i, int, double& v, double g) {
    g += o.weight_decay * v;
    s[i] = o.alpha * s[i] + (1 - o.alpha) * g * g;
    a[i] = o.alpha * a[i] + (1 - o.alpha) * g;
    const double way = g / (std::sqrt(o.centered ? s[i] - a[i] * a[i] : s[i]) + o.eps);
    b[i] = o.momentum * b[i] + way;
    v -= o.lr * (o.momentum != 0 ? b[i] : way);
  });
}

TEST(Optimizers, Rmsprop) { check_rmsprop({.lr = 0.02, .alpha = 0.9, .weight_decay = 0.1}); }
TEST(Optimizers, RmspropWithMomentum) { check_rmsprop({.lr = 0.02, .alpha = 0.9, .momentum = 0.8}); }
TEST(Optimizers, RmspropCentered) { check_rmsprop({.lr = 0.02, .alpha = 0.9, .centered = true}); }
TEST(Optimizers, RmspropCenteredWithMomentum) { check_rmsprop({.lr = 0.02, .alpha = 0.9, .momentum = 0.8, .centered = true}); }

TEST(Optimizers, Adagrad) {
  Tensor w = parameter({0.5f, -1.25f});
  Adagrad optimizer({w}, {.lr = 0.1, .lr_decay = 0.2, .weight_decay = 0.1});
  Pair s = {};
  expect_follows(optimizer, w, [&](std::size_t i, int t, double& v, double g) {
    g += 0.1 * v;
    s[i] += g * g;
    v -= 0.1 / (1 + (t - 1) * 0.2) * g / (std::sqrt(s[i]) + 1e-10);
  });
}

TEST(Optimizers, Adadelta) {
  Tensor w = parameter({0.5f, -1.25f});
  Adadelta optimizer({w}, {.lr = 2, .weight_decay = 0.1});
  Pair s = {}, d = {};
  expect_follows(optimizer, w, [&](std::size_t i, int, double& v, double g) {
    g += 0.1 * v;
    s[i] = 0.9 * s[i] + 0.1 * g * g;
    const double way = std::sqrt(d[i] + 1e-6) / std::sqrt(s[i] + 1e-6) * g;
    d[i] = 0.9 * d[i] + 0.1 * way * way;
    v -= 2 * way;
  });
}

TEST(Optimizers, Lion) {
  Tensor w = parameter({0.5f, -1.25f});
  Lion optimizer({w}, {.lr = 0.05, .weight_decay = 0.1});
  Pair m = {};
  expect_follows(optimizer, w, [&](std::size_t i, int, double& v, double g) {
    const double way = 0.9 * m[i] + 0.1 * g;
    m[i] = 0.99 * m[i] + 0.01 * g;
    v -= 0.05 * ((way > 0) - (way < 0) + 0.1 * v);
  });
}

TEST(Optimizers, TakeParametersInDouble) {
  Tensor w = full({1}, 1, DType::f64);
  w.requires_grad(true);
  Adam optimizer({w}, {.lr = 0.5});
  backward(sum(w));
  optimizer.step();
  EXPECT_NEAR(w.item(), 0.5, 1e-7);
}

TEST(Optimizers, StepDoubleParametersByARateInDouble) {
  Tensor w = full({1}, 1, DType::f64), v = parameter({1});
  w.requires_grad(true);
  Sgd optimizer({{{w, v}, {.lr = 0.1}}, {{parameter({1})}, {.lr = 0.1}}});
  EXPECT_EQ(optimizer.lr(0).dtype(), DType::f64);
  EXPECT_EQ(optimizer.lr(1).dtype(), DType::f32);
  backward(sum(w) + cast(sum(v), DType::f64));
  optimizer.step();
  EXPECT_EQ(w.item(), 1 - 0.1);
  EXPECT_EQ(v.item(), static_cast<double>(1 - 0.1f));
  optimizer.set_lr(0.3);
  optimizer.step();
  EXPECT_EQ(w.item(), 1 - 0.1 - 0.3);
  optimizer.set_lr(scalar(0.7, DType::f64));
  optimizer.step();
  EXPECT_EQ(w.item(), 1 - 0.1 - 0.3 - 0.7);
  EXPECT_EQ(message_of<TypeError>([&] { optimizer.set_lr(scalar(1, DType::i32)); }),
            "[set_lr] the learning rate must be f32[] or f64[], not i32[]");
}

// ---- parameter groups and optimizer state ----

TEST(Optimizers, GroupsHaveOptionsAndRatesOfTheirOwn) {
  Tensor a = parameter({1}, "a"), b = parameter({1}, "b");
  Sgd optimizer({{{a}, {.lr = 0.5}}, {{b}, {.lr = 0.25, .weight_decay = 2}}});
  ASSERT_EQ(optimizer.groups(), 2u);
  backward(sum(a + b));
  optimizer.step();
  EXPECT_EQ(a.item(), 0.5);
  EXPECT_EQ(b.item(), 0.25);
  EXPECT_EQ(optimizer.lr(1).name().view(), "lr.1");
  optimizer.set_lr(1, 0);
  optimizer.step();
  EXPECT_EQ(a.item(), -0.5);
  EXPECT_EQ(b.item(), 0.25 - 0.25 * (1 + 0.5));
  optimizer.set_lr(0);
  optimizer.step();
  EXPECT_EQ(a.item(), -0.5);
  EXPECT_EQ(message_of<UsageError>([&] { optimizer.set_lr(1, 2); }), "optimizer: no group 2 of 2");
}

TEST(Optimizers, StateNamesEveryTensorToSave) {
  Tensor a = parameter({1, 2}, "a"), b = parameter({1}, "b");
  const AdamW optimizer({a, b}, {.amsgrad = true});
  std::vector<std::string> names;
  for (const Tensor& t : optimizer.state()) names.push_back(t.name().str());
  EXPECT_EQ(names, (std::vector<std::string>{"a.m", "a.v", "a.v_max", "b.m", "b.v", "b.v_max", "adamw.steps"}));
  EXPECT_EQ(optimizer.state()[6].role(), Role::counter);
  EXPECT_EQ(optimizer.state()[0].role(), Role::moment);
  EXPECT_TRUE(Sgd({a}).state().empty());
  EXPECT_EQ(Rmsprop({a}, {.momentum = 0.5, .centered = true}).state().size(), 3u);
}

TEST(Optimizers, RefuseWhatContradictsItself) {
  Tensor w = parameter({1});
  EXPECT_EQ(message_of<UsageError>([&] { Sgd({w}, {.nesterov = true}); }), "sgd: nesterov needs momentum and no dampening");
  EXPECT_EQ(message_of<UsageError>([&] { Sgd({w, w}); }), "optimizer: 'w' is listed twice");
}

// ---- steps under a condition ----

TEST(Optimizers, AStepThatDoesNotHoldChangesNothing) {
  Tensor w = parameter({1, 2});
  AdamW optimizer({w}, {.lr = 0.1});
  backward(sum(square(w)));
  optimizer.step();
  const std::vector<float> before = w.to_vector<float>(), m = optimizer.state()[0].to_vector<float>();
  optimizer.step_if(full({}, 0, DType::boolean));
  EXPECT_EQ(w.to_vector<float>(), before);
  EXPECT_EQ(optimizer.state()[0].to_vector<float>(), m);
  EXPECT_EQ(optimizer.state()[2].item(), 1);
  optimizer.step_if(full({}, 1, DType::boolean));
  EXPECT_NE(w.to_vector<float>(), before);
  EXPECT_EQ(optimizer.state()[2].item(), 2);
  EXPECT_MENTIONS(message_of<TypeError>([&] { optimizer.step_if(scalar(1)); }),
                  "[step_if] the condition must be bool[], not f32[]");
}

// ---- norms and clipping of gradients ----

TEST(GradientTools, NormIsOverAllParameters) {
  Tensor a = parameter({0, 0}, "a"), b = parameter({0}, "b"), none = parameter({0}, "none");
  a.set_grad(tensor({3, 0}));
  b.set_grad(tensor({-4}));
  EXPECT_EQ(grad_norm({a, b, none}).item(), 5);
  EXPECT_EQ(grad_norm({none}).item(), 0);
  a.set_grad(tensor({3e30f, 0}));
  EXPECT_NEAR(grad_norm({a}).item() / 3e30, 1, 1e-6) << "squares may overflow f32";
}

TEST(GradientTools, ClippingScalesOnlyWhatIsTooLong) {
  Tensor a = parameter({0, 0}, "a"), b = parameter({0}, "b");
  a.set_grad(tensor({3, 0}));
  b.set_grad(tensor({-4}));
  EXPECT_EQ(clip_grad_norm_({a, b}, 10).item(), 5);
  EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{3, 0}));
  EXPECT_EQ(clip_grad_norm_({a, b}, 1).item(), 5);
  EXPECT_NEAR(a.grad().to_vector<float>()[0], 0.6, 1e-6);
  EXPECT_NEAR(b.grad().item(), -0.8, 1e-6);
  clip_grad_value_({a, b}, 0.7);
  EXPECT_NEAR(a.grad().to_vector<float>()[0], 0.6, 1e-6);
  EXPECT_EQ(b.grad().item(), -0.7f);
  EXPECT_EQ(message_of<UsageError>([&] { clip_grad_norm_({a}, -1); }), "clip_grad_norm_: max_norm must be at least 0");
}

// One tensor is the gradient of two parameters. It must be scaled once, not twice.
TEST(GradientTools, SharedGradientsAreScaledOnce) {
  Tensor a = parameter({0}, "a"), b = parameter({0}, "b");
  const Tensor shared = tensor({2});
  a.set_grad(shared);
  b.set_grad(shared);
  clip_grad_norm_({a, b}, 1);
  EXPECT_NEAR(a.grad().item(), std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(b.grad().item(), std::sqrt(0.5), 1e-6);
}

// ---- loss scaling ----

TEST(GradScaler, UnscalesSharedGradientsOnce) {
  Tensor a = parameter({0}, "a"), b = parameter({0}, "b");
  Sgd optimizer({a, b}, {.lr = 1});
  GradScaler scaler({.scale = 1024});
  backward(scaler.scale_loss(sum((a + b) * 2)));
  EXPECT_EQ(a.grad().item(), 2048);
  scaler.unscale(optimizer);
  EXPECT_EQ(a.grad().item(), 2);
  EXPECT_EQ(b.grad().item(), 2);
  EXPECT_MENTIONS(message_of<UsageError>([&] { scaler.unscale(optimizer); }), "[unscale] the gradients are unscaled already");
  scaler.step(optimizer);
  scaler.update();
  EXPECT_EQ(a.item(), -2);
  EXPECT_EQ(scaler.scale().item(), 1024);
  EXPECT_MENTIONS(message_of<UsageError>([&] { scaler.update(); }), "[update] no optimizer has stepped since the last update");
}

TEST(GradScaler, SkipsStepsThatAreNotFiniteAndAdaptsTheScale) {
  Tensor w = parameter({1, 1});
  Adam optimizer({w}, {.lr = 0.5});
  GradScaler scaler({.scale = 8, .interval = 2});
  auto step = [&](float gradient) {
    w.set_grad(tensor({1, gradient}));
    scaler.step(optimizer);
    scaler.update();
    return scaler.scale().item();
  };
  EXPECT_EQ(step(kInf), 4);
  EXPECT_EQ(step(NAN), 2);
  EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(optimizer.state()[2].item(), 0) << "steps taken";
  EXPECT_EQ(step(1), 2);
  EXPECT_EQ(step(1), 4) << "two finite steps in a row";
  EXPECT_EQ(step(1), 4);
  EXPECT_EQ(step(-kInf), 2);
  EXPECT_EQ(step(1), 2);
  EXPECT_EQ(step(1), 4);
  EXPECT_EQ(optimizer.state()[2].item(), 5);
}

TEST(GradScaler, AllOptimizersOfAStepShareTheScale) {
  Tensor a = parameter({1}, "a"), b = parameter({1}, "b");
  Sgd first({a}, {.lr = 1}), second({b}, {.lr = 1});
  GradScaler scaler({.scale = 4});
  a.set_grad(tensor({4}));
  b.set_grad(tensor({kInf}));
  scaler.step(first);
  scaler.step(second);
  scaler.update();
  EXPECT_EQ(a.item(), 0);
  EXPECT_EQ(b.item(), 1);
  EXPECT_EQ(scaler.scale().item(), 2);
}

// ---- learning-rate schedules ----

template <class F>
void expect_equal_both_ways(F&& f) {
  for (std::int64_t step : {0, 1, 2, 3, 9, 10, 11, 29, 30, 50, 99, 100, 1000}) {
    const Tensor whole = scalar(static_cast<double>(step), DType::i64), real = scalar(static_cast<double>(step));
    EXPECT_EQ(f(whole).item(), static_cast<double>(static_cast<float>(f(step)))) << "step " << step;
    EXPECT_EQ(f(real).item(), static_cast<double>(static_cast<float>(f(step)))) << "step " << step;
    EXPECT_EQ(f(whole).type(), (Type{DType::f32, {}}));
  }
}

TEST(Schedule, TensorsAndNumbersAgree) {
  expect_equal_both_ways([](const auto& s) { return schedule::constant(s, 0.3); });
  expect_equal_both_ways([](const auto& s) { return schedule::step_decay(s, 0.3, 10, 0.5); });
  expect_equal_both_ways([](const auto& s) { return schedule::multi_step(s, 0.3, {10, 30}, 0.1); });
  expect_equal_both_ways([](const auto& s) { return schedule::exponential(s, 0.3, 0.97); });
  expect_equal_both_ways([](const auto& s) { return schedule::linear(s, 0.3, 0.1, 50); });
  expect_equal_both_ways([](const auto& s) { return schedule::polynomial(s, 0.3, 50, 2, 0.01); });
  expect_equal_both_ways([](const auto& s) { return schedule::cosine(s, 0.3, 100, 0.01); });
  expect_equal_both_ways([](const auto& s) { return schedule::warmup_cosine(s, 0.3, 10, 100); });
  expect_equal_both_ways([](const auto& s) { return schedule::warmup_cosine(s, 0.3, 0, 100); });
  expect_equal_both_ways([](const auto& s) { return schedule::inverse_sqrt(s, 0.3, 10); });
  expect_equal_both_ways([](const auto& s) { return schedule::one_cycle(s, 0.3, 100); });
}

TEST(Schedule, ValuesAtTheirCorners) {
  EXPECT_EQ(schedule::step_decay(9, 1, 10, 0.5), 1);
  EXPECT_EQ(schedule::step_decay(10, 1, 10, 0.5), 0.5);
  EXPECT_EQ(schedule::step_decay(25, 1, 10, 0.5), 0.25);
  EXPECT_EQ(schedule::multi_step(9, 1, {10, 30}, 0.5), 1);
  EXPECT_EQ(schedule::multi_step(30, 1, {10, 30}, 0.5), 0.25);
  EXPECT_EQ(schedule::exponential(3, 1, 0.5), 0.125);
  EXPECT_EQ(schedule::linear(5, 1, 0, 10), 0.5);
  EXPECT_EQ(schedule::polynomial(5, 1, 10, 2), 0.25);
  EXPECT_EQ(schedule::polynomial(50, 1, 10, 2, 0.1), 0.1);
  EXPECT_EQ(schedule::cosine(0, 1, 10), 1);
  EXPECT_NEAR(schedule::cosine(5, 1, 10, 0.5), 0.75, 1e-15);
  EXPECT_EQ(schedule::cosine(10, 1, 10, 0.5), 0.5);
  EXPECT_EQ(schedule::cosine(99, 1, 10, 0.5), 0.5);
  EXPECT_EQ(schedule::warmup_cosine(0, 1, 4, 12), 0.25);
  EXPECT_EQ(schedule::warmup_cosine(3, 1, 4, 12), 1);
  EXPECT_EQ(schedule::warmup_cosine(4, 1, 4, 12), 1);
  EXPECT_NEAR(schedule::warmup_cosine(8, 1, 4, 12), 0.5, 1e-15);
  EXPECT_NEAR(schedule::warmup_cosine(12, 1, 4, 12), 0, 1e-15);
  EXPECT_EQ(schedule::inverse_sqrt(3, 1, 4), 1);
  EXPECT_EQ(schedule::inverse_sqrt(15, 1, 4), 0.5);
  EXPECT_NEAR(schedule::one_cycle(0, 1, 100), 0.04, 1e-15);
  EXPECT_NEAR(schedule::one_cycle(29, 1, 100), 1, 1e-15);
  EXPECT_NEAR(schedule::one_cycle(99, 1, 100), 0.04 / 1e4, 1e-15);
}

TEST(Schedule, RefusesWhatIsNoStepOrNoSchedule) {
  EXPECT_EQ(message_of<TypeError>([] { schedule::cosine(tensor({1}), 1, 10); }),
            "[schedule::cosine] the step must be i64[], i32[] or f32[], not f32[1]");
  EXPECT_EQ(message_of<UsageError>([] { schedule::cosine(1, 1, 0); }), "schedule::cosine: total must be at least 1");
}

}  // namespace
}  // namespace tapedeck
