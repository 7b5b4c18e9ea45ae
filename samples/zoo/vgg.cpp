#include <tapedeck/samples/zoo/vgg.h>

namespace {

using namespace zoo;

const bool vgg_model = [] {
  const ModelOptions defaults{.batch = 8, .image = 224};
  register_model({"vgg16",
                  "VGG with 13 convolutions and 3 linear layers, 1000 classes",
                  [](const ModelOptions& o) { return record_image_classifier<Vgg<16>>("vgg16", o); },
                  {"batch", "image", "dtype"},
                  defaults});
  register_model({"vgg19",
                  "VGG with 16 convolutions and 3 linear layers, 1000 classes",
                  [](const ModelOptions& o) { return record_image_classifier<Vgg<19>>("vgg19", o); },
                  {"batch", "image", "dtype"},
                  defaults});
  return true;
}();

}  // namespace
