// Tests a step that reads outside tensors and modes which change between calls: parameters that are replaced, moved or
// frozen, train and eval mode, no_grad and autocast. The oracle is eager code.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/nn/nn.h>

#include <tapedeck/tests/capture/step/footguns.h>

#include <memory>
#include <utility>

namespace tapedeck {
namespace {

using testing::message_of;

TEST(Footguns, ATensorMadeOutsideAndWrittenInsideIsState) {
  Tensor count = tensor({0});
  count.name("count");
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    add_(count, 1);
    return {in[0] * count};
  });
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(values(step({tensor({2})})[0]), Floats{2.f * static_cast<float>(i)});
  EXPECT_EQ(values(count), Floats{5});
  fill_(count, 100);  // written by the user between replays
  EXPECT_EQ(values(step({tensor({2})})[0]), Floats{202});
  EXPECT_MENTIONS(step.explain(), "updated: count\n  count: by 'add' at footguns_state_test.cpp:");
}

struct TwoLayers : Module {
  Linear fc1{*this, "fc1", 3, 4}, fc2{*this, "fc2", 4, 2};
  Tensor operator()(const Tensor& x) { return fc2(relu(fc1(x))); }
};

Tensor input_of(int i) {
  return from_vector(Floats{0.1f * static_cast<float>(i), -0.3f, 0.7f, 1.f, 0.2f * static_cast<float>(i), -0.5f}, {2, 3});
}

TEST(Footguns, AParameterThatIsReplaced) {
  auto run = [](bool captured) {
    manual_seed(3);
    TwoLayers net;
    auto body = [&](const Tensors& in) -> Tensors {
      const NoGrad no_grad;
      return {net(in[0])};
    };
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

// Letting go of handles looks like a replaced parameter, so one call runs eagerly. It finds the same step, which is then
// replayed again.
TEST(Footguns, AHandleThatIsLetGoCostsOneEagerCall) {
  manual_seed(3);
  TwoLayers net;
  auto handles = std::make_unique<Tensors>(net.parameters());
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    const NoGrad no_grad;
    return {net(in[0])};
  });
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
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({1})}); }),
                  "operand mismatch (operand 1 was the tensor 'a' f32[1], and is another tensor now) at node 0");
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
    auto body = [&](const Tensors& in) -> Tensors {
      const NoGrad no_grad;
      return {net.drop(net.fc(in[0]))};
    };
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
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    return {matmul(reshape(in[0], {1, 2}), reshape(w, {2, 1}))};
  });
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

}  // namespace
}  // namespace tapedeck
