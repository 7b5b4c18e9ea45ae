// The pooling kernels of the device, in the emulator. Their results must have the bits of the CPU kernels.
#include <tapedeck/kernels/attrs/pool.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/tests/kernels/cuda/compare_bits.h>
#include <tapedeck/kernels/cuda/pooling/pool.inl>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tapedeck::kernels::cpu {
void max_pool2d_index(const KernelCall&);
void max_pool2d_at_index(const KernelCall&);
void max_pool2d_grad_from_index(const KernelCall&);
void max_pool3d(const KernelCall&);
void max_pool3d_index(const KernelCall&);
void max_pool3d_at_index(const KernelCall&);
void max_pool3d_grad_from_index(const KernelCall&);
void avg_pool2d(const KernelCall&);
void avg_pool2d_grad(const KernelCall&);
void avg_pool3d(const KernelCall&);
void avg_pool3d_grad(const KernelCall&);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

// The sizes of x and of y, and the attributes.
struct PoolCase {
  Sizes x, y;
  PoolAttrs attrs;
  bool count_include_pad = true;
};

PoolAttrs pool_attrs(Ints window, Ints stride, Ints padding, Ints dilation = {1}, bool ceil_mode = false) {
  PoolAttrs attrs;
  attrs.window = window, attrs.stride = stride, attrs.padding = padding, attrs.dilation = dilation;
  attrs.ceil_mode = ceil_mode;
  return attrs;
}

const std::vector<PoolCase>& cases() {
  static const std::vector<PoolCase> all = {
      {{2, 3, 6, 8}, {2, 3, 3, 4}, pool_attrs({2}, {}, {0})},
      {{2, 2, 7, 5}, {2, 2, 4, 3}, pool_attrs({3}, {2}, {1})},
      {{1, 3, 6, 7}, {1, 3, 6, 7}, pool_attrs({3}, {1}, {1}), false},
      {{2, 2, 5, 6}, {2, 2, 3, 3}, pool_attrs({3, 2}, {2}, {1, 0}, {1}, true), false},
      {{1, 2, 5, 6}, {1, 2, 3, 4}, pool_attrs({2, 4}, {2}, {1, 2}, {1}, true)},
      {{1, 2, 9, 8}, {1, 2, 5, 2}, pool_attrs({3, 2}, {1, 4}, {0}, {2, 3})},
      {{0, 2, 4, 4}, {0, 2, 2, 2}, pool_attrs({2}, {}, {0})},
      {{2, 3, 4, 6, 4}, {2, 3, 2, 3, 2}, pool_attrs({2}, {}, {0})},
      {{1, 2, 5, 4, 5}, {1, 2, 3, 3, 3}, pool_attrs({3, 2, 3}, {2, 1, 2}, {1, 0, 1}), false},
      {{1, 1, 8, 8, 7}, {1, 1, 1, 2, 2}, pool_attrs({8, 7, 6}, {1}, {0})},  // more than 256 taps
  };
  return all;
}

bool flat(const PoolCase& c) { return c.x.size() == 4; }
bool dilated(const PoolCase& c) { return c.attrs.dilation[0] != 1; }
DType index_type(const PoolCase& c) { return c.attrs.window[0] >= 7 ? DType::i32 : DType::u8; }

PoolIndexGradAttrs index_grad_attrs(const PoolCase& c) {
  PoolIndexGradAttrs a;
  a.window = c.attrs.window, a.stride = c.attrs.stride, a.padding = c.attrs.padding, a.dilation = c.attrs.dilation;
  a.ceil_mode = c.attrs.ceil_mode;
  for (std::size_t i = 2; i < c.x.size(); ++i) a.size.push_back(c.x[i]);
  return a;
}
AvgPoolGradAttrs avg_grad_attrs(const PoolCase& c) {
  const PoolIndexGradAttrs a = index_grad_attrs(c);
  return {a.window, a.stride, a.padding, a.size, a.ceil_mode, c.count_include_pad};
}
AvgPoolAttrs avg_attrs(const PoolCase& c) {
  return {c.attrs.window, c.attrs.stride, c.attrs.padding, c.attrs.ceil_mode, c.count_include_pad};
}

// Many equal numbers, zeros of both signs, infinities and NaN.
Array with_specials(Random& random, const Sizes& sizes) {
  const double specials[] = {
      0.0, -0.0, 1, 1, 2, -3, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), std::nan("")};
  Array a = random_array(random, DType::f32, sizes);
  for (std::int64_t i = 0; i < a.numel(); ++i)
    if (random() % 3 != 0) a.set(i, specials[random() % 9]);
  for (std::int64_t i = 0; i < a.numel() / 4; ++i) a.set(i, -std::numeric_limits<double>::infinity());
  return a;
}

TEST(CudaPooling, MaximaAndIndicesEqualTheCpu) {
  Random random(3);
  for (const PoolCase& c : cases()) {
    const Array x = with_specials(random, c.x), y = make_array(DType::f32, c.y), index = make_array(index_type(c), c.y);
    expect_equal(flat(c) ? &cpu::max_pool2d : &cpu::max_pool3d, flat(c) ? &emulated::max_pool2d : &emulated::max_pool3d, {x}, y,
                 &c.attrs, "max_pool");
    expect_equal(flat(c) ? &cpu::max_pool2d_index : &cpu::max_pool3d_index,
                 flat(c) ? &emulated::max_pool2d_index : &emulated::max_pool3d_index, {x}, index, &c.attrs, "max_pool_index");
  }
}

TEST(CudaPooling, IndicesAreFollowedAsOnTheCpu) {
  Random random(4);
  for (const PoolCase& c : cases()) {
    const Array x = random_array(random, DType::f32, c.x), y = random_array(random, DType::f32, c.y);
    const Array index = make_array(index_type(c), c.y);
    run(flat(c) ? &cpu::max_pool2d_index : &cpu::max_pool3d_index, {x}, {index}, &c.attrs);
    for (std::int64_t i = 0; i < index.numel(); i += 3) index.set(i, static_cast<double>(random() % 4));  // may be padding
    const PoolIndexGradAttrs grad_attrs = index_grad_attrs(c);
    expect_equal(flat(c) ? &cpu::max_pool2d_at_index : &cpu::max_pool3d_at_index,
                 flat(c) ? &emulated::max_pool2d_at_index : &emulated::max_pool3d_at_index, {x, index}, y, &c.attrs,
                 "max_pool_at_index");
    expect_equal(flat(c) ? &cpu::max_pool2d_grad_from_index : &cpu::max_pool3d_grad_from_index,
                 flat(c) ? &emulated::max_pool2d_grad_from_index : &emulated::max_pool3d_grad_from_index, {index, y}, x,
                 &grad_attrs, "max_pool_grad_from_index");
  }
}

TEST(CudaPooling, GradientOfMaximaEqualsTheCpu) {
  Random random(6);
  for (const PoolCase& c : cases()) {
    if (!flat(c)) continue;
    const Array x = with_specials(random, c.x), dy = random_array(random, DType::f32, c.y);
    expect_equal(&cpu::max_pool2d_grad, &emulated::max_pool2d_grad, {x, dy}, x, &c.attrs, "max_pool2d_grad");
  }
}

TEST(CudaPooling, MeansEqualTheCpu) {
  Random random(7);
  for (const PoolCase& c : cases()) {
    if (dilated(c)) continue;
    const Array x = random_array(random, DType::f32, c.x), y = random_array(random, DType::f32, c.y);
    const AvgPoolAttrs attrs = avg_attrs(c);
    const AvgPoolGradAttrs grad_attrs = avg_grad_attrs(c);
    expect_equal(flat(c) ? &cpu::avg_pool2d : &cpu::avg_pool3d, flat(c) ? &emulated::avg_pool2d : &emulated::avg_pool3d, {x}, y,
                 &attrs, "avg_pool");
    expect_equal(flat(c) ? &cpu::avg_pool2d_grad : &cpu::avg_pool3d_grad,
                 flat(c) ? &emulated::avg_pool2d_grad : &emulated::avg_pool3d_grad, {y}, x, &grad_attrs, "avg_pool_grad");
  }
}

TEST(CudaPooling, ReportsAnIndexOutsideTheWindow) {
  const PoolCase& c = cases()[0];
  const Array x = make_array(DType::f32, c.x), y = make_array(DType::f32, c.y), index = make_array(DType::u8, c.y);
  index.set(5, 4);
  const PoolIndexGradAttrs attrs = index_grad_attrs(c);
  for (const Outcome& outcome : {run(&emulated::max_pool2d_at_index, {x, index}, {y}, &c.attrs),
                                 run(&emulated::max_pool2d_grad_from_index, {index, y}, {x}, &attrs)}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(outcome.fault),
              static_cast<std::uintptr_t>(emulated::Fault::index_outside_window));
    EXPECT_EQ(outcome.value, 4);
  }
}

}  // namespace
}  // namespace tapedeck::testing
