// Runs the real CUDA kernels on a GPU. The oracle is the CPU kernels: results must have the same bits, except where both
// devices call their math library and may differ in the last bits. Any NaN equals any other NaN. Without a GPU every case is
// skipped and says why. If TAPEDECK_REQUIRE_GPU is set, it fails instead.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cuda/kernel_table.h>
#include <tapedeck/kernels/cuda/lt_api.h>
#include <tapedeck/kernels/cuda/runtime.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::kernels::cuda {
namespace {

#define CHECK_CUDA(call)                              \
  do {                                                \
    const char* error = (call);                       \
    ASSERT_EQ(error, nullptr) << #call ": " << error; \
  } while (false)

struct Case {
  const char* name;
  Kernel gpu;
  Kernel cpu;
};

#define TAPEDECK_CASE(op) \
  Case { #op, find_kernel(#op)->kernel, &cpu::op }
const std::vector<Case> kArithmetic = {TAPEDECK_CASE(add),         TAPEDECK_CASE(sub),       TAPEDECK_CASE(mul),
                                       TAPEDECK_CASE(div),         TAPEDECK_CASE(maximum),   TAPEDECK_CASE(minimum),
                                       TAPEDECK_CASE(pow),         TAPEDECK_CASE(relu_grad), TAPEDECK_CASE(tanh_grad),
                                       TAPEDECK_CASE(sigmoid_grad)};
const std::vector<Case> kFunctions = {TAPEDECK_CASE(neg),     TAPEDECK_CASE(abs),  TAPEDECK_CASE(sign),  TAPEDECK_CASE(relu),
                                      TAPEDECK_CASE(square),  TAPEDECK_CASE(exp),  TAPEDECK_CASE(log),   TAPEDECK_CASE(tanh),
                                      TAPEDECK_CASE(sigmoid), TAPEDECK_CASE(sqrt), TAPEDECK_CASE(rsqrt), TAPEDECK_CASE(sin),
                                      TAPEDECK_CASE(cos)};
const std::vector<Case> kComparisons = {TAPEDECK_CASE(equal),       TAPEDECK_CASE(not_equal),  TAPEDECK_CASE(less),
                                        TAPEDECK_CASE(less_equal),  TAPEDECK_CASE(greater),    TAPEDECK_CASE(greater_equal),
                                        TAPEDECK_CASE(logical_and), TAPEDECK_CASE(logical_or), TAPEDECK_CASE(logical_not),
                                        TAPEDECK_CASE(where)};
const std::vector<Case> kConversions = {TAPEDECK_CASE(cast), TAPEDECK_CASE(copy)};

const std::vector<DType> kFloats = {DType::f32, DType::f64};
const std::vector<DType> kNumbers = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8};
const std::vector<DType> kAll = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean};

bool is_one_of(const char* name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return std::strcmp(n, name) == 0; });
}

// A view over host bytes. For the call, `data` points to a copy on the device.
struct Operand {
  View view;
  std::vector<std::uint8_t> bytes;
};

using Sizes = std::vector<std::int64_t>;

template <class T>
void store(Operand& operand, std::size_t i, T value) {
  std::memcpy(operand.bytes.data() + i * sizeof(T), &value, sizeof value);
}

// `strides` counts elements; 0 means broadcast. Integers are odd, so that none divides by zero: the fault of this test lies in
// memory of the host that the device cannot write.
Operand make_operand(DType dtype, const Sizes& sizes, const Sizes& strides, std::mt19937_64& engine) {
  Operand o;
  o.view.dtype = dtype;
  o.view.rank = static_cast<int>(sizes.size());
  std::int64_t reach = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    o.view.sizes[d] = sizes[d];
    o.view.strides[d] = strides[d];
    reach += strides[d] * (sizes[d] - 1);
  }
  o.bytes.resize(static_cast<std::size_t>(reach) * dtype_size(dtype));
  std::uniform_real_distribution<double> real(-5, 5);
  for (std::size_t i = 0; i < static_cast<std::size_t>(reach); ++i) {
    const double x = real(engine);
    switch (dtype) {
      case DType::f32:
        store(o, i, static_cast<float>(x));
        break;
      case DType::f64:
        store(o, i, x);
        break;
      case DType::i32:
        store(o, i, static_cast<std::int32_t>(x * 100) | 1);
        break;
      case DType::i64:
        store(o, i, static_cast<std::int64_t>(x * 1e6) | 1);
        break;
      case DType::u8:
        store(o, i, static_cast<std::uint8_t>(std::fabs(x) * 50) | 1);
        break;
      default:
        store(o, i, static_cast<std::uint8_t>(x > 0));
        break;
    }
  }
  o.view.data = o.bytes.data();
  return o;
}

// A layout for all operands of a call: dense, large and dense, transposed, broadcast over rows and columns, or with gaps.
struct Layout {
  Sizes sizes;
  Sizes inputs[3];
  Sizes output;
};

const std::vector<Layout> kLayouts = {
    {{}, {{}, {}, {}}, {}},
    {{1000}, {{1}, {1}, {1}}, {1}},
    {{3, 500, 777}, {{388500, 777, 1}, {388500, 777, 1}, {388500, 777, 1}}, {388500, 777, 1}},
    {{37, 53}, {{1, 37}, {53, 1}, {1, 37}}, {53, 1}},
    {{37, 53}, {{0, 1}, {1, 0}, {0, 0}}, {53, 1}},
    {{5, 6, 7}, {{100, 10, 1}, {1, 5, 30}, {0, 7, 1}}, {200, 20, 2}},
};

// Device memory that is released at the end of the scope.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes) { error_ = device_allocate(0, std::max<std::size_t>(bytes, 1), &data_); }
  ~DeviceBytes() {
    if (data_) device_free(data_);
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  const char* error() const { return error_; }
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  const char* error_ = nullptr;
};

// True if two results are equal: the same bits, both NaN, or, where the math library may differ, within the tolerance.
template <class T>
bool near(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes, double tolerance) {
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    T x, y;
    std::memcpy(&x, a + at, sizeof x);
    std::memcpy(&y, b + at, sizeof y);
    if (std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::fabs(x - y) <= tolerance * std::max<T>(std::fabs(y), T(1)))) return false;
  }
  return true;
}

bool agree(const char* name, const Operand& gpu, const Operand& cpu) {
  const bool library = is_one_of(name, {"pow", "sin", "cos"});
  const bool f64_library = is_one_of(name, {"exp", "log", "tanh", "sigmoid"});
  if (gpu.view.dtype == DType::f32)
    return near<float>(gpu.bytes.data(), cpu.bytes.data(), gpu.bytes.size(), library ? 2e-6 : 0);
  if (gpu.view.dtype == DType::f64)
    return near<double>(gpu.bytes.data(), cpu.bytes.data(), gpu.bytes.size(), library || f64_library ? 1e-14 : 0);
  return gpu.bytes == cpu.bytes;
}

class PointwiseGpu : public testing::Test {
 protected:
  void SetUp() override {
    const CudaStatus& status = cuda_status();
    if (!status.available && std::getenv("TAPEDECK_REQUIRE_GPU")) FAIL() << status.reason;
    if (!status.available) GTEST_SKIP() << status.reason;
    CHECK_CUDA(stream_create(0, &stream_));
  }
  void TearDown() override {
    if (!stream_) return;
    EXPECT_EQ(stream_destroy(stream_), nullptr);
  }

  // Runs the kernel on the device and reads its output back.
  void run_on_gpu(Kernel kernel, KernelCall call, const std::vector<Operand>& inputs, Operand& output) {
    std::vector<std::unique_ptr<DeviceBytes>> memory;
    std::vector<View> views;
    const auto upload = [&](const Operand& o) {
      memory.push_back(std::make_unique<DeviceBytes>(o.bytes.size()));
      CHECK_CUDA(memory.back()->error());
      CHECK_CUDA(copy_to_device(memory.back()->data(), o.bytes.data(), o.bytes.size(), stream_));
      views.push_back(o.view);
      views.back().data = memory.back()->data();
    };
    for (const Operand& input : inputs) ASSERT_NO_FATAL_FAILURE(upload(input));
    ASSERT_NO_FATAL_FAILURE(upload(output));
    KernelFault fault;
    call.inputs = views.data();
    call.outputs = &views.back();
    call.stream = stream_;
    call.fault = &fault;
    kernel(call);
    CHECK_CUDA(copy_to_host(output.bytes.data(), views.back().data, output.bytes.size(), stream_));
    CHECK_CUDA(synchronize(stream_));
  }

  // Runs both devices on the same operands and compares the results. The last dtype is that of the output.
  void compare(const Case& c, const std::vector<DType>& dtypes, const void* attrs = nullptr) {
    for (const Layout& layout : kLayouts) {
      std::vector<Operand> inputs;
      std::vector<View> views;
      for (std::size_t k = 0; k + 1 < dtypes.size(); ++k)
        inputs.push_back(make_operand(dtypes[k], layout.sizes, layout.inputs[k], engine_));
      for (Operand& input : inputs) views.push_back(input.view);
      Operand cpu = make_operand(dtypes.back(), layout.sizes, layout.output, engine_), gpu = cpu;
      cpu.view.data = cpu.bytes.data();
      KernelFault ignored;  // the CPU reports a division by zero, the device cannot
      KernelCall call;
      call.inputs = views.data();
      call.outputs = &cpu.view;
      call.n_inputs = static_cast<int>(views.size());
      call.n_outputs = 1;
      call.attrs = attrs;
      call.fault = &ignored;
      c.cpu(call);
      ASSERT_NO_FATAL_FAILURE(run_on_gpu(c.gpu, call, inputs, gpu)) << c.name;
      EXPECT_TRUE(agree(c.name, gpu, cpu)) << c.name << " " << dtype_name(dtypes[0]) << ", layout "
                                           << &layout - kLayouts.data();
    }
  }

  Stream stream_ = nullptr;
  std::mt19937_64 engine_{20261121};
};

TEST_F(PointwiseGpu, ArithmeticEqualsCpu) {
  for (const Case& c : kArithmetic)
    for (const DType t : is_one_of(c.name, {"relu_grad", "tanh_grad", "sigmoid_grad"}) ? kFloats : kNumbers)
      compare(c, {t, t, t});
}

TEST_F(PointwiseGpu, FunctionsEqualCpu) {
  for (const Case& c : kFunctions)
    for (const DType t : is_one_of(c.name, {"neg", "abs", "sign", "relu", "square"}) ? kNumbers : kFloats) compare(c, {t, t});
}

TEST_F(PointwiseGpu, ComparisonsEqualCpu) {
  for (const Case& c : kComparisons) {
    const bool logic = is_one_of(c.name, {"logical_and", "logical_or", "logical_not"});
    for (const DType t : logic ? std::vector<DType>{DType::boolean} : kAll) {
      if (is_one_of(c.name, {"logical_not"}))
        compare(c, {t, DType::boolean});
      else if (is_one_of(c.name, {"where"}))
        compare(c, {DType::boolean, t, t, t});
      else
        compare(c, {t, t, DType::boolean});
    }
  }
}

TEST_F(PointwiseGpu, ConversionsEqualCpu) {
  for (const Case& c : kConversions)
    for (const DType from : kAll)
      for (const DType to : kAll) {
        const CastAttrs attrs{to};
        if (is_one_of(c.name, {"cast"}))
          compare(c, {from, to}, &attrs);
        else if (from == to)
          compare(c, {from, to});
      }
}

// The attributes of a draw; the random state is an operand.
TEST_F(PointwiseGpu, DrawsEqualCpu) {
  RandomAttrs random;
  random.low = -1, random.high = 2, random.path = "gpu/0";
  DropoutAttrs drop;
  drop.p = 0.25, drop.path = "gpu/1";
  const Case uniforms = TAPEDECK_CASE(uniform), normals = TAPEDECK_CASE(normal);
  const Case dropouts = TAPEDECK_CASE(dropout), next = TAPEDECK_CASE(rng_next);
  const auto draw = [&](const Case& c, std::vector<Operand> inputs, DType dtype, const Sizes& sizes, const void* attrs) {
    std::vector<View> views;
    for (Operand& input : inputs) views.push_back(input.view);
    Operand cpu = make_operand(dtype, sizes, {1}, engine_), gpu = cpu;
    cpu.view.data = cpu.bytes.data();
    KernelFault fault;
    KernelCall call;
    call.inputs = views.data();
    call.outputs = &cpu.view;
    call.n_inputs = static_cast<int>(views.size());
    call.n_outputs = 1;
    call.attrs = attrs;
    call.fault = &fault;
    c.cpu(call);
    ASSERT_NO_FATAL_FAILURE(run_on_gpu(c.gpu, call, inputs, gpu));
    EXPECT_TRUE(agree(c.name, gpu, cpu)) << c.name << " " << dtype_name(dtype);
  };
  const Operand rng = make_operand(DType::i64, {2}, {1}, engine_);
  for (const DType t : kFloats) {
    draw(uniforms, {rng}, t, {4099}, &random);
    draw(normals, {rng}, t, {4099}, &random);
    draw(dropouts, {make_operand(t, {4099}, {1}, engine_), rng}, t, {4099}, &drop);
  }
  draw(next, {rng}, DType::i64, {2}, nullptr);
}

TEST_F(PointwiseGpu, DeviceIsDescribed) {
  DeviceProperties device;
  CHECK_CUDA(device_properties(0, &device));
  EXPECT_FALSE(device.name.empty());
  EXPECT_GT(device.memory_bytes, 0u);
  EXPECT_GE(device.sm, 50);
  EXPECT_GT(device.multiprocessors, 0);
  std::cout << device.name << ", sm_" << device.sm << ", " << (device.memory_bytes >> 20) << " MiB, driver "
            << device.driver_version << ", runtime " << device.runtime_version << "\n";
}

TEST_F(PointwiseGpu, CublasLtOpens) {
  std::string why;
  const LtApi* api = lt_api(&why);
  if (!api) GTEST_SKIP() << why;
  LtHandle handle = nullptr;
  ASSERT_EQ(api->cublasLtCreate(&handle), 0);
  EXPECT_EQ(api->cublasLtDestroy(handle), 0);
}

}  // namespace
}  // namespace tapedeck::kernels::cuda
