// Tests the real NVRTC, if it is installed: it compiles a kernel for GPUs that this machine does not have.
#include <tapedeck/kernels/cuda/rtc_api.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tapedeck::kernels::cuda {
namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
)";

struct Compiled {
  RtcStatus status = -1;
  std::string log;
  std::string ptx;
  std::string cubin;
};

std::string read(RtcProgram program, RtcStatus (*size_of)(RtcProgram, std::size_t*),
                 RtcStatus (*read_into)(RtcProgram, char*)) {
  std::size_t size = 0;
  EXPECT_EQ(size_of(program, &size), 0);
  std::string bytes(size, '\0');
  EXPECT_EQ(read_into(program, bytes.data()), 0);
  return bytes;
}

Compiled compile(const RtcApi& api, const char* source, const std::string& architecture) {
  Compiled result;
  RtcProgram program = nullptr;
  EXPECT_EQ(api.nvrtcCreateProgram(&program, source, "test.cu", 0, nullptr, nullptr), 0);
  const std::string option = "--gpu-architecture=" + architecture;
  const char* options[] = {option.c_str(), "--fmad=false"};
  result.status = api.nvrtcCompileProgram(program, 2, options);
  result.log = read(program, api.nvrtcGetProgramLogSize, api.nvrtcGetProgramLog);
  if (result.status == 0) {
    result.ptx = read(program, api.nvrtcGetPTXSize, api.nvrtcGetPTX);
    if (architecture.find("sm_") == 0) result.cubin = read(program, api.nvrtcGetCUBINSize, api.nvrtcGetCUBIN);
  }
  EXPECT_EQ(api.nvrtcDestroyProgram(&program), 0);
  return result;
}

class CudaRtc : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    api_ = rtc_api(&why);
    if (!api_) GTEST_SKIP() << why;
  }
  const RtcApi* api_ = nullptr;
};

TEST_F(CudaRtc, SaysItsVersion) {
  int major = 0, minor = 0;
  ASSERT_EQ(api_->nvrtcVersion(&major, &minor), 0);
  EXPECT_EQ(major, 13);
}

TEST_F(CudaRtc, CompilesToPtx) {
  for (const char* number : {"80", "90"}) {
    const Compiled compiled = compile(*api_, kSource, std::string("compute_") + number);
    ASSERT_EQ(compiled.status, 0) << compiled.log;
    EXPECT_NE(compiled.ptx.find(std::string(".target sm_") + number), std::string::npos) << compiled.ptx;
    EXPECT_NE(compiled.ptx.find(".entry saxpy("), std::string::npos) << compiled.ptx;
  }
}

TEST_F(CudaRtc, CompilesToMachineCode) {
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const Compiled compiled = compile(*api_, kSource, architecture);
    ASSERT_EQ(compiled.status, 0) << compiled.log;
    ASSERT_GT(compiled.cubin.size(), 64u);
    EXPECT_EQ(compiled.cubin.substr(0, 4),
              "\x7f"
              "ELF");
    EXPECT_EQ(compiled.cubin, compile(*api_, kSource, architecture).cubin) << "machine code must be deterministic";
  }
}

TEST_F(CudaRtc, SaysWhatIsWrong) {
  const Compiled compiled = compile(*api_, "extern \"C\" __global__ void f() { undeclared = 1; }", "compute_90");
  EXPECT_NE(compiled.status, 0);
  EXPECT_NE(compiled.log.find("undeclared"), std::string::npos) << compiled.log;
}

}  // namespace
}  // namespace tapedeck::kernels::cuda
