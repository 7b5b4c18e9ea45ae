// MobileNet (Howard et al., 2017) and its second version (Sandler et al., 2018): convolutions of single channels between 1x1
// convolutions.
#include <tapedeck/samples/zoo/vision.h>

namespace {

using namespace zoo;

// A 3x3 convolution of each channel alone, then a 1x1 convolution that mixes the channels.
struct Separable : Module {
  ConvNorm depthwise, pointwise;
  Separable(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, std::int64_t stride)
      : Module(parent, name),
        depthwise(*this, "depthwise", in, in, same_size(3, stride, in)),
        pointwise(*this, "pointwise", in, out, same_size(1)) {}
  Tensor operator()(const Arg& x) { return pointwise(depthwise(x)); }
};

struct MobilenetV1 : Module {
  ConvNorm stem{*this, "stem", 3, 32, same_size(3, 2)};
  Stack<Separable> blocks = separables(*this);
  Linear head{*this, "head", 1024, kImageNetClasses};

  static Stack<Separable> separables(Module& net) {
    Stack<Separable> blocks;
    const struct {
      std::int64_t out, stride;
    } rows[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
    std::int64_t in = 32;
    for (const auto& row : rows) {
      blocks.add(net, "block" + std::to_string(blocks.layers.size()), in, row.out, row.stride);
      in = row.out;
    }
    return blocks;
  }
  Tensor operator()(const Tensor& x) { return head(plane_means(blocks(stem(x)))); }
};

// Widens the channels, convolves each channel alone, and narrows them without an activation. The input is added if the sizes
// are equal.
struct InvertedResidual : Module {
  Stack<ConvNorm> body;
  bool residual;

  InvertedResidual(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, std::int64_t stride,
                   std::int64_t expansion)
      : Module(parent, name), residual(stride == 1 && in == out) {
    const std::int64_t wide = in * expansion;
    if (expansion != 1) body.add(*this, "expand", in, wide, same_size(1), &relu6);
    body.add(*this, "depthwise", wide, wide, same_size(3, stride, wide), &relu6);
    body.add(*this, "project", wide, out, same_size(1), nullptr);
  }
  Tensor operator()(const Arg& x) {
    const ModuleScope scope(*this, x.site());
    const Tensor y = body(x.tensor());
    return residual ? x.tensor() + y : y;
  }
};

struct MobilenetV2 : Module {
  ConvNorm stem{*this, "stem", 3, 32, same_size(3, 2), &relu6};
  Stack<InvertedResidual> blocks = residuals(*this);
  ConvNorm last{*this, "last", 320, 1280, same_size(1), &relu6};
  Dropout drop{*this, "drop", 0.2};
  Linear head{*this, "head", 1280, kImageNetClasses};

  static Stack<InvertedResidual> residuals(Module& net) {
    Stack<InvertedResidual> blocks;
    const struct {
      std::int64_t expansion, out, repeats, stride;
    } rows[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    std::int64_t in = 32;
    for (const auto& row : rows)
      for (std::int64_t i = 0; i < row.repeats; ++i) {
        blocks.add(net, "block" + std::to_string(blocks.layers.size()), in, row.out, i == 0 ? row.stride : 1, row.expansion);
        in = row.out;
      }
    return blocks;
  }
  Tensor operator()(const Tensor& x) { return head(drop(plane_means(last(blocks(stem(x)))))); }
};

const bool mobilenet_model = [] {
  const ModelOptions defaults{.batch = 8, .image = 224};
  register_model({"mobilenet_v1",
                  "MobileNet of depthwise separable convolutions, 1000 classes",
                  [](const ModelOptions& o) { return record_image_classifier<MobilenetV1>("mobilenet_v1", o); },
                  {"batch", "image", "dtype"},
                  defaults});
  register_model({"mobilenet_v2",
                  "MobileNet of inverted residuals, 1000 classes",
                  [](const ModelOptions& o) { return record_image_classifier<MobilenetV2>("mobilenet_v2", o); },
                  {"batch", "image", "dtype"},
                  defaults});
  return true;
}();

}  // namespace
