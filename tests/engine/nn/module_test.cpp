// Tests how modules register their children and tensors: lifetimes in either order, replaced layers, and names that stand
// twice.
#include <tapedeck/engine/nn/nn.h>

#include <tapedeck/tests/engine/messages.h>

#include <memory>

namespace tapedeck {
namespace {

using testing::message_of;

struct Scale : Module {
  Scale(Module& parent, const std::string& name, float value) : Module(parent, name) {
    weight = parameter("weight", tensor({value}));
    count = buffer("count", tensor({0}));
  }
  using Module::buffer;
  using Module::parameter;
  Tensor weight, count;
};

struct ScaleNet : Module {
  std::unique_ptr<Scale> first = std::make_unique<Scale>(*this, "first", 1.0f);
  std::unique_ptr<Scale> second = std::make_unique<Scale>(*this, "second", 2.0f);
};

std::vector<double> weights(const Module& m) {
  std::vector<double> all;
  for (const Tensor& p : m.parameters()) all.push_back(p.item());
  return all;
}

TEST(Module, AReplacedLayerTakesThePlaceOfTheOldOne) {
  ScaleNet net;
  EXPECT_EQ(weights(net), (std::vector<double>{1, 2}));
  net.first = std::make_unique<Scale>(net, "first", 3.0f);
  EXPECT_EQ(weights(net), (std::vector<double>{3, 2}));
  EXPECT_EQ(net["first"].parameters()[0].item(), 3);
  net.train(false);
  EXPECT_FALSE(net.first->training());
}

TEST(Module, ADestroyedChildIsForgotten) {
  ScaleNet net;
  net.first.reset();
  EXPECT_EQ(weights(net), (std::vector<double>{2}));
  EXPECT_EQ(net.buffers().size(), 1u);
  message_of<UsageError>([&] { net["first"]; });
}

TEST(Module, AChildMayOutliveItsParent) {
  auto net = std::make_unique<ScaleNet>();
  const std::unique_ptr<Scale> kept = std::move(net->second);
  net.reset();
  EXPECT_EQ(weights(*kept), (std::vector<double>{2}));
}

TEST(Module, TwoChildrenOfOneNameAreAnError) {
  ScaleNet net;
  const Scale other(net, "second", 5.0f);
  EXPECT_EQ(message_of<UsageError>([&] { net.parameters(); }),
            "two modules are named 'second'; each module inside the net needs a name of its own");
  message_of<UsageError>([&] { net.buffers(); });
  message_of<UsageError>([&] { net["second"]; });
}

TEST(Module, TwoTensorsOfOneNameAreAnError) {
  ScaleNet net;
  EXPECT_EQ(message_of<UsageError>([&] { net.first->parameter("weight", tensor({1})); }),
            "two tensors of a module are named 'first.weight'");
  message_of<UsageError>([&] { net.first->buffer("weight", tensor({1})); });
  EXPECT_EQ(weights(net), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace tapedeck
