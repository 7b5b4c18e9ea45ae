// Modules and functions that the vision models share.
#pragma once

#include <tapedeck/samples/zoo/training_step.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zoo {

inline constexpr std::int64_t kImageNetClasses = 1000;

// Layers that are applied one after the other. Each layer is a submodule of the parent, under its given name.
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

// A convolution without a bias, a batch norm, and an activation.
struct ConvNorm : Module {
  ConvNorm(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, ConvOptions options,
           Activation activation = &relu);
  Tensor operator()(const Arg& x);
  Conv2d conv;
  BatchNorm2d norm;
  Activation activation;  // null: no activation
};

// Options of a convolution whose padding keeps the size of the image, for odd kernels and stride 1.
ConvOptions same_size(std::int64_t kernel, std::int64_t stride = 1, std::int64_t groups = 1);

// The mean of each channel's plane: [n,c,h,w] -> [n,c].
Tensor plane_means(const Tensor& x);

// Throws UsageError unless the image size is a multiple of `block`.
void require_multiple(const std::string& model, const ModelOptions& options, std::int64_t block);

// Captures a training step of a net that gives one class per image, or one class per pixel.
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
