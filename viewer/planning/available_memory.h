// How much memory a replay may take here.
#pragma once

#include <cstdint>
#include <string>

namespace tapedeck::viewer {

// The bytes that this process can still take without pushing others out of memory: what the system has available, and what the
// limits of its control groups leave. -1 if the system does not tell (it is Linux that does). Thread safe.
std::int64_t available_memory_bytes();

// Throws ExecutionError with both numbers if `needed` is more than `available`; -1: not known, so nothing is refused. `what`
// begins the sentence: "a replay of this plan".
void require_memory(const std::string& what, std::int64_t needed, std::int64_t available);

}  // namespace tapedeck::viewer
