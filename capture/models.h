// The model registry: samples/zoo registers its models here and is linked into executables, never included.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/capture/capture.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct ModelOptions {
  std::int64_t batch = 64;
  std::string optimizer = "sgd";   // or "adamw"
  bool abstract = false;           // types only: no data is made, nothing is computed
  std::uint64_t seed = 42;
};

struct Model {
  std::string name;
  std::string doc;                                    // one sentence
  Captured (*record)(const ModelOptions& options);    // captures one training step
};

void register_model(Model model);
const Model* find_model(const std::string& name);     // null if unknown
std::vector<Model> all_models();                      // sorted by name

}  // namespace tapedeck
