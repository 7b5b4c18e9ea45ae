// The CUDA kernels as the emulator runs them, by op: as kernels/cuda/kernel_table.h, for the namespace `emulated`.
#pragma once

#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <span>

namespace tapedeck::gpu {

struct EmulatedEntry {
  const char* op = "";
  Kernel kernel = nullptr;  // null: the op has a row, and its kernel is not in a room of kernels/cuda
  std::int64_t (*workspace)(const KernelCall& call) = nullptr;
  bool native_half = false;
};

std::span<const EmulatedEntry> emulated_table();

}  // namespace tapedeck::gpu
