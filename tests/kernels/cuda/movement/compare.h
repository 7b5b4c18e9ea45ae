// Runs a kernel of the room in the emulator and the CPU kernel of the same op on equal operands, and compares all bytes.
#pragma once

#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/kernel.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::testing {

inline const std::vector<DType> kAllTypes = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                             DType::i32, DType::i64, DType::u8,  DType::boolean};

// The same view of bytes of its own.
inline Array clone(const Array& a) {
  Array b = a;
  b.storage = std::make_shared<std::vector<std::uint64_t>>(*a.storage);
  if (a.view.data) {
    const auto offset = a.view.as<char>() - reinterpret_cast<char*>(a.storage->data());
    b.view.data = reinterpret_cast<char*>(b.storage->data()) + offset;
  }
  return b;
}

inline std::string describe(const View& v) {
  std::string text = std::string(dtype_name(v.dtype)) + "[";
  for (int d = 0; d < v.rank; ++d) text += (d ? "," : "") + std::to_string(v.sizes[d]) + ":" + std::to_string(v.strides[d]);
  return text + "]";
}

inline std::string describe(const std::vector<Array>& arrays) {
  std::string text;
  for (const Array& a : arrays) text += describe(a.view) + " ";
  return text;
}

struct Work {
  std::int64_t emulated = 0, cpu = 0;  // bytes of workspace
};

// Both kernels get results with the same bytes, and must leave the same bytes, also beside the views. Both or neither report a
// fault, of the same number if `same_value` holds.
inline void expect_same(Kernel emulated, Kernel cpu, const std::vector<Array>& inputs, const std::vector<Array>& results,
                        const void* attrs = nullptr, Work work = {}, bool same_value = true) {
  std::vector<Array> ours, theirs;
  for (const Array& a : results) {
    std::memset(a.storage->data(), 0x5a, a.storage->size() * 8);
    ours.push_back(clone(a));
    theirs.push_back(clone(a));
  }
  const Outcome mine = run(emulated, inputs, ours, attrs, work.emulated);
  const Outcome other = run(cpu, inputs, theirs, attrs, work.cpu);
  EXPECT_EQ(mine.fault == nullptr, other.fault == nullptr) << describe(inputs);
  if (same_value) {
    EXPECT_EQ(mine.value, other.value) << describe(inputs);
  }
  for (std::size_t k = 0; k < ours.size(); ++k)
    EXPECT_EQ(*ours[k].storage, *theirs[k].storage) << "result " << k << ": " << describe(results) << "of " << describe(inputs);
}

// Both kernels write their result over operand `k`.
inline void expect_same_in_place(Kernel emulated, Kernel cpu, std::vector<Array> inputs, std::size_t k,
                                 const void* attrs = nullptr, Work work = {}) {
  std::vector<Array> others = inputs;
  inputs[k] = clone(inputs[k]);
  others[k] = clone(others[k]);
  run(emulated, inputs, {inputs[k]}, attrs, work.emulated);
  run(cpu, others, {others[k]}, attrs, work.cpu);
  EXPECT_EQ(*inputs[k].storage, *others[k].storage) << describe(inputs);
}

// A dense array with random bytes: 0 or 1 for booleans.
inline Array random_bits(Random& random, DType dtype, const Sizes& sizes) {
  Array a = make_array(dtype, sizes);
  for (auto& word : *a.storage) {
    word = static_cast<std::uint64_t>(random()) << 32 | random();
    if (dtype == DType::boolean) word &= 0x0101010101010101u;
  }
  return a;
}

// Indices in [low, high).
inline Array random_indices(Random& random, DType dtype, const Sizes& sizes, std::int64_t low, std::int64_t high) {
  Array a = make_array(dtype, sizes);
  for (std::int64_t i = 0; i < a.numel(); ++i)
    a.set(i, static_cast<double>(low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low))));
  return a;
}

// The view `steps` elements further on in its bytes, with less alignment.
inline Array shifted(Random& random, DType dtype, const Sizes& sizes, std::int64_t steps) {
  Array a = random_bits(random, dtype, sizes);
  a.storage->resize(a.storage->size() + static_cast<std::size_t>(steps));
  a.view.data = reinterpret_cast<char*>(a.storage->data()) + steps * static_cast<std::int64_t>(dtype_size(dtype));
  return a;
}

}  // namespace tapedeck::testing
