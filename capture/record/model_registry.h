// The model registry: samples/zoo registers its models here and is linked into executables, never included.
#pragma once

#include <tapedeck/capture/record/capture.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Zero and empty values stand for the model's own defaults. A model refuses options that make no sense for it with a
// UsageError.
struct ModelOptions {
  std::int64_t batch = 0;
  std::int64_t image = 0;  // height and width
  std::int64_t seq = 0;    // length of a sequence
  std::int64_t layers = 0;
  std::int64_t width = 0;      // channels or features of a layer
  std::string dtype = {};      // "f32"; "f16" and "bf16" run forward under autocast
  std::string optimizer = {};  // "sgd" or "adamw"
  bool abstract = false;       // types only: no data is made, nothing is computed
  std::uint64_t seed = 42;
  std::string device = "cpu";  // where the step runs while it is recorded, and where its tensors are; not with `abstract`
  std::string weights =
      {};  // a safetensors file whose weights take the place of those drawn from the seed; not with `abstract`
};

struct Model {
  std::string name;
  std::string doc;                                        // one sentence
  Captured (*record)(const ModelOptions& options);        // captures one training step; its options come from with_defaults()
  std::vector<std::string> options = {"batch", "dtype"};  // the sizes that the model takes, and dtype, by the names above
  ModelOptions defaults = {};                             // the values that zero and empty stand for
};

void register_model(Model model);
const Model* find_model(const std::string& name);  // null if unknown
std::vector<Model> all_models();                   // sorted by name

// `given` with the model's defaults in place of zero and empty values. Throws UsageError for an option that the model does not
// take, a negative size, or an unknown dtype or optimizer.
ModelOptions with_defaults(const Model& model, ModelOptions given);

// Sizes at which every model trains in moments and is still itself: convolutions have something to reduce, and attention has
// heads of 64. Batch 2, images of 64, sequences of 16, two layers, a quarter of the width.
ModelOptions small_options(const Model& model);

// Captures one training step of the model.
Captured record_model(const Model& model, const ModelOptions& given = {});

}  // namespace TAPEDECK_API
