// Tests the three tables of CUDA library functions: a fake table is called in place of the library, and our declarations
// match NVIDIA's headers.
#include <tapedeck/kernels/cuda/dnn_api.h>
#include <tapedeck/kernels/cuda/lt_api.h>
#include <tapedeck/kernels/cuda/rtc_api.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif
#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#endif
#if __has_include(<nvrtc.h>)
#include <nvrtc.h>
#endif

namespace tapedeck::kernels::cuda {
namespace {

// ---- fake tables ----

// The calls that a fake got, in order.
std::vector<std::string> calls;

LtApi recording_lt() {
  LtApi api;
  api.cublasLtGetVersion = []() -> std::size_t { return 130100; };
  api.cublasLtCreate = [](LtHandle* handle) -> LtStatus {
    calls.push_back("create");
    *handle = reinterpret_cast<LtHandle>(&calls);
    return 0;
  };
  api.cublasLtDestroy = [](LtHandle handle) -> LtStatus {
    calls.push_back("destroy");
    return handle == reinterpret_cast<LtHandle>(&calls) ? 0 : 1;
  };
  return api;
}

TEST(CudaApi, LtFakeIsCalled) {
  calls.clear();
  const LtApi fake = recording_lt();
  const ScopedFake scope(fake);
  const LtApi* api = lt_api();
  ASSERT_EQ(api, &fake);
  LtHandle handle = nullptr;
  EXPECT_EQ(api->cublasLtGetVersion(), 130100u);
  EXPECT_EQ(api->cublasLtCreate(&handle), 0);
  EXPECT_EQ(api->cublasLtDestroy(handle), 0);
  EXPECT_EQ(calls, (std::vector<std::string>{"create", "destroy"}));
}

TEST(CudaApi, DnnFakeIsCalled) {
  calls.clear();
  DnnApi fake;
  fake.cudnnBackendExecute = [](DnnHandle, DnnDescriptor plan, DnnDescriptor variant_pack) -> DnnStatus {
    calls.push_back(plan == &calls && variant_pack == nullptr ? "execute" : "wrong arguments");
    return 3000;
  };
  const ScopedFake scope(fake);
  EXPECT_EQ(dnn_api()->cudnnBackendExecute(nullptr, &calls, nullptr), 3000);
  EXPECT_EQ(calls, std::vector<std::string>{"execute"});
}

TEST(CudaApi, RtcFakeIsCalled) {
  RtcApi fake;
  fake.nvrtcVersion = [](int* major, int* minor) -> RtcStatus {
    *major = 99, *minor = 7;
    return 0;
  };
  const ScopedFake scope(fake);
  int major = 0, minor = 0;
  EXPECT_EQ(rtc_api()->nvrtcVersion(&major, &minor), 0);
  EXPECT_EQ(major * 10 + minor, 997);
}

TEST(CudaApi, FakesNest) {
  const LtApi outer, inner;
  const ScopedFake first(outer);
  {
    const ScopedFake second(inner);
    EXPECT_EQ(lt_api(), &inner);
  }
  EXPECT_EQ(lt_api(), &outer);
}

// ---- our declarations compared with NVIDIA's headers ----

template <class Ours, class Theirs>
constexpr bool same_value = (std::is_void_v<Ours> && std::is_void_v<Theirs>) ||
                            (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) ||
                            ((std::is_integral_v<Ours> || std::is_enum_v<Ours>)&&(std::is_integral_v<Theirs> ||
                                                                                  std::is_enum_v<Theirs>)&&[] {
                              if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>)
                                return false;
                              else
                                return sizeof(Ours) == sizeof(Theirs);
                            }());

// True if both functions have the same number of parameters, and each parameter is a pointer in both or an integer of equal
// size in both.
template <class Ours, class Theirs>
constexpr bool same_call = false;
template <class R, class... A, class S, class... B>
constexpr bool same_call<R (*)(A...), S (*)(B...)> = [] {
  if constexpr (sizeof...(A) != sizeof...(B))
    return false;
  else
    return same_value<R, S> && (same_value<A, B> && ...);
}();

static_assert(same_call<int (*)(void*, std::size_t), unsigned (*)(const char*, unsigned long)>);
static_assert(!same_call<int (*)(void*, int), int (*)(void*, long)>);
static_assert(!same_call<int (*)(void*, int), int (*)(void*)>);
static_assert(!same_call<int (*)(void*), int (*)(std::size_t)>);

#if __has_include(<cublasLt.h>)
#define TAPEDECK_CHECK(function, ...) static_assert(same_call<decltype(LtApi::function), decltype(&::function)>, #function);
TAPEDECK_LT_FUNCTIONS(TAPEDECK_CHECK)
#undef TAPEDECK_CHECK
static_assert(sizeof(LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(LtHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(LtHeuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
#endif

#if __has_include(<cudnn_graph.h>)
#define TAPEDECK_CHECK(function, ...) static_assert(same_call<decltype(DnnApi::function), decltype(&::function)>, #function);
TAPEDECK_DNN_FUNCTIONS(TAPEDECK_CHECK)
#undef TAPEDECK_CHECK
#define TAPEDECK_CHECK(constant, value) static_assert(dnn::constant == static_cast<int>(::constant), #constant);
TAPEDECK_DNN_CONSTANTS(TAPEDECK_CHECK)
#undef TAPEDECK_CHECK
#endif

#if __has_include(<nvrtc.h>)
#define TAPEDECK_CHECK(function, ...) static_assert(same_call<decltype(RtcApi::function), decltype(&::function)>, #function);
TAPEDECK_RTC_FUNCTIONS(TAPEDECK_CHECK)
#undef TAPEDECK_CHECK
#endif

// Loading cuBLASLt maps half a gigabyte, so tests/gpu does that. The front library of cuDNN is small.
TEST(CudaApi, RealCudnnAnswers) {
  std::string why;
  const DnnApi* api = dnn_api(&why);
  if (!api) GTEST_SKIP() << why;
  EXPECT_GE(api->cudnnGetVersion(), 90000u);
  EXPECT_STREQ(api->cudnnGetErrorString(0), "CUDNN_STATUS_SUCCESS");
}

}  // namespace
}  // namespace tapedeck::kernels::cuda
