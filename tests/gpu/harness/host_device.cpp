// The stand-in for a GPU: kernels of the CPU.
#include <tapedeck/tests/gpu/harness/host_memory.h>

#include <tapedeck/engine/ir/half_calls.h>

#include <vector>

namespace tapedeck::gpu {
namespace {

std::vector<Type> types_of(const View* views, int n) {
  std::vector<Type> types;
  for (int i = 0; i < n; ++i) {
    Type type{views[i].dtype, {}};
    type.shape.rank = views[i].rank;
    for (int d = 0; d < views[i].rank; ++d) type.shape.sizes[d] = views[i].sizes[d];
    types.push_back(type);
  }
  return types;
}

class HostDevice : public HostMemory {
 public:
  std::string name() const override { return "host"; }
  bool has(const Op& op) const override { return op.kernels[0] != nullptr; }
  bool takes_halves(const Op&) const override { return true; }
  std::int64_t workspace(const Op& op, const KernelCall& call) const override {
    return workspace_bytes(op, types_of(call.inputs, call.n_inputs), types_of(call.outputs, call.n_outputs), call.attrs);
  }
  void run(const Op& op, KernelCall call) override {
    Kernel kernel = op.kernels[0];
    if (runs_in_f32(op, types_of(call.inputs, call.n_inputs), types_of(call.outputs, call.n_outputs))) {
      call.f32_kernel = kernel;
      kernel = f32_runner(op);
    }
    kernel(call);
  }
};

}  // namespace

std::unique_ptr<Device> host_device() { return std::make_unique<HostDevice>(); }

std::string fault_text(const KernelFault& fault) {
  const char* what = fault.what.load();
  if (!what) return {};
  const auto number = reinterpret_cast<std::uintptr_t>(what);  // a kernel on a device reports a number (device_fault.h)
  return (number < 4096 ? "fault " + std::to_string(number) : std::string(what)) + " (" + std::to_string(fault.value.load()) +
         ")";
}

}  // namespace tapedeck::gpu
