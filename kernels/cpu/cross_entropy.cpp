// cross_entropy(logits [n, c], labels [n]): the mean over rows of log(sum(exp(logits))) - logits[label], and its gradient.
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/row_sums.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kMaxPieces = 64;

struct Shape {
  std::int64_t rows, classes;
};
Shape shape_of(const View& logits) { return {logits.sizes[0], logits.sizes[1]}; }

template <class Label>
bool in_range(const KernelCall& call, Label label, std::int64_t classes) {
  if (label >= 0 && label < classes) return true;
  call.fault->report("label out of range", label);
  return false;
}

template <class T, class Label>
T row_loss(const KernelCall& call, std::int64_t row, std::int64_t classes) {
  const T* x = call.inputs[0].as<T>() + row * classes;
  const Label label = call.inputs[1].as<Label>()[row];
  return in_range(call, label, classes) ? log_sum_exp(x, classes, 1) - x[label] : T(0);
}

// Threads sum pieces of rows; pieces are cut by the number of rows alone and summed in order.
template <class T, class Label>
void loss(const KernelCall& call) {
  const Shape s = shape_of(call.inputs[0]);
  const std::int64_t piece = std::max<std::int64_t>(256, (s.rows + kMaxPieces - 1) / kMaxPieces);
  T parts[kMaxPieces] = {};
  parallel_for(s.rows, piece, [&](std::int64_t begin, std::int64_t end) {
    parts[begin / piece] =
        row_sum<T>(end - begin, [&](std::int64_t i) { return row_loss<T, Label>(call, begin + i, s.classes); });
  });
  for (std::int64_t half = kMaxPieces / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  *call.outputs[0].as<T>() = parts[0] / static_cast<T>(s.rows);
}

// dlogits = (softmax(logits) - one_hot(label)) dloss / n
template <class T, class Label>
void gradient(const KernelCall& call) {
  const Shape s = shape_of(call.inputs[0]);
  const T scale = *call.inputs[2].as<T>() / static_cast<T>(s.rows);
  parallel_for(s.rows, grain_for(1.5 * static_cast<double>(s.classes) + 10), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* x = call.inputs[0].as<T>() + row * s.classes;
      T* dx = call.outputs[0].as<T>() + row * s.classes;
      const T top = row_max(x, s.classes, 1);
      const Label label = call.inputs[1].as<Label>()[row];
      const T total =
          row_exp_sum(x, s.classes, 1, top, [&](std::int64_t i, int count, const T* e) { std::copy(e, e + count, dx + i); });
      for (std::int64_t i = 0; i < s.classes; ++i) dx[i] /= total;
      if (in_range(call, label, s.classes)) dx[label] -= T(1);
      for (std::int64_t i = 0; i < s.classes; ++i) dx[i] *= scale;
    }
  });
}

}  // namespace

void cross_entropy(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    if (call.inputs[1].dtype == DType::i32) return loss<T, std::int32_t>(call);
    if (call.inputs[1].dtype == DType::i64) return loss<T, std::int64_t>(call);
    unsupported(call, call.inputs[1].dtype);
  });
}

void cross_entropy_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    if (call.inputs[1].dtype == DType::i32) return gradient<T, std::int32_t>(call);
    if (call.inputs[1].dtype == DType::i64) return gradient<T, std::int64_t>(call);
    unsupported(call, call.inputs[1].dtype);
  });
}

}  // namespace tapedeck::kernels::cpu
