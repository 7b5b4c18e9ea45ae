// A layer that looks up rows of a table by number.
#pragma once

#include <tapedeck/engine/nn/module.h>

namespace tapedeck TAPEDECK_API {

// ids (i32 or i64, any shape) -> [..., size]. The first values of the table [rows,size] are normal with this deviation.
struct Embedding : Module {
  Embedding(Module& parent, const std::string& name, std::int64_t rows, std::int64_t size, double deviation = 1.0);
  Tensor operator()(const Arg& ids);
  Tensor weight;
};

}  // namespace TAPEDECK_API
