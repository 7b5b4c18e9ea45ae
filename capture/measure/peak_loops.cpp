// Each variant of the loops is compiled for its own instructions, because this folder is compiled for any processor of the
// architecture. The portable variant is there for other architectures, whose compilers vectorise it.
#include <tapedeck/capture/measure/peak_loops.h>

#include <tapedeck/kernels/cpu/dispatch.h>

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tapedeck {

namespace {

constexpr int kChains = 8;  // independent ones: enough for two units with a latency of four cycles

template <int kLanes>
constexpr double flops_per_round() {
  return 2.0 * kChains * kLanes;
}

// ---- any processor ----

constexpr int kPortableLanes = 4;

float fused_portable(std::int64_t rounds) {
  float chains[kChains][kPortableLanes];
  for (int i = 0; i < kChains; ++i)
    for (float& c : chains[i]) c = static_cast<float>(i);
  for (std::int64_t r = 0; r < rounds; ++r)
    for (int i = 0; i < kChains; ++i)
      for (float& c : chains[i]) c = c * 0.5f + 1.0f;
  float sum = 0;
  for (int i = 0; i < kChains; ++i)
    for (const float c : chains[i]) sum += c;
  return sum;
}

std::uint64_t read_portable(const std::byte* bytes, std::int64_t count) {
  std::uint64_t mix[4] = {}, words[4];
  for (std::int64_t i = 0; i < count; i += sizeof words) {
    std::memcpy(words, bytes + i, sizeof words);
    for (int k = 0; k < 4; ++k) mix[k] ^= words[k];
  }
  return mix[0] ^ mix[1] ^ mix[2] ^ mix[3];
}

void update_portable(std::byte* bytes, std::int64_t count) {
  std::uint64_t words[4];
  for (std::int64_t i = 0; i < count; i += sizeof words) {
    std::memcpy(words, bytes + i, sizeof words);
    for (std::uint64_t& w : words) ++w;
    std::memcpy(bytes + i, words, sizeof words);
  }
}

#if defined(__x86_64__)

// ---- AVX2 ----

[[gnu::target("avx2,fma")]] float fused_avx2(std::int64_t rounds) {
  const __m256 half = _mm256_set1_ps(0.5f), one = _mm256_set1_ps(1.0f);
  __m256 chains[kChains];
  TAPEDECK_UNROLL
  for (int i = 0; i < kChains; ++i) chains[i] = _mm256_set1_ps(static_cast<float>(i));
  for (std::int64_t r = 0; r < rounds; ++r) {
    TAPEDECK_UNROLL
    for (int i = 0; i < kChains; ++i) chains[i] = _mm256_fmadd_ps(chains[i], half, one);
  }
  float sum = 0, lanes[8];
  TAPEDECK_UNROLL
  for (int i = 0; i < kChains; ++i) {
    _mm256_storeu_ps(lanes, chains[i]);
    for (const float c : lanes) sum += c;
  }
  return sum;
}

[[gnu::target("avx2")]] std::uint64_t read_avx2(const std::byte* bytes, std::int64_t count) {
  __m256i mix[8] = {};
  for (std::int64_t i = 0; i < count; i += kPeakLoopStep) {
    TAPEDECK_UNROLL
    for (int k = 0; k < 8; ++k)
      mix[k] = _mm256_xor_si256(mix[k], _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes + i + 32 * k)));
  }
  std::uint64_t words[4], all = 0;
  TAPEDECK_UNROLL
  for (int k = 0; k < 8; ++k) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), mix[k]);
    all ^= words[0] ^ words[1] ^ words[2] ^ words[3];
  }
  return all;
}

[[gnu::target("avx2")]] void update_avx2(std::byte* bytes, std::int64_t count) {
  const __m256i one = _mm256_set1_epi64x(1);
  for (std::int64_t i = 0; i < count; i += kPeakLoopStep) {
    TAPEDECK_UNROLL
    for (int k = 0; k < 8; ++k) {
      __m256i* at = reinterpret_cast<__m256i*>(bytes + i + 32 * k);
      _mm256_store_si256(at, _mm256_add_epi64(_mm256_load_si256(at), one));
    }
  }
}

// ---- AVX-512 ----

[[gnu::target("avx512f")]] float fused_avx512(std::int64_t rounds) {
  const __m512 half = _mm512_set1_ps(0.5f), one = _mm512_set1_ps(1.0f);
  __m512 chains[kChains];
  TAPEDECK_UNROLL
  for (int i = 0; i < kChains; ++i) chains[i] = _mm512_set1_ps(static_cast<float>(i));
  for (std::int64_t r = 0; r < rounds; ++r) {
    TAPEDECK_UNROLL
    for (int i = 0; i < kChains; ++i) chains[i] = _mm512_fmadd_ps(chains[i], half, one);
  }
  float sum = 0, lanes[16];
  TAPEDECK_UNROLL
  for (int i = 0; i < kChains; ++i) {
    _mm512_storeu_ps(lanes, chains[i]);
    for (const float c : lanes) sum += c;
  }
  return sum;
}

[[gnu::target("avx512f")]] std::uint64_t read_avx512(const std::byte* bytes, std::int64_t count) {
  __m512i mix[4] = {};
  for (std::int64_t i = 0; i < count; i += kPeakLoopStep) {
    TAPEDECK_UNROLL
    for (int k = 0; k < 4; ++k) mix[k] = _mm512_xor_si512(mix[k], _mm512_load_si512(bytes + i + 64 * k));
  }
  std::uint64_t words[8], all = 0;
  TAPEDECK_UNROLL
  for (int k = 0; k < 4; ++k) {
    _mm512_storeu_si512(words, mix[k]);
    for (const std::uint64_t w : words) all ^= w;
  }
  return all;
}

[[gnu::target("avx512f")]] void update_avx512(std::byte* bytes, std::int64_t count) {
  const __m512i one = _mm512_set1_epi64(1);
  for (std::int64_t i = 0; i < count; i += kPeakLoopStep) {
    TAPEDECK_UNROLL
    for (int k = 0; k < 4; ++k) {
      std::byte* at = bytes + i + 64 * k;
      _mm512_store_si512(at, _mm512_add_epi64(_mm512_load_si512(at), one));
    }
  }
}

#endif

}  // namespace

std::vector<PeakLoops> peak_loops() {
  std::vector<PeakLoops> loops;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    loops.push_back({"avx512", flops_per_round<16>(), fused_avx512, read_avx512, update_avx512});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    loops.push_back({"avx2", flops_per_round<8>(), fused_avx2, read_avx2, update_avx2});
#endif
  loops.push_back({"portable", flops_per_round<kPortableLanes>(), fused_portable, read_portable, update_portable});
  return loops;
}

}  // namespace tapedeck
