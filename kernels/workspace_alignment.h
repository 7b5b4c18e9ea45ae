// The alignment of the workspace that kernels are promised (KernelCall::workspace).
#pragma once

#include <cstdint>

namespace tapedeck {

inline constexpr std::int64_t kWorkspaceAlignment = 64;  // bytes

}  // namespace tapedeck
