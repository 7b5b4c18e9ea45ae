// The training steps of torch_bench, written for libtorch behind plain functions. No file includes the headers of both
// libraries.
//
// A step is forward, backward and a plain SGD update, on one thread and on parameters of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace peer {

enum class Mode : std::uint8_t {
  eager,   // runs operators one by one, as most users do
  script,  // traces the forward pass to TorchScript once and runs it by the graph executor, after its profiling runs
};

struct MlpSize {
  std::int64_t batch, width, classes;
};  // three linear layers with relu: width -> width -> width -> classes
struct LstmCellSize {
  std::int64_t batch, width;
};  // one LSTM cell with a squared error
struct ResnetSize {
  std::int64_t batch, image, classes;
};  // the sizes of a resnet18 step

std::string version();
void use_threads(int threads);

// A call of a Step runs one training step and returns after the step has ended.
using Step = std::function<void()>;
Step mlp_step(Mode mode, const MlpSize& size);
Step lstm_cell_step(Mode mode, const LstmCellSize& size);
Step resnet18_step(Mode mode, const ResnetSize& size);

}  // namespace peer
