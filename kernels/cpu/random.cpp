// Random draws; see philox.h for the streams.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/philox.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kGrain = 16 * 1024;  // a multiple of every batch below
constexpr std::int64_t kBatch = 64;         // blocks drawn together

RandomStream stream_of(const View& rng, Name path) {
  const std::int64_t* state = rng.as<std::int64_t>();
  return random_stream(state[0], state[1], path.view());
}

// Words of blocks [block, block + kBatch): philox() for many counters side by side, so that it vectorises over blocks.
void draw(const RandomStream& stream, std::uint64_t block, std::uint32_t (&words)[kBatch * 4]) {
  std::uint32_t c0[kBatch], c1[kBatch], c2[kBatch], c3[kBatch];
  for (std::int64_t b = 0; b < kBatch; ++b) {
    const PhiloxBlock counter = stream.counter(block + static_cast<std::uint64_t>(b));
    c0[b] = counter.word[0], c1[b] = counter.word[1], c2[b] = counter.word[2], c3[b] = counter.word[3];
  }
  PhiloxKey key = stream.key;
  for (int round = 0; round < kPhiloxRounds; ++round, key = next_key(key))
    for (std::int64_t b = 0; b < kBatch; ++b) {
      const PhiloxBlock next = philox_round({{c0[b], c1[b], c2[b], c3[b]}}, key);
      c0[b] = next.word[0], c1[b] = next.word[1], c2[b] = next.word[2], c3[b] = next.word[3];
    }
  for (std::int64_t b = 0; b < kBatch; ++b)
    words[4 * b] = c0[b], words[4 * b + 1] = c1[b], words[4 * b + 2] = c2[b], words[4 * b + 3] = c3[b];
}

// Calls f(first, n, words): elements [first, first + n) and their words, kWords an element.
template <int kWords, class F>
void for_words(const RandomStream& stream, std::int64_t n, F&& f) {
  constexpr std::int64_t batch = kBatch * 4 / kWords;
  parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::uint32_t words[kBatch * 4];
    for (std::int64_t at = begin; at < end; at += batch) {
      draw(stream, static_cast<std::uint64_t>(at * kWords / 4), words);
      f(at, std::min(batch, end - at), words);
    }
  });
}

inline float uniform_at(const std::uint32_t* words, std::int64_t i, float) { return uniform_f32(words[i]); }
inline double uniform_at(const std::uint32_t* words, std::int64_t i, double) {
  return uniform_f64(words[2 * i], words[2 * i + 1]);
}

template <class T>
void uniform_of(const KernelCall& call) {
  const auto& attrs = call.attributes<RandomAttrs>();
  const T low = static_cast<T>(attrs.low), high = static_cast<T>(attrs.high), span = high - low;
  T* out = call.outputs[0].as<T>();
  for_words<sizeof(T) / 4>(stream_of(call.inputs[0], attrs.path), call.outputs[0].numel(),
                           [&](std::int64_t first, std::int64_t n, const std::uint32_t* words) {
                             for (std::int64_t i = 0; i < n; ++i) {
                               const T x = low + span * uniform_at(words, i, T{});
                               out[first + i] = x < high ? x : low;  // rounding must not reach the open end
                             }
                           });
}

template <class T>
void normal_of(const KernelCall& call) {
  const auto& attrs = call.attributes<RandomAttrs>();
  const T mean = static_cast<T>(attrs.low), deviation = static_cast<T>(attrs.high);
  T* out = call.outputs[0].as<T>();
  for_words<sizeof(T) / 4>(stream_of(call.inputs[0], attrs.path), call.outputs[0].numel(),
                           [&](std::int64_t first, std::int64_t n, const std::uint32_t* words) {
                             T drawn[kBatch * 4];
                             constexpr std::int64_t batch = kBatch * 16 / static_cast<std::int64_t>(sizeof(T));
                             for (std::int64_t i = 0; i < batch; i += 2)
                               box_muller(uniform_at(words, i, T{}), uniform_at(words, i + 1, T{}), drawn + i, drawn + i + 1);
                             for (std::int64_t i = 0; i < n; ++i) out[first + i] = mean + deviation * drawn[i];
                           });
}

template <class T>
void dropout_of(const KernelCall& call) {
  const auto& attrs = call.attributes<DropoutAttrs>();
  const float p = static_cast<float>(attrs.p);
  const T scale = static_cast<T>(1.0 / (1.0 - attrs.p));
  const T* x = call.inputs[0].as<T>();
  T* out = call.outputs[0].as<T>();
  for_words<1>(stream_of(call.inputs[1], attrs.path), call.outputs[0].numel(),
               [&](std::int64_t first, std::int64_t n, const std::uint32_t* words) {
                 TAPEDECK_INDEPENDENT
                 for (std::int64_t i = 0; i < n; ++i) {
                   const T kept = x[first + i] * scale;
                   out[first + i] = uniform_f32(words[i]) >= p ? kept : T(0);
                 }
               });
}

}  // namespace

void uniform(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { uniform_of<decltype(t)>(call); });
}

void normal(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { normal_of<decltype(t)>(call); });
}

void dropout(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { dropout_of<decltype(t)>(call); });
}

void rng_next(const KernelCall& call) {
  const std::int64_t* in = call.inputs[0].as<std::int64_t>();
  std::int64_t* out = call.outputs[0].as<std::int64_t>();
  out[0] = in[0];
  out[1] = Add{}(in[1], std::int64_t{1});
}

}  // namespace tapedeck::kernels::cpu
