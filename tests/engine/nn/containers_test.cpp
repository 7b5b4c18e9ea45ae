// Tests Sequential and ModuleList: names, order of calls, and places in errors. The oracle is the same layers called one by
// one.
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <string>
#include <vector>

namespace tapedeck {
namespace {

using testing::message_of;
using testing::without_folders;

std::vector<std::string> names_of(const std::vector<Tensor>& tensors) {
  std::vector<std::string> names;
  for (const Tensor& t : tensors) names.push_back(t.name().str());
  return names;
}

struct SequentialNet : Module {
  Sequential body{*this, "body"};
  SequentialNet() {
    body.add<Linear>(4, 8)
        .add(&relu)
        .add<Dropout>(0.5)
        .add<Linear>(8, 2, LinearOptions{.bias = false})
        .add([](const Tensor& x) { return x * 2; })
        .add_as<LayerNorm>("norm", 2);
  }
};

TEST(Sequential, NamesLayersByTheirNumber) {
  const SequentialNet net;
  EXPECT_EQ(names_of(net.parameters()),
            (std::vector<std::string>{"body.0.weight", "body.0.bias", "body.3.weight", "body.norm.weight", "body.norm.bias"}));
  EXPECT_EQ(net.body.size(), 6u);
  EXPECT_EQ(net.body.layer(3)->path(), "body.3");
  EXPECT_EQ(net.body.layer(1), nullptr);
  EXPECT_EQ(message_of<UsageError>([&] { net.body.layer(6); }), "module 'body' has no layer 6 of 6");
}

TEST(Sequential, AppliesLayersInTheirOrder) {
  SequentialNet net;
  net.train(false);
  const Tensor x = normal({3, 4});
  const std::vector<Tensor> p = net.parameters();
  const Tensor hidden = relu(matmul(x, p[0]) + p[1]);
  EXPECT_TRUE(bit_equal(net.body(x), layer_norm(matmul(hidden, p[2]) * 2, p[3], p[4], 1e-5)));
  net.train();
  EXPECT_FALSE(bit_equal(net.body(x), net.body(x))) << "the dropout of the container trains";
  Module root;
  Sequential none(root, "none");
  EXPECT_TRUE(bit_equal(none(x), x));
}

TEST(Sequential, ErrorsNameTheCallOfTheContainer) {
  SequentialNet net;
  const Tensor x = zeros({3, 5});
  const std::string message = without_folders(message_of<TypeError>([&] { net.body(x); }));
  EXPECT_MENTIONS(message, "(containers_test.cpp:" + std::to_string(__LINE__ - 1) + ")");
}

TEST(Sequential, GradientsReachAllLayers) {
  SequentialNet net;
  backward(sum(net.body(normal({3, 4}))));
  for (const Tensor& p : net.parameters()) EXPECT_TRUE(p.grad().defined()) << p.name().view();
}

struct Listed : Module {
  ModuleList<Linear> layers{*this, "layers"};
};

TEST(ModuleList, HoldsLayersByNumber) {
  Listed net;
  EXPECT_TRUE(net.layers.empty());
  Linear& first = net.layers.add(3, 3);
  for (int i = 1; i < 20; ++i) net.layers.add(3, 3, LinearOptions{.bias = i % 2 == 0});
  EXPECT_EQ(net.layers.size(), 20u);
  EXPECT_EQ(&first, &net.layers[0]) << "a layer moves when others are added";
  EXPECT_EQ(net.layers[19].weight.name().view(), "layers.19.weight");
  EXPECT_FALSE(net.layers[19].bias.defined());
  EXPECT_EQ(net.parameters().size(), 30u);
  EXPECT_EQ(net.layers["7"].path(), "layers.7");
  int calls = 0;
  Tensor h = normal({2, 3}), wanted = h;
  for (Linear& layer : net.layers) h = layer(h), ++calls;
  for (int i = 0; i < 20; ++i) {
    wanted = matmul(wanted, net.layers[i].weight);
    if (i % 2 == 0) wanted = wanted + net.layers[i].bias;
  }
  EXPECT_EQ(calls, 20);
  EXPECT_TRUE(bit_equal(h, wanted));
}

}  // namespace
}  // namespace tapedeck
