// The schedule of a plan on a device: the parts of a step, the nodes that run on the host and why, and the memory.
//
//     program          part 0          part 1        part 2
//     a b c (d) e f    a b c: graph    d: on the host    e f: graph
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/program/program.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct HostNode {
  NodeId node = kNone;
  std::string why;
};

struct DeviceSchedule {
  std::vector<HostNode> host_nodes;  // in the order in which they run
  std::int32_t graphs = 0;           // CUDA graphs of a step
  std::int32_t calls = 0;            // of kernels on the device
  std::int32_t joined_updates = 0;   // updates of optimizers that share a call with others
  std::int32_t update_groups = 0;    // the calls that they share
  std::int64_t scratch_bytes = 0;    // the workspace that all kernels share
  std::int64_t device_bytes = 0;     // of all memory that an executor takes on the device
};

// REQUIRES: check_plan(plan) found nothing. Throws as the Executor does for a plan that it cannot run.
DeviceSchedule device_schedule(const Plan& plan, const std::string& device = "cuda");

// The bytes that an executor of the plan takes on the device: arena, inputs, state, constants, outputs and scratch, each
// aligned.
std::int64_t planned_device_bytes(const Plan& plan, const std::string& device = "cuda");

namespace replay {

// Instructions one after the other that the device runs, or one instruction that the host runs.
struct DevicePart {
  IndexRange instructions;
  bool on_host = false;
};

std::vector<DevicePart> device_parts(const Program& program);

}  // namespace replay
}  // namespace TAPEDECK_API
