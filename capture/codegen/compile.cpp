// The key of the cache covers all that the machine code depends on: the options, with the architecture, the version of NVRTC,
// and the source.
#include <tapedeck/capture/codegen/compile.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/cuda/rtc_api.h>

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace tapedeck::codegen {

namespace {

using kernels::cuda::RtcApi;
using kernels::cuda::RtcProgram;
using kernels::cuda::RtcStatus;

// nvrtcResult NVRTC_ERROR_INVALID_OPTION: among others, an architecture that this NVRTC does not know.
constexpr RtcStatus kInvalidOption = 5;
constexpr int kNewestPtx = 90;  // the PTX that a newer device gets

[[noreturn]] void fail(const std::string& what) { throw DeviceError(error_text("fused", what, {})); }

class SourceProgram {
 public:
  SourceProgram(const RtcApi& api, const std::string& source) : api_(api) {
    check(api.nvrtcCreateProgram(&program_, source.c_str(), "fused.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
  }
  ~SourceProgram() { api_.nvrtcDestroyProgram(&program_); }
  SourceProgram(const SourceProgram&) = delete;
  SourceProgram& operator=(const SourceProgram&) = delete;

  RtcStatus compile(const std::vector<std::string>& options) {
    std::vector<const char*> texts;
    for (const std::string& option : options) texts.push_back(option.c_str());
    return api_.nvrtcCompileProgram(program_, static_cast<int>(texts.size()), texts.data());
  }
  std::string log() const { return read(api_.nvrtcGetProgramLogSize, api_.nvrtcGetProgramLog); }
  std::string cubin() const { return read(api_.nvrtcGetCUBINSize, api_.nvrtcGetCUBIN); }
  std::string ptx() const { return read(api_.nvrtcGetPTXSize, api_.nvrtcGetPTX); }

 private:
  void check(RtcStatus status, const char* call) const {
    if (status != 0) fail(fmt::format("{}: {}", call, api_.nvrtcGetErrorString(status)));
  }
  std::string read(RtcStatus (*size_of)(RtcProgram, std::size_t*), RtcStatus (*read_into)(RtcProgram, char*)) const {
    std::size_t size = 0;
    check(size_of(program_, &size), "NVRTC");
    std::string bytes(size, '\0');
    check(read_into(program_, bytes.data()), "NVRTC");
    return bytes;
  }

  const RtcApi& api_;
  RtcProgram program_ = nullptr;
};

[[noreturn]] void fail(const RtcApi& api, RtcStatus status, const SourceProgram& program) {
  fail(fmt::format("NVRTC does not compile the kernel ({}):\n{}", api.nvrtcGetErrorString(status), program.log()));
}

std::string compile_with(const RtcApi& api, const std::string& source, std::vector<std::string> options) {
  SourceProgram program(api, source);
  const RtcStatus status = program.compile(options);
  if (status == 0) return program.cubin();
  if (status != kInvalidOption) fail(api, status, program);
  options[0] = fmt::format("--gpu-architecture=compute_{}", kNewestPtx);
  SourceProgram again(api, source);
  const RtcStatus second = again.compile(options);
  if (second != 0) fail(api, second, again);
  return again.ptx();
}

}  // namespace

std::vector<std::string> compile_options(int sm) {
  const char* const contract = std::getenv("TAPEDECK_FMAD");
  const bool contracts = contract && std::string_view(contract) == "1";
  return {fmt::format("--gpu-architecture=sm_{}", sm), contracts ? "--fmad=true" : "--fmad=false", "--std=c++20",
          "--device-as-default-execution-space"};
}

CompiledSource compile_source(const std::string& source, int sm, const KernelCache& cache) {
  std::string why;
  const RtcApi* const api = kernels::cuda::rtc_api(&why);
  if (!api) fail(why);
  int major = 0, minor = 0;
  api->nvrtcVersion(&major, &minor);
  const std::vector<std::string> options = compile_options(sm);
  const std::string key = kernel_key(fmt::format("{}\nNVRTC {}.{}\n{}", fmt::join(options, " "), major, minor, source));
  if (std::optional<std::string> kept = cache.find(key)) return {std::move(*kept), true};
  CompiledSource compiled{compile_with(*api, source, options), false};
  cache.keep(key, compiled.image);
  return compiled;
}

}  // namespace tapedeck::codegen
