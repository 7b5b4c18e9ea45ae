// SegNet (Badrinarayanan et al., 2015): the poolings of the encoder keep the place of each maximum, and the decoder, a mirror
// image of the encoder, puts values back at these places.
#include <tapedeck/samples/zoo/vision.h>

namespace {

using namespace zoo;

constexpr std::int64_t kSegnetClasses = 21;
constexpr int kConvs[5] = {2, 2, 3, 3, 3};

// x [n,c,h,w] in planes of twice the height and width: each element stands where `index` says that the maximum of its window
// stood, and all other elements are zero.
Tensor unpooled(const Tensor& x, const Tensor& index) {
  return max_pool2d_grad_from_index(index, x, {.size = {2 * x.size(2), 2 * x.size(3)}});
}

struct Segnet : Module {
  Stack<ConvNorm> down[5], up[5];
  std::unique_ptr<Conv2d> head;

  explicit Segnet(const ModelOptions& o) {
    const std::int64_t channels[5] = {o.width, 2 * o.width, 4 * o.width, 8 * o.width, 8 * o.width};
    for (int g = 0; g < 5; ++g)
      for (int i = 0; i < kConvs[g]; ++i)
        down[g].add(*this, numbered("down", g, i),
                    i > 0   ? channels[g]
                    : g > 0 ? channels[g - 1]
                            : 3,
                    channels[g], same_size(3));
    // The last convolution of a group narrows the channels for the next group. In group 0 the head takes the place of the last
    // convolution.
    for (int g = 4; g >= 0; --g)
      for (int i = 0; i < kConvs[g] - (g == 0 ? 1 : 0); ++i)
        up[g].add(*this, numbered("up", g, i), channels[g], g > 0 && i == kConvs[g] - 1 ? channels[g - 1] : channels[g],
                  same_size(3));
    head = std::make_unique<Conv2d>(*this, "head", o.width, kSegnetClasses, 3, Padding(1));
  }
  static std::string numbered(const char* what, int group, int i) {
    return what + std::to_string(group + 1) + "_" + std::to_string(i + 1);
  }
  Tensor operator()(const Tensor& x) {
    Tensor h = x, indices[5];
    for (int g = 0; g < 5; ++g) {
      h = down[g](h);
      indices[g] = max_pool2d_index(h);
      h = max_pool2d(h);
    }
    for (int g = 4; g >= 0; --g) h = up[g](unpooled(h, indices[g]));
    return (*head)(h);
  }
};

Captured record_segnet(const ModelOptions& options) {
  require_multiple("segnet", options, 32);
  return record_segmenter<Segnet>("segnet", options, kSegnetClasses);
}

const bool segnet_model = [] {
  register_model({"segnet",
                  "SegNet: 13 convolutions down, 13 up by the indices of poolings, 21 classes per pixel; width: first channels",
                  record_segnet,
                  {"batch", "image", "width", "dtype"},
                  {.batch = 8, .image = 128, .width = 64}});
  return true;
}();

}  // namespace
