// A plain convolutional net: fourteen 3x3 convolutions of equal width on 32x32 images, then one pooling. It is so deep that the
// values kept for backward take most of the memory.
#include <tapedeck/samples/zoo/training_step.h>

#include <fmt/format.h>

namespace {

using namespace tapedeck;

struct Cnn : Module {
  static constexpr int kDepth = 14;
  static constexpr std::int64_t kWidth = 16;
  Conv2d stem{*this, "stem", 3, kWidth, 3, Padding(1)};
  std::vector<std::unique_ptr<Conv2d>> convs;
  Linear head{*this, "head", kWidth * 4 * 4, 10};

  Cnn() {
    for (int i = 1; i < kDepth; ++i)
      convs.push_back(std::make_unique<Conv2d>(*this, fmt::format("conv{}", i), kWidth, kWidth, 3, Padding(1)));
  }
  Tensor operator()(const Tensor& x) {
    Tensor h = relu(stem(x));
    for (auto& conv : convs) h = relu((*conv)(h));
    h = max_pool2d(h, {.window = {8, 8}, .stride = {8, 8}});
    return head(reshape(h, {-1, kWidth * 4 * 4}));
  }
};

Captured record_cnn(const ModelOptions& options) { return zoo::record_classifier<Cnn>("cnn", options, {3, 32, 32}, 10); }

const bool cnn_model = [] {
  register_model(
      {"cnn", "fourteen 3x3 convolutions of width 16 on 32x32 images", record_cnn, {"batch", "dtype"}, {.batch = 64}});
  return true;
}();

}  // namespace
