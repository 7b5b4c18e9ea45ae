// Which machine this is, so that measurements of one machine are not used on another.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>

namespace tapedeck TAPEDECK_API {

// "AMD EPYC 9B45 x 2": the processor as the system names it, and the number of processors that this process sees. One line,
// never empty. Thread safe.
std::string machine_name();

// The nanoseconds that one reading of the clock takes. The measurement takes about a millisecond.
double measure_clock_read_ns();

// The same in whole nanoseconds, measured once: every slice of a Timeline holds the cost of one reading. Thread safe.
std::int64_t clock_read_ns();

}  // namespace TAPEDECK_API
