// The device, a graph and tensors, which tests of replays on a fake device have in common.
#pragma once

#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/capture/replay/device/fake_runtime.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::test {

// A fake device that is "cuda" during a test. At its end nothing may be left on it.
class DeviceReplay : public ::testing::Test {
 protected:
  ~DeviceReplay() override {
    for (const std::string& problem : fake->problems()) ADD_FAILURE() << problem;
    EXPECT_TRUE(fake->at_rest()) << "memory, a stream or a graph was not given back";
  }
  Executor executor(const Plan& plan, CudaGraphs graphs = CudaGraphs::automatic) {
    return Executor(plan, {.device = "cuda", .cuda_graphs = graphs});
  }

  const std::shared_ptr<FakeRuntime> fake = std::make_shared<FakeRuntime>();
  const ScopedDevice scope{fake};
};

// A step that fails if an index is out of range, or a divisor is zero.
inline constexpr const char* kLookup = R"(graph lookup(%i: i64[3], %a: i32[3], %b: i32[3]) state(%w: f32[5,2], %n: i32[3]) {
    %e: f32[3,2] = embedding(%w, %i)
    %d: i32[3] = div(%a, %b)
    %m: i32[3] = add(%n, %d)
    return %e
    update %n = %m
  })";

inline Tensor ints(const std::vector<std::int32_t>& v) { return from_vector(v, {static_cast<std::int64_t>(v.size())}); }
inline Tensor longs(const std::vector<std::int64_t>& v) { return from_vector(v, {static_cast<std::int64_t>(v.size())}); }

}  // namespace tapedeck::test
