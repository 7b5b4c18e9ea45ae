// The GPU. This file alone calls the CUDA runtime itself, for memory of the host that the device can write.
#include <tapedeck/tests/gpu/harness/device.h>

#include <tapedeck/kernels/cuda/kernel_table.h>
#include <tapedeck/kernels/cuda/runtime.h>

#include <new>

#if TAPEDECK_HAS_CUDA
#include <cuda_runtime_api.h>
#endif

namespace tapedeck::gpu {
namespace {

namespace cuda = kernels::cuda;

KernelFault* pinned_fault() {
#if TAPEDECK_HAS_CUDA
  void* memory = nullptr;
  const cudaError_t error = cudaHostAlloc(&memory, sizeof(KernelFault), cudaHostAllocPortable | cudaHostAllocMapped);
  if (error != cudaSuccess) throw DeviceLost(std::string("cudaHostAlloc: ") + cudaGetErrorString(error));
  return new (memory) KernelFault;
#else
  throw DeviceLost("this build has no CUDA");
#endif
}

class CudaDevice : public Device {
 public:
  CudaDevice() {
    must("stream_create", cuda::stream_create(0, &stream_));
    must("device_properties", cuda::device_properties(0, &properties_));
    fault_ = pinned_fault();
  }
  std::string name() const override { return properties_.name; }

  unsigned char* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    must("device_allocate", cuda::device_allocate(0, bytes, &memory));
    return static_cast<unsigned char*>(memory);
  }
  void release(unsigned char* memory) override { cuda::device_free(memory); }
  void write(void* to, const void* from, std::size_t bytes) override {
    must("copy_to_device", cuda::copy_to_device(to, from, bytes, stream_));
    wait();
  }
  void read(void* to, const void* from, std::size_t bytes) override {
    must("copy_to_host", cuda::copy_to_host(to, from, bytes, stream_));
    wait();
  }

  bool has(const Op& op) const override {
    const cuda::KernelEntry* entry = cuda::find_kernel(op.name);
    return entry && entry->kernel;
  }
  bool takes_halves(const Op& op) const override { return cuda::find_kernel(op.name)->native_half; }
  std::int64_t workspace(const Op& op, const KernelCall& call) const override {
    const cuda::WorkspaceRule rule = cuda::find_kernel(op.name)->workspace;
    return rule ? rule(call) : 0;
  }
  KernelFault* fault() override { return fault_; }
  void run(const Op& op, KernelCall call) override {
    call.stream = stream_;
    cuda::find_kernel(op.name)->kernel(call);
  }
  void wait() override { must("synchronize", cuda::synchronize(stream_)); }

 private:
  static void must(const char* what, const char* error) {
    if (error) throw DeviceLost(std::string(what) + ": " + error);
  }

  cuda::Stream stream_ = nullptr;
  cuda::DeviceProperties properties_;
  KernelFault* fault_ = nullptr;
};

}  // namespace

std::unique_ptr<Device> cuda_device() { return std::make_unique<CudaDevice>(); }

}  // namespace tapedeck::gpu
