// VGG (Simonyan and Zisserman, 2014): five groups of 3x3 convolutions, each followed by a pooling, then three wide linear
// layers.
#pragma once

#include <tapedeck/samples/zoo/vision.h>

#include <array>

namespace zoo {

inline constexpr std::int64_t kVggChannels[5] = {64, 128, 256, 512, 512};

// `Depth` counts the layers with weights: 13 or 16 convolutions, and three linear layers.
template <int Depth>
struct Vgg : Module {
  static constexpr std::array<int, 5> kConvs = Depth == 16 ? std::array{2, 2, 3, 3, 3} : std::array{2, 2, 4, 4, 4};
  std::array<Stack<Conv2d>, 5> groups = convolutions(*this);
  Linear fc1{*this, "fc1", 512 * 7 * 7, 4096}, fc2{*this, "fc2", 4096, 4096}, fc3{*this, "fc3", 4096, kImageNetClasses};
  Dropout drop1{*this, "drop1", 0.5}, drop2{*this, "drop2", 0.5};

  static std::array<Stack<Conv2d>, 5> convolutions(Module& net) {
    std::array<Stack<Conv2d>, 5> groups;
    std::int64_t in = 3;
    for (std::size_t g = 0; g < 5; ++g)
      for (int i = 0; i < kConvs[g]; ++i) {
        groups[g].add(net, "conv" + std::to_string(g + 1) + "_" + std::to_string(i + 1), in, kVggChannels[g], 3, Padding(1));
        in = kVggChannels[g];
      }
    return groups;
  }
  Tensor operator()(const Tensor& x) {
    Tensor h = x;
    for (auto& group : groups) {
      for (auto& conv : group.layers) h = relu((*conv)(h));
      h = max_pool2d(h);
    }
    h = flatten(adaptive_avg_pool2d(h, {7, 7}), 1);
    return fc3(drop2(relu(fc2(drop1(relu(fc1(h)))))));
  }
};

}  // namespace zoo
