// ResNet (He et al., 2015), with the strides in the 3x3 convolutions: four stages of residual blocks. The blocks are plain with
// 18 layers, and bottlenecks with more.
#pragma once

#include <tapedeck/samples/zoo/vision.h>

#include <array>

namespace zoo {

// A residual block from `in` channels to `width`, or to 4 `width` in a bottleneck. If the sizes differ, the shortcut is a 1x1
// convolution.
struct Residual : Module {
  Stack<ConvNorm> body, shortcut;

  Residual(Module& parent, const std::string& name, std::int64_t in, std::int64_t width, std::int64_t stride, bool bottleneck)
      : Module(parent, name) {
    const std::int64_t out = bottleneck ? 4 * width : width;
    if (bottleneck) {
      body.add(*this, "a", in, width, same_size(1));
      body.add(*this, "b", width, width, same_size(3, stride));
      body.add(*this, "c", width, out, same_size(1), nullptr);
    } else {
      body.add(*this, "a", in, width, same_size(3, stride));
      body.add(*this, "b", width, out, same_size(3), nullptr);
    }
    if (stride != 1 || in != out) shortcut.add(*this, "shortcut", in, out, same_size(1, stride), nullptr);
  }
  Tensor operator()(const Arg& x) {
    const ModuleScope scope(*this, x.site());
    return relu(body(x.tensor()) + shortcut(x.tensor()));
  }
};

template <int Depth>
struct Resnet : Module {
  static constexpr bool kBottleneck = Depth > 34;
  static constexpr std::array<int, 4> kBlocks = Depth == 18   ? std::array{2, 2, 2, 2}
                                                : Depth == 50 ? std::array{3, 4, 6, 3}
                                                              : std::array{3, 8, 36, 3};
  ConvNorm stem;
  ModuleList<Residual> stage1{*this, "stage1"}, stage2{*this, "stage2"}, stage3{*this, "stage3"}, stage4{*this, "stage4"};
  Linear head;

  explicit Resnet(const ModelOptions& o)
      : stem(*this, "stem", 3, o.width, same_size(7, 2)),
        head(*this, "head", o.width * 8 * (kBottleneck ? 4 : 1), kImageNetClasses) {
    std::int64_t in = o.width, width = o.width;
    std::size_t stage = 0;
    for (auto* blocks : stages()) {
      for (int block = 0; block < kBlocks[stage]; ++block) {
        blocks->add(in, width, stage > 0 && block == 0 ? 2 : 1, kBottleneck);
        in = kBottleneck ? 4 * width : width;
      }
      width *= 2;
      ++stage;
    }
  }
  std::array<ModuleList<Residual>*, 4> stages() { return {&stage1, &stage2, &stage3, &stage4}; }

  Tensor operator()(const Tensor& x) {
    Tensor h = max_pool2d(stem(x), {.window = {3}, .stride = {2}, .padding = {1}});
    for (auto* blocks : stages())
      for (Residual& block : *blocks) h = block(h);
    return head(plane_means(h));
  }
};

}  // namespace zoo
