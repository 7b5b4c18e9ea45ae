// References of the bitwise ops. They read the bits of two's complement numbers one by one.
#include <tapedeck/tests/engine/reference.h>

#include <cmath>
#include <cstdint>

namespace tapedeck::testing {
namespace {

using Args = const std::vector<double>&;

int width_of(DType d) { return d == DType::boolean ? 1 : static_cast<int>(8 * dtype_size(d)); }
bool is_signed(DType d) { return d == DType::i32 || d == DType::i64; }

// Bit k of a number of any size. Beyond the highest bit, the sign bit repeats.
bool bit(double x, int k) { return std::fmod(std::floor(std::ldexp(x, -k)), 2) != 0; }

double from_bits(const std::vector<bool>& bits, DType d) {
  const int width = width_of(d);
  std::uint64_t x = 0;  // the sign fills all higher bits
  for (int k = 0; k < 64; ++k)
    if (k < width ? bits[k] : is_signed(d) && bits.back()) x |= std::uint64_t{1} << k;
  return static_cast<double>(static_cast<std::int64_t>(x));
}

// Bit k of the result is f(operands, k).
Reference by_bits(std::function<bool(Args, int)> f) {
  return [f](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
    const DType d = out[0].dtype;
    return elementwise([&](Args v) {
      std::vector<bool> bits;
      for (int k = 0; k < width_of(d); ++k) bits.push_back(f(v, k));
      return from_bits(bits, d);
    })(e, x, out);
  };
}

const AddReference bitwise_references[] = {
    {"bitwise_and", by_bits([](Args v, int k) { return bit(v[0], k) && bit(v[1], k); })},
    {"bitwise_or", by_bits([](Args v, int k) { return bit(v[0], k) || bit(v[1], k); })},
    {"bitwise_xor", by_bits([](Args v, int k) { return bit(v[0], k) != bit(v[1], k); })},
    {"logical_xor", by_bits([](Args v, int k) { return bit(v[0], k) != bit(v[1], k); })},
    {"bitwise_not", by_bits([](Args v, int k) { return !bit(v[0], k); })},
    {"left_shift", by_bits([](Args v, int k) { return k >= v[1] && bit(v[0], k - static_cast<int>(v[1])); })},
    {"right_shift", by_bits([](Args v, int k) { return bit(v[0], k + static_cast<int>(v[1])); })},
};

}  // namespace
}  // namespace tapedeck::testing
