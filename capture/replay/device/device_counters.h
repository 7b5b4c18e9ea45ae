// The options of a replay on a device, and the counters of its work.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>

namespace tapedeck TAPEDECK_API {

// Whether the steps of an executor on a device are CUDA graphs.
enum class CudaGraphs : std::uint8_t {
  automatic,  // yes; an executor whose capture fails says so once and goes on without
  off,        // no: kernel after kernel, waiting after each, so that an error names its node
  required,   // yes, and each step is one graph; else it is an error
};

struct DeviceCounters {
  std::int64_t steps = 0;             // that came to their end
  std::int64_t graph_launches = 0;    // of captured graphs
  std::int64_t kernel_calls = 0;      // outside of graphs: the first step, and steps without graphs
  std::int64_t host_nodes = 0;        // nodes that ran on the host
  std::int64_t captures = 0;          // of a part of a step; 0 in steady state
  std::int64_t failed_captures = 0;   // then the executor goes on without graphs
  std::int64_t instantiations = 0;    // of graphs; 0 in steady state
  std::int64_t graph_nodes = 0;       // of all graphs of one step
  std::int64_t steps_ahead = 0;       // launches that returned before their step had run
  std::int64_t synchronizations = 0;  // waits for all work: of run(), host nodes, and calls that read or write results
  std::int64_t input_waits = 0;       // launches that waited until the inputs of an earlier step had been copied
  std::int64_t bytes_to_device = 0, bytes_to_host = 0;
  std::int64_t bytes_on_device = 0;  // inputs and results that are tensors of the device
  std::int64_t allocated_bytes = 0;  // on the device
  std::string without_graphs;        // why steps run without graphs; empty: they have graphs
};

}  // namespace TAPEDECK_API
