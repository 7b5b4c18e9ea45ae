// Pieces that the vision models share.
#pragma once

#include <tapedeck/samples/zoo/training_step.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zoo {

inline constexpr std::int64_t kImageNetClasses = 1000;

// Layers applied one after the other; they belong to the parent under the names they are given.
template <class Layer>
struct Stack {
  std::vector<std::unique_ptr<Layer>> layers;

  template <class... Args>
  void add(Module& parent, const std::string& name, Args&&... args) {
    layers.push_back(std::make_unique<Layer>(parent, name, std::forward<Args>(args)...));
  }
  Tensor operator()(Tensor x) {
    for (auto& layer : layers) x = (*layer)(x);
    return x;
  }
};

// A convolution, batch norm instead of a bias, and what follows it.
struct ConvNorm : Module {
  ConvNorm(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, ConvOptions options,
           Activation activation = &relu);
  Tensor operator()(const Arg& x);
  Conv2d conv;
  BatchNorm2d norm;
  Activation activation;  // null: none
};

// Same size for odd kernels and stride 1.
ConvOptions same_size(std::int64_t kernel, std::int64_t stride = 1, std::int64_t groups = 1);

// Mean over each channel's plane: [n,c,h,w] -> [n,c].
Tensor plane_means(const Tensor& x);

// UsageError unless images fall into blocks of this size.
void require_multiple(const std::string& model, const ModelOptions& options, std::int64_t block);

// Images to classes, and images to a class for each pixel.
template <class Net>
Captured record_image_classifier(const std::string& name, const ModelOptions& options,
                                 std::int64_t classes = kImageNetClasses) {
  return record_classifier<Net>(name, options, {3, options.image, options.image}, classes);
}

template <class Net>
Captured record_segmenter(const std::string& name, const ModelOptions& options, std::int64_t classes) {
  return record_training<Net>(
      name, options,
      [&](const ModelOptions& o) {
        return std::vector<Sample>{{"x", sample_images(o, 3)}, {"y", sample_integers({o.batch, o.image, o.image}, classes)}};
      },
      [](Net& net, const std::vector<Tensor>& in) { return cross_entropy(net(in[0]), in[1]); });
}

}  // namespace zoo
