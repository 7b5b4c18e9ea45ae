// Times every way to compute a convolution: the configurations that cuDNN proposes, our own kernels, and matrix products.
#pragma once

#include <tapedeck/tests/gpu/bench/measure.h>

#include <string>

namespace tapedeck::gpu {

// Measures the convolutions whose name holds `only`, until the time is over, and prints the ways of each by their times.
void bench_engines(const std::string& only, double seconds, Rows* rows);

}  // namespace tapedeck::gpu
