// A cuDNN that runs on the host: it keeps descriptors with their attributes, refuses misuse as cuDNN does, and computes a
// convolution from the attributes of its plan with the CPU kernels. A test lists the engines that its heuristic proposes.
#pragma once

#include <tapedeck/kernels/cuda/dnn_api.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::testing {

struct FakeEngine {
  std::vector<int> notes, behaviour;
  std::int64_t workspace = 0;
  int plan_status = 0;     // of the finalization of a plan
  int execute_status = 0;  // of its execution
  std::int64_t index = 0;  // the global index
  std::vector<std::pair<int, std::int64_t>> knobs = {};
};

// The state of the fake, and the calls that it counted.
struct FakeDnn {
  std::vector<FakeEngine> engines, fallback_engines;  // of the two modes of the heuristic
  int create_status = 0;
  int handles = 0, live_descriptors = 0, graphs = 0, executions = 0;
  void* stream = nullptr;     // of the last execution
  void* workspace = nullptr;  // of the last execution
  int engine = -1;            // of the last execution; those of the fallback come after the others
  std::string misuse;         // the first
};

// The only fake of the process, reset.
FakeDnn& new_fake_dnn();
kernels::cuda::DnnApi fake_dnn_table();

}  // namespace tapedeck::testing
