// Tests Module::to(), freeze() and unfreeze(): the tensors that change, the objects that stay the same, and what optimizers do
// with them.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <string>
#include <vector>

namespace tapedeck {
namespace {

using testing::message_of;

struct ConvertedNet : Module {
  Linear fc{*this, "fc", 3, 2};
  BatchNorm1d norm{*this, "norm", 2};
  Tensor count = buffer("count", scalar(7, DType::i64), Role::counter);
  Tensor mask = buffer("mask", full({2}, 1, DType::boolean));
  using Module::buffer;
  using Module::parameter;
};

std::vector<float> floats_of(const Tensor& t) { return cast(t, DType::f32).detach().to_vector<float>(); }

// ---- to ----

TEST(ModuleTo, ConvertsFloatingTensorsAndKeepsTheirHandles) {
  ConvertedNet net;
  const NoGrad no_grad;
  // 1 + 2^-9 lies between two numbers of bf16, and the even one of them is 1.
  copy_(net.fc.weight, from_vector(std::vector<float>{1, -2.5, 0.001953125f + 1, 3, 0.1f, -0.0f}, {3, 2}));
  const std::vector<Tensor> parameters = net.parameters(), buffers = net.buffers();
  net.to(DType::bf16);
  EXPECT_EQ(net.fc.weight.type(), (Type{DType::bf16, {3, 2}}));
  EXPECT_EQ(parameters[0].impl(), net.fc.weight.impl());
  EXPECT_EQ(parameters[0].dtype(), DType::bf16);
  EXPECT_EQ(net.fc.weight.to_vector<std::uint16_t>(),
            (std::vector<std::uint16_t>{0x3f80, 0xc020, 0x3f80, 0x4040, 0x3dcd, 0x8000}));
  EXPECT_EQ(net.fc.weight.name().view(), "fc.weight");
  EXPECT_EQ(net.fc.weight.role(), Role::parameter);
  EXPECT_TRUE(net.fc.weight.requires_grad());
  EXPECT_EQ(net.norm.running_var.dtype(), DType::bf16);
  EXPECT_EQ(net.count.dtype(), DType::i64);
  EXPECT_EQ(net.count.item<std::int64_t>(), 7);
  EXPECT_EQ(net.mask.dtype(), DType::boolean);
  EXPECT_EQ(buffers[2].impl(), net.norm.running_mean.impl());
  EXPECT_EQ(buffers[2].dtype(), DType::bf16);
}

TEST(ModuleTo, AWiderDtypeAndBackLosesNoBit) {
  ConvertedNet net;
  const Tensor before = copy(net.fc.weight.detach());
  net.to(DType::f64);
  EXPECT_EQ(net["fc"].parameters()[0].dtype(), DType::f64);
  net.to(DType::f32);
  EXPECT_TRUE(bit_equal(net.fc.weight, before));
}

TEST(ModuleTo, ConvertsGradientsAndTrainsOn) {
  ConvertedNet net;
  net.fc.weight.set_grad(full({3, 2}, 0.5));
  net.to(DType::f64);
  EXPECT_EQ(net.fc.weight.grad().type(), (Type{DType::f64, {3, 2}}));
  const Tensor x = full({4, 3}, 2, DType::f64);
  backward(sum(net.fc(x)));
  EXPECT_EQ(net.fc.weight.grad().to_vector<double>(), std::vector<double>(6, 8.5));
  Sgd optimizer(net.parameters(), {.lr = 0.5});
  const double before = net.fc.weight.to_vector<double>()[0];
  optimizer.step();
  EXPECT_EQ(net.fc.weight.to_vector<double>()[0], before - 0.5 * 8.5);
}

// The tape knows the parameter with its old dtype as long as an old loss lives.
TEST(ModuleTo, ALossFromBeforeIsDifferentiatedAtTheOldValues) {
  ConvertedNet net;
  const Tensor old = sum(square(matmul(full({1, 3}, 3), net.fc.weight)));
  const std::vector<float> w = net.fc.weight.to_vector<float>();
  net.to(DType::f64);
  const Tensor fresh = sum(net.fc(full({2, 3}, 1, DType::f64)));
  backward(fresh);
  EXPECT_EQ(net.fc.weight.grad().to_vector<double>(), std::vector<double>(6, 2));
  {
    const NoGrad no_grad;
    zero_(net.fc.weight);
  }
  net.fc.weight.set_grad(Tensor());
  backward(old);
  ASSERT_EQ(net.fc.weight.grad().dtype(), DType::f64);
  const std::vector<double> grad = net.fc.weight.grad().to_vector<double>();
  for (std::size_t i = 0; i < 6; ++i) {
    const double y = 3 * (static_cast<double>(w[i % 2]) + w[2 + i % 2] + w[4 + i % 2]);
    EXPECT_NEAR(grad[i], 2 * y * 3, 1e-5) << "element " << i;
  }
}

TEST(ModuleTo, ATiedParameterIsConvertedOnce) {
  ConvertedNet net;
  Module root;
  struct Tied : Module {
    Tied(Module& parent, Tensor shared) : Module(parent, "tied") { parameter("weight", std::move(shared)); }
  } tied(net, net.fc.weight);
  net.to(DType::f64);
  EXPECT_EQ(tied.parameters()[0].impl(), net.fc.weight.impl());
  EXPECT_EQ(net.fc.weight.dtype(), DType::f64);
}

TEST(ModuleTo, RefusesViewsAndIntegersAndChangesNothing) {
  ConvertedNet net;
  const Tensor base = zeros({4, 2});
  net.buffer("view", slice(base, 0, 0, 2));
  EXPECT_MENTIONS(message_of<UsageError>([&] { net.to(DType::f16); }), "[to] 'view' is a view");
  for (const Tensor& p : net.parameters()) EXPECT_EQ(p.dtype(), DType::f32);
  EXPECT_MENTIONS(message_of<UsageError>([&] { net.to(DType::i32); }), "[to] takes a floating dtype, not i32");
}

TEST(ModuleTo, ConvertsTypesOfAbstractModules) {
  const AbstractMode abstract;
  ConvertedNet net;
  net.to(DType::f16);
  EXPECT_TRUE(net.fc.weight.abstract());
  EXPECT_EQ(net.fc.weight.type(), (Type{DType::f16, {3, 2}}));
}

TEST(ModuleTo, AnOptimizerFromBeforeSaysSo) {
  ConvertedNet net;
  Adam optimizer(net.parameters());
  net.to(DType::f64);
  backward(sum(net.fc(full({2, 3}, 1, DType::f64))));
  const Tensor before = copy(net.fc.weight.detach());
  EXPECT_MENTIONS(message_of<UsageError>([&] { optimizer.step(); }),
                  "[step] 'fc.weight' is f64[3,2] now, but 'fc.weight.m' is f32[3,2]; make the optimizer after to()");
  EXPECT_TRUE(bit_equal(net.fc.weight, before));
  EXPECT_EQ(optimizer.state().back().item(), 0) << "steps taken";
}

// ---- freeze ----

struct LinearPair : Module {
  Linear a{*this, "a", 2, 2}, b{*this, "b", 2, 2};
  Tensor loss() { return sum(square(b(a(ones({1, 2}))))); }
};

std::vector<std::vector<float>> parameter_values(const Module& m) {
  std::vector<std::vector<float>> all;
  for (const Tensor& p : m.parameters()) all.push_back(floats_of(p));
  return all;
}

template <class O>
void step(LinearPair& net, O& optimizer) {
  backward(net.loss());
  optimizer.step();
  optimizer.zero_grad();
}

TEST(ModuleFreeze, OptimizersSkipFrozenParameters) {
  LinearPair net;
  net.a.freeze();
  Adam optimizer(net.parameters(), {.lr = 0.1});  // made with frozen parameters
  EXPECT_EQ(net.trainable_parameters().size(), 2u);
  const auto a = parameter_values(net.a), b = parameter_values(net.b);
  step(net, optimizer);
  EXPECT_EQ(parameter_values(net.a), a);
  EXPECT_NE(parameter_values(net.b), b);
  net.a.unfreeze();
  EXPECT_EQ(net.trainable_parameters().size(), 4u);
  step(net, optimizer);
  EXPECT_NE(parameter_values(net.a), a);
}

TEST(ModuleFreeze, DropsGradientsAndSkipsThoseThatComeLater) {
  LinearPair net;
  Sgd optimizer(net.parameters(), {.lr = 0.1});
  backward(net.loss());
  net.a.freeze();
  EXPECT_FALSE(net.a.weight.grad().defined());
  EXPECT_TRUE(net.b.weight.grad().defined());
  net.a.weight.set_grad(ones({2, 2}));
  const auto a = parameter_values(net.a);
  optimizer.step();
  EXPECT_EQ(parameter_values(net.a), a);
}

TEST(ModuleFreeze, FreezesAllChildren) {
  LinearPair net;
  net.freeze();
  EXPECT_TRUE(net.trainable_parameters().empty());
  EXPECT_THROW(backward(net.loss()), GradientError);
  net.unfreeze();
  backward(net.loss());
  for (const Tensor& p : net.parameters()) EXPECT_TRUE(p.grad().defined()) << p.name().view();
}

// The moments of a frozen parameter rest: the next step continues from them. The oracle is momentum by hand.
TEST(ModuleFreeze, MomentsRestWhileFrozen) {
  struct One : Module {
    Tensor w = parameter("w", tensor({1}));
  } net;
  Sgd optimizer(net.parameters(), {.lr = 0.5, .momentum = 0.5});
  const auto train = [&] {
    if (net.w.requires_grad()) backward(sum(net.w * 2));
    optimizer.step();
    optimizer.zero_grad();
  };
  train();  // velocity 2
  net.freeze();
  train();
  net.unfreeze();
  train();  // velocity 3
  EXPECT_EQ(net.w.item(), 1 - 0.5 * 2 - 0.5 * 3);
}

TEST(ModuleFreeze, OptimizersRefuseIntegers) {
  Tensor w = scalar(1, DType::i32);
  w.name("w");
  EXPECT_EQ(message_of<UsageError>([&] { Sgd({w}); }), "optimizer: 'w' is i32[], and integers have no gradient");
}

// ---- Linear without a bias ----

TEST(Linear, HasNoBiasIfToldSo) {
  Module root;
  Linear plain(root, "plain", 3, 2, {.bias = false});
  EXPECT_FALSE(plain.bias.defined());
  EXPECT_EQ(root.parameters().size(), 1u);
  const Tensor x = normal({5, 3});
  EXPECT_TRUE(bit_equal(plain(x), matmul(x, plain.weight)));
}

}  // namespace
}  // namespace tapedeck
