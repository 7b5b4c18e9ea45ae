// LeNet-5 (LeCun et al., 1998) on 28x28 digits, with relu.
#include <tapedeck/samples/zoo/vision.h>

namespace {

using namespace zoo;

struct Lenet : Module {
  Conv2d conv1{*this, "conv1", 1, 6, 5, Padding(2)}, conv2{*this, "conv2", 6, 16, 5};
  Linear fc1{*this, "fc1", 400, 120}, fc2{*this, "fc2", 120, 84}, fc3{*this, "fc3", 84, 10};

  Tensor operator()(const Tensor& x) {
    Tensor h = avg_pool2d(relu(conv1(x)));
    h = flatten(avg_pool2d(relu(conv2(h))), 1);
    return fc3(relu(fc2(relu(fc1(h)))));
  }
};

const bool lenet_model = [] {
  register_model({"lenet",
                  "LeNet-5: two convolutions and three linear layers on 28x28 digits",
                  [](const ModelOptions& o) {
                    return record_classifier<Lenet>("lenet", o, {1, 28, 28}, 10);
                  },
                  {"batch", "dtype"},
                  {.batch = 64}});
  return true;
}();

}  // namespace
