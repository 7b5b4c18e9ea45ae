// FCN-8s (Long et al., 2015): the convolutions of VGG-16, then two wide convolutions instead of the linear layers. The class
// scores of three depths are enlarged to one size and added.
#include <tapedeck/samples/zoo/vision.h>

#include <array>

namespace {

using namespace zoo;

constexpr std::int64_t kFcn8Classes = 21;

struct Fcn8 : Module {
  std::array<Stack<Conv2d>, 5> groups = convolutions(*this);
  Conv2d fc6, fc7;
  Dropout2d drop6{*this, "drop6", 0.5}, drop7{*this, "drop7", 0.5};
  Conv2d score3{*this, "score3", 256, kFcn8Classes, 1}, score4{*this, "score4", 512, kFcn8Classes, 1}, score7;
  ConvTranspose2d up7{*this, "up7", kFcn8Classes, kFcn8Classes, enlarging(2)},
      up4{*this, "up4", kFcn8Classes, kFcn8Classes, enlarging(2)};
  ConvTranspose2d up3{*this, "up3", kFcn8Classes, kFcn8Classes, enlarging(8)};

  static ConvTransposeLayerOptions enlarging(std::int64_t times) {
    return {.kernel = {2 * times}, .stride = {times}, .padding = {times / 2}, .bias = false};
  }
  explicit Fcn8(const ModelOptions& o)
      : fc6(*this, "fc6", 512, o.width, same_size(7)),
        fc7(*this, "fc7", o.width, o.width, 1),
        score7(*this, "score7", o.width, kFcn8Classes, 1) {}

  static std::array<Stack<Conv2d>, 5> convolutions(Module& net) {
    const struct {
      int convs;
      std::int64_t channels;
    } rows[5] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};
    std::array<Stack<Conv2d>, 5> groups;
    std::int64_t in = 3;
    for (std::size_t g = 0; g < 5; ++g)
      for (int i = 0; i < rows[g].convs; ++i) {
        groups[g].add(net, "conv" + std::to_string(g + 1) + "_" + std::to_string(i + 1), in, rows[g].channels, 3, Padding(1));
        in = rows[g].channels;
      }
    return groups;
  }
  Tensor operator()(const Tensor& x) {
    Tensor h = x, pooled[5];
    for (std::size_t g = 0; g < 5; ++g) {
      for (auto& conv : groups[g].layers) h = relu((*conv)(h));
      pooled[g] = h = max_pool2d(h);
    }
    h = drop7(relu(fc7(drop6(relu(fc6(h))))));
    h = up7(score7(h)) + score4(pooled[3]);
    h = up4(h) + score3(pooled[2]);
    return up3(h);
  }
};

Captured record_fcn8(const ModelOptions& options) {
  require_multiple("fcn8", options, 32);
  return record_segmenter<Fcn8>("fcn8", options, kFcn8Classes);
}

const bool fcn8_model = [] {
  register_model({"fcn8",
                  "fully convolutional VGG-16, scores of three depths, 21 classes per pixel; width: channels of fc6 and fc7",
                  record_fcn8,
                  {"batch", "image", "width", "dtype"},
                  {.batch = 8, .image = 224, .width = 4096}});
  return true;
}();

}  // namespace
