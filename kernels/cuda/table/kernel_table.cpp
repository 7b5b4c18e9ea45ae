// The table, from the lists of the rooms. A list has X(op, halves) for an op that needs no workspace, and W(op, halves) for an
// op whose workspace the function <op>_workspace tells. The word halves is `native`, for a kernel that takes f16 and bf16
// itself, or `in_f32`.
#include <tapedeck/kernels/cuda/kernel_table.h>

#include <tapedeck/kernels/cuda/convolution/list.h>
#include <tapedeck/kernels/cuda/creation/list.h>
#include <tapedeck/kernels/cuda/elementwise/list.h>
#include <tapedeck/kernels/cuda/loss/list.h>
#include <tapedeck/kernels/cuda/movement/list.h>
#include <tapedeck/kernels/cuda/normalization/list.h>
#include <tapedeck/kernels/cuda/optimizer/list.h>
#include <tapedeck/kernels/cuda/pooling/list.h>
#include <tapedeck/kernels/cuda/products/list.h>
#include <tapedeck/kernels/cuda/reduction/list.h>

#include <algorithm>
#include <utility>
#include <vector>

#define TAPEDECK_CUDA_OPS(X, W)     \
  TAPEDECK_CUDA_CONVOLUTION(X, W)   \
  TAPEDECK_CUDA_CREATION(X, W)      \
  TAPEDECK_CUDA_ELEMENTWISE(X, W)   \
  TAPEDECK_CUDA_LOSS(X, W)          \
  TAPEDECK_CUDA_MOVEMENT(X, W)      \
  TAPEDECK_CUDA_NORMALIZATION(X, W) \
  TAPEDECK_CUDA_OPTIMIZER(X, W)     \
  TAPEDECK_CUDA_POOLING(X, W)       \
  TAPEDECK_CUDA_PRODUCTS(X, W)      \
  TAPEDECK_CUDA_REDUCTION(X, W)

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

#define TAPEDECK_DECLARE(op, halves) [[gnu::weak]] void op(const KernelCall& call);
#define TAPEDECK_DECLARE_BOTH(op, halves) \
  TAPEDECK_DECLARE(op, halves) [[gnu::weak]] std::int64_t op##_workspace(const KernelCall& call);
TAPEDECK_CUDA_OPS(TAPEDECK_DECLARE, TAPEDECK_DECLARE_BOTH)
#define TAPEDECK_DECLARE_GROUP(op) [[gnu::weak]] void op##_group(const KernelCall& call);
TAPEDECK_CUDA_GROUPS(TAPEDECK_DECLARE_GROUP)

}  // namespace TAPEDECK_API

namespace cuda {
namespace {

constexpr bool native = true, in_f32 = false;

#define TAPEDECK_ROW(op, halves) {#op, &cuda::op, nullptr, halves},
#define TAPEDECK_ROW_BOTH(op, halves) {#op, &cuda::op, &cuda::op##_workspace, halves},

#define TAPEDECK_GROUP(op) std::pair<std::string_view, Kernel>{#op, &cuda::op##_group},

bool by_op(const KernelEntry& a, const KernelEntry& b) { return std::string_view(a.op) < b.op; }

std::vector<KernelEntry> make_table() {
  std::vector<KernelEntry> table = {TAPEDECK_CUDA_OPS(TAPEDECK_ROW, TAPEDECK_ROW_BOTH)};
  std::sort(table.begin(), table.end(), by_op);
  for (const auto& [op, group] : {TAPEDECK_CUDA_GROUPS(TAPEDECK_GROUP)})
    for (KernelEntry& entry : table)
      if (entry.op == op) entry.has_group = group || !entry.kernel, entry.group = group;
  return table;
}

}  // namespace

std::span<const KernelEntry> kernel_table() {
  static const std::vector<KernelEntry> table = make_table();
  return table;
}

const KernelEntry* find_kernel(std::string_view op) {
  const std::span<const KernelEntry> table = kernel_table();
  const auto at =
      std::lower_bound(table.begin(), table.end(), op, [](const KernelEntry& e, std::string_view o) { return e.op < o; });
  return at != table.end() && at->op == op ? &*at : nullptr;
}

}  // namespace cuda
}  // namespace tapedeck::kernels
