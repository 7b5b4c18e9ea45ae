// U-Net (Ronneberger et al., 2015), with padding and batch norm: four halvings and four doublings, joined level by level.
#include <tapedeck/samples/zoo/vision.h>

namespace {

using namespace zoo;

constexpr std::int64_t kUnetClasses = 2;

struct Double : Module {
  ConvNorm first, second;
  Double(Module& parent, const std::string& name, std::int64_t in, std::int64_t out)
      : Module(parent, name), first(*this, "first", in, out, same_size(3)), second(*this, "second", out, out, same_size(3)) {}
  Tensor operator()(const Arg& x) { return second(first(x)); }
};

struct Unet : Module {
  static constexpr int kLevels = 4;
  Stack<Double> down, up;
  Stack<ConvTranspose2d> doublings;
  std::unique_ptr<Conv2d> head;

  explicit Unet(const ModelOptions& o) {
    for (int i = 0; i <= kLevels; ++i)
      down.add(*this, "down" + std::to_string(i), i == 0 ? 3 : o.width << (i - 1), o.width << i);
    for (int i = kLevels - 1; i >= 0; --i) {
      doublings.add(*this, "doubling" + std::to_string(i), o.width << (i + 1), o.width << i);
      up.add(*this, "up" + std::to_string(i), o.width << (i + 1), o.width << i);
    }
    head = std::make_unique<Conv2d>(*this, "head", o.width, kUnetClasses, 1);
  }
  Tensor operator()(const Tensor& x) {
    std::vector<Tensor> levels;
    Tensor h = (*down.layers[0])(x);
    for (int i = 1; i <= kLevels; ++i) {
      levels.push_back(h);
      h = (*down.layers[i])(max_pool2d(h));
    }
    for (std::size_t i = 0; i < kLevels; ++i)
      h = (*up.layers[i])(concat({levels[kLevels - 1 - i], (*doublings.layers[i])(h)}, 1));
    return (*head)(h);
  }
};

Captured record_unet(const ModelOptions& options) {
  require_multiple("unet", options, 1 << Unet::kLevels);
  return record_segmenter<Unet>("unet", options, kUnetClasses);
}

const bool unet_model = [] {
  register_model({"unet",
                  "U-Net with batch norm, two classes per pixel; width: channels of the first level",
                  record_unet,
                  {"batch", "image", "width", "dtype"},
                  {.batch = 8, .image = 128, .width = 64}});
  return true;
}();

}  // namespace
