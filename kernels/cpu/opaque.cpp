// opaque stands for any computation. It hashes the bytes of all inputs in order, and fills its outputs with numbers made from
// the hash and the position of the element. A replay that gives the kernel wrong bytes therefore gives wrong outputs, and tests
// notice. The kernel takes a few tenths of a nanosecond per byte.
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/philox.h>

#include <algorithm>
#include <cstring>

namespace tapedeck::kernels::cpu {
namespace {

// A hash of a stream of bytes, eight bytes at a time in four lanes. Splitting the stream into more or fewer calls of add() does
// not change the hash.
class StreamHash {
 public:
  void add(const char* bytes, std::int64_t n) {
    if (held_ > 0) {
      while (n > 0 && held_ < 8) hold(*bytes++), --n;
      if (held_ == 8) flush();
    }
    if (words_ % kLanes == 0) {
      for (; n >= 8 * kLanes; bytes += 8 * kLanes, n -= 8 * kLanes, words_ += kLanes)
        for (int lane = 0; lane < kLanes; ++lane) state_[lane] = mixed(state_[lane], word_at(bytes + 8 * lane));
    }
    for (; n >= 8; bytes += 8, n -= 8) {
      mix(word_at(bytes));
    }
    for (; n > 0; --n) hold(*bytes++);
  }
  std::uint64_t result() {
    std::uint64_t all = words_ * 8 + static_cast<std::uint64_t>(held_);
    flush();
    for (const std::uint64_t lane : state_) all = splitmix64(all ^ lane);
    return all;
  }

 private:
  void hold(char byte) { pending_ |= std::uint64_t{static_cast<unsigned char>(byte)} << (8 * held_++); }
  void flush() {
    mix(pending_);
    pending_ = 0;
    held_ = 0;
  }
  void mix(std::uint64_t word) {
    std::uint64_t& lane = state_[words_++ % kLanes];
    lane = mixed(lane, word);
  }
  static std::uint64_t mixed(std::uint64_t state, std::uint64_t word) {
    const std::uint64_t x = (state ^ word) * 0x9E3779B97F4A7C15u;
    return x ^ (x >> 32);
  }
  static std::uint64_t word_at(const char* bytes) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    return word;
  }

  static constexpr int kLanes = 4;
  std::uint64_t state_[kLanes] = {0x243F6A8885A308D3u, 0x13198A2E03707344u, 0xA4093822299F31D0u, 0x082EFA98EC4E6C89u};
  std::uint64_t words_ = 0, pending_ = 0;
  int held_ = 0;
};

void hash_row(const void* hash, char* const* ptr, const std::int64_t* strides, std::int64_t n, std::int64_t width) {
  StreamHash& h = **static_cast<StreamHash* const*>(hash);
  if (strides[0] == width) return h.add(ptr[0], n * width);
  for (std::int64_t i = 0; i < n; ++i) h.add(ptr[0] + i * strides[0], width);
}

void hash_view(const View& view, StreamHash& hash) {
  const std::int64_t n = view.numel();
  if (n == 0) return;
  const View* views[] = {&view};
  StreamHash* context = &hash;
  for_widths(view.dtype, [&](auto t) {
    walk_range(
        make_walk(views, 1), 0, n,
        [](const void* f, char* const* ptr, const std::int64_t* strides, std::int64_t count) {
          hash_row(f, ptr, strides, count, sizeof(decltype(t)));
        },
        &context);
  });
}

// One element of type kType, made from the low sizeof(T) bytes of `bits`. Floats are finite and lie in [-1, 1).
template <DType kType, class T>
T element(std::uint64_t bits) {
  if constexpr (kType == DType::f32)
    return static_cast<float>(static_cast<std::int32_t>(bits) >> 8) * 1.1920928955078125e-7f;
  else if constexpr (kType == DType::f64)
    return static_cast<double>(static_cast<std::int64_t>(bits) >> 11) * 2.220446049250313e-16;
  else if constexpr (kType == DType::f16)
    return static_cast<T>((bits & 0x8000u) | (bits & 0x7FFFu) % 0x3C00u);
  else if constexpr (kType == DType::bf16)
    return static_cast<T>((bits & 0x8000u) | (bits & 0x7FFFu) % 0x3F80u);
  else if constexpr (kType == DType::boolean)
    return static_cast<T>(bits & 1);
  else
    return static_cast<T>(bits);
}

template <DType kType, class T>
void fill(const View& out, std::uint64_t seed) {
  constexpr std::int64_t per_word = 8 / static_cast<std::int64_t>(sizeof(T));
  T* to = out.as<T>();
  const std::int64_t n = out.numel();
  parallel_for((n + per_word - 1) / per_word, grain_for(1.0), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t word = begin; word < end; ++word) {
      const std::uint64_t bits = splitmix64(seed + static_cast<std::uint64_t>(word));
      const std::int64_t first = word * per_word;
      for (std::int64_t i = 0; i < per_word && first + i < n; ++i)
        to[first + i] = element<kType, T>(bits >> (static_cast<unsigned>(i) * 8 * sizeof(T) % 64));
    }
  });
}

void fill_output(const View& out, std::uint64_t seed) {
  switch (out.dtype) {
    case DType::f32:
      return fill<DType::f32, float>(out, seed);
    case DType::f64:
      return fill<DType::f64, double>(out, seed);
    case DType::f16:
      return fill<DType::f16, std::uint16_t>(out, seed);
    case DType::bf16:
      return fill<DType::bf16, std::uint16_t>(out, seed);
    case DType::i32:
      return fill<DType::i32, std::uint32_t>(out, seed);
    case DType::i64:
      return fill<DType::i64, std::uint64_t>(out, seed);
    case DType::u8:
      return fill<DType::u8, std::uint8_t>(out, seed);
    case DType::boolean:
      return fill<DType::boolean, std::uint8_t>(out, seed);
  }
}

}  // namespace

void opaque(const KernelCall& call) {
  StreamHash hash;
  for (int k = 0; k < call.n_inputs; ++k) hash_view(call.inputs[k], hash);
  const std::uint64_t seed = hash.result();
  for (int k = 0; k < call.n_outputs; ++k) fill_output(call.outputs[k], splitmix64(seed + static_cast<std::uint64_t>(k)));
}

}  // namespace tapedeck::kernels::cpu
