// What has gone silently wrong elsewhere: here each is right, or a typed error that names op and call site. The oracle is the same function
// called eagerly.
#include <tapedeck/capture/capture.h>
#include <tapedeck/capture/host_scalar.h>
#include <tapedeck/engine/gradients.h>
#include <tapedeck/engine/inplace.h>
#include <tapedeck/engine/nn.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/tape.h>
#include <tapedeck/engine/tensor_impl.h>

#include <tapedeck/tests/engine/messages.h>

#include <thread>

namespace tapedeck {
namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<Tensor>;
using testing::message_of;

std::string here(int line) { return "footguns_test.cpp:" + std::to_string(line); }

Floats values(const Tensor& t) { return t.to_vector<float>(); }

// The site of an error is the user's line, whatever folder the file is in.
std::string refused(CapturedStep& step, const Tensors& in) { return testing::without_folders(message_of<CaptureError>([&] { step(in); })); }

// ---- host reads ----

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
  CapturedStep pointers = capture([](const Tensors& in) -> Tensors { return {in[0] * *static_cast<const float*>(in[0].data())}; });
  EXPECT_MENTIONS(refused(pointers, {tensor({1, 2})}), "on the host inside a capture");
}

TEST(Footguns, TheBranchCanStayEager) {
  auto body = [](const Tensors& in) -> Tensors {
    const Tensor y = in[0] * 2;
    return {exclude_from_capture({y}, [](const Tensors& xs) -> Tensors { return {sum(xs[0]).item() > 0 ? xs[0] + 1 : xs[0] * -1}; })[0] * 3};
  };
  CapturedStep step = capture(body);
  for (float v : {1.f, 2.f, -3.f, 4.f, -5.f}) EXPECT_TRUE(bit_equal(step({tensor({v})})[0], body({tensor({v})})[0])) << v;
  EXPECT_EQ(step.recordings(), 2);
  EXPECT_EQ(step.replays(), 3);
}

// ---- host numbers ----

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
    capture([&](const Tensors& in) -> Tensors { scale.set(2); return {in[0]}; })({tensor({1})});
  }), "[mutable_data] writes a tensor from the host inside a capture");
}

// What changes later a replay cannot see; a checked call does, at the op, and the step stays usable.
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

// A tensor that was baked in belongs to the user: a write to it is seen, and the step recorded again.
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

// ---- inputs ----

TEST(Footguns, AnInputAssignedInside) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    Tensor x = in[0];
    x = x + 1;
    x = x * x;
    return {x, in[0]};
  });
  for (float v : {1.f, 2.f, 3.f, 4.f}) {
    const Tensors out = step({tensor({v})});
    EXPECT_EQ(values(out[0]), Floats{(v + 1) * (v + 1)});
    EXPECT_EQ(values(out[1]), Floats{v});
  }
}

TEST(Footguns, AnInputWrittenInPlace) {
  int line = 0;
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    line = __LINE__ + 1;
    add_(in[0], 1);
    return {in[0]};
  });
  const std::string text = refused(step, {tensor({1, 2})});
  EXPECT_MENTIONS(text, "the input 'in0' f32[2] is modified in place inside the step by 'add' at " + here(line));
}

TEST(Footguns, AViewOfAnInputWrittenInPlace) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    mul_(slice(in[0], 0, 0, 1), 5);
    return {in[0] * 2};
  });
  EXPECT_MENTIONS(refused(step, {tensor({1, 2})}), "the input 'in0' f32[2] is modified in place inside the step by");
  // A copy may be written.
  CapturedStep copies = capture([](const Tensors& in) -> Tensors {
    const Tensor own = copy(in[0]);
    mul_(slice(own, 0, 0, 1), 5);
    return {own * 2};
  });
  for (float v : {1.f, 2.f, 3.f}) EXPECT_EQ(values(copies({tensor({v, v})})[0]), (Floats{10 * v, 2 * v}));
}

TEST(Footguns, AListOfInputs) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    Tensor total = in[0];
    for (std::size_t i = 1; i < in.size(); ++i) total = total + in[i];
    return {total};
  });
  for (int n : {1, 3, 1, 3, 1, 3, 3}) EXPECT_EQ(values(step(Tensors(static_cast<std::size_t>(n), tensor({2})))[0]), Floats{2.f * static_cast<float>(n)});
  EXPECT_EQ(step.recordings(), 4);
  EXPECT_EQ(step.replays(), 3);
}

TEST(Footguns, NoInputsAndUndefinedInputs) {
  Tensor w = tensor({1});
  w.name("w").role(Role::parameter);
  CapturedStep step = capture([&](const Tensors&) -> Tensors { add_(w, 1); return {w * 2}; });
  for (float v : {4.f, 6.f, 8.f, 10.f}) EXPECT_EQ(values(step({})[0]), Floats{v});
  EXPECT_EQ(values(w), Floats{5});
  CapturedStepOptions options;
  options.input_names = {"x", "mask"};
  CapturedStep two = capture([](const Tensors& in) -> Tensors { return {in[0]}; }, options);
  EXPECT_MENTIONS(message_of<CaptureError>([&] { two({tensor({1}), Tensor()}); }), "input 1 ('mask') of the step is undefined");
}

TEST(Footguns, TheSameTensorAsTwoInputs) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0] - in[1]}; });
  const Tensor t = tensor({3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({t, t})[0]), Floats{0});
  EXPECT_EQ(values(step({t, tensor({1})})[0]), Floats{2});
}

TEST(Footguns, InputsThatShareBytes) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0] * in[1]}; });
  const Tensor t = tensor({3, 4});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({t, slice(t, 0, 0, 1)})[0]), (Floats{9, 12}));
  EXPECT_EQ(values(step({t, tensor({1})})[0]), (Floats{3, 4}));
}

// A tensor that comes in as an input and is also read by another way: only the input changes with the call.
TEST(Footguns, AnInputThatTheFunctionAlsoReadsOtherwise) {
  const Tensor fixed = tensor({10});
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] * 2 + fixed}; });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(values(step({fixed})[0]), Floats{30});
  EXPECT_EQ(values(step({tensor({1})})[0]), Floats{12});
}

TEST(Footguns, OtherTypesRecordAgainAndSayWhy) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0] + in[0]}; });
  for (int i = 0; i < 3; ++i) step({tensor({1, 2})});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step({scalar(3, DType::f64)})[0].item(), 6);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step({ones({2, 2})})[0].to_vector<float>(), (Floats{2, 2, 2, 2}));
  EXPECT_EQ(step.recordings(), 6);
  EXPECT_MENTIONS(step.explain(), "for (f64[]): input types changed to (f64[]) from (f32[2])");
  EXPECT_MENTIONS(step.explain(), "for (f32[2,2]): input types changed to (f32[2,2]) from (f64[])");
}

// ---- outputs ----

TEST(Footguns, OutputsAreNotOverwrittenByTheNextReplay) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0] * 2, in[0]}; });
  std::vector<Tensors> all;
  for (int i = 0; i < 6; ++i) all.push_back(step({tensor({static_cast<float>(i)})}));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(values(all[static_cast<std::size_t>(i)][0]), Floats{2.f * static_cast<float>(i)});
    EXPECT_EQ(values(all[static_cast<std::size_t>(i)][1]), Floats{static_cast<float>(i)});
  }
}

TEST(Footguns, AnOutputThatIsItsInputIsACopy) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0]}; });
  for (float v : {1.f, 2.f, 3.f, 4.f}) {
    const Tensor x = tensor({v});
    const Tensor y = step({x})[0];
    fill_(y, 9);
    EXPECT_EQ(values(x), Floats{v});
  }
}

TEST(Footguns, AnOutputThatIsAViewOfStateIsACopy) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::statistic);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    add_(w, in[0]);
    return {slice(w, 0, 0, 1), w};
  });
  std::vector<Tensors> all;
  for (int i = 0; i < 5; ++i) all.push_back(step({tensor({1})}));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(values(all[static_cast<std::size_t>(i)][0]), Floats{static_cast<float>(i + 2)}) << i;
    EXPECT_EQ(values(all[static_cast<std::size_t>(i)][1]), (Floats{static_cast<float>(i + 2), static_cast<float>(i + 3)})) << i;
  }
}

TEST(Footguns, OutputsThatShareBytesAreTwoTensors) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    const Tensor y = in[0] * 2;
    return {y, y, slice(y, 0, 0, 1)};
  });
  for (int i = 0; i < 4; ++i) {
    const Tensors out = step({tensor({1, 2})});
    fill_(out[0], 7);
    EXPECT_EQ(values(out[1]), (Floats{2, 4}));
    EXPECT_EQ(values(out[2]), Floats{2});
  }
}

// ---- state ----

TEST(Footguns, ATensorMadeOutsideAndWrittenInsideIsState) {
  Tensor count = tensor({0});
  count.name("count");
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    add_(count, 1);
    return {in[0] * count};
  });
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(values(step({tensor({2})})[0]), Floats{2.f * static_cast<float>(i)});
  EXPECT_EQ(values(count), Floats{5});
  fill_(count, 100);  // between replays, by hand
  EXPECT_EQ(values(step({tensor({2})})[0]), Floats{202});
  EXPECT_MENTIONS(step.explain(), "updated: count\n  count: by 'add' at footguns_test.cpp:");
}

struct TwoLayers : Module {
  Linear fc1{*this, "fc1", 3, 4}, fc2{*this, "fc2", 4, 2};
  Tensor operator()(const Tensor& x) { return fc2(relu(fc1(x))); }
};

Tensor input_of(int i) { return from_vector(Floats{0.1f * static_cast<float>(i), -0.3f, 0.7f, 1.f, 0.2f * static_cast<float>(i), -0.5f}, {2, 3}); }

TEST(Footguns, AParameterThatIsReplaced) {
  auto run = [](bool captured) {
    manual_seed(3);
    TwoLayers net;
    auto body = [&](const Tensors& in) -> Tensors { const NoGrad no_grad; return {net(in[0])}; };
    CapturedStep step = capture(body);
    Tensors out;
    for (int i = 0; i < 9; ++i) {
      if (i == 5) {
        net.fc1.weight = full({3, 4}, 0.25);
        net.fc1.weight.name("fc1.weight").role(Role::parameter).requires_grad(true);
      }
      out.push_back((captured ? step({input_of(i)}) : body({input_of(i)}))[0]);
    }
    if (captured) {
      EXPECT_MENTIONS(step.explain(), "a handle to the state 'fc1.weight' was let go: it may have been replaced");
      EXPECT_EQ(step.recordings(), 4);
    }
    return out;
  };
  const Tensors eager = run(false), captured = run(true);
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << i;
}

// The same sign without cause: the step is the same, and goes on being replayed.
TEST(Footguns, AHandleThatIsLetGoCostsOneEagerCall) {
  manual_seed(3);
  TwoLayers net;
  auto handles = std::make_unique<Tensors>(net.parameters());
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { const NoGrad no_grad; return {net(in[0])}; });
  for (int i = 0; i < 3; ++i) step({input_of(i)});
  handles.reset();
  for (int i = 0; i < 3; ++i) step({input_of(i)});
  EXPECT_EQ(step.recordings(), 3);
  EXPECT_EQ(step.replays(), 3);
  EXPECT_MENTIONS(step.explain(), "and the step is the same");
}

TEST(Footguns, ParametersSwappedAreFoundByACheckedCall) {
  Tensor a = tensor({1}), b = tensor({2});
  a.name("a").role(Role::parameter);
  b.name("b").role(Role::parameter);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] * a - b}; });
  for (int i = 0; i < 3; ++i) step({tensor({1})});
  std::swap(a, b);
  step.set_mode(CaptureMode::checked);
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({1})}); }), "operand mismatch (operand 1 was the tensor 'a' f32[1], and is another tensor now) at node 0");
}

TEST(Footguns, BytesThatMoveAreFollowed) {
  Tensor w = tensor({1});
  w.name("w").role(Role::parameter);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] * w}; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({tensor({2})})[0]), Floats{2});
  Tensor other = tensor({5});
  std::swap(w.impl()->storage, other.impl()->storage);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(values(step({tensor({2})})[0]), Floats{10});
}

TEST(Footguns, FreezingALayerRecordsAgain) {
  Tensor w = tensor({2}), v = tensor({3});
  w.name("w").role(Role::parameter).requires_grad(true);
  v.name("v").role(Role::parameter).requires_grad(true);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    w.set_grad(Tensor());
    v.set_grad(Tensor());
    backward(sum(in[0] * w * v));
    return {};
  });
  for (int i = 0; i < 3; ++i) step({tensor({1})});
  EXPECT_EQ(values(w.grad()), Floats{3});
  w.requires_grad(false);
  for (int i = 0; i < 3; ++i) {
    step({tensor({1})});
    EXPECT_FALSE(w.grad().defined());
    EXPECT_EQ(values(v.grad()), Floats{2});
  }
  EXPECT_MENTIONS(step.explain(), "'w' needs no gradient now, it did");
}

TEST(Footguns, TrainAndEvalAreTwoPrograms) {
  auto run = [](bool captured) {
    manual_seed(9);
    struct Net : Module {
      Linear fc{*this, "fc", 3, 4};
      Dropout drop{*this, "drop", 0.5};
    } net;
    auto body = [&](const Tensors& in) -> Tensors { const NoGrad no_grad; return {net.drop(net.fc(in[0]))}; };
    CapturedStep step = capture(body);
    Tensors out;
    for (int i = 0; i < 12; ++i) {
      net.train(i / 3 % 2 == 0);
      next_step();
      out.push_back((captured ? step({input_of(i)}) : body({input_of(i)}))[0]);
    }
    if (captured) {
      EXPECT_EQ(step.recordings(), 4) << "two programs, known again when the mode comes back";
      EXPECT_MENTIONS(step.explain(), "modules were switched between training and not");
    }
    return out;
  };
  const Tensors eager = run(false), captured = run(true);
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << i;
}

TEST(Footguns, NoGradAndAutocastAroundTheStep) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {matmul(reshape(in[0], {1, 2}), reshape(w, {2, 1}))}; });
  const Tensor x = tensor({3, 4});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(step({x})[0].requires_grad());
  {
    const NoGrad no_grad;
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(step({x})[0].requires_grad());
  }
  {
    const Autocast low;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(step({x})[0].dtype(), DType::bf16);
  }
  EXPECT_EQ(step({x})[0].dtype(), DType::f32);
  EXPECT_EQ(step.recordings(), 6);
}

// ---- gradients ----

TEST(Footguns, LeafGradientsAreThoseOfTheReplay) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    w.set_grad(Tensor());
    const Tensor loss = sum(in[0] * w * w);
    backward(loss);
    return {loss};
  });
  std::vector<Tensor> kept;
  for (float v : {1.f, 2.f, 3.f, 4.f, 5.f}) {
    step({tensor({v, v})});
    EXPECT_EQ(values(w.grad()), (Floats{2 * v, 4 * v})) << v;
    kept.push_back(w.grad());
  }
  EXPECT_EQ(values(kept[2]), (Floats{6, 12})) << "the next replay leaves it alone";
  EXPECT_EQ(step.replays(), 3);
  EXPECT_MENTIONS(step.explain(), "gradients left:\n  grad.w: f32[2]");
}

// Gradients that nobody clears add up, as in eager code; with and without are two programs.
TEST(Footguns, GradientsThatAccumulateOverCalls) {
  Tensor w = tensor({1, 2}), e = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  e.requires_grad(true);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    backward(sum(in[0] * w));
    return {};
  });
  for (int i = 1; i <= 9; ++i) {
    if (i == 6) {
      w.set_grad(Tensor());
      e.set_grad(Tensor());
    }
    const Tensor x = tensor({static_cast<float>(i), 1});
    step({x});
    backward(sum(x * e));
    EXPECT_EQ(values(w.grad()), values(e.grad())) << i;
  }
  EXPECT_GE(step.replays(), 4);
  EXPECT_MENTIONS(step.explain(), "'w' has a gradient already, it had none");
  EXPECT_MENTIONS(step.explain(), "grad_in.w: f32[2]  the gradient there was before the step");
}

TEST(Footguns, ClearingInsideAndOutside) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  Sgd optimizer({w}, {.lr = 0.5});
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    backward(sum(in[0] * w));
    optimizer.step();
    optimizer.zero_grad();
    return {};
  });
  for (int i = 0; i < 4; ++i) {
    step({tensor({1, 1})});
    EXPECT_FALSE(w.grad().defined());
  }
  EXPECT_EQ(values(w), (Floats{-1, 0}));
  // A gradient from outside is added to, once.
  w.set_grad(tensor({10, 10}));
  step({tensor({1, 1})});
  EXPECT_EQ(values(w), (Floats{-6.5, -5.5}));
}

// An optimizer step captured alone reads gradients that eager code made: they are inputs and no constants.
TEST(Footguns, AnOptimizerStepOnGradientsMadeOutside) {
  Tensor w = tensor({0, 0});
  w.name("w").role(Role::parameter).requires_grad(true);
  Sgd optimizer({w}, {.lr = 1});
  CapturedStep step = capture([&](const Tensors&) -> Tensors { optimizer.step(); return {}; });
  Floats expected{0, 0};
  for (int i = 0; i < 5; ++i) {
    w.set_grad(tensor({static_cast<float>(i), 1}));
    step({});
    expected[0] -= static_cast<float>(i);
    expected[1] -= 1;
    EXPECT_EQ(values(w), expected) << i;
  }
  EXPECT_EQ(step.recordings(), 2);
}

TEST(Footguns, GradientOfAnInputLeaf) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { backward(sum(in[0] * in[0])); return {}; });
  for (float v : {1.f, 2.f, 3.f, 4.f}) {
    Tensor x = tensor({v});
    x.requires_grad(true);
    step({x});
    ASSERT_TRUE(x.grad().defined()) << v;
    EXPECT_EQ(values(x.grad()), Floats{2 * v});
  }
  EXPECT_EQ(step.recordings(), 2);
}

TEST(Footguns, BackwardInsideThatWouldLeaveTheStep) {
  Tensor w = tensor({2});
  w.requires_grad(true);
  CapturedStep step = capture([](const Tensors& in) -> Tensors { backward(sum(in[0] * 3)); return {}; });
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({w * 2}); }), "backward inside the step reached input 0, whose gradient history began before the step");
}

// Gradients of captured results, asked for after the capture.
TEST(Footguns, GradientsOfCapturedResults) {
  Tensor w = tensor({1, 2}), e = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  e.requires_grad(true);
  auto body = [](const Tensor& x, const Tensor& p) { return tanh(x * p) * 2; };
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {body(in[0], w)}; });
  for (int i = 1; i <= 5; ++i) {
    Tensor xa = tensor({0.1f * static_cast<float>(i), 0.5f}), xb = tensor({0.1f * static_cast<float>(i), 0.5f});
    xa.requires_grad(true);
    xb.requires_grad(true);
    w.set_grad(Tensor());
    e.set_grad(Tensor());
    const Tensor a = step({exp(xa)})[0], b = body(exp(xb), e);
    EXPECT_TRUE(bit_equal(a, b));
    backward(sum(a * a));
    backward(sum(b * b));
    EXPECT_TRUE(bit_equal(w.grad(), e.grad())) << i;
    EXPECT_TRUE(bit_equal(xa.grad(), xb.grad())) << i;
  }
  EXPECT_EQ(step.recordings(), 2);
}

TEST(Footguns, GradientsThatTheStepHasTakenAreSpent) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    w.set_grad(Tensor());
    const Tensor loss = sum(in[0] * w * w);
    backward(loss);
    return {loss};
  });
  for (int i = 0; i < 4; ++i) {
    const Tensor loss = step({tensor({1, 1})})[0];
    EXPECT_THROW(backward(loss), GradientError) << i;
  }
}

TEST(Footguns, CapturedResultsWhoseGradientNoGraphShows) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    return custom_gradient({in[0] * w}, [](const Tensors& xs) -> Tensors { return {exp(xs[0])}; },
                           [](const Tensors&, const Tensors&, const Tensors& dys) -> Tensors { return {dys[0]}; });
  });
  for (int i = 0; i < 3; ++i) {
    const Tensor y = step({tensor({1, 1})})[0];
    const std::string text = message_of<GradientError>([&] { backward(sum(y)); });
    EXPECT_MENTIONS(text, "a captured step has no gradient: its gradient is steered by a custom_gradient at footguns_test.cpp:");
  }
}

TEST(Footguns, StateOverwrittenBeforeBackward) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] * w}; });
  for (int i = 0; i < 3; ++i) {
    Tensor x = tensor({1, 1});
    x.requires_grad(true);
    const Tensor y = step({x})[0];
    {
      const NoGrad no_grad;
      add_(w, 1);
    }
    EXPECT_MENTIONS(message_of<GradientError>([&] { backward(sum(y)); }), "was modified in place at");
  }
}

TEST(Footguns, NoGradientsOfGradientsThroughACapturedStep) {
  Tensor w = tensor({2});
  w.name("w").role(Role::parameter).requires_grad(true);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {in[0] * w * w}; });
  for (int i = 0; i < 3; ++i) {
    const Tensor y = step({tensor({1})})[0];
    EXPECT_MENTIONS(message_of<GradientError>([&] { gradients({sum(y)}, {w}, {.create_graph = true}); }), "gives no gradients of gradients");
  }
}

TEST(Footguns, HistoryOfAnInputOfAScopeIsRefused) {
  Tensor w = tensor({2});
  w.requires_grad(true);
  const Tensor h = w * 2;
  Capture scope("step");
  EXPECT_MENTIONS(message_of<CaptureError>([&] { scope.input("x", h); }), "the gradient history of input 'x' f32[1] began before the capture; detach() it");
}

// ---- random ----

TEST(Footguns, RandomOpsDrawAnewInEveryReplay) {
  auto run = [](bool captured) {
    manual_seed(4);
    auto body = [](const Tensors& in) -> Tensors {
      const Tensor y = in[0] + uniform({3});
      next_step();
      return {y, normal({2})};
    };
    CapturedStep step = capture(body);
    std::vector<Tensors> out;
    for (int i = 0; i < 6; ++i) out.push_back(captured ? step({tensor({0, 0, 0})}) : body({tensor({0, 0, 0})}));
    return out;
  };
  const auto eager = run(false), captured = run(true);
  for (std::size_t i = 0; i < eager.size(); ++i)
    for (std::size_t k = 0; k < 2; ++k) EXPECT_TRUE(bit_equal(eager[i][k], captured[i][k])) << i;
  EXPECT_FALSE(bit_equal(captured[3][0], captured[4][0]));
}

// A step that draws and never begins a new random step draws other bits in every call, as in eager code: it says so and does not replay.
TEST(Footguns, DrawsThatCountOn) {
  auto run = [](bool captured) {
    manual_seed(4);
    auto body = [](const Tensors& in) -> Tensors { return {dropout(in[0], 0.5)}; };
    CapturedStep step = capture(body);
    Tensors out;
    for (int i = 0; i < 70; ++i) out.push_back((captured ? step({ones({16})}) : body({ones({16})}))[0]);
    next_step();
    for (int i = 0; i < 8; ++i) {
      out.push_back((captured ? step({ones({16})}) : body({ones({16})}))[0]);
      next_step();
    }
    if (captured) {
      EXPECT_GE(step.replays(), 6);
      EXPECT_MENTIONS(step.explain(), "draws were made under the path '' in this random step");
    }
    return out;
  };
  const Tensors eager = run(false), captured = run(true);
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << i;
}

// ---- nesting, failures, threads ----

TEST(Footguns, AStepInsideAStepIsPartOfIt) {
  Tensor w = tensor({1});
  w.name("w").role(Role::parameter);
  CapturedStep inner = capture([&](const Tensors& in) -> Tensors { add_(w, 1); return {in[0] * w}; });
  CapturedStep outer = capture([&](const Tensors& in) -> Tensors { return {inner({in[0] + 1})[0] * 2}; });
  for (int i = 2; i < 8; ++i) EXPECT_EQ(values(outer({tensor({1})})[0]), Floats{4.f * static_cast<float>(i)});
  EXPECT_EQ(inner.recordings(), 0) << "the outer step recorded its ops";
  EXPECT_EQ(outer.replays(), 4);
  // Alone it is a step of its own.
  EXPECT_EQ(values(inner({tensor({1})})[0]), Floats{8});
  EXPECT_EQ(inner.recordings(), 1);
}

TEST(Footguns, AStepThatCallsItself) {
  std::function<Tensors(const Tensors&)> again;
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return again(in); });
  again = [&](const Tensors& in) { return step(in); };
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({1})}); }), "this captured step is in use: by another thread, or from inside itself");
}

TEST(Footguns, ANestedScopeIsRefused) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { Capture scope("inner"); return {in[0]}; });
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({1})}); }), "a capture is already open on this thread");
}

TEST(Footguns, AnExceptionHalfWay) {
  Tensor w = tensor({1});
  w.name("w").role(Role::parameter);
  struct Mine : std::runtime_error { using std::runtime_error::runtime_error; };
  int calls = 0;
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    add_(w, 1);
    if (++calls == 2) throw Mine("half way");
    return {in[0] * w};
  });
  EXPECT_EQ(values(step({tensor({1})})[0]), Floats{2});
  EXPECT_THROW(step({tensor({1})}), Mine);
  EXPECT_EQ(values(w), Floats{3}) << "the eager result stands";
  for (int i = 4; i < 8; ++i) EXPECT_EQ(values(step({tensor({1})})[0]), Floats{static_cast<float>(i)});
  EXPECT_EQ(step.recordings(), 2);
}

// A kernel's fault in a replay: an error; nothing was written, so the step goes on.
TEST(Footguns, AFaultInAReplay) {
  Tensor seen = tensor({0});
  seen.name("seen").role(Role::counter);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    const Tensor y = index_select(in[0], 0, in[1]);
    add_(seen, sum(y));
    return {y};
  });
  const Tensor x = tensor({10, 20, 30});
  for (int i = 0; i < 3; ++i) step({x, from_vector(std::vector<std::int32_t>{2}, {1})});
  EXPECT_THROW(step({x, from_vector(std::vector<std::int32_t>{7}, {1})}), ExecutionError);
  EXPECT_EQ(values(seen), Floats{90});
  EXPECT_EQ(values(step({x, from_vector(std::vector<std::int32_t>{1}, {1})})[0]), Floats{20});
  EXPECT_EQ(values(seen), Floats{110});
}

TEST(Footguns, ForgettingRecordsAnew) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0] * 2}; });
  for (int i = 0; i < 3; ++i) step({tensor({1})});
  step.forget();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({tensor({1})})[0]), Floats{2});
  EXPECT_EQ(step.recordings(), 4);
}

// Two threads at once: one runs, the other is told; never both, and what was computed is right.
TEST(Footguns, TwoThreadsAtOnce) {
  Tensor total = tensor({0});
  total.name("total").role(Role::counter);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { add_(total, 1); return {in[0] * 2}; });
  for (int i = 0; i < 3; ++i) step({tensor({1})});
  std::atomic<int> done{0}, refused{0};
  auto work = [&] {
    for (int i = 0; i < 200; ++i) {
      try {
        const Tensor y = step({tensor({static_cast<float>(i)})})[0];
        if (values(y) == Floats{2.f * static_cast<float>(i)}) ++done;
      } catch (const CaptureError&) {
        ++refused;
      }
    }
  };
  std::thread a(work), b(work);
  a.join();
  b.join();
  EXPECT_EQ(done + refused, 400);
  EXPECT_EQ(values(total), Floats{static_cast<float>(done + 3)});
}

// Draws belong to the thread: another thread's random state is another program.
TEST(Footguns, AnotherThreadDrawsFromItsOwnState) {
  manual_seed(1);
  auto body = [](const Tensors& in) -> Tensors { const Tensor y = in[0] + uniform({2}); next_step(); return {y}; };
  CapturedStep step = capture(body);
  for (int i = 0; i < 3; ++i) step({tensor({0, 0})});
  Tensor captured, eager;
  std::thread([&] {
    manual_seed(77);
    captured = step({tensor({0, 0})})[0];
    manual_seed(77);
    eager = body({tensor({0, 0})})[0];
  }).join();
  EXPECT_TRUE(bit_equal(captured, eager));
  EXPECT_MENTIONS(step.explain(), "the random state is another thread's");
}

}  // namespace
}  // namespace tapedeck
