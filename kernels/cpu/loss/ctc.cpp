// Connectionist temporal classification (Graves et al., 2006): -log of the probability that a sequence of class scores spells a
// target, summed over all alignments, and its gradient.
//
// A target of n labels becomes 2 n + 1 states: blank, label, blank, label, ..., blank. Let e[t, s] be the log probability of
// the class of state s at time t. Then alpha[t, s] = e[t, s] + log sum exp of alpha[t - 1] over s, s - 1 and, where a label
// differs from the previous label, s - 2. beta is the same recurrence backwards in time. One thread computes one sequence, so
// the bits do not depend on the number of threads.
#include <tapedeck/kernels/attrs/loss.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>
#include <limits>

namespace tapedeck::kernels::cpu {
namespace {

// The number of states of probability 0 at one end of a row, so that a recurrence needs no special case there.
constexpr std::int64_t kPad = 2;

std::int64_t integer_at(const View& v, std::int64_t i) {
  return v.dtype == DType::i32 ? v.as<std::int32_t>()[i] : v.as<std::int64_t>()[i];
}

// log(e^a + e^b + e^c). Each of the three may be -inf.
template <class T>
T log_add(T a, T b, T c) {
  const T top = std::max(a, std::max(b, c));
  const T shift = top == -std::numeric_limits<T>::infinity() ? T(0) : top;
  return log_of(exp_of(a - shift) + exp_of(b - shift) + exp_of(c - shift)) + shift;
}

// One sequence of the batch.
template <class T>
struct Sequence {
  static constexpr T kNever = -std::numeric_limits<T>::infinity();
  const View* targets = nullptr;
  const T* scores = nullptr;  // the scores of time 0
  std::int64_t first_target = 0, time_step = 0, times = 0, states = 0, blank = 0;

  std::int64_t label(std::int64_t s) const { return s % 2 ? integer_at(*targets, first_target + s / 2) : blank; }
  T emission(std::int64_t t, std::int64_t s) const { return scores[t * time_step + label(s)]; }
  bool may_skip_to(std::int64_t s) const { return s % 2 && s >= 2 && label(s) != label(s - 2); }

  // Computes alpha of time t into row[kPad ...] from alpha of the previous time. Both rows begin with kPad states of
  // probability 0.
  void forward(std::int64_t t, const T* before, T* row) const {
    std::fill(row, row + kPad, kNever);
    for (std::int64_t s = 0; s < states; ++s) {
      const T* at = before + kPad + s;
      const T reached = t == 0 ? (s < 2 ? T(0) : kNever) : log_add(at[0], at[-1], may_skip_to(s) ? at[-2] : kNever);
      row[kPad + s] = reached + emission(t, s);
    }
  }
  // Returns beta of state s at time t, from next[s] = beta + emission of time t + 1. Rows end with kPad states of probability
  // 0.
  T backward(std::int64_t t, std::int64_t s, const T* next) const {
    if (t == times - 1) return s + 2 >= states ? T(0) : kNever;
    return log_add(next[s], next[s + 1], s + 2 < states && may_skip_to(s + 2) ? next[s + 2] : kNever);
  }
  // The log probability of the target, from alpha of the last time.
  T log_probability(const T* row) const {
    if (times == 0) return states == 1 ? T(0) : kNever;
    return log_add(row[kPad + states - 1], row[kPad + states - 2], kNever);
  }
};

// Makes sequence n of the batch. Returns false and reports a fault if a length or a label is out of range.
template <class T>
bool make_sequence(const KernelCall& call, std::int64_t n, Sequence<T>* out) {
  const View &scores = call.inputs[0], &targets = call.inputs[1];
  const std::int64_t batch = scores.sizes[1], classes = scores.sizes[2];
  const std::int64_t times = integer_at(call.inputs[2], n), length = integer_at(call.inputs[3], n);
  if (times < 0 || times > scores.sizes[0]) return call.fault->report("input length out of range", times), false;
  if (length < 0 || length > targets.sizes[1]) return call.fault->report("target length out of range", length), false;
  const std::int64_t blank = call.attributes<CtcAttrs>().blank, first = n * targets.sizes[1];
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t label = integer_at(targets, first + i);
    if (label < 0 || label >= classes || label == blank) return call.fault->report("label out of range", label), false;
  }
  *out = {&targets, scores.as<T>() + n * classes, first, batch * classes, times, 2 * length + 1, blank};
  return true;
}

std::int64_t row_length(const View& targets) { return 2 * targets.sizes[1] + 1 + 2 * kPad; }

std::int64_t grain_of(const KernelCall& call) {
  const double states = static_cast<double>(row_length(call.inputs[1]));
  return grain_for(30 * states * static_cast<double>(call.inputs[0].sizes[0]) + 100);
}

template <class T>
void loss_of(const KernelCall& call) {
  const bool zero_infinity = call.attributes<CtcAttrs>().zero_infinity;
  const std::int64_t width = row_length(call.inputs[1]);
  T* out = call.outputs[0].as<T>();
  parallel_for(call.outputs[0].numel(), grain_of(call), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      Sequence<T> q;
      out[n] = T(0);
      if (!make_sequence(call, n, &q)) continue;
      T* before = static_cast<T*>(call.workspace) + n * 2 * width;
      T* row = before + width;
      for (std::int64_t t = 0; t < q.times; ++t) {
        std::swap(before, row);
        q.forward(t, before, row);
      }
      const T loss = -q.log_probability(row);
      out[n] = zero_infinity && loss == std::numeric_limits<T>::infinity() ? T(0) : loss;
    }
  });
}

// d log p[t, k] = -dloss * (the probability, given the target, that the state at time t has class k).
template <class T>
void sequence_gradient(const Sequence<T>& q, T* alpha, std::int64_t width, T dloss, bool zero_infinity, T* out) {
  if (q.times == 0) return;
  for (std::int64_t t = 0; t < q.times; ++t) q.forward(t, alpha + std::max<std::int64_t>(t - 1, 0) * width, alpha + t * width);
  const T total = q.log_probability(alpha + (q.times - 1) * width);
  if (zero_infinity && total == Sequence<T>::kNever) return;
  T *next = alpha + q.times * width, *row = next + width;
  for (std::int64_t t = q.times - 1; t >= 0; --t) {
    for (std::int64_t s = 0; s < q.states; ++s) {
      const T beta = q.backward(t, s, next);
      row[s] = beta + q.emission(t, s);
      out[t * q.time_step + q.label(s)] -= exp_of(alpha[t * width + kPad + s] + beta - total) * dloss;
    }
    std::fill(row + q.states, row + q.states + kPad, Sequence<T>::kNever);
    std::swap(row, next);
  }
}

template <class T>
void gradient_of(const KernelCall& call) {
  const View& scores = call.inputs[0];
  const std::int64_t width = row_length(call.inputs[1]), batch = scores.sizes[1], classes = scores.sizes[2];
  T* out = call.outputs[0].as<T>();
  parallel_for(batch, grain_of(call), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      for (std::int64_t t = 0; t < scores.sizes[0]; ++t) std::fill_n(out + (t * batch + n) * classes, classes, T(0));
      Sequence<T> q;
      if (!make_sequence(call, n, &q)) continue;
      T* alpha = static_cast<T*>(call.workspace) + n * (scores.sizes[0] + 2) * width;
      sequence_gradient(q, alpha, width, call.inputs[4].as<T>()[n], call.attributes<CtcAttrs>().zero_infinity,
                        out + n * classes);
    }
  });
}

}  // namespace

void ctc_loss(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { loss_of<decltype(t)>(call); });
}

void ctc_loss_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { gradient_of<decltype(t)>(call); });
}

}  // namespace tapedeck::kernels::cpu
