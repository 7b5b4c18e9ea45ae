// Tests the compilation of generated kernels and their cache: with the real NVRTC where it is installed, and with a fake that
// counts its calls.
#include <tapedeck/capture/codegen/compile.h>
#include <tapedeck/capture/codegen/fused_source.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/cuda/rtc_api.h>
#include <tapedeck/tests/capture/codegen/environment.h>
#include <tapedeck/tests/capture/codegen/fake_rtc.h>
#include <tapedeck/tests/capture/codegen/regions.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace tapedeck {
namespace {

using codegen::compile_source;
using codegen::KernelCache;
using kernels::cuda::RtcApi;

// ---- the real compiler ----

class RealCompiler : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    api_ = kernels::cuda::rtc_api(&why);
    if (!api_) GTEST_SKIP() << why;
  }

  // PTX for an architecture ("90"), without the NUL at its end.
  std::string ptx_of(const std::string& source, const std::string& architecture) {
    kernels::cuda::RtcProgram program = nullptr;
    api_->nvrtcCreateProgram(&program, source.c_str(), "fused.cu", 0, nullptr, nullptr);
    std::vector<std::string> options = codegen::compile_options(std::atoi(architecture.c_str()));
    options[0] = "--gpu-architecture=compute_" + architecture;
    std::vector<const char*> texts;
    for (const std::string& option : options) texts.push_back(option.c_str());
    EXPECT_EQ(api_->nvrtcCompileProgram(program, static_cast<int>(texts.size()), texts.data()), 0);
    std::size_t size = 0;
    api_->nvrtcGetPTXSize(program, &size);
    std::string ptx(size, '\0');
    api_->nvrtcGetPTX(program, ptx.data());
    api_->nvrtcDestroyProgram(&program);
    while (!ptx.empty() && ptx.back() == '\0') ptx.pop_back();
    return ptx;
  }

  const RtcApi* api_ = nullptr;
};

std::string text_of(const char* graph) {
  const test::ParsedRegion parsed(graph);
  const codegen::FusedSource source = codegen::fused_source(parsed.region(), parsed.layout());
  return codegen::complete_text({&source, 1});
}

TEST_F(RealCompiler, MakesMachineCodeForBothArchitectures) {
  const KernelCache none("");
  for (const auto& region : test::kRegions)
    for (const int sm : {80, 90}) {
      const std::string image = compile_source(text_of(region.graph), sm, none).image;
      EXPECT_EQ(image.substr(1, 3), "ELF") << region.name;
    }
}

TEST_F(RealCompiler, MakesPtxForADeviceThatItDoesNotKnow) {
  const std::string image = compile_source(text_of(test::kRegions[0].graph), 999, KernelCache("")).image;
  EXPECT_NE(image.find(".target sm_90"), std::string::npos);
  EXPECT_EQ(image.back(), '\0');
}

TEST_F(RealCompiler, Reads16BytesAtATime) {
  for (const std::string architecture : {"80", "90"}) {
    const std::string dense = ptx_of(text_of(test::kRegions[0].graph), architecture);
    EXPECT_NE(dense.find("ld.global.v4.u32"), std::string::npos) << dense;
    EXPECT_NE(dense.find("st.global.v4.u32"), std::string::npos) << dense;
    EXPECT_EQ(dense.find("fma.rn.ftz"), std::string::npos);
    const std::string odd = ptx_of(text_of(test::kRegions[2].graph), architecture);
    EXPECT_EQ(odd.find("fused_wide"), std::string::npos) << "rows of 7 have no aligned groups";
  }
}

// Products and sums stay apart, but for the fma that the functors call.
TEST_F(RealCompiler, DoesNotContract) {
  const char* const graph = R"(graph g(%x: f32[8], %y: f32[8], %z: f32[8]) {
  %r: f32[8] = fused(%x, %y, %z) (%a: f32[8], %b: f32[8], %c: f32[8]) {
    %t: f32[8] = mul(%a, %b)
    %u: f32[8] = add(%t, %c)
    return %u
  }
  return %r
})";
  EXPECT_EQ(ptx_of(text_of(graph), "90").find("fma"), std::string::npos);
  const test::Environment fmad("TAPEDECK_FMAD", "1");
  EXPECT_NE(ptx_of(text_of(graph), "90").find("fma"), std::string::npos);
}

TEST_F(RealCompiler, NeedsNoMemoryForRegisters) {
  const std::string assembler = TAPEDECK_PTXAS;
  if (::access(assembler.c_str(), X_OK) != 0) GTEST_SKIP() << "ptxas is not installed";
  TemporaryFolder folder;
  for (const auto& region : test::kRegions)
    for (const std::string architecture : {"80", "90"}) {
      write_all(folder.file("k.ptx"), ptx_of(text_of(region.graph), architecture));
      const std::string command = assembler + " -v --gpu-name sm_" + architecture + " " + folder.file("k.ptx") + " -o " +
                                  folder.file("k.cubin") + " 2>" + folder.file("log");
      ASSERT_EQ(std::system(command.c_str()), 0) << read_all(folder.file("log"));
      const std::string log = read_all(folder.file("log"));
      EXPECT_NE(log.find("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"), std::string::npos) << log;
      EXPECT_EQ(log.find(" 0 bytes stack frame"), log.find(" bytes stack frame") - 2) << log;
    }
}

TEST_F(RealCompiler, SaysWhatDoesNotCompile) {
  const std::string why = message_of<DeviceError>(
      [] { compile_source("extern \"C\" __global__ void f() { undeclared = 1; }", 90, KernelCache("")); });
  EXPECT_NE(why.find("undeclared"), std::string::npos) << why;
}

// ---- the cache, with a compiler that counts ----

class Cache : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::string place_ = folder_.file("kernels");
  test::FakeRtc rtc_;
  kernels::cuda::ScopedFake<RtcApi> fake_{rtc_.api};

  std::string only_file() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(place_)) found = entry.path().string();
    return found;
  }
};

TEST_F(Cache, CompilesASourceOnce) {
  const KernelCache cache(place_);
  const auto first = compile_source("source", 90, cache), second = compile_source("source", 90, cache);
  EXPECT_FALSE(first.from_cache);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(first.image, "source");
  EXPECT_EQ(second.image, "source");
  EXPECT_EQ(test::FakeRtc::compilations, 1);
}

TEST_F(Cache, ShowsTheLogOfTheLastAttempt) {
  rtc_.api.nvrtcCompileProgram = [](kernels::cuda::RtcProgram program, int, const char* const* options) {
    const bool is_ptx = std::string(options[0]).find("compute_") != std::string::npos;
    *reinterpret_cast<std::string*>(program) = is_ptx ? "the log of the PTX" : "the log of the machine code";
    return is_ptx ? 6 : 5;  // 5: NVRTC does not know the architecture
  };
  const std::string why = message_of<DeviceError>([] { compile_source("source", 999, KernelCache("")); });
  EXPECT_NE(why.find("the log of the PTX"), std::string::npos) << why;
}

TEST_F(Cache, TellsSourcesOptionsDevicesAndVersionsApart) {
  const KernelCache cache(place_);
  compile_source("source", 90, cache);
  EXPECT_FALSE(compile_source("other", 90, cache).from_cache);
  EXPECT_FALSE(compile_source("source", 80, cache).from_cache);
  {
    const test::Environment fmad("TAPEDECK_FMAD", "1");
    EXPECT_FALSE(compile_source("source", 90, cache).from_cache);
  }
  test::FakeRtc::minor_version = 1;
  EXPECT_FALSE(compile_source("source", 90, cache).from_cache);
  test::FakeRtc::minor_version = 0;
  EXPECT_TRUE(compile_source("source", 90, cache).from_cache);
}

TEST_F(Cache, CompilesAgainWhatIsDamaged) {
  const KernelCache cache(place_);
  compile_source("source", 90, cache);
  const std::string path = only_file(), whole = read_all(path);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_all(path, damaged);
    EXPECT_FALSE(cache.find(std::filesystem::path(path).stem().string()).has_value()) << "byte " << at;
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_all(path, whole.substr(0, length));
    EXPECT_FALSE(cache.find(std::filesystem::path(path).stem().string()).has_value()) << length << " bytes";
  }
  EXPECT_FALSE(compile_source("source", 90, cache).from_cache);
  EXPECT_EQ(read_all(path), whole);
}

TEST_F(Cache, DoesNotReadWhatOthersCouldHaveWritten) {
  const KernelCache cache(place_);
  compile_source("source", 90, cache);
  std::filesystem::permissions(place_, std::filesystem::perms::others_write, std::filesystem::perm_options::add);
  EXPECT_FALSE(compile_source("source", 90, cache).from_cache);
}

TEST_F(Cache, StaysBelowItsBound) {
  const KernelCache cache(place_, 4000);
  const std::string source(1000, 'x');
  for (char c = 'a'; c < 'z'; ++c) compile_source(source + c, 90, cache);
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(place_)) bytes += entry.file_size();
  EXPECT_LE(bytes, 4000u);
  EXPECT_GT(bytes, 2000u);
  EXPECT_TRUE(compile_source(source + 'y', 90, cache).from_cache) << "the last used one stays";
  compile_source(std::string(3000, 'x'), 90, cache);
  EXPECT_FALSE(compile_source(std::string(3000, 'x'), 90, cache).from_cache) << "too large for the cache";
}

TEST_F(Cache, CompilesWhereNoFolderCanBeMade) {
  write_all(folder_.file("file"), "");
  EXPECT_EQ(compile_source("source", 90, KernelCache(folder_.file("file") + "/kernels")).image, "source");
  EXPECT_EQ(compile_source("source", 90, KernelCache("")).image, "source");
}

TEST(CacheFolder, FollowsTheEnvironment) {
  const test::Environment home("HOME", "/home/me"), cache("XDG_CACHE_HOME", "/cache");
  const test::Environment none("TAPEDECK_KERNEL_CACHE", nullptr);
  EXPECT_EQ(codegen::kernel_cache_folder(), "/cache/tapedeck/kernels");
  {
    const test::Environment chosen("TAPEDECK_KERNEL_CACHE", "/elsewhere");
    EXPECT_EQ(codegen::kernel_cache_folder(), "/elsewhere");
  }
  {
    const test::Environment off("TAPEDECK_KERNEL_CACHE", "off");
    EXPECT_EQ(codegen::kernel_cache_folder(), "");
  }
  const test::Environment unset("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(codegen::kernel_cache_folder(), "/home/me/.cache/tapedeck/kernels");
}

}  // namespace
}  // namespace tapedeck
