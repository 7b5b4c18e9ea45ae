// Tests hooks of modules. The oracle is the same call without hooks, on inputs that the test replaced itself.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using testing::message_of;
using testing::without_folders;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;
using Out = std::span<Tensor>;

// ---- every layer of the library ----

using Call = std::function<Tensors(const Tensor& x)>;

Tensors results_of(const Call& call, const Tensor& x) {
  manual_seed(5);  // the same draws in every call
  return call(x);
}

// Calls a layer without hooks, with hooks that look, and with hooks that replace. `inputs` and `outputs` are the numbers of
// tensors that a hook gets.
void expect_hooks(Module& layer, const Tensor& x, std::size_t inputs, std::size_t outputs, const Call& call) {
  SCOPED_TRACE(layer.path());
  const Tensors plain = results_of(call, x), of_other = results_of(call, x + 1);
  ASSERT_EQ(plain.size(), outputs);
  int before = 0, after = 0;
  {
    const ModuleHook first = before_call(layer, [&](Module& m, Out in) {
      ++before;
      EXPECT_EQ(&m, &layer);
      ASSERT_EQ(in.size(), inputs);
      EXPECT_TRUE(bit_equal(in[0], x));
    });
    const ModuleHook second = after_call(layer, [&](Module& m, In in, Out out) {
      ++after;
      EXPECT_EQ(&m, &layer);
      ASSERT_EQ(in.size(), inputs);
      ASSERT_EQ(out.size(), outputs);
      EXPECT_TRUE(bit_equal(in[0], x));
      for (std::size_t i = 0; i < outputs; ++i) EXPECT_TRUE(bit_equal(out[i], plain[i])) << i;
    });
    const Tensors seen = results_of(call, x);
    for (std::size_t i = 0; i < outputs; ++i) EXPECT_TRUE(bit_equal(seen[i], plain[i])) << i;
  }
  EXPECT_EQ(before, 1);
  EXPECT_EQ(after, 1);
  {
    const ModuleHook other = before_call(layer, [](Module&, Out in) { in[0] = in[0] + 1; });
    const Tensors replaced = results_of(call, x);
    for (std::size_t i = 0; i < outputs; ++i) EXPECT_TRUE(bit_equal(replaced[i], of_other[i])) << i;
  }
  {
    const ModuleHook twice = after_call(layer, [](Module&, In, Out out) {
      for (Tensor& y : out) y = y * 2;
    });
    const Tensors replaced = results_of(call, x);
    for (std::size_t i = 0; i < outputs; ++i) EXPECT_TRUE(bit_equal(replaced[i], plain[i] * 2)) << i;
  }
  EXPECT_TRUE(bit_equal(results_of(call, x)[0], plain[0])) << "a removed hook still runs";
}

// A layer from one tensor to one.
template <class Layer, class... Args>
void expect_simple(const Tensor& x, Args... args) {
  for (const bool train : {true, false}) {
    Module root;
    Layer layer(root, "layer", args...);
    layer.train(train);
    expect_hooks(layer, x, 1, 1, [&](const Tensor& t) { return Tensors{layer(t)}; });
  }
}

TEST(ModuleHook, LayersFromOneTensorToOne) {
  const Tensor rows = normal({4, 6}), line = normal({2, 4, 6}), plane = normal({2, 4, 5, 5}), box = normal({2, 4, 3, 3, 3});
  expect_simple<Linear>(rows, 6, 3);
  expect_simple<Conv1d>(line, 4, 2, ConvOptions{});
  expect_simple<Conv2d>(plane, 4, 2, 3);
  expect_simple<Conv3d>(box, 4, 2, ConvOptions{});
  expect_simple<ConvTranspose1d>(line, 4, 2, ConvTransposeLayerOptions{});
  expect_simple<ConvTranspose2d>(plane, 4, 2, ConvTransposeLayerOptions{});
  expect_simple<ConvTranspose3d>(box, 4, 2, ConvTransposeLayerOptions{});
  expect_simple<BatchNorm>(rows, 6);
  expect_simple<BatchNorm1d>(line, 4);
  expect_simple<BatchNorm2d>(plane, 4);
  expect_simple<BatchNorm3d>(box, 4);
  expect_simple<LayerNorm>(rows, 6);
  expect_simple<RmsNorm>(rows, 6);
  expect_simple<GroupNorm>(plane, 2, 4);
  expect_simple<Dropout>(rows, 0.5);
  expect_simple<Dropout2d>(plane, 0.5);
  expect_simple<AlphaDropout>(rows, 0.5);
  expect_simple<Embedding>(tensor({0, 3, 1}, DType::i32), 5, 4);
}

TEST(ModuleHook, Attention) {
  Module root;
  MultiheadAttention attention(root, "attention", 8, 2);
  TransformerBlock block(root, "block", 8, {.heads = 2, .dropout = 0.25});
  const Tensor x = normal({2, 3, 8}), memory = normal({2, 5, 8});
  const Tensor mask = tensor({{true, false, true}, {true, true, false}, {false, true, true}});
  expect_hooks(attention, x, 2, 1, [&](const Tensor& t) { return Tensors{attention(t)}; });
  expect_hooks(attention, x, 2, 1, [&](const Tensor& t) { return Tensors{attention(t, mask)}; });
  expect_hooks(attention, x, 3, 1, [&](const Tensor& t) { return Tensors{attention(t, memory, Tensor())}; });
  expect_hooks(block, x, 2, 1, [&](const Tensor& t) { return Tensors{block(t, mask)}; });
  const Tensor hidden = attention(x, mask), open = attention(x);
  const ModuleHook unmask = before_call(attention, [&](Module&, Out in) {
    EXPECT_TRUE(bit_equal(in[1], mask));
    in[1] = Tensor();
  });
  EXPECT_FALSE(bit_equal(hidden, open));
  EXPECT_TRUE(bit_equal(attention(x, mask), open));
}

TEST(ModuleHook, RecurrentLayers) {
  Module root;
  LstmCell lstm_cell(root, "lstm_cell", 4, 3);
  GruCell gru_cell(root, "gru_cell", 4, 3);
  RnnCell rnn_cell(root, "rnn_cell", 4, 3);
  Lstm lstm(root, "lstm", 4, 3, {.layers = 2, .dropout = 0.5});
  Gru gru(root, "gru", 4, 3, {.bidirectional = true});
  Rnn rnn(root, "rnn", 4, 3);
  const Tensor x = normal({2, 4}), xs = normal({5, 2, 4}), h = normal({2, 3}), c = normal({2, 3});
  expect_hooks(lstm_cell, x, 3, 2, [&](const Tensor& t) {
    const LstmState s = lstm_cell(t, {h, c});
    return Tensors{s.h, s.c};
  });
  expect_hooks(gru_cell, x, 2, 1, [&](const Tensor& t) { return Tensors{gru_cell(t, h)}; });
  expect_hooks(rnn_cell, x, 2, 1, [&](const Tensor& t) { return Tensors{rnn_cell(t)}; });
  expect_hooks(lstm, xs, 3, 3, [&](const Tensor& t) {
    const LstmResult r = lstm(t);
    return Tensors{r.y, r.state.h, r.state.c};
  });
  expect_hooks(gru, xs, 2, 2, [&](const Tensor& t) {
    const RecurrentResult r = gru(t);
    return Tensors{r.y, r.h};
  });
  expect_hooks(rnn, xs, 2, 2, [&](const Tensor& t) {
    const RecurrentResult r = rnn(t);
    return Tensors{r.y, r.h};
  });
  // The initial states are inputs too.
  const Tensor state = normal({1, 2, 3});
  const RecurrentResult wanted = rnn(xs, state);
  const ModuleHook give = before_call(rnn, [&](Module&, Out in) { in[1] = state; });
  EXPECT_TRUE(bit_equal(rnn(xs).y, wanted.y));
}

// ---- a net with hooks ----

struct HookedNet : Module {
  Sequential body{*this, "body"};
  HookedNet() { body.add<Linear>(4, 8).add(&relu).add<Dropout>(0.5).add<Linear>(8, 2).add_as<LayerNorm>("norm", 2); }
};

TEST(ModuleHook, StatisticsOfEveryLayerOfASequential) {
  HookedNet net;
  net.train(false);
  const Tensor x = normal({3, 4});
  std::map<std::string, double> means;
  std::vector<ModuleHook> hooks;
  const auto watch = [&](Module& m) {
    hooks.push_back(after_call(m, [&](Module& of, In, Out out) { means[of.path()] = mean(out[0]).item(); }));
  };
  watch(net.body);
  for (Module* layer : net.body.children()) watch(*layer);
  const Tensor y = net.body(x);

  const Tensors p = net.parameters();
  const Tensor first = matmul(x, p[0]) + p[1], dropped = relu(first), third = matmul(dropped, p[2]) + p[3];
  const std::map<std::string, double> wanted{{"body", mean(y).item()},
                                             {"body.0", mean(first).item()},
                                             {"body.2", mean(dropped).item()},
                                             {"body.3", mean(third).item()},
                                             {"body.norm", mean(layer_norm(third, p[4], p[5], 1e-5)).item()}};
  EXPECT_EQ(means, wanted);
}

TEST(ModuleHook, RunInTheOrderOfAddingAndSeeEarlierReplacements) {
  Module root;
  Linear fc(root, "fc", 2, 2);
  std::string order;
  const ModuleHook a = after_call(fc, [&](Module&, In in, Out out) {
    order += "a";
    EXPECT_EQ(in[0].to_vector<float>(), (std::vector<float>{6, 6}));
    out[0] = tensor({10.0f});
  });
  const ModuleHook b = before_call(fc, [&](Module&, Out in) {
    order += "b";
    in[0] = in[0] * 2;
  });
  const ModuleHook c = before_call(fc, [&](Module&, Out in) {
    order += "c";
    in[0] = in[0] + 4;
  });
  const ModuleHook d = after_call(fc, [&](Module&, In, Out out) {
    order += "d";
    out[0] = out[0] * 3;  // another type than the layer computed
  });
  EXPECT_EQ(fc(ones({1, 2})).to_vector<float>(), (std::vector<float>{30}));
  EXPECT_EQ(order, "bcad");
}

TEST(ModuleHook, HooksMayAddAndRemoveHooks) {
  Module root;
  Linear fc(root, "fc", 2, 2);
  std::string order;
  std::vector<ModuleHook> added;
  ModuleHook once, victim;
  once = before_call(fc, [&, alive = std::make_shared<int>(7)](Module& m, Out) {
    order += "1";
    once.remove();  // the function that runs
    added.push_back(before_call(m, [&](Module&, Out) { order += "2"; }));
    added.push_back(after_call(m, [&](Module&, In, Out) { order += "3"; }));
    victim.remove();
    EXPECT_EQ(*alive, 7);
  });
  victim = before_call(fc, [&](Module&, Out) { order += "x"; });
  const Tensor x = ones({1, 2});
  fc(x);
  EXPECT_EQ(order, "13") << "a hook before the call, added in this phase, runs in the next call";
  fc(x);
  EXPECT_EQ(order, "1323");
}

TEST(ModuleHook, AnExceptionReachesTheCallerAndTakesNothingAway) {
  HookedNet net;
  net.train(false);
  const Tensor x = normal({3, 4}), plain = net.body(x);
  int calls = 0;
  bool fails = true;
  const ModuleHook bad = after_call(*net.body.children()[0], [&](Module&, In, Out) {
    if (fails) throw UsageError("the hook failed");
  });
  const ModuleHook next = after_call(*net.body.children()[0], [&](Module&, In, Out) { ++calls; });
  EXPECT_EQ(message_of<UsageError>([&] { net.body(x); }), "the hook failed");
  EXPECT_EQ(calls, 0);
  fails = false;
  EXPECT_TRUE(bit_equal(net.body(x), plain));
  EXPECT_EQ(calls, 1);

  // If the call throws, no hook runs after it. The path and the place of the call are left, in an error of a hook too.
  const ModuleHook shorter = before_call(net.body, [](Module&, Out in) { in[0] = zeros({3, 5}); });
  message_of<TypeError>([&] { net.body(x); });
  EXPECT_EQ(calls, 1);
  const std::string message = without_folders(message_of<TypeError>([&] { matmul(x, x); }));
  EXPECT_MENTIONS(message, "(hooks_test.cpp:" + std::to_string(__LINE__ - 1) + ")");
}

TEST(ModuleHook, ErrorsInsideAHookNameThePlaceInTheHook) {
  Module root;
  Linear fc(root, "fc", 2, 2);
  const ModuleHook bad = after_call(fc, [](Module&, In, Out out) { out[0] = matmul(out[0], zeros({7, 7})); });
  const std::string line = std::to_string(__LINE__ - 1);
  EXPECT_MENTIONS(without_folders(message_of<TypeError>([&] { fc(ones({2, 2})); })), "(hooks_test.cpp:" + line + ")");
}

TEST(ModuleHook, BadHooksAreRefused) {
  Module root;
  Linear fc(root, "fc", 2, 2);
  EXPECT_MENTIONS(message_of<UsageError>([&] { (void)before_call(fc, nullptr); }), "[before_call] the function is empty");
  EXPECT_MENTIONS(message_of<UsageError>([&] { (void)after_call(fc, nullptr); }), "[after_call] the function is empty");
  ModuleHook bad = after_call(fc, [](Module&, In, Out out) { out[0] = Tensor(); });
  const std::string message = without_folders(message_of<UsageError>([&] { fc(ones({2, 2})); }));
  const std::string line = std::to_string(__LINE__ - 1);
  EXPECT_EQ(message, "[after_call] a hook of module 'fc' left an output undefined (hooks_test.cpp:" + line + ")");
  bad.remove();
  EXPECT_EQ(fc(ones({2, 2})).size(0), 2);
}

// ---- lifetimes ----

TEST(ModuleHook, TheHandleRemovesItsHook) {
  Module root;
  Linear fc(root, "fc", 2, 2);
  const Tensor x = ones({1, 2});
  const std::uint64_t none = module_hooks();
  const auto held = std::make_shared<int>(0);  // by each function
  const auto counting = [held](Module&, Out) { ++*held; };
  {
    ModuleHook a = before_call(fc, counting);
    EXPECT_NE(module_hooks(), none);
    ModuleHook b = std::move(a);
    a.remove();  // of no hook
    fc(x);
    EXPECT_EQ(*held, 1);
    b = before_call(fc, counting);  // removes the first one
    fc(x);
    EXPECT_EQ(*held, 2);
    b.remove();
    b.remove();
    fc(x);
    EXPECT_EQ(*held, 2);
    b = before_call(fc, counting);
  }
  fc(x);
  EXPECT_EQ(*held, 2);
  EXPECT_EQ(module_hooks(), none);
  EXPECT_EQ(held.use_count(), 2) << "a removed function still lives";

  before_call(fc, counting).keep();
  fc(x);
  EXPECT_EQ(*held, 3);
}

TEST(ModuleHook, TheModuleMayBeDestroyedFirst) {
  const std::uint64_t none = module_hooks();
  Module root;
  auto fc = std::make_unique<Linear>(root, "fc", 2, 2);
  const auto held = std::make_shared<int>(0);
  ModuleHook hook = after_call(*fc, [held](Module&, In, Out) {});
  after_call(*fc, [held](Module&, In, Out) {}).keep();
  EXPECT_EQ(held.use_count(), 3);
  fc.reset();
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(module_hooks(), none);
  hook.remove();
  EXPECT_EQ(module_hooks(), none);
}

TEST(ModuleHook, AFunctionMayHoldTheHandleOfAnotherHook) {
  const std::uint64_t none = module_hooks();
  Module root;
  Linear fc(root, "fc", 2, 2);
  int calls = 0;
  auto inner = std::make_shared<ModuleHook>(before_call(fc, [&](Module&, Out) { ++calls; }));
  ModuleHook outer = before_call(fc, [&, inner](Module&, Out) { ++calls; });
  inner.reset();
  fc(ones({1, 2}));
  EXPECT_EQ(calls, 2);
  outer.remove();  // and with it the other
  fc(ones({1, 2}));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(module_hooks(), none);
}

// ---- modules of the author ----

struct Own : Module {
  Linear in{*this, "in", 4, 8}, out{*this, "out", 8, 2};
  Tensor operator()(const Arg& operand) {
    return hooked(*this, operand, [&](const Tensor& x) { return out(relu(in(x))); });
  }
};
struct HookedPair : Module {
  using Module::Module;
  std::array<Tensor, 2> operator()(const Arg& x, const Tensor& mask) {
    return hooked(*this, x.site(), std::array{x.tensor(), mask}, [&](const std::array<Tensor, 2>& in) {
      return std::array{in[0] * in[1], in[0] + in[1]};
    });
  }
};
struct Plain : Module {
  Linear fc{*this, "fc", 4, 2};
  Tensor operator()(const Tensor& x) { return fc(x); }
};

TEST(ModuleHook, ModulesOfTheAuthorRunTheirHooks) {
  Own own;
  expect_hooks(own, normal({3, 4}), 1, 1, [&](const Tensor& x) { return Tensors{own(x)}; });
  Module root;
  HookedPair pair(root, "pair");
  const Tensor mask = normal({3, 4});
  expect_hooks(pair, normal({3, 4}), 2, 2, [&](const Tensor& x) {
    const std::array<Tensor, 2> r = pair(x, mask);
    return Tensors{r[0], r[1]};
  });
  Plain plain;
  int calls = 0;
  const ModuleHook never = before_call(plain, [&](Module&, Out) { ++calls; });
  plain(normal({3, 4}));
  EXPECT_EQ(calls, 0);
}

// ---- with the rest of the engine ----

TEST(ModuleHook, GradientsFlowThroughReplacedTensors) {
  Own own;
  const Tensor x = normal({3, 4});
  backward(sum(own(x * 2) * 3));
  Tensors wanted;
  for (Tensor p : own.parameters()) {
    wanted.push_back(p.grad());
    p.set_grad(Tensor());
  }
  const ModuleHook before = before_call(own, [](Module&, Out in) { in[0] = in[0] * 2; });
  const ModuleHook after = after_call(own, [](Module&, In, Out out) { out[0] = out[0] * 3; });
  backward(sum(own(x)));
  const Tensors p = own.parameters();
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(bit_equal(p[i].grad(), wanted[i])) << p[i].name().view();
}

TEST(ModuleHook, DrawsOfAHookDoNotChangeTheDrawsOfTheModule) {
  Module root;
  Dropout drop(root, "drop", 0.5);
  const Tensor x = ones({64});
  const auto twice = [&] {
    manual_seed(9);
    return Tensors{drop(x), drop(x)};
  };
  const Tensors plain = twice();
  Tensors noise;
  const ModuleHook draws = before_call(drop, [&](Module&, Out) { noise.push_back(normal({4})); });
  const Tensors with = twice();
  EXPECT_TRUE(bit_equal(with[0], plain[0]));
  EXPECT_TRUE(bit_equal(with[1], plain[1]));
  EXPECT_FALSE(bit_equal(noise[0], noise[1]));
}

TEST(ModuleHook, BackwardOfACheckpointRegionRunsNoHook) {
  Own own;
  int calls = 0;
  const ModuleHook count = after_call(own, [&](Module&, In, Out out) {
    ++calls;
    out[0] = out[0] * 2;
  });
  const Tensor x = normal({3, 4});
  backward(sum(own(x)));
  const Tensor wanted = own.in.weight.grad();
  own.in.weight.set_grad(Tensor());
  backward(sum(checkpoint([&] { return own(x); })));
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(bit_equal(own.in.weight.grad(), wanted));
}

}  // namespace
}  // namespace tapedeck
