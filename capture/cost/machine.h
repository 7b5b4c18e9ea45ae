// Which machine this is, so that what was measured on one is not believed on another.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>

namespace tapedeck TAPEDECK_API {

// "AMD EPYC 9B45 x 2": the processor as the system names it, and how many of them this process sees. Never empty, one line.
// Thread safe.
std::string machine_name();

// What one reading of the clock costs here, in nanoseconds. Measures for about a millisecond.
double measure_clock_read_ns();

// The same in whole nanoseconds, measured once: every slice of a Timeline holds the cost of one reading. Thread safe.
std::int64_t clock_read_ns();

}  // namespace TAPEDECK_API
