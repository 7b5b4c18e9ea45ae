// The kernels of the device as a table, by op. A room of kernels lists its ops in its list.h, and kernel_table.cpp makes the
// table from all lists. The functions are weak: a build without CUDA has the rows, and null in place of the kernels.
//
// Thread safety: any thread may call every function of this file.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

// The bytes of workspace that the kernel wants for a call. The rule reads sizes, strides, dtypes and attributes, never data.
using WorkspaceRule = std::int64_t (*)(const KernelCall& call);

struct KernelEntry {
  const char* op = "";
  Kernel kernel = nullptr;            // null: this build has no CUDA
  WorkspaceRule workspace = nullptr;  // null: none
  bool native_half = false;           // takes f16 and bf16 itself; other kernels get converted operands, as on the CPU
  bool has_group = false;             // one launch may run several calls, by this kernel:
  Kernel group = nullptr;             // takes the inputs of all calls, one call after the other, and their outputs likewise
};

std::span<const KernelEntry> kernel_table();          // sorted by op
const KernelEntry* find_kernel(std::string_view op);  // null: the op has no kernel for the device

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
