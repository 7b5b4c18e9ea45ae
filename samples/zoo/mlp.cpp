// A perceptron with two hidden layers, of the size common for MNIST.
#include <tapedeck/samples/zoo/training_step.h>

namespace {

using namespace tapedeck;

struct Mlp : Module {
  Linear fc1{*this, "fc1", 784, 256}, fc2{*this, "fc2", 256, 256}, fc3{*this, "fc3", 256, 10};
  Dropout drop{*this, "drop", 0.1};
  Tensor operator()(const Tensor& x) { return fc3(drop(relu(fc2(relu(fc1(x)))))); }
};

Captured record_mlp(const ModelOptions& options) { return zoo::record_classifier<Mlp>("mlp", options, {784}, 10); }

const bool mlp_model = [] {
  register_model({"mlp", "perceptron 784-256-256-10 with dropout", record_mlp, {"batch", "dtype"}, {.batch = 64}});
  return true;
}();

}  // namespace
