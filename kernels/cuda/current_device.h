// The files that call the CUDA runtime share this: the text of an error, and the scope of a current device. The file needs the
// headers of CUDA, so only sources that are compiled with TAPEDECK_HAS_CUDA include it.
#pragma once

#include <cuda_runtime_api.h>

namespace tapedeck::kernels::cuda {

// Null for success. Clears the error, which is reported here, so that a later launch does not report it again.
inline const char* text_of(cudaError_t error) {
  if (error == cudaSuccess) return nullptr;
  cudaGetLastError();
  return cudaGetErrorString(error);
}

// Makes `device` the calling thread's current device until the end of the scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    error_ = cudaGetDevice(&previous_);
    if (error_ != cudaSuccess || previous_ == device) return;
    error_ = cudaSetDevice(device);
    changed_ = error_ == cudaSuccess;
  }
  ~CurrentDevice() {
    if (changed_) cudaSetDevice(previous_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  cudaError_t error() const { return error_; }

 private:
  int previous_ = 0;
  bool changed_ = false;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace tapedeck::kernels::cuda
