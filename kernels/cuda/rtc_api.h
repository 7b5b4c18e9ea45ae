// The functions of NVRTC, NVIDIA's run-time compiler, that the code calls, loaded at run time (library.h). NVRTC needs no GPU:
// it compiles for any architecture that it knows, so machines without a GPU can test generated kernels. The functions are
// declared by hand; tests/kernels/cuda/api_test.cpp compares the declarations with NVIDIA's headers.
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

// Returns null if NVRTC cannot be loaded; *why (if given) then holds the reason, one line. Thread safe.
const RtcApi* rtc_api(std::string* why = nullptr);
const RtcApi* set_fake(const RtcApi* fake);  // for tests: see ScopedFake

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
