// Times one kernel of the device, called as an op of an example says.
#pragma once

#include <tapedeck/kernels/dtype.h>
#include <tapedeck/tests/gpu/bench/measure.h>

#include <string>
#include <vector>

namespace tapedeck::gpu {

enum class Unit { gigabytes, teraflops };

struct KernelCase {
  std::string example;  // as in op blocks: "add(f32[1000], f32[1000])"
  Unit unit = Unit::gigabytes;
  std::vector<DType> reals = {DType::f32, DType::bf16};
};

std::vector<KernelCase> kernel_cases();
// Adds a row for each type.
void bench_kernel(const KernelCase& c, double seconds, Rows* rows);

}  // namespace tapedeck::gpu
