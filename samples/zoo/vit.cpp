#include <tapedeck/samples/zoo/vit.h>

#include <fmt/format.h>

namespace {

using namespace zoo;

Captured record_vit(const ModelOptions& options) {
  require_multiple("vit_b16", options, kVitPatch);
  if (options.width % kVitHead != 0)
    throw UsageError(
        fmt::format("model vit_b16: width must be a multiple of {}, the size of a head, not {}", kVitHead, options.width));
  return record_image_classifier<Vit>("vit_b16", options);
}

const bool vit_model = [] {
  register_model({"vit_b16",
                  "vision transformer on patches of 16x16 pixels, 1000 classes; width: features of a patch, 64 to a head",
                  record_vit,
                  {"batch", "image", "layers", "width", "dtype"},
                  {.batch = 8, .image = 224, .layers = 12, .width = 768}});
  return true;
}();

}  // namespace
