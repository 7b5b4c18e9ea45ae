// A plan as a replay walks it: an array of kernel calls, cut into segments.
//
// The array is made once, when the executor is made. resolve() writes the addresses of the buffers into the calls. It is called
// again only if a buffer has moved, for example because a state value was bound to another tensor. So a run looks nothing up
// and allocates nothing.
//
// Views, constants and joins whose operands lie in place need no call. A view shows bytes that are there already, and a
// constant was copied when the executor was made. A view that has bytes of its own in the plan becomes a copy.
//
// A program for a device has the same instructions with the kernels of the device. A kernel that does not take f16 and bf16
// gets converted copies, made by instructions of their own. Their memory and the workspace of the kernels is one scratch block.
// A node that the device has no kernel for keeps its kernel of the CPU, and says why. Updates of an optimizer that may run
// together are one instruction (update_groups.h).
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/program/buffer_table.h>
#include <tapedeck/kernels/cuda/device_runtime.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tapedeck::codegen {
class FusedKernel;
}

namespace tapedeck::replay {

class ControlRunner;

// One kernel call of a replay.
struct Instruction {
  Kernel kernel = nullptr;
  NodeId node = kNone;
  bool intra_op = true;                               // may use idle threads
  const char* why_on_host = nullptr;                  // in a program for a device: the node runs on the host, and why
  const kernels::cuda::KernelEntry* entry = nullptr;  // in a program for a device: of the kernel
  std::int32_t joined = 1;                            // updates that the call makes, from that of `node` on
  KernelCall call;
};

struct IndexRange {
  std::int32_t first = 0, end = 0;
};

struct Program {
  // A program for the CPU, or for a device with these kernels. Throws InvalidGraphError that names the node if a kernel cannot
  // take the strides of the plan, and DeviceError for an op without a CPU kernel. REQUIRES: check_plan(plan) found nothing;
  // `plan` outlives the program (attributes are read in place).
  Program(const Plan& plan, const BufferTable& buffers, const kernels::cuda::DeviceKernels* device = nullptr);

  ~Program();

  void resolve(const std::vector<void*>& bases);  // by buffer; for a device also of the scratch block, behind the others

  std::vector<Instruction> instructions;                     // segment by segment, so not always in the order of nodes
  std::vector<IndexRange> segments;                          // by segment of the plan
  std::vector<std::int32_t> state_writers;                   // instructions that write the bytes of a state value, ascending
  std::vector<std::unique_ptr<ControlRunner>> control;       // of the nodes with regions
  std::vector<std::unique_ptr<codegen::FusedKernel>> fused;  // in a program for a device: the kernels of fused nodes
  std::int64_t scratch_bytes = 0;                            // of the scratch block of a device

 private:
  struct Pending {  // of an instruction, until the views stop moving
    std::int32_t first_view;
    Address workspace;
  };
  friend class Lowering;
  friend class UpdateGroups;

  std::vector<View> views_;
  std::vector<Address> addresses_;  // by view
  std::vector<Pending> pending_;    // by instruction
};

}  // namespace tapedeck::replay
