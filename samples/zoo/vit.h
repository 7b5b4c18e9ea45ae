// The vision transformer (Dosovitskiy et al., 2020): patches of 16x16 pixels are the words, and one more word is for the class.
#pragma once

#include <tapedeck/samples/zoo/vision.h>

namespace zoo {

inline constexpr std::int64_t kVitPatch = 16, kVitHead = 64;

struct Vit : Module {
  Conv2d patches;
  Tensor class_token, positions;
  ModuleList<TransformerBlock> blocks{*this, "block"};
  LayerNorm norm;
  Linear head;

  explicit Vit(const ModelOptions& o)
      : patches(*this, "patches", 3, o.width, {.kernel = {kVitPatch}, .stride = {kVitPatch}}),
        class_token(parameter("class_token", zeros({1, 1, o.width}))),
        positions(parameter("positions", initial_normal(*this, "positions", {1, words(o.image), o.width}, 0.02))),
        norm(*this, "norm", o.width),
        head(*this, "head", o.width, kImageNetClasses) {
    const TransformerOptions options{.heads = o.width / kVitHead, .activation = [](const Arg& x) { return gelu(x); }};
    for (std::int64_t i = 0; i < o.layers; ++i) blocks.add(o.width, options);
  }
  static std::int64_t words(std::int64_t image) { return (image / kVitPatch) * (image / kVitPatch) + 1; }

  Tensor operator()(const Tensor& x) {
    const std::int64_t n = x.size(0), width = class_token.size(2);
    const Tensor image = transpose(flatten(patches(x), 2), {0, 2, 1});
    Tensor h = concat({broadcast_to(class_token, {n, 1, width}), image}, 1) + positions;
    for (TransformerBlock& block : blocks) h = block(h);
    return head(reshape(slice(norm(h), 1, 0, 1), {n, width}));
  }
};

}  // namespace zoo
