// The same training steps written for libtorch, behind plain functions: no header of either library reaches the other's file.
//
// A step is forward, backward and a plain SGD update on one thread, on parameters of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace peer {

enum class Mode : std::uint8_t {
  eager,   // operators one by one, as most people write it
  script,  // the forward pass traced to TorchScript once, then run by its graph executor, profiling runs done
};

struct MlpSize {
  std::int64_t batch, width, classes;
};  // width -> width -> width -> classes, relu
struct LstmCellSize {
  std::int64_t batch, width;
};  // one cell, squared error
struct ResnetSize {
  std::int64_t batch, image, classes;
};  // resnet18

std::string version();
void use_threads(int threads);

// One call = one training step; returns when it is done.
using Step = std::function<void()>;
Step mlp_step(Mode mode, const MlpSize& size);
Step lstm_cell_step(Mode mode, const LstmCellSize& size);
Step resnet18_step(Mode mode, const ResnetSize& size);

}  // namespace peer
