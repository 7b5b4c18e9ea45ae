// A compiler in the place of NVRTC: the machine code of a source is its text. It counts the compilations.
#pragma once

#include <tapedeck/kernels/cuda/rtc_api.h>

#include <atomic>
#include <cstring>
#include <string>

namespace tapedeck::test {

class FakeRtc {
 public:
  FakeRtc() {
    compilations = 0;
    minor_version = 0;
    api.nvrtcVersion = [](int* major, int* minor) {
      *major = 13;
      *minor = minor_version;
      return 0;
    };
    api.nvrtcGetErrorString = [](kernels::cuda::RtcStatus) { return "an error of the fake"; };
    api.nvrtcCreateProgram = [](kernels::cuda::RtcProgram* program, const char* source, const char*, int, const char* const*,
                                const char* const*) {
      *program = reinterpret_cast<kernels::cuda::RtcProgram>(new std::string(source));
      return 0;
    };
    api.nvrtcDestroyProgram = [](kernels::cuda::RtcProgram* program) {
      delete &text(*program);
      return 0;
    };
    api.nvrtcCompileProgram = [](kernels::cuda::RtcProgram, int, const char* const*) {
      ++compilations;
      return 0;
    };
    api.nvrtcGetProgramLogSize = api.nvrtcGetPTXSize =
        api.nvrtcGetCUBINSize = [](kernels::cuda::RtcProgram program, std::size_t* size) {
          *size = text(program).size();
          return 0;
        };
    api.nvrtcGetProgramLog = api.nvrtcGetPTX = api.nvrtcGetCUBIN = [](kernels::cuda::RtcProgram program, char* to) {
      std::memcpy(to, text(program).data(), text(program).size());
      return 0;
    };
  }

  kernels::cuda::RtcApi api;
  static inline std::atomic<int> compilations{0};
  static inline int minor_version = 0;

 private:
  static std::string& text(kernels::cuda::RtcProgram program) { return *reinterpret_cast<std::string*>(program); }
};

}  // namespace tapedeck::test
