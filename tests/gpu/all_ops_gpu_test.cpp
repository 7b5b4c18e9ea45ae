// Calls the kernel of every op on a GPU, with the examples of its block: all types that the op takes, strided operands and
// results, results in place, poisoned memory with guards, each call twice. The oracle is the CPU, in f64 where results are
// sums or products.
#include <tapedeck/kernels/cuda/kernel_table.h>
#include <tapedeck/tests/gpu/harness/check_op.h>
#include <tapedeck/tests/gpu/harness/gpu_test.h>

#include <cctype>
#include <iostream>

namespace tapedeck::gpu {
namespace {

std::vector<std::string> ops_with_a_row() {
  std::vector<std::string> names;
  for (const kernels::cuda::KernelEntry& entry : kernels::cuda::kernel_table()) names.push_back(entry.op);
  return names;
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

void report(const Findings& findings) {
  EXPECT_TRUE(findings.wrong.empty()) << findings.text();
  for (const std::string& note : findings.notes) std::cout << "note: " << note << "\n";
}

class AllOpsGpu : public GpuTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(AllOpsGpu, EqualsTheCpu) {
  guarded([&] {
    const bool emulated = device().name() == "emulated";  // a thread takes a thousand times as long there
    report(check_op(device(), *find_op(GetParam()), {.larger = !emulated, .twice = !emulated}));
  });
}

INSTANTIATE_TEST_SUITE_P(Op, AllOpsGpu, ::testing::ValuesIn(ops_with_a_row()), name_of);

// For compute-sanitizer, under which a kernel takes a hundred times as long.
class SanOps : public GpuTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(SanOps, FirstExample) {
  const Effort little = {.strides = false, .types = false, .larger = true, .examples = 1};
  guarded([&] { report(check_op(device(), *find_op(GetParam()), little)); });
}

INSTANTIATE_TEST_SUITE_P(Op, SanOps, ::testing::ValuesIn(ops_with_a_row()), name_of);

}  // namespace
}  // namespace tapedeck::gpu
