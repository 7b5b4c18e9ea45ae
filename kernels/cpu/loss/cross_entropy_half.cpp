// Rows of few classes are widened block by block, and the loops of class_rows.h run on the blocks. A row of many classes is
// read in pieces of kRowBlock elements, three times: for its maximum, for its sum of exponentials, and for its gradient. It
// stays in a near cache meanwhile.
#include <tapedeck/kernels/cpu/loss/cross_entropy_half.h>

#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/loss/class_rows.h>
#include <tapedeck/kernels/cpu/products/half_rows.h>
#include <tapedeck/kernels/half.h>

#include <array>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kBlockElements = 16384;  // 64 KiB of f32
constexpr std::int64_t kManyClasses = 4096;     // rows with more are read in pieces

template <class Label, class W>
using RowsOfHalves = ClassRows<float, Label, W>;

// Calls f(first row, rows, elements apart) for the rows [begin, end) in blocks that fit, in order. The rows of a block lie one
// behind the other, or side by side in one image.
template <class Label, class W, class F>
void for_half_blocks(const RowsOfHalves<Label, W>& r, std::int64_t begin, std::int64_t end, const F& f) {
  const std::int64_t most = std::clamp<std::int64_t>(kBlockElements / r.classes, 1, kMostLines);
  for (std::int64_t row = begin; row < end;) {
    const std::int64_t together = r.inner == 1 ? end - row : std::min(end - row, r.inner - row % r.inner);
    const std::int64_t width = std::min(together, most);
    f(row, width);
    row += width;
  }
}

// The rows [row, row + width) in `block`, which has kBlockElements.
template <class H, class Label, class W>
Lines widen_rows(const RowsOfHalves<Label, W>& r, const Half* x, std::int64_t row, std::int64_t width, float* block) {
  const Half* const from = x + r.offset(row);
  if (r.inner == 1) {
    widen_row<H>(from, 1, width * r.classes, block);
    return {0, r.classes, 1, r.classes, width};
  }
  for (std::int64_t k = 0; k < r.classes; ++k) widen_row<H>(from + k * r.inner, 1, width, block + k * width);
  return {0, r.classes, width, 1, width};
}

template <class H, class Label, class W>
void round_rows(const RowsOfHalves<Label, W>& r, const float* block, std::int64_t row, std::int64_t width, Half* dx) {
  Half* const to = dx + r.offset(row);
  if (r.inner == 1) return round_row<H>(width * r.classes, block, to);
  for (std::int64_t k = 0; k < r.classes; ++k) round_row<H>(width, block + k * width, to + k * r.inner);
}

// ---- one row of many classes ----

// A row of n halves, `step` elements apart, that is read in pieces of f32 numbers.
template <class H>
struct LongRow {
  const Half* x;
  std::int64_t n, step;

  float at(std::int64_t k) const { return to_f32(H{x[k * step]}); }

  // Calls f(first, count, elements) for the pieces in order. Elements may be written.
  template <class F>
  void for_pieces(const F& f) const {
    float piece[kRowBlock];
    for (std::int64_t k = 0; k < n; k += kRowBlock) {
      const std::int64_t count = std::min<std::int64_t>(kRowBlock, n - k);
      widen_row<H>(x + k * step, step, count, piece);
      f(k, count, piece);
    }
  }
  float maximum() const {
    float top = -std::numeric_limits<float>::infinity();
    for_pieces([&](std::int64_t, std::int64_t count, const float* piece) { top = Maximum{}(top, row_max(piece, count, 1)); });
    return top;
  }
  // The sum of e^(x - top), in the lanes of row_exp_sum.
  float exp_sum(float top) const {
    LaneSum<float> sum;
    for_pieces([&](std::int64_t, std::int64_t count, float* piece) {
      exponentials(piece, count, top);
      sum.add(piece, count);
    });
    return sum.total();
  }
  static void exponentials(float* piece, std::int64_t count, float top) {
    TAPEDECK_INDEPENDENT
    for (std::int64_t l = 0; l < count; ++l) piece[l] = exp_of(piece[l] - top);
  }
};

template <class H, class Label, class W>
LongRow<H> long_row(const RowsOfHalves<Label, W>& r, const Half* x, std::int64_t row) {
  return {x + r.offset(row), r.classes, r.inner};
}

// The sum of weight times -log p over all classes.
template <class H, class W>
float smooth_loss(const LongRow<H>& x, const LogSumExp<float>& total, const W* weights) {
  LaneSum<float> sum;
  x.for_pieces([&](std::int64_t first, std::int64_t count, float* piece) {
    for (std::int64_t l = 0; l < count; ++l) {
      const float loss = -total.log_probability(piece[l]);
      piece[l] = weights ? widened(weights[first + l]) * loss : loss;
    }
    sum.add(piece, count);
  });
  return sum.total();
}

template <class H, class Label, class W>
float long_loss(const RowsOfHalves<Label, W>& r, const LongRow<H>& x, std::int64_t label, float smoothing) {
  if (label < 0) return 0.0f;
  const float top = x.maximum();
  const LogSumExp<float> total{top, log_of(x.exp_sum(top))};
  const float hard = -total.log_probability(x.at(label));
  if (smoothing == 0.0f) return r.weights ? r.weight(label) * hard : hard;
  return (1.0f - smoothing) * r.weight(label) * hard +
         smoothing / static_cast<float>(r.classes) * smooth_loss(x, total, r.weights);
}

// The numbers that the gradient of one row needs beside its scores; see line_gradients.
struct RowGradient {
  float scale, smoothing, all_weights;
};

template <class H, class Label, class W>
void long_gradient(const RowsOfHalves<Label, W>& r, const LongRow<H>& x, std::int64_t label, const RowGradient& g, Half* dx) {
  const auto write = [&](std::int64_t first, std::int64_t count, const float* piece) {
    if (x.step == 1) return round_row<H>(count, piece, dx + first);
    Half rounded[kRowBlock];
    round_row<H>(count, piece, rounded);
    for (std::int64_t l = 0; l < count; ++l) dx[(first + l) * x.step] = rounded[l];
  };
  if (label < 0) {
    const float zeros[kRowBlock] = {};
    for (std::int64_t k = 0; k < x.n; k += kRowBlock) write(k, std::min<std::int64_t>(kRowBlock, x.n - k), zeros);
    return;
  }
  const float top = x.maximum(), sum = x.exp_sum(top), each = g.smoothing / static_cast<float>(r.classes);
  const float weight = r.weight(label), hard = (1.0f - g.smoothing) * weight, total = hard + each * g.all_weights;
  const float factor = total / sum * g.scale, slope = each * g.scale;
  const float at_label = (exp_of(x.at(label) - top) / sum * total - each * weight - hard) * g.scale;
  x.for_pieces([&](std::int64_t first, std::int64_t count, float* piece) {
    LongRow<H>::exponentials(piece, count, top);
    for (std::int64_t l = 0; l < count; ++l) piece[l] *= factor;
    for (std::int64_t l = 0; slope != 0.0f && l < count; ++l) piece[l] -= r.weights ? slope * r.weight(first + l) : slope;
    if (label >= first && label < first + count) piece[label - first] = at_label;
    write(first, count, piece);
  });
}

// ---- the two ops ----

// reduce_rows with a result of halves.
template <class H, class Label, class W, class F>
void reduce_rows_to_halves(const KernelCall& call, const RowsOfHalves<Label, W>& r, Reduction reduction, std::int64_t grain,
                           const F& losses) {
  Half* out = call.outputs[0].as<Half>();
  if (reduction != Reduction::none) {
    const float loss = reduced_loss(r, reduction, losses);
    return round_row<H>(1, &loss, out);
  }
  parallel_for(r.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    float block[kRowBlock];
    for (std::int64_t at = begin; at < end; at += kRowBlock) {
      const std::int64_t count = std::min<std::int64_t>(kRowBlock, end - at);
      losses(at, at + count, block);
      round_row<H>(count, block, out + at);
    }
  });
}

template <class H, class Label, class W>
void losses_of_halves(const KernelCall& call) {
  const auto& attrs = call.attributes<CrossEntropyAttrs>();
  const RowsOfHalves<Label, W> r(call, call.inputs[0], 1, 2, attrs.ignore_index);
  const Half* x = call.inputs[0].as<Half>();
  const float smoothing = static_cast<float>(attrs.label_smoothing);
  const auto losses = [&](std::int64_t begin, std::int64_t end, float* out) {
    if (r.classes > kManyClasses) {
      for (std::int64_t row = begin; row < end; ++row)
        out[row - begin] = long_loss(r, long_row<H>(r, x, row), r.label(row), smoothing);
      return;
    }
    alignas(64) float block[kBlockElements];
    for_half_blocks(r, begin, end, [&](std::int64_t row, std::int64_t width) {
      const std::array<const float*, 1> in = {block};
      with_long_loops(
          widen_rows<H>(r, x, row, width, block), in, static_cast<float*>(nullptr),
          [&](const Lines& s, const auto& from, float*) { line_losses(r, from[0], row, s, smoothing, out + (row - begin)); });
    });
  };
  const Reduction reduction = reduction_of(attrs.reduction);
  if (call.outputs[0].dtype == DType::f32) return reduce_rows(call, r, reduction, r.grain(1.0, 10), losses);
  reduce_rows_to_halves<H>(call, r, reduction, r.grain(1.0, 10), losses);
}

template <class H, class Label, class W>
void gradients_of_halves(const KernelCall& call) {
  const auto& attrs = call.attributes<CrossEntropyAttrs>();
  const RowsOfHalves<Label, W> r(call, call.inputs[0], 1, 3, attrs.ignore_index);
  const float smoothing = static_cast<float>(attrs.label_smoothing);
  const float all_weights = row_sum<float>(smoothing == 0.0f ? 0 : r.classes, [&](std::int64_t k) { return r.weight(k); });
  const RowScale<float> scale = row_scale(r, call.inputs[2], reduction_of(attrs.reduction));
  const Half* x = call.inputs[0].as<Half>();
  Half* dx = call.outputs[0].as<Half>();
  parallel_for(r.rows, r.grain(1.0, 10), [&](std::int64_t begin, std::int64_t end) {
    if (r.classes > kManyClasses) {
      for (std::int64_t row = begin; row < end; ++row)
        long_gradient(r, long_row<H>(r, x, row), r.label(row), {scale(row), smoothing, all_weights}, dx + r.offset(row));
      return;
    }
    alignas(64) float block[kBlockElements];
    for_half_blocks(r, begin, end, [&](std::int64_t row, std::int64_t width) {
      const std::array<const float*, 1> in = {block};
      with_long_loops(widen_rows<H>(r, x, row, width, block), in, block, [&](const Lines& s, const auto& from, float* to) {
        line_gradients(r, from[0], to, row, s, scale, smoothing, all_weights);
      });
      round_rows<H>(r, block, row, width, dx);
    });
  });
}

// Calls f(H{}, Label{}, W{}) for the types of the scores, of the labels and of the weights of classes, if there are any.
template <class F>
void for_half_types(const KernelCall& call, int weight_operand, const F& f) {
  const bool half_weights = weight_operand < call.n_inputs && is_half(call.inputs[weight_operand].dtype);
  const auto with_label = [&](auto label) {
    const auto with_scores = [&](auto h) { half_weights ? f(h, label, h) : f(h, label, float{}); };
    call.inputs[0].dtype == DType::bf16 ? with_scores(Bf16{}) : with_scores(F16{});
  };
  if (call.inputs[1].dtype == DType::i32) return with_label(std::int32_t{});
  if (call.inputs[1].dtype == DType::i64) return with_label(std::int64_t{});
  unsupported(call, call.inputs[1].dtype);
}

}  // namespace

void cross_entropy_half(const KernelCall& call) {
  for_half_types(call, 2,
                 [&](auto h, auto label, auto w) { losses_of_halves<decltype(h), decltype(label), decltype(w)>(call); });
}

void cross_entropy_grad_half(const KernelCall& call) {
  for_half_types(call, 3,
                 [&](auto h, auto label, auto w) { gradients_of_halves<decltype(h), decltype(label), decltype(w)>(call); });
}

}  // namespace tapedeck::kernels::cpu
