// Random draws: uniform, normal, dropout, integers, permutations, truncated normal, multinomial. Each kernel draws words from
// the stream that `rng` and `path` name, and turns them into elements; philox.h says which word becomes which element:
//
//   rng = (seed, step), path  ->  key, counter  ->  blocks of four words  ->  elements
#include <tapedeck/kernels/alpha_dropout.h>
#include <tapedeck/kernels/attrs/random.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/normal_quantile.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/philox.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kGrain = 16 * 1024;  // a multiple of all batch sizes below
constexpr std::int64_t kBatch = 64;         // the number of Philox blocks drawn together

RandomStream stream_of(const View& rng, Name path) {
  const std::int64_t* state = rng.as<std::int64_t>();
  return random_stream(state[0], state[1], path.view());
}

// Draws the words of the blocks [block, block + kBatch). It runs philox() for many counters side by side, so that the loop
// vectorises over blocks.
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

// Calls f(first, n, words) for batches of elements [first, first + n) and their words, kWords per element.
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
  for_words<sizeof(T) / 4>(
      stream_of(call.inputs[0], attrs.path), call.outputs[0].numel(),
      [&](std::int64_t first, std::int64_t n, const std::uint32_t* words) {
        for (std::int64_t i = 0; i < n; ++i) {
          const T x = low + span * uniform_at(words, i, T{});
          out[first + i] = x < high ? x : low;  // rounding may reach the open upper bound; such a draw becomes the lower bound
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

// An input stays as it is with probability 1 - p, and otherwise becomes the lower limit of selu. The result is scaled and
// shifted so that standard normal inputs keep mean 0 and deviation 1 (Klambauer et al., 2017).
template <class T>
void alpha_dropout_of(const KernelCall& call) {
  const auto& attrs = call.attributes<DropoutAttrs>();
  const AlphaDropout m(attrs.p);
  const float p = static_cast<float>(attrs.p);
  const T scale = static_cast<T>(m.scale), shift = static_cast<T>(m.shift),
          dropped = static_cast<T>(m.scale * kSeluFloor + m.shift);
  const T* x = call.inputs[0].as<T>();
  T* out = call.outputs[0].as<T>();
  for_words<1>(stream_of(call.inputs[1], attrs.path), call.outputs[0].numel(),
               [&](std::int64_t first, std::int64_t n, const std::uint32_t* words) {
                 TAPEDECK_INDEPENDENT
                 for (std::int64_t i = 0; i < n; ++i) {
                   const T kept = x[first + i] * scale + shift;
                   out[first + i] = uniform_f32(words[i]) >= p ? kept : dropped;
                 }
               });
}

template <class T>
void bernoulli_of(const KernelCall& call) {
  const T* p = call.inputs[0].as<T>();
  T* out = call.outputs[0].as<T>();
  for_words<sizeof(T) / 4>(stream_of(call.inputs[1], call.attributes<BernoulliAttrs>().path), call.outputs[0].numel(),
                           [&](std::int64_t first, std::int64_t n, const std::uint32_t* words) {
                             for (std::int64_t i = 0; i < n; ++i) {
                               const T chance = p[first + i];
                               if (!(chance >= T(0) && chance <= T(1)))
                                 call.fault->report("not a probability, at element", first + i);
                               out[first + i] = uniform_at(words, i, T{}) < chance ? T(1) : T(0);
                             }
                           });
}

template <class T>
void randint_of(const KernelCall& call) {
  const auto& attrs = call.attributes<RandintAttrs>();
  const std::uint64_t low = static_cast<std::uint64_t>(attrs.low), bound = static_cast<std::uint64_t>(attrs.high) - low;
  T* out = call.outputs[0].as<T>();
  for_words<2>(stream_of(call.inputs[0], attrs.path), call.outputs[0].numel(),
               [&](std::int64_t first, std::int64_t n, const std::uint32_t* words) {
                 for (std::int64_t i = 0; i < n; ++i)
                   out[first + i] = static_cast<T>(low + below(words[2 * i], words[2 * i + 1], bound));
               });
}

// The shuffle of Fisher and Yates in its inside-out form: element i swaps with a random place among the first i + 1.
template <class T>
void randperm_of(const KernelCall& call) {
  const auto& attrs = call.attributes<RandpermAttrs>();
  const RandomStream stream = stream_of(call.inputs[0], attrs.path);
  T* out = call.outputs[0].as<T>();
  constexpr std::int64_t batch = kBatch * 2;
  std::uint32_t words[kBatch * 4];
  for (std::int64_t i = 0; i < attrs.n; ++i) {
    const std::int64_t at = i % batch;
    if (at == 0) draw(stream, static_cast<std::uint64_t>(i / 2), words);
    const auto place = static_cast<std::int64_t>(below(words[2 * at], words[2 * at + 1], static_cast<std::uint64_t>(i) + 1));
    out[i] = out[place];
    out[place] = static_cast<T>(i);
  }
}

// ---- truncated normal ----

// Spreads the probability mass between the two bounds evenly over the draws, and takes quantiles. Bounds above the mean are
// mirrored to the side below the mean, where the mass is computed without cancellation.
template <class T>
void trunc_normal_of(const KernelCall& call) {
  const auto& a = call.attributes<TruncNormalAttrs>();
  const bool mirrored = a.low > a.mean;
  const double side = mirrored ? -1 : 1, root = std::sqrt(0.5);
  const double from = side * ((mirrored ? a.high : a.low) - a.mean) / a.deviation;
  const double to = side * ((mirrored ? a.low : a.high) - a.mean) / a.deviation;
  const double mass_from = 0.5 * std::erfc(-from * root), mass = 0.5 * std::erfc(-to * root) - mass_from;
  const T low = static_cast<T>(a.low), high = static_cast<T>(a.high);
  T* out = call.outputs[0].as<T>();
  for_words<sizeof(T) / 4>(stream_of(call.inputs[0], a.path), call.outputs[0].numel(),
                           [&](std::int64_t first, std::int64_t n, const std::uint32_t* words) {
                             for (std::int64_t i = 0; i < n; ++i) {
                               const double z =
                                   normal_quantile(mass_from + mass * static_cast<double>(uniform_at(words, i, T{})));
                               out[first + i] = std::clamp(static_cast<T>(a.mean + side * a.deviation * z), low, high);
                             }
                           });
}

// ---- multinomial ----

// A class and its sort key: the sum of the probabilities up to the class, or the random time at which the class is drawn.
struct Ranked {
  double key;
  std::int64_t index;
  bool operator<(const Ranked& o) const { return key != o.key ? key < o.key : index < o.index; }
};

// Writes the running sums of one row of probabilities. Returns false and reports a fault if the row holds no valid
// probabilities.
template <class T>
bool add_up(const KernelCall& call, const T* p, std::int64_t classes, std::int64_t row, Ranked* sums) {
  double total = 0;
  for (std::int64_t k = 0; k < classes; ++k) {
    if (!(p[k] >= T(0)) || std::isinf(p[k]))
      return call.fault->report("probability negative or not finite, of class", k), false;
    total += static_cast<double>(p[k]);
    sums[k] = {total, k};
  }
  if (total > 0) return true;
  return call.fault->report("probabilities add to zero, in row", row), false;
}

double draw_f64(const RandomStream& stream, std::int64_t i) {
  const PhiloxBlock b = stream.block(static_cast<std::uint64_t>(i) / 2);
  return uniform_f64(b.word[2 * (i % 2)], b.word[2 * (i % 2) + 1]);
}

void draw_with_replacement(const RandomStream& stream, const Ranked* sums, std::int64_t classes, std::int64_t first,
                           std::int64_t n, std::int64_t* out) {
  const double total = sums[classes - 1].key;
  for (std::int64_t i = 0; i < n; ++i) {
    const double at = draw_f64(stream, first + i) * total;  // below the total, so that at least one sum is above it
    const auto above = std::upper_bound(sums, sums + classes, at, [](double x, const Ranked& r) { return x < r.key; });
    out[i] = std::min(above, sums + classes - 1)->index;
  }
}

// Draws classes in the order of random times: the time of a class has an exponential distribution whose rate is the class's
// probability (Efraimidis and Spirakis, 2006).
template <class T>
void draw_without_replacement(const KernelCall& call, const RandomStream& stream, const T* p, Ranked* times,
                              std::int64_t classes, std::int64_t first, std::int64_t n, std::int64_t* out) {
  for (std::int64_t k = 0; k < classes; ++k) {
    const double wait = -log_f64(1 - draw_f64(stream, first + k));
    times[k] = {p[k] > T(0) ? wait / static_cast<double>(p[k]) : std::numeric_limits<double>::infinity(), k};
  }
  std::partial_sort(times, times + n, times + classes);
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = times[i].index;
    if (!(p[times[i].index] > T(0)))
      call.fault->report("too few classes of nonzero probability for samples without replacement", n);
  }
}

template <class T>
void multinomial_of(const KernelCall& call) {
  const auto& attrs = call.attributes<MultinomialAttrs>();
  const View& p = call.inputs[0];
  const std::int64_t classes = p.sizes[p.rank - 1], rows = p.rank == 2 ? p.sizes[0] : 1, n = attrs.samples;
  const RandomStream stream = stream_of(call.inputs[1], attrs.path);
  parallel_for(rows, grain_for(30.0 * static_cast<double>(classes + n)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      Ranked* scratch = static_cast<Ranked*>(call.workspace) + row * classes;
      const T* chances = p.as<T>() + row * classes;
      std::int64_t* out = call.outputs[0].as<std::int64_t>() + row * n;
      std::fill(out, out + n, std::int64_t{0});
      if (!add_up(call, chances, classes, row, scratch)) continue;
      if (attrs.replacement)
        draw_with_replacement(stream, scratch, classes, row * n, n, out);
      else
        draw_without_replacement(call, stream, chances, scratch, classes, row * classes, n, out);
    }
  });
}

}  // namespace

void alpha_dropout(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { alpha_dropout_of<decltype(t)>(call); });
}

void bernoulli(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { bernoulli_of<decltype(t)>(call); });
}

void randint(const KernelCall& call) {
  for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    if constexpr (std::is_integral_v<decltype(t)>) randint_of<decltype(t)>(call);
  });
}

void randperm(const KernelCall& call) {
  if (call.outputs[0].dtype == DType::i32) return randperm_of<std::int32_t>(call);
  randperm_of<std::int64_t>(call);
}

void trunc_normal(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { trunc_normal_of<decltype(t)>(call); });
}

void multinomial(const KernelCall& call) {
  for_floats(call, call.inputs[0].dtype, [&](auto t) { multinomial_of<decltype(t)>(call); });
}

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

// The first two words of the block of the stream whose number is operand 1 become the new seed: 53 bits, so that an f64 holds
// it exactly. The step stays.
void fold_in(const KernelCall& call) {
  const std::int64_t step = call.inputs[0].as<std::int64_t>()[1];
  const RandomStream stream = stream_of(call.inputs[0], static_cast<const FoldInAttrs*>(call.attrs)->path);
  const PhiloxBlock block = stream.block(static_cast<std::uint64_t>(*call.inputs[1].as<std::int64_t>()));
  std::int64_t* out = call.outputs[0].as<std::int64_t>();
  out[0] = static_cast<std::int64_t>(std::uint64_t{block.word[1] & 0x1FFFFFu} << 32 | block.word[0]);
  out[1] = step;
}

}  // namespace tapedeck::kernels::cpu
