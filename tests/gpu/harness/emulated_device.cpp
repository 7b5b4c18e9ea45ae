// The second stand-in for a GPU: the CUDA kernels, compiled by g++ and run thread by thread in the emulator. CMakeLists.txt
// makes emulated_table() from the lists of the rooms of kernels/cuda.
#include <tapedeck/tests/gpu/harness/emulated_table.h>
#include <tapedeck/tests/gpu/harness/host_memory.h>

#include <algorithm>
#include <string_view>

namespace tapedeck::gpu {
namespace {

const EmulatedEntry* find_emulated(std::string_view op) {
  const std::span<const EmulatedEntry> table = emulated_table();
  const auto at = std::find_if(table.begin(), table.end(), [&](const EmulatedEntry& e) { return e.op == op; });
  return at != table.end() && at->kernel ? &*at : nullptr;
}

class EmulatedDevice : public HostMemory {
 public:
  std::string name() const override { return "emulated"; }
  bool has(const Op& op) const override { return find_emulated(op.name) != nullptr; }
  bool takes_halves(const Op& op) const override { return find_emulated(op.name)->native_half; }
  std::int64_t workspace(const Op& op, const KernelCall& call) const override {
    const EmulatedEntry* entry = find_emulated(op.name);
    return entry->workspace ? entry->workspace(call) : 0;
  }
  void run(const Op& op, KernelCall call) override { find_emulated(op.name)->kernel(call); }
};

}  // namespace

std::unique_ptr<Device> emulated_device() { return std::make_unique<EmulatedDevice>(); }

}  // namespace tapedeck::gpu
