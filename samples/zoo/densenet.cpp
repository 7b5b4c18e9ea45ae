// DenseNet (Huang et al., 2016) with 121 layers: every layer of a block reads the concatenation of all earlier layers.
#include <tapedeck/samples/zoo/vision.h>

namespace {

using namespace zoo;

constexpr std::int64_t kGrowth = 32;

ConvOptions plain(std::int64_t kernel) {
  ConvOptions options = same_size(kernel);
  options.bias = false;
  return options;
}

struct DenseLayer : Module {
  BatchNorm2d norm1;
  Conv2d conv1;
  BatchNorm2d norm2;
  Conv2d conv2;
  DenseLayer(Module& parent, const std::string& name, std::int64_t in)
      : Module(parent, name),
        norm1(*this, "norm1", in),
        conv1(*this, "conv1", in, 4 * kGrowth, plain(1)),
        norm2(*this, "norm2", 4 * kGrowth),
        conv2(*this, "conv2", 4 * kGrowth, kGrowth, plain(3)) {}
  Tensor operator()(const Arg& x) {
    const ModuleScope scope(*this, x.site());
    return conv2(relu(norm2(conv1(relu(norm1(x))))));
  }
};

struct DenseBlock : Module {
  Stack<DenseLayer> layers;
  DenseBlock(Module& parent, const std::string& name, std::int64_t in, int count) : Module(parent, name) {
    for (int i = 0; i < count; ++i) layers.add(*this, "layer" + std::to_string(i + 1), in + i * kGrowth);
  }
  Tensor operator()(const Arg& x) {
    const ModuleScope scope(*this, x.site());
    std::vector<Tensor> features = {x.tensor()};
    for (auto& layer : layers.layers) features.push_back((*layer)(features.size() == 1 ? features[0] : concat(features, 1)));
    return concat(features, 1);
  }
};

// Halves the number of channels and the size of the planes between two blocks.
struct Transition : Module {
  BatchNorm2d norm;
  Conv2d conv;
  Transition(Module& parent, const std::string& name, std::int64_t in)
      : Module(parent, name), norm(*this, "norm", in), conv(*this, "conv", in, in / 2, plain(1)) {}
  Tensor operator()(const Arg& x) {
    const ModuleScope scope(*this, x.site());
    return avg_pool2d(conv(relu(norm(x))));
  }
};

struct Densenet121 : Module {
  ConvNorm stem{*this, "stem", 3, 64, same_size(7, 2)};
  DenseBlock block1{*this, "block1", 64, 6};
  Transition transition1{*this, "transition1", 256};
  DenseBlock block2{*this, "block2", 128, 12};
  Transition transition2{*this, "transition2", 512};
  DenseBlock block3{*this, "block3", 256, 24};
  Transition transition3{*this, "transition3", 1024};
  DenseBlock block4{*this, "block4", 512, 16};
  BatchNorm2d norm{*this, "norm", 1024};
  Linear head{*this, "head", 1024, kImageNetClasses};

  Tensor operator()(const Tensor& x) {
    Tensor h = max_pool2d(stem(x), {.window = {3}, .stride = {2}, .padding = {1}});
    h = transition3(block3(transition2(block2(transition1(block1(h))))));
    return head(plane_means(relu(norm(block4(h)))));
  }
};

const bool densenet_model = [] {
  register_model({"densenet121",
                  "densely connected net of 121 layers, 1000 classes",
                  [](const ModelOptions& o) { return record_image_classifier<Densenet121>("densenet121", o); },
                  {"batch", "image", "dtype"},
                  {.batch = 8, .image = 224}});
  return true;
}();

}  // namespace
