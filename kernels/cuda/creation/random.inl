// Random draws by Philox (philox.h). A thread computes whole Philox blocks: four elements, or two where an element takes two
// words. The bits equal those of the CPU kernels. Operands and results are dense.
#pragma once

#include <tapedeck/kernels/alpha_dropout.h>
#include <tapedeck/kernels/attrs/random.h>
#include <tapedeck/kernels/cuda/creation/stream.h>
#include <tapedeck/kernels/cuda/device_fault.h>
#include <tapedeck/kernels/cuda/elements.h>
#include <tapedeck/kernels/normal_quantile.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// The arguments of every draw: out[i] = rule(x[i], words of element i). `x` is null for a draw without an operand.
template <class Rule>
struct Draw {
  const std::int64_t* rng;  // the operand (seed, step), in memory of the device
  std::uint64_t path_hash;
  std::int64_t n;
  const void* x;
  void* out;
  DType dtype;   // of x and out
  bool aligned;  // so that the elements of a block are loaded and stored together
  Rule rule;
};

// The elements of one block: together, where `whole`, or the first `count` of them.
template <class T, int kPerBlock>
TAPEDECK_DEVICE void load_part(const void* data, DType dtype, std::int64_t at, int count, bool whole,
                               Value<T> (&x)[kPerBlock]) {
  if constexpr (!std::is_same_v<T, Integer>) {
    if (whole) return load_pack<T>(data, dtype, at, x);
  }
  for (int i = 0; i < kPerBlock; ++i) x[i] = i < count ? load<T>(data, dtype, at + i) : Value<T>(0);
}
template <class T, int kPerBlock>
TAPEDECK_DEVICE void store_part(void* data, DType dtype, std::int64_t at, int count, bool whole,
                                const Value<T> (&x)[kPerBlock]) {
  if constexpr (!std::is_same_v<T, Integer>) {
    if (whole) return store_pack<T>(data, dtype, at, x);
  }
  for (int i = 0; i < kPerBlock; ++i)
    if (i < count) store<T>(data, dtype, at + i, x[i]);
}

// A rule has kPerBlock, the elements of one block, and fills them in from the block: draw(block, first, count, x, out), where
// element 0 of x and of out is element `first` of the tensor, and `count` elements exist.
template <class T, class Rule>
TAPEDECK_KERNEL void draw_kernel(const Draw<Rule> draw) {
  constexpr int kPerBlock = Rule::kPerBlock;
  const RandomStream stream = device_stream(draw.rng, draw.path_hash);
  for (std::int64_t index = thread_index(); index * kPerBlock < draw.n; index += thread_count()) {
    const std::int64_t first = index * kPerBlock;
    const int count = draw.n - first < kPerBlock ? static_cast<int>(draw.n - first) : kPerBlock;
    const bool whole = draw.aligned && count == kPerBlock;
    Value<T> x[kPerBlock] = {}, out[kPerBlock];
    if (draw.x) load_part<T>(draw.x, draw.dtype, first, count, whole, x);
    draw.rule.draw(stream.block(static_cast<std::uint64_t>(index)), first, count, x, out);
    store_part<T>(draw.out, draw.dtype, first, count, whole, out);
  }
}

template <class T, class Rule>
void run_draw(const KernelCall& call, Name path, const Rule& rule) {
  const View& out = call.outputs[0];
  const void* x = call.n_inputs > 1 ? call.inputs[0].data : nullptr;
  const std::size_t together = Rule::kPerBlock * dtype_size(out.dtype);
  const Draw<Rule> draw{call.inputs[call.n_inputs - 1].as<std::int64_t>(),
                        fnv1a64(path.view()),
                        out.numel(),
                        x,
                        out.data,
                        out.dtype,
                        is_floating(out.dtype) && is_aligned(x, together) && is_aligned(out.data, together),
                        rule};
  launch<Draw<Rule>>(call, &draw_kernel<T, Rule>, for_items((draw.n + Rule::kPerBlock - 1) / Rule::kPerBlock), draw);
}

// Uniform number i of one block, in [0, 1).
TAPEDECK_DEVICE float uniform_of(const PhiloxBlock& block, int i, float) { return uniform_f32(block.word[i]); }
TAPEDECK_DEVICE double uniform_of(const PhiloxBlock& block, int i, double) {
  return uniform_f64(block.word[2 * i], block.word[2 * i + 1]);
}
template <class V>
inline constexpr int kUniformsPerBlock = 16 / sizeof(V);

template <class V>
struct UniformDraw {
  static constexpr int kPerBlock = kUniformsPerBlock<V>;
  V low, high;
  TAPEDECK_DEVICE void draw(const PhiloxBlock& block, std::int64_t, int, const V*, V* out) const {
    const V span = high - low;
    for (int i = 0; i < kPerBlock; ++i) {
      const V x = low + span * uniform_of(block, i, V{});
      out[i] = x < high ? x : low;  // rounding may reach the open upper bound; such a draw becomes the lower bound
    }
  }
};

template <class V>
struct NormalDraw {
  static constexpr int kPerBlock = kUniformsPerBlock<V>;
  V mean, deviation;
  TAPEDECK_DEVICE void draw(const PhiloxBlock& block, std::int64_t, int, const V*, V* out) const {
    for (int i = 0; i < kPerBlock; i += 2) {
      box_muller(uniform_of(block, i, V{}), uniform_of(block, i + 1, V{}), &out[i], &out[i + 1]);
      out[i] = mean + deviation * out[i];
      out[i + 1] = mean + deviation * out[i + 1];
    }
  }
};

// The mass of the distribution between the bounds, spread evenly over the draws (cpu/creation/random.cpp).
template <class V>
struct TruncNormalDraw {
  static constexpr int kPerBlock = kUniformsPerBlock<V>;
  double mass_from, mass, mean, scale;
  V low, high;
  TAPEDECK_DEVICE void draw(const PhiloxBlock& block, std::int64_t, int, const V*, V* out) const {
    for (int i = 0; i < kPerBlock; ++i) {
      const double z = normal_quantile(mass_from + mass * static_cast<double>(uniform_of(block, i, V{})));
      const V x = static_cast<V>(mean + scale * z);
      out[i] = x < low ? low : (high < x ? high : x);
    }
  }
};

// A dropped element becomes `dropped`, a kept one scale * x + shift. One word per element for every type.
template <class V, bool kShifted>
struct DropoutDraw {
  static constexpr int kPerBlock = 4;
  float p;  // the probability that an element is dropped
  V scale, shift, dropped;
  TAPEDECK_DEVICE void draw(const PhiloxBlock& block, std::int64_t, int, const V* x, V* out) const {
    for (int i = 0; i < kPerBlock; ++i) {
      const V kept = kShifted ? x[i] * scale + shift : x[i] * scale;
      out[i] = uniform_f32(block.word[i]) >= p ? kept : dropped;
    }
  }
};

template <class V>
struct BernoulliDraw {
  static constexpr int kPerBlock = kUniformsPerBlock<V>;
  KernelFault* fault;
  TAPEDECK_DEVICE void draw(const PhiloxBlock& block, std::int64_t first, int count, const V* x, V* out) const {
    for (int i = 0; i < kPerBlock; ++i) {
      if (i < count && !(x[i] >= V(0) && x[i] <= V(1))) report_fault(fault, Fault::not_a_probability, first + i);
      out[i] = uniform_of(block, i, V{}) < x[i] ? V(1) : V(0);
    }
  }
};

struct RandintDraw {
  static constexpr int kPerBlock = 2;
  std::uint64_t low, bound;
  TAPEDECK_DEVICE void draw(const PhiloxBlock& block, std::int64_t, int, const std::int64_t*, std::int64_t* out) const {
    for (int i = 0; i < kPerBlock; ++i)
      out[i] = static_cast<std::int64_t>(low + below(block.word[2 * i], block.word[2 * i + 1], bound));
  }
};

// Calls f(T{}, Value<T>{}) for the type of the result.
template <class F>
void for_real_draw(const KernelCall& call, const F& f) {
  for_reals(call, call.outputs[0].dtype, [&](auto t) { f(t, Value<decltype(t)>{}); });
}

void uniform(const KernelCall& call) {
  const auto& a = call.attributes<RandomAttrs>();
  for_real_draw(call, [&](auto t, auto v) {
    using V = decltype(v);
    run_draw<decltype(t)>(call, a.path, UniformDraw<V>{static_cast<V>(a.low), static_cast<V>(a.high)});
  });
}

void normal(const KernelCall& call) {
  const auto& a = call.attributes<RandomAttrs>();
  for_real_draw(call, [&](auto t, auto v) {
    using V = decltype(v);
    run_draw<decltype(t)>(call, a.path, NormalDraw<V>{static_cast<V>(a.low), static_cast<V>(a.high)});
  });
}

// Bounds above the mean are mirrored to the side below the mean, where the mass is computed without cancellation.
void trunc_normal(const KernelCall& call) {
  const auto& a = call.attributes<TruncNormalAttrs>();
  const bool mirrored = a.low > a.mean;
  const double side = mirrored ? -1 : 1, root = std::sqrt(0.5);
  const double from = side * ((mirrored ? a.high : a.low) - a.mean) / a.deviation;
  const double to = side * ((mirrored ? a.low : a.high) - a.mean) / a.deviation;
  const double mass_from = 0.5 * std::erfc(-from * root), mass = 0.5 * std::erfc(-to * root) - mass_from;
  for_real_draw(call, [&](auto t, auto v) {
    using V = decltype(v);
    run_draw<decltype(t)>(
        call, a.path,
        TruncNormalDraw<V>{mass_from, mass, a.mean, side * a.deviation, static_cast<V>(a.low), static_cast<V>(a.high)});
  });
}

void dropout(const KernelCall& call) {
  const auto& a = call.attributes<DropoutAttrs>();
  for_real_draw(call, [&](auto t, auto v) {
    using V = decltype(v);
    const V scale = static_cast<V>(1.0 / (1.0 - a.p));
    run_draw<decltype(t)>(call, a.path, DropoutDraw<V, false>{static_cast<float>(a.p), scale, V(0), V(0)});
  });
}

void alpha_dropout(const KernelCall& call) {
  const auto& a = call.attributes<DropoutAttrs>();
  const AlphaDropout m(a.p);
  for_real_draw(call, [&](auto t, auto v) {
    using V = decltype(v);
    run_draw<decltype(t)>(call, a.path,
                          DropoutDraw<V, true>{static_cast<float>(a.p), static_cast<V>(m.scale), static_cast<V>(m.shift),
                                               static_cast<V>(m.scale * kSeluFloor + m.shift)});
  });
}

void bernoulli(const KernelCall& call) {
  const auto& a = call.attributes<BernoulliAttrs>();
  for_real_draw(call, [&](auto t, auto v) { run_draw<decltype(t)>(call, a.path, BernoulliDraw<decltype(v)>{call.fault}); });
}

void randint(const KernelCall& call) {
  const auto& a = call.attributes<RandintAttrs>();
  const std::uint64_t low = static_cast<std::uint64_t>(a.low), bound = static_cast<std::uint64_t>(a.high) - low;
  run_draw<Integer>(call, a.path, RandintDraw{low, bound});
}

// ---- the random state ----

struct State {
  const std::int64_t* rng;
  const std::int64_t* number;  // fold_in only
  std::uint64_t path_hash;
  std::int64_t* out;
};

TAPEDECK_KERNEL void rng_next_kernel(const State state) {
  const std::int64_t seed = state.rng[0], step = state.rng[1];
  state.out[0] = seed;
  state.out[1] = Add{}(step, std::int64_t{1});
}

void rng_next(const KernelCall& call) {
  launch<State>(call, &rng_next_kernel, Launch{.threads = 1},
                {call.inputs[0].as<std::int64_t>(), nullptr, 0, call.outputs[0].as<std::int64_t>()});
}

// The first two words of the block of the stream whose number is operand 1 become the new seed: 53 bits, so that an f64 holds
// it exactly. The step stays.
TAPEDECK_KERNEL void fold_in_kernel(const State state) {
  const std::int64_t step = state.rng[1];
  const RandomStream stream = device_stream(state.rng, state.path_hash);
  const PhiloxBlock block = stream.block(static_cast<std::uint64_t>(*state.number));
  state.out[0] = static_cast<std::int64_t>(std::uint64_t{block.word[1] & 0x1FFFFFu} << 32 | block.word[0]);
  state.out[1] = step;
}

void fold_in(const KernelCall& call) {
  launch<State>(call, &fold_in_kernel, Launch{.threads = 1},
                {call.inputs[0].as<std::int64_t>(), call.inputs[1].as<std::int64_t>(),
                 fnv1a64(call.attributes<FoldInAttrs>().path.view()), call.outputs[0].as<std::int64_t>()});
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
