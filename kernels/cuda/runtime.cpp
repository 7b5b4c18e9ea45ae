// Calls the CUDA runtime for runtime.h. The file has two halves: with CUDA every function calls cuda*() and returns NVIDIA's
// text for an error; without CUDA every function returns one fixed reason.
#include <tapedeck/kernels/cuda/runtime.h>

#if TAPEDECK_HAS_CUDA

#include <tapedeck/kernels/cuda/current_device.h>

namespace tapedeck::kernels::cuda {
namespace {

// Three errors mean that this machine has no usable CUDA device. Any other error gets NVIDIA's own text.
std::string why_unavailable(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver: {  // the runtime returns this error also on a machine without any driver
      int driver = 0;
      if (cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0)
        return "no CUDA device: the NVIDIA driver is too old (it knows CUDA " + std::to_string(driver / 1000) + "." +
               std::to_string(driver % 1000 / 10) + ", this program needs " + std::to_string(CUDART_VERSION / 1000) + ".0)";
      return "no CUDA device: the NVIDIA driver is not installed";
    }
    case cudaErrorNoDevice:
      return "no CUDA device: the NVIDIA driver finds no GPU";
    case cudaErrorStubLibrary:
      return "no CUDA device: libcuda.so.1 is the toolkit's link stub, not the NVIDIA driver";
    default:
      return std::string("no CUDA device: ") + cudaGetErrorString(error) + " (error " + std::to_string(error) + ")";
  }
}

CudaStatus probe() {
  CudaStatus status;
  status.built = true;
  const cudaError_t error = cudaGetDeviceCount(&status.device_count);
  if (error != cudaSuccess) {
    status.device_count = 0;
    status.reason = why_unavailable(error);
    cudaGetLastError();
    return status;
  }
  status.available = status.device_count > 0;
  if (!status.available) status.reason = why_unavailable(cudaErrorNoDevice);
  return status;
}

}  // namespace

const char* device_properties(int device, DeviceProperties* properties) {
  cudaDeviceProp found;
  if (const char* error = text_of(cudaGetDeviceProperties(&found, device))) return error;
  properties->name = found.name;
  properties->memory_bytes = found.totalGlobalMem;
  properties->sm = found.major * 10 + found.minor;
  properties->multiprocessors = found.multiProcessorCount;
  if (const char* error = text_of(cudaDriverGetVersion(&properties->driver_version))) return error;
  return text_of(cudaRuntimeGetVersion(&properties->runtime_version));
}

const char* stream_create(int device, Stream* stream) {
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return text_of(current.error());
  return text_of(cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(stream), cudaStreamNonBlocking));
}

const char* stream_destroy(Stream stream) { return text_of(cudaStreamDestroy(static_cast<cudaStream_t>(stream))); }

const char* synchronize(Stream stream) { return text_of(cudaStreamSynchronize(static_cast<cudaStream_t>(stream))); }

const char* device_allocate(int device, std::size_t bytes, void** memory) {
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return text_of(current.error());
  return text_of(cudaMalloc(memory, bytes));
}

const char* device_free(void* memory) { return text_of(cudaFree(memory)); }

const char* copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  return text_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, static_cast<cudaStream_t>(stream)));
}

const char* copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream) {
  return text_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)));
}

}  // namespace tapedeck::kernels::cuda

#else

namespace tapedeck::kernels::cuda {
namespace {

constexpr const char* kNotBuilt = "built without CUDA";

CudaStatus probe() { return {false, false, 0, kNotBuilt}; }

}  // namespace

const char* device_properties(int, DeviceProperties*) { return kNotBuilt; }
const char* stream_create(int, Stream*) { return kNotBuilt; }
const char* stream_destroy(Stream) { return kNotBuilt; }
const char* synchronize(Stream) { return kNotBuilt; }
const char* device_allocate(int, std::size_t, void**) { return kNotBuilt; }
const char* device_free(void*) { return kNotBuilt; }
const char* copy_to_device(void*, const void*, std::size_t, Stream) { return kNotBuilt; }
const char* copy_to_host(void*, const void*, std::size_t, Stream) { return kNotBuilt; }

}  // namespace tapedeck::kernels::cuda

#endif

namespace tapedeck::kernels::cuda {

const CudaStatus& cuda_status() {
  static const CudaStatus status = probe();
  return status;
}

}  // namespace tapedeck::kernels::cuda
