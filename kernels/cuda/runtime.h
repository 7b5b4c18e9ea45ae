// The CUDA runtime, as far as anything outside the .cu files sees it: is there a device, what is it, and its memory and
// streams. Compiles and answers without CUDA too; then nothing is available, and the status says why.
//
// Functions that can fail return null for success, else NVIDIA's text for the error (a string that lives for ever).
// Thread safety: everything here may be called from any thread.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstddef>
#include <string>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

struct CudaStatus {
  bool built = false;      // compiled with CUDA
  bool available = false;  // and there is at least one device that can be used
  int device_count = 0;
  std::string reason;  // empty if available, else one line
};

// Asked of the driver once, at the first call (0.1 ms without a driver); the answer holds for the process.
const CudaStatus& cuda_status();

struct DeviceProperties {
  std::string name;
  std::size_t memory_bytes = 0;
  int sm = 0;  // 80 for compute capability 8.0, 90 for 9.0
  int multiprocessors = 0;
  int driver_version = 0;   // 13000 = the newest CUDA the driver knows is 13.0
  int runtime_version = 0;  // the runtime linked in
};

const char* device_properties(int device, DeviceProperties* properties);

using Stream = void*;  // cudaStream_t; null is the default stream

const char* stream_create(int device, Stream* stream);  // never synchronises with the default stream
const char* stream_destroy(Stream stream);
const char* synchronize(Stream stream);  // also reports what failed on the device since the last time

const char* device_allocate(int device, std::size_t bytes, void** memory);
const char* device_free(void* memory);
const char* copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream);
const char* copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream);

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
