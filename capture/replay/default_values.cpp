// Values for a graph that was captured without data: such a capture has types only, and can still be replayed and timed.
// Each name has a random stream of its own, so a new input does not change the values of the others.
#include <tapedeck/capture/replay/executor.h>

#include <tapedeck/kernels/philox.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace tapedeck {

namespace {

// A multiple of 2^-bits in [-1, 1) in a 16-bit floating format with that many fraction bits: exact, so nothing rounds up to 1.
std::uint16_t half_float(std::uint32_t word, int bits, int bias) {
  const std::int32_t scaled = static_cast<std::int32_t>(word >> (31 - bits)) - (1 << bits);
  if (scaled == 0) return 0;
  const auto magnitude = static_cast<std::uint32_t>(std::abs(scaled));
  const int top = 31 - __builtin_clz(magnitude);
  const std::uint32_t fraction = (magnitude << (bits - top)) & ((1u << bits) - 1);
  const auto exponent = static_cast<std::uint32_t>(top - bits + bias);
  return static_cast<std::uint16_t>((scaled < 0 ? 0x8000u : 0u) | exponent << bits | fraction);
}

template <class T, class F>
void fill(std::vector<unsigned char>& bytes, F&& draw) {
  for (std::size_t i = 0; i * sizeof(T) < bytes.size(); ++i) {
    const T value = draw(static_cast<std::uint64_t>(i));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

}  // namespace

Tensor default_value(const Type& type, std::uint64_t seed, const std::string& name) {
  if (type.bytes() == 0) return empty(type);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(type.bytes()));
  const kernels::RandomStream stream = kernels::random_stream(static_cast<std::int64_t>(seed), 0, name);
  const auto word = [&](std::uint64_t i) { return stream.block(i / 4).word[i % 4]; };
  switch (type.dtype) {
    case DType::f32:
      fill<float>(bytes, [&](std::uint64_t i) { return 2.0f * kernels::uniform_f32(word(i)) - 1.0f; });
      break;
    case DType::f64:
      fill<double>(bytes, [&](std::uint64_t i) { return 2.0 * kernels::uniform_f64(word(2 * i), word(2 * i + 1)) - 1.0; });
      break;
    case DType::f16:
      fill<std::uint16_t>(bytes, [&](std::uint64_t i) { return half_float(word(i), 10, 15); });
      break;
    case DType::bf16:
      fill<std::uint16_t>(bytes, [&](std::uint64_t i) { return half_float(word(i), 7, 127); });
      break;
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::boolean:
      break;
  }
  return from_bytes(type, bytes.data());
}

}  // namespace tapedeck
