// Runs a chain of elementwise kernels tile by tile, so that only operands and results go through memory:
//
//     t = x * w        one tile of x and w          t stays in the first-level cache,
//     u = t + b        the next step, same tile     u too,
//     y = tanh(u)      the last step                y is written
//
// Each step runs the kernel of its op on views of one tile, so the bits are those of the kernels on whole tensors. A tile is a
// stretch of the results in row-major order. A value between steps lies in a slot of the running thread, or in a register where
// one kernel does two steps.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <vector>

namespace tapedeck::kernels::cpu {

// The chain. Values count from 0: the operands of the call, then the results of the steps in order.
struct TileProgram {
  struct Step {
    Kernel kernel = nullptr;      // takes views of one dimension, dense or of stride 0; null: the step that reads it does it
    Kernel f32_kernel = nullptr;  // as in KernelCall
    const void* attrs = nullptr;  // must outlive the program
    std::vector<std::int32_t> operands;
    DType dtype = DType::f32;  // of its one result
  };

  std::int32_t n_operands = 0;
  std::vector<Step> steps;
  std::vector<std::int32_t> results;  // values that steps make, one for each result of the call, all different
  double ns_per_element = 1;          // a rough cost of all steps; it sets how the work is cut

  // Filled in by prepare_tiles().
  std::vector<std::int32_t> slot_of;  // by value: its place in the memory of a thread; -1 for a value without readers
  std::int32_t n_slots = 0;
  std::int64_t tile = 0;  // elements
};

// The most steps of a program, and the most operands of the call.
inline constexpr std::int32_t kMostTileSteps = 128;
inline constexpr std::int32_t kMostTileOperands = 128;

// Joins pairs of steps that one kernel can do (pairs.h), gives each value a slot and chooses the size of a tile. REQUIRES: the
// limits above; steps read operands and earlier steps; every step has a kernel.
TAPEDECK_API void prepare_tiles(TileProgram* program);

// Runs the program on a call. All results have one shape; operands have it too, with strides of 0 where they are broadcast.
// A result may lie on exactly the bytes of an operand that it does not share with another operand. Thread safe. O(elements).
TAPEDECK_API void run_tiles(const TileProgram& program, const KernelCall& call);

}  // namespace tapedeck::kernels::cpu
