// The part of the CUDA runtime that code outside the .cu files needs: whether a device exists, its properties, its memory and
// its streams. The file also compiles without CUDA: then no device is available, and CudaStatus::reason says so.
//
// Functions that can fail return null on success, otherwise NVIDIA's text for the error (a string that lives for ever).
// Thread safety: any thread may call every function of this file.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstddef>
#include <string>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

// Whether this process can use CUDA.
struct CudaStatus {
  bool built = false;      // the build has CUDA
  bool available = false;  // the build has CUDA, and the machine has at least one usable device
  int device_count = 0;
  std::string reason;  // empty if available, otherwise one line
};

// Asks the driver at the first call (0.1 ms without a driver). The answer holds until the process ends.
const CudaStatus& cuda_status();

// The properties of one device.
struct DeviceProperties {
  std::string name;
  std::size_t memory_bytes = 0;
  int sm = 0;  // the compute capability: 80 for 8.0, 90 for 9.0
  int multiprocessors = 0;
  int driver_version = 0;   // the newest CUDA version that the driver supports: 13000 is 13.0
  int runtime_version = 0;  // the version of the CUDA runtime linked in
};

const char* device_properties(int device, DeviceProperties* properties);

using Stream = void*;  // cudaStream_t; null is the default stream

const char* stream_create(int device, Stream* stream);  // the stream never waits for the default stream
const char* stream_destroy(Stream stream);
const char* synchronize(Stream stream);  // waits for the stream; also reports errors of earlier work on the device

// Device memory, in bytes. Copies run on `stream`; the host memory must stay valid until the stream has finished.
const char* device_allocate(int device, std::size_t bytes, void** memory);
const char* device_free(void* memory);
const char* copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream);
const char* copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream);

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
