// The memory of this process as the system counts it, to be compared with what a plan promises.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>

namespace tapedeck TAPEDECK_API {

// The most bytes of this process that were in memory at once, from its start until now: code and libraries, all threads, the
// buffers of a file while it is read. -1 if the system does not tell (it is Linux that does).
std::int64_t resident_peak_bytes();

}  // namespace TAPEDECK_API
