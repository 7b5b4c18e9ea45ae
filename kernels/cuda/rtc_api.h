// The functions of NVRTC, the run-time compiler, that we call, found at run time (library.h). NVRTC needs no GPU: it compiles
// for any architecture it knows, so generated kernels are tested on machines without one. Declared by hand; held against
// NVIDIA's headers by tests/kernels/cuda/api_test.cpp.
#pragma once

#include <tapedeck/kernels/cuda/library.h>

#include <cstddef>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

using RtcStatus = int;  // nvrtcResult: 0 is success
using RtcProgram = struct RtcProgramOpaque*;

#define TAPEDECK_RTC_FUNCTIONS(F)                                                                                             \
  F(nvrtcVersion, RtcStatus, (int* major, int* minor))                                                                        \
  F(nvrtcGetErrorString, const char*, (RtcStatus))                                                                            \
  F(nvrtcCreateProgram, RtcStatus,                                                                                            \
    (RtcProgram*, const char* source, const char* name, int n_headers, const char* const* headers, const char* const* names)) \
  F(nvrtcDestroyProgram, RtcStatus, (RtcProgram*))                                                                            \
  F(nvrtcCompileProgram, RtcStatus, (RtcProgram, int n_options, const char* const* options))                                  \
  F(nvrtcGetProgramLogSize, RtcStatus, (RtcProgram, std::size_t*))                                                            \
  F(nvrtcGetProgramLog, RtcStatus, (RtcProgram, char*))                                                                       \
  F(nvrtcGetPTXSize, RtcStatus, (RtcProgram, std::size_t*)) /* sizes of PTX and log count the trailing NUL */                 \
  F(nvrtcGetPTX, RtcStatus, (RtcProgram, char*))                                                                              \
  F(nvrtcGetCUBINSize, RtcStatus, (RtcProgram, std::size_t*)) /* 0 unless compiled for a real architecture (sm_90) */         \
  F(nvrtcGetCUBIN, RtcStatus, (RtcProgram, char*))

struct RtcApi {
  TAPEDECK_RTC_FUNCTIONS(TAPEDECK_TABLE_FIELD)
};

// Null if NVRTC cannot be had; then *why (if given) says why not, in one line.
const RtcApi* rtc_api(std::string* why = nullptr);
const RtcApi* set_fake(const RtcApi* fake);  // for tests: see ScopedFake

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
