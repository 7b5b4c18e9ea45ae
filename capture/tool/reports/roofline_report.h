// The answer of `bench --roofline`: the table for people. Its JSON is in the row of the bench (bench_report.cpp).
#pragma once

#include <tapedeck/capture/measure/roofline.h>

#include <cstdint>
#include <string>

namespace tapedeck::tool {

// The part of a row that `bench --roofline` adds.
struct RooflineAnswer {
  Roofline roofline;
  std::string peaks_source;  // calibration, measured
};

// The name of the peak that binds: flops, L1, L2, ..., memory, inside (of a loop or a branch), no bound, and - for a bound of
// zero.
std::string binding_peak(const NodeBound& bound, const ThreadPeaks& peaks);

// The worst `top` nodes and ops, a line for the rest of them, and the lines for the step. 0: all.
std::string roofline_text(const RooflineAnswer& answer, std::int64_t top);

}  // namespace tapedeck::tool
