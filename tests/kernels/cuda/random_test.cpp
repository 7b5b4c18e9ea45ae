// Runs the bodies of the CUDA random kernels on the host, thread by thread. They must give the bits of the CPU kernels.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cuda/random.inl>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tapedeck::kernels::cuda {
namespace {

constexpr std::int64_t kThreads = 5;
constexpr const char* kPath = "layer.dropout/0";
constexpr std::int64_t kSizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 1000, 16 * 1024 + 3};

template <class T>
View row(T* data, std::int64_t n, DType dtype) {
  View view;
  view.data = data;
  view.dtype = dtype;
  view.rank = 1;
  view.sizes[0] = n;
  view.strides[0] = 1;
  return view;
}

template <class T>
class CudaRandom : public testing::Test {
 protected:
  static constexpr DType kType = sizeof(T) == 4 ? DType::f32 : DType::f64;

  // The output of the CPU kernel for the random state `rng` (and x, if given).
  std::vector<T> by_cpu(Kernel kernel, const void* attrs, std::int64_t n, std::vector<T>* x = nullptr) {
    std::vector<T> out(static_cast<std::size_t>(n));
    View inputs[2] = {row(rng_, 2, DType::i64), {}};
    if (x) inputs[1] = inputs[0], inputs[0] = row(x->data(), n, kType);
    const View output = row(out.data(), n, kType);
    KernelFault fault;
    KernelCall call;
    call.inputs = inputs;
    call.outputs = &output;
    call.n_inputs = x ? 2 : 1;
    call.n_outputs = 1;
    call.attrs = attrs;
    call.fault = &fault;
    kernel(call);
    return out;
  }
  Draw<T> draw(const RandomAttrs& attrs, std::vector<T>& out) {
    return {rng_,
            fnv1a64(kPath),
            static_cast<std::int64_t>(out.size()),
            out.data(),
            static_cast<T>(attrs.low),
            static_cast<T>(attrs.high)};
  }

  std::int64_t rng_[2] = {-42, (std::int64_t{1} << 40) + 7};
};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(CudaRandom, Floats);

TYPED_TEST(CudaRandom, UniformEqualsCpu) {
  RandomAttrs attrs;
  attrs.low = -2, attrs.high = 3, attrs.path = kPath;
  for (const std::int64_t n : kSizes) {
    std::vector<TypeParam> out(static_cast<std::size_t>(n));
    for (std::int64_t t = 0; t < kThreads; ++t) uniform_thread(this->draw(attrs, out), t, kThreads);
    EXPECT_EQ(out, this->by_cpu(&cpu::uniform, &attrs, n)) << n;
  }
}

TYPED_TEST(CudaRandom, NormalEqualsCpu) {
  RandomAttrs attrs;
  attrs.low = 1, attrs.high = 0.5, attrs.path = kPath;
  for (const std::int64_t n : kSizes) {
    std::vector<TypeParam> out(static_cast<std::size_t>(n));
    for (std::int64_t t = 0; t < kThreads; ++t) normal_thread(this->draw(attrs, out), t, kThreads);
    EXPECT_EQ(out, this->by_cpu(&cpu::normal, &attrs, n)) << n;
  }
}

TYPED_TEST(CudaRandom, DropoutEqualsCpu) {
  using T = TypeParam;
  DropoutAttrs attrs;
  attrs.p = 0.3, attrs.path = kPath;
  for (const std::int64_t n : kSizes) {
    std::vector<T> x(static_cast<std::size_t>(n)), out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i) - T(3.5);
    const Dropout<T> drop{this->rng_,
                          fnv1a64(kPath),
                          n,
                          x.data(),
                          out.data(),
                          static_cast<float>(attrs.p),
                          static_cast<T>(1.0 / (1.0 - attrs.p))};
    for (std::int64_t t = 0; t < kThreads; ++t) dropout_thread(drop, t, kThreads);
    EXPECT_EQ(out, this->by_cpu(&cpu::dropout, &attrs, n, &x)) << n;
  }
}

TEST(CudaRandomStream, EqualsTheHostsStream) {
  for (const std::int64_t seed : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-9}, INT64_MAX}) {
    const std::int64_t rng[2] = {seed, seed / 3};
    const RandomStream host = random_stream(rng[0], rng[1], kPath), device = device_stream(rng, fnv1a64(kPath));
    EXPECT_EQ(host.key.low, device.key.low);
    EXPECT_EQ(host.key.high, device.key.high);
    EXPECT_EQ(host.step, device.step);
  }
}

}  // namespace
}  // namespace tapedeck::kernels::cuda
