#include <tapedeck/samples/zoo/resnet.h>

namespace {

using namespace zoo;

template <int Depth>
void add(const char* name, const char* doc) {
  static const std::string known_as = name;
  register_model({name,
                  doc,
                  [](const ModelOptions& o) { return record_image_classifier<Resnet<Depth>>(known_as, o); },
                  {"batch", "image", "width", "dtype"},
                  {.batch = 8, .image = 224, .width = 64}});
}

const bool resnet_model = [] {
  add<18>("resnet18", "residual net of 18 layers, 1000 classes; width: channels of the first stage");
  add<50>("resnet50", "residual net of 50 layers in bottlenecks, 1000 classes; width: channels of the first stage");
  add<152>("resnet152", "residual net of 152 layers in bottlenecks, 1000 classes; width: channels of the first stage");
  return true;
}();

}  // namespace
