// The updates of optimizers, element for element, and the memory that one update works on. The arithmetic is that of
// cpu/optimizer/optimizer.cpp, element for element, so the bits are the same; only the power in the correction of adam comes
// from the math library of the device.
//
// An update is a struct with
//   Numbers<V>              the numbers that all elements share, converted to the type of the arithmetic
//   numbers<V>(rate, count) makes them, from the learning rate and the step count that lie in memory of the device
//   step(numbers, in, out)  computes one element from the elements of the operands; kIn operands, kOut results
// Result 0 replaces operand 0, and result k > 0 replaces operand k + 1; it may be the very bytes of that operand.
#pragma once

#include <tapedeck/kernels/attrs/optimizer.h>
#include <tapedeck/kernels/cuda/elements.h>
#include <tapedeck/kernels/scalar.h>

#include <cmath>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

inline constexpr int kMostStates = 5;  // w, g, and at most three states

template <class Update>
struct Step {
  std::int64_t n;
  std::int64_t packs;  // groups of four elements that are computed a group at a time
  const void* in[kMostStates];
  void* out[kMostStates];
  DType dtype;                    // of the elements
  const void* rate;               // the learning rate
  DType rate_dtype;               // it may have another type than the weights
  const std::int64_t* count;      // the step count, or null
  const std::uint8_t* condition;  // the step is switched off where this is false; null: never
  Update update;
};

template <class V>
TAPEDECK_DEVICE V scalar_at(const void* data, DType dtype) {
  return dtype == DType::f64 ? static_cast<V>(*static_cast<const double*>(data)) : static_cast<V>(load<Real>(data, dtype, 0));
}

// The elements of one thread: every `stride`-th from `first` on.
struct Stretch {
  std::int64_t first, end, stride;
};

// Every result is the operand that it replaces, where the step is off.
template <class T, class Update>
TAPEDECK_DEVICE void keep(const Step<Update>& s, const Stretch& walk) {
  for (int k = 0; k < Update::kOut; ++k) {
    const void* from = s.in[k == 0 ? 0 : k + 1];
    if (from == s.out[k]) continue;
    for (std::int64_t i = walk.first; i < walk.end; i += walk.stride) store<T>(s.out[k], s.dtype, i, load<T>(from, s.dtype, i));
  }
}

template <class T, class Update, class Numbers>
TAPEDECK_DEVICE void update_one(const Step<Update>& s, const Numbers& numbers, std::int64_t i) {
  Value<T> in[Update::kIn], out[Update::kOut];
  for (int k = 0; k < Update::kIn; ++k) in[k] = load<T>(s.in[k], s.dtype, i);
  s.update.step(numbers, in, out);
  for (int k = 0; k < Update::kOut; ++k) store<T>(s.out[k], s.dtype, i, out[k]);
}

template <int kCount, class T, class Update, class Numbers>
TAPEDECK_DEVICE void update_pack(const Step<Update>& s, const Numbers& numbers, std::int64_t at) {
  Value<T> in[Update::kIn][kCount], out[Update::kOut][kCount];
  for (int k = 0; k < Update::kIn; ++k) load_pack<T>(s.in[k], s.dtype, at, in[k]);
  for (int i = 0; i < kCount; ++i) {
    Value<T> operands[Update::kIn], results[Update::kOut];
    for (int k = 0; k < Update::kIn; ++k) operands[k] = in[k][i];
    s.update.step(numbers, operands, results);
    for (int k = 0; k < Update::kOut; ++k) out[k][i] = results[k];
  }
  for (int k = 0; k < Update::kOut; ++k) store_pack<T>(s.out[k], s.dtype, at, out[k]);
}

// The tensors of one update.
template <class Update>
Step<Update> memory_of(const View* inputs, const View* outputs, const Update& update) {
  const View& w = inputs[0];
  Step<Update> s{w.numel(), 0, {}, {}, w.dtype, nullptr, DType::f32, nullptr, nullptr, update};
  const std::size_t pack = w.dtype == DType::f64 ? 2 : 4;
  bool aligned = true;
  for (int k = 0; k < Update::kIn; ++k) s.in[k] = inputs[k].data;
  for (int k = 0; k < Update::kOut; ++k) s.out[k] = outputs[k].data;
  for (int k = 0; k < Update::kIn; ++k) aligned = aligned && is_aligned(s.in[k], pack * dtype_size(w.dtype));
  for (int k = 0; k < Update::kOut; ++k) aligned = aligned && is_aligned(s.out[k], pack * dtype_size(w.dtype));
  if (aligned) s.packs = s.n / static_cast<std::int64_t>(pack);
  return s;
}

// One step of an optimizer. Its operands are those of the update, a step count if the op has one, the learning rate, and
// perhaps the condition.
template <class Update>
Step<Update> step_of(const View* inputs, int n_inputs, const View* outputs, const Update& update, bool counted) {
  Step<Update> s = memory_of(inputs, outputs, update);
  int next = Update::kIn;
  if (counted) s.count = inputs[next++].as<std::int64_t>();
  s.rate = inputs[next].data, s.rate_dtype = inputs[next].dtype;
  if (inputs[n_inputs - 1].dtype == DType::boolean) s.condition = inputs[n_inputs - 1].as<std::uint8_t>();
  return s;
}

// ---- the updates ----

struct Sgd {
  static constexpr int kIn = 2, kOut = 1;
  double weight_decay;

  template <class V>
  struct Numbers {
    V decay, rate;
  };
  template <class V>
  TAPEDECK_DEVICE Numbers<V> numbers(V rate, double) const {
    return {static_cast<V>(weight_decay), rate};
  }
  template <class V>
  TAPEDECK_DEVICE void step(const Numbers<V>& n, const V* in, V* out) const {
    const V w = in[0], g = in[1];
    out[0] = w - n.rate * (g + n.decay * w);
  }
};

// With a step count, the first step ignores the dampening.
struct SgdMomentum {
  static constexpr int kIn = 3, kOut = 2;
  double momentum, weight_decay, dampening;
  bool nesterov;

  template <class V>
  struct Numbers {
    V decay, momentum, fresh, rate;
  };
  template <class V>
  TAPEDECK_DEVICE Numbers<V> numbers(V rate, double count) const {
    return {static_cast<V>(weight_decay), static_cast<V>(momentum), count == 1 ? V(1) : static_cast<V>(1 - dampening), rate};
  }
  template <class V>
  TAPEDECK_DEVICE void step(const Numbers<V>& n, const V* in, V* out) const {
    const V w = in[0], gradient = in[1] + n.decay * w;
    const V velocity = n.momentum * in[2] + n.fresh * gradient;
    const V way = nesterov ? gradient + n.momentum * velocity : velocity;
    out[0] = w - n.rate * way;
    out[1] = velocity;
  }
};

// Adam: with decoupled weight decay (AdamW) or without, and with the largest second moment so far (AMSGrad) or the present one.
template <bool kDecoupled, bool kLargest>
struct Adam {
  static constexpr int kIn = kLargest ? 5 : 4, kOut = kLargest ? 4 : 3;
  double beta1, beta2, eps, weight_decay;

  template <class V>
  struct Numbers {
    V rate, beta1, beta2, eps, rest1, rest2, unbias1, unbias2, decay, keep;
  };
  template <class V>
  TAPEDECK_DEVICE Numbers<V> numbers(V rate, double count) const {
    Numbers<V> n;
    n.rate = rate;
    n.beta1 = static_cast<V>(beta1), n.rest1 = static_cast<V>(1 - beta1);
    n.beta2 = static_cast<V>(beta2), n.rest2 = static_cast<V>(1 - beta2);
    n.eps = static_cast<V>(eps);
    n.unbias1 = static_cast<V>(1 / (1 - std::pow(beta1, count)));
    n.unbias2 = static_cast<V>(1 / (1 - std::pow(beta2, count)));
    n.decay = kDecoupled ? V(0) : static_cast<V>(weight_decay);
    n.keep = kDecoupled ? V(1) - rate * static_cast<V>(weight_decay) : V(1);
    return n;
  }
  template <class V>
  TAPEDECK_DEVICE void step(const Numbers<V>& n, const V* in, V* out) const {
    const V w = in[0], g = in[1];
    const V gradient = kDecoupled ? g : g + n.decay * w;
    const V first = n.beta1 * in[2] + n.rest1 * gradient;
    const V second = n.beta2 * in[3] + n.rest2 * (gradient * gradient);
    V size = second;
    if constexpr (kLargest) size = out[3] = Maximum{}(in[4], second);
    out[0] = w * n.keep - n.rate * (first * n.unbias1) / (std::sqrt(size * n.unbias2) + n.eps);
    out[1] = first;
    out[2] = second;
  }
};

// Operands: w, g, mean of squares, [mean,] [velocity].
template <bool kCentered, bool kMomentum>
struct Rmsprop {
  static constexpr int kIn = 3 + kCentered + kMomentum, kOut = 2 + kCentered + kMomentum;
  double alpha, eps, weight_decay, momentum;

  template <class V>
  struct Numbers {
    V alpha, rest, eps, decay, momentum, rate;
  };
  template <class V>
  TAPEDECK_DEVICE Numbers<V> numbers(V rate, double) const {
    return {static_cast<V>(alpha),        static_cast<V>(1 - alpha), static_cast<V>(eps),
            static_cast<V>(weight_decay), static_cast<V>(momentum),  rate};
  }
  template <class V>
  TAPEDECK_DEVICE void step(const Numbers<V>& n, const V* in, V* out) const {
    const V w = in[0], gradient = in[1] + n.decay * w;
    const V squares = n.alpha * in[2] + n.rest * (gradient * gradient);
    V spread = squares;
    if constexpr (kCentered) {
      const V mean = n.alpha * in[3] + n.rest * gradient;
      spread = Maximum{}(squares - mean * mean, V(0));  // rounding must not make the variance negative
      out[2] = mean;
    }
    V way = gradient / (std::sqrt(spread) + n.eps);
    if constexpr (kMomentum) {
      way = n.momentum * in[3 + kCentered] + way;
      out[2 + kCentered] = way;
    }
    out[0] = w - n.rate * way;
    out[1] = squares;
  }
};

struct Adagrad {
  static constexpr int kIn = 3, kOut = 2;
  double lr_decay, eps, weight_decay;

  template <class V>
  struct Numbers {
    V rate, eps, decay;
  };
  template <class V>
  TAPEDECK_DEVICE Numbers<V> numbers(V rate, double count) const {
    return {rate / static_cast<V>(1 + (count - 1) * lr_decay), static_cast<V>(eps), static_cast<V>(weight_decay)};
  }
  template <class V>
  TAPEDECK_DEVICE void step(const Numbers<V>& n, const V* in, V* out) const {
    const V w = in[0], gradient = in[1] + n.decay * w;
    const V squares = in[2] + gradient * gradient;
    out[0] = w - n.rate * gradient / (std::sqrt(squares) + n.eps);
    out[1] = squares;
  }
};

struct Adadelta {
  static constexpr int kIn = 4, kOut = 3;
  double rho, eps, weight_decay;

  template <class V>
  struct Numbers {
    V rho, rest, eps, decay, rate;
  };
  template <class V>
  TAPEDECK_DEVICE Numbers<V> numbers(V rate, double) const {
    return {static_cast<V>(rho), static_cast<V>(1 - rho), static_cast<V>(eps), static_cast<V>(weight_decay), rate};
  }
  template <class V>
  TAPEDECK_DEVICE void step(const Numbers<V>& n, const V* in, V* out) const {
    const V w = in[0], gradient = in[1] + n.decay * w;
    const V squares = n.rho * in[2] + n.rest * (gradient * gradient);
    const V way = std::sqrt(in[3] + n.eps) / std::sqrt(squares + n.eps) * gradient;
    out[0] = w - n.rate * way;
    out[1] = squares;
    out[2] = n.rho * in[3] + n.rest * (way * way);
  }
};

struct Lion {
  static constexpr int kIn = 3, kOut = 2;
  double beta1, beta2, weight_decay;

  template <class V>
  struct Numbers {
    V beta1, rest1, beta2, rest2, rate, keep;
  };
  template <class V>
  TAPEDECK_DEVICE Numbers<V> numbers(V rate, double) const {
    return {static_cast<V>(beta1),
            static_cast<V>(1 - beta1),
            static_cast<V>(beta2),
            static_cast<V>(1 - beta2),
            rate,
            V(1) - rate * static_cast<V>(weight_decay)};
  }
  template <class V>
  TAPEDECK_DEVICE void step(const Numbers<V>& n, const V* in, V* out) const {
    const V w = in[0], g = in[1], m = in[2];
    const V way = n.beta1 * m + n.rest1 * g;
    const V sign = way > V(0) ? V(1) : way < V(0) ? V(-1) : way;  // 0 and NaN stay as they are
    out[0] = w * n.keep - n.rate * sign;
    out[1] = n.beta2 * m + n.rest2 * g;
  }
};

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
