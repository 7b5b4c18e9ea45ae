// Normalisations and their gradients: batch_norm, layer_norm, rms_norm, group_norm.
//
// Statistics are computed in blocks that fit the first-level cache. A block's mean comes first, then its squared deviations
// from this mean, both in kRowLanes lanes. The blocks are merged in f64, in order (Chan, Golub and LeVeque, 1979). This takes
// one pass over memory and avoids cancellation. Every gradient has the form dx = a dy w + (x - mean) q + p, where a, q and p
// are constant for the elements that share statistics.
#include <tapedeck/kernels/attrs/norm.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/images.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/cpu/normalization/norm_plan.h>
#include <tapedeck/kernels/cpu/row_sums.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kBlock = 2048;    // the number of elements summed in lanes before f64 takes over
constexpr std::int64_t kStrip = 64;      // the number of columns summed side by side
constexpr std::int64_t kBlockRows = 64;  // the number of rows of a block of a strip
constexpr double kNsPerElement = 0.3;

// The moments of a set of numbers: the count, the mean, and the sum of squared deviations from the mean (m2).
struct Moments {
  double count = 0, mean = 0, m2 = 0;

  void merge(const Moments& o) {
    if (o.count == 0) return;
    const double total = count + o.count, d = o.mean - mean;
    mean += d * (o.count / total);
    m2 += o.m2 + d * d * (count * o.count / total);
    count = total;
  }
  double variance() const { return count > 0 ? m2 / count : 0; }
};

// Adds f(0) ... f(n - 1) into kRowLanes lanes.
template <class T>
struct LaneSum {
  T lane[kRowLanes] = {};

  template <class F>
  void feed(std::int64_t n, F&& f) {
    T sums[kRowLanes];
    for (int l = 0; l < kRowLanes; ++l) sums[l] = lane[l];
    std::int64_t i = 0;
    for (; i + kRowLanes <= n; i += kRowLanes) {
      TAPEDECK_SHORT_LOOP
      for (int l = 0; l < kRowLanes; ++l) sums[l] += f(i + l);
    }
    for (int l = 0; l < kRowLanes; ++l) lane[l] = sums[l];
    for (; i < n; ++i) lane[i % kRowLanes] += f(i);
  }
  double total() { return static_cast<double>(add_lanes(lane)); }
};

template <class T>
Moments moments_of(const T* x, std::int64_t n) {
  Moments all;
  for (std::int64_t at = 0; at < n; at += kBlock) {
    const T* block = x + at;
    const std::int64_t count = std::min(kBlock, n - at);
    LaneSum<T> sum, squares;
    sum.feed(count, [&](std::int64_t i) { return block[i]; });
    Moments m{static_cast<double>(count), sum.total() / static_cast<double>(count), 0};
    const T centre = static_cast<T>(m.mean);
    squares.feed(count, [&](std::int64_t i) { return (block[i] - centre) * (block[i] - centre); });
    m.m2 = squares.total();
    all.merge(m);
  }
  return all;
}

template <class T, class F>
double blocked_sum(std::int64_t n, F&& f) {
  double total = 0;
  for (std::int64_t at = 0; at < n; at += kBlock) {
    LaneSum<T> sum;
    sum.feed(std::min(kBlock, n - at), [&](std::int64_t i) { return f(at + i); });
    total += sum.total();
  }
  return total;
}

// The coefficients of the gradient of one group: dx = scale dy w + (x - mean) q + p.
struct GradCoefficients {
  double scale, q, p;
};

// Computes the coefficients from the size n of the group, the sums over the group of g = dy w and of g (x - mean), and the
// gradients of its mean and of its 1 / deviation.
GradCoefficients grad_coefficients(double n, double rstd, double sum_g, double sum_gx, double dmean, double drstd) {
  const double inverse = n > 0 ? 1 / n : 0, cube = rstd * rstd * rstd;
  return {rstd, -(cube * sum_gx + drstd * cube) * inverse, (dmean - rstd * sum_g) * inverse};
}

template <class T>
const T* weight_of(const KernelCall& call, int index) {
  return call.n_inputs > index ? call.inputs[index].as<T>() : nullptr;
}

// ---- batch_norm ----

BatchPlan batch_plan(const View& x) {
  std::int64_t plane = 1;
  for (int d = 2; d < x.rank; ++d) plane *= x.sizes[d];
  return {x.sizes[0], x.sizes[1], plane};
}

// Calls f(image, offset in the image, count) for the contiguous runs that make up the elements [begin, end) of a channel.
template <class F>
void for_stretches(const BatchPlan& p, std::int64_t channel, std::int64_t begin, std::int64_t end, F&& f) {
  std::int64_t image = begin / p.s, within = begin % p.s;
  for (std::int64_t at = begin; at < end; ++image, within = 0) {
    const std::int64_t count = std::min(p.s - within, end - at);
    f(image, channel * p.s + within, count);
    at += count;
  }
}

// The two doubles of one piece of one column in the workspace.
double* partial(const BatchPlan& p, double* workspace, std::int64_t column, std::int64_t piece) {
  return workspace + 2 * (column * p.pieces + piece);
}

// Calls f(channel, begin, end, out) for every piece of every channel; `out` points to the piece's two doubles.
template <class F>
void for_channel_pieces(const BatchPlan& p, double* workspace, F&& f) {
  const double ns = kNsPerElement * static_cast<double>(std::min(p.piece, p.length)) + 20;
  parallel_for(p.c * p.pieces, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t channel = job / p.pieces, piece = job % p.pieces;
      f(channel, piece * p.piece, std::min(p.length, (piece + 1) * p.piece), partial(p, workspace, channel, piece));
    }
  });
}

// Calls f(first column, width, first row, end row, piece) for every piece of rows of every strip of columns.
template <class F>
void for_strip_pieces(const BatchPlan& p, F&& f) {
  const std::int64_t strips = (p.columns + kStrip - 1) / kStrip;
  const double ns = kNsPerElement * static_cast<double>(std::min(p.piece, p.length) * kStrip) + 20;
  parallel_for(strips * p.pieces, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t column = job / p.pieces * kStrip, piece = job % p.pieces;
      f(column, std::min(kStrip, p.columns - column), piece * p.piece, std::min(p.length, (piece + 1) * p.piece), piece);
    }
  });
}

template <class T>
Moments channel_moments(const BatchPlan& p, const Images<T>& x, std::int64_t channel, std::int64_t begin, std::int64_t end) {
  Moments all;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t stop = std::min(end, at + kBlock);
    LaneSum<T> sum, squares;
    for_stretches(p, channel, at, stop, [&](std::int64_t image, std::int64_t offset, std::int64_t n) {
      const T* from = x.image(image) + offset;
      sum.feed(n, [from](std::int64_t i) { return from[i]; });
    });
    Moments m{static_cast<double>(stop - at), sum.total() / static_cast<double>(stop - at), 0};
    const T centre = static_cast<T>(m.mean);
    for_stretches(p, channel, at, stop, [&](std::int64_t image, std::int64_t offset, std::int64_t n) {
      const T* from = x.image(image) + offset;
      squares.feed(n, [from, centre](std::int64_t i) { return (from[i] - centre) * (from[i] - centre); });
    });
    m.m2 = squares.total();
    all.merge(m);
  }
  return all;
}

// Moments of `w` neighbouring columns over the rows [begin, end). For a full strip the compiler knows the width of the loops.
template <bool kFull, class T>
void strip_moments(const Images<T>& x, std::int64_t column, std::int64_t w, std::int64_t begin, std::int64_t end,
                   Moments* all) {
  const std::int64_t width = kFull ? kStrip : w;
  for (std::int64_t at = begin; at < end; at += kBlockRows) {
    const std::int64_t stop = std::min(end, at + kBlockRows);
    const double count = static_cast<double>(stop - at);
    T sum[kStrip] = {}, squares[kStrip] = {}, centre[kStrip];
    for (std::int64_t row = at; row < stop; ++row) {
      const T* from = x.image(row) + column;
      for (std::int64_t j = 0; j < width; ++j) sum[j] += from[j];
    }
    for (std::int64_t j = 0; j < width; ++j) centre[j] = static_cast<T>(static_cast<double>(sum[j]) / count);
    for (std::int64_t row = at; row < stop; ++row) {
      const T* from = x.image(row) + column;
      for (std::int64_t j = 0; j < width; ++j) {
        const T d = from[j] - centre[j];
        squares[j] += d * d;
      }
    }
    for (std::int64_t j = 0; j < width; ++j)
      all[j].merge({count, static_cast<double>(sum[j]) / count, static_cast<double>(squares[j])});
  }
}

// Writes the moments of every piece of every column to the workspace.
template <class T>
void batch_moments(const BatchPlan& p, const Images<T>& x, double* workspace) {
  auto store = [](const Moments& m, double* out) {
    out[0] = m.mean;
    out[1] = m.m2;
  };
  if (p.along)
    return for_channel_pieces(p, workspace, [&](std::int64_t channel, std::int64_t begin, std::int64_t end, double* out) {
      store(channel_moments(p, x, channel, begin, end), out);
    });
  for_strip_pieces(p, [&](std::int64_t column, std::int64_t width, std::int64_t begin, std::int64_t end, std::int64_t piece) {
    Moments all[kStrip];
    if (width == kStrip)
      strip_moments<true>(x, column, width, begin, end, all);
    else
      strip_moments<false>(x, column, width, begin, end, all);
    for (std::int64_t j = 0; j < width; ++j) store(all[j], partial(p, workspace, column + j, piece));
  });
}

std::int64_t columns_per_channel(const BatchPlan& p) { return p.along ? 1 : p.s; }

Moments merged_moments(const BatchPlan& p, double* workspace, std::int64_t channel) {
  Moments all;
  for (std::int64_t j = 0; j < columns_per_channel(p); ++j)
    for (std::int64_t piece = 0; piece < p.pieces; ++piece) {
      const double* m = partial(p, workspace, channel * columns_per_channel(p) + j, piece);
      const std::int64_t count = std::min(p.length, (piece + 1) * p.piece) - piece * p.piece;
      all.merge({static_cast<double>(count), m[0], m[1]});
    }
  return all;
}

// Up to four coefficients of every column, stored as one array per coefficient.
template <class T>
struct Coefficients {
  T* first;
  std::int64_t columns;

  Coefficients(const BatchPlan& p, double* workspace)
      : first(reinterpret_cast<T*>(workspace + 2 * p.columns * p.pieces)), columns(p.columns) {}
  T* array(int k) const { return first + k * columns; }
  void set(const BatchPlan& p, int k, std::int64_t channel, double value) const {
    const std::int64_t n = columns_per_channel(p);
    std::fill_n(array(k) + channel * n, n, static_cast<T>(value));
  }
};

// Calls plane(image, channel) for all planes, or row(image) for all rows, as the plan sums along planes or not.
template <class Plane, class Row>
void for_all(const BatchPlan& p, Plane&& plane, Row&& row) {
  if (p.s == 0) return;
  if (p.along) {
    parallel_for(p.n * p.c, grain_for(kNsPerElement * static_cast<double>(p.s) + 3), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t job = begin; job < end; ++job) plane(job / p.c, job % p.c);
    });
  } else {
    parallel_for(p.n, grain_for(kNsPerElement * static_cast<double>(p.columns) + 3), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t job = begin; job < end; ++job) row(job);
    });
  }
}

// y = (x - mean) scale + shift
template <class T>
void apply_channels(const BatchPlan& p, const Coefficients<T>& k, const Images<T>& x, const Images<T>& y) {
  const T *mean = k.array(0), *scale = k.array(1), *shift = k.array(2);
  for_all(
      p,
      [&](std::int64_t image, std::int64_t channel) {
        const T m = mean[channel], a = scale[channel], b = shift[channel];
        const T* from = x.image(image) + channel * p.s;
        T* to = y.image(image) + channel * p.s;
        TAPEDECK_INDEPENDENT
        for (std::int64_t i = 0; i < p.s; ++i) to[i] = (from[i] - m) * a + b;
      },
      [&](std::int64_t image) {
        const T* from = x.image(image);
        T* to = y.image(image);
        TAPEDECK_INDEPENDENT
        for (std::int64_t j = 0; j < p.columns; ++j) to[j] = (from[j] - mean[j]) * scale[j] + shift[j];
      });
}

template <class T>
void set_forward(const BatchPlan& p, const Coefficients<T>& k, std::int64_t channel, double mean, double rstd, const T* weight,
                 const T* bias) {
  k.set(p, 0, channel, mean);
  k.set(p, 1, channel, weight ? rstd * static_cast<double>(weight[channel]) : rstd);
  k.set(p, 2, channel, bias ? static_cast<double>(bias[channel]) : 0);
}

template <class T>
void batch_norm_of(const KernelCall& call) {
  const BatchPlan p = batch_plan(call.inputs[0]);
  const double eps = call.attributes<BatchNormAttrs>().eps;
  double* workspace = static_cast<double*>(call.workspace);
  const Coefficients<T> k(p, workspace);
  const T *weight = weight_of<T>(call, 1), *bias = weight_of<T>(call, 2);
  const Images<T> x(call.inputs[0]);
  batch_moments(p, x, workspace);
  for (std::int64_t channel = 0; channel < p.c; ++channel) {
    const Moments m = merged_moments(p, workspace, channel);
    call.outputs[1].as<T>()[channel] = static_cast<T>(m.mean);
    call.outputs[2].as<T>()[channel] = static_cast<T>(m.variance());
    set_forward(p, k, channel, m.mean, 1 / std::sqrt(m.variance() + eps), weight, bias);
  }
  apply_channels(p, k, x, Images<T>(call.outputs[0]));
}

template <class T>
void batch_norm_inference_of(const KernelCall& call) {
  const BatchPlan p = batch_plan(call.inputs[0]);
  const double eps = call.attributes<BatchNormAttrs>().eps;
  const Coefficients<T> k(p, static_cast<double*>(call.workspace));
  const T *mean = call.inputs[1].as<T>(), *variance = call.inputs[2].as<T>();
  for (std::int64_t channel = 0; channel < p.c; ++channel)
    set_forward(p, k, channel, static_cast<double>(mean[channel]), 1 / std::sqrt(static_cast<double>(variance[channel]) + eps),
                weight_of<T>(call, 3), weight_of<T>(call, 4));
  apply_channels(p, k, Images<T>(call.inputs[0]), Images<T>(call.outputs[0]));
}

// Sums of dy and of dy (x - mean) over the rows [begin, end) of `w` columns.
template <bool kFull, class T>
void strip_grad_sums(const BatchPlan& p, const Images<T>& x, const Images<T>& dy, const T* mean, std::int64_t column,
                     std::int64_t w, std::int64_t begin, std::int64_t end, double (&totals)[2][kStrip]) {
  const std::int64_t width = kFull ? kStrip : w;
  T centre[kStrip];
  for (std::int64_t j = 0; j < width; ++j) centre[j] = mean[(column + j) / p.s];
  for (std::int64_t at = begin; at < end; at += kBlockRows) {
    T plain[kStrip] = {}, weighted[kStrip] = {};
    for (std::int64_t row = at; row < std::min(end, at + kBlockRows); ++row) {
      const T *g = dy.image(row) + column, *from = x.image(row) + column;
      for (std::int64_t j = 0; j < width; ++j) plain[j] += g[j];
      for (std::int64_t j = 0; j < width; ++j) weighted[j] += g[j] * (from[j] - centre[j]);
    }
    for (std::int64_t j = 0; j < width; ++j) totals[0][j] += static_cast<double>(plain[j]);
    for (std::int64_t j = 0; j < width; ++j) totals[1][j] += static_cast<double>(weighted[j]);
  }
}

// Writes the sums of dy and of dy (x - mean), of every piece of every column, to the workspace.
template <class T>
void batch_grad_sums(const BatchPlan& p, const Images<T>& x, const Images<T>& dy, const T* mean, double* workspace) {
  if (p.along)
    return for_channel_pieces(p, workspace, [&](std::int64_t channel, std::int64_t begin, std::int64_t end, double* out) {
      const T m = mean[channel];
      out[0] = out[1] = 0;
      for (std::int64_t at = begin; at < end; at += kBlock) {
        LaneSum<T> plain, weighted;
        for_stretches(p, channel, at, std::min(end, at + kBlock), [&](std::int64_t image, std::int64_t offset, std::int64_t n) {
          const T *g = dy.image(image) + offset, *from = x.image(image) + offset;
          plain.feed(n, [g](std::int64_t i) { return g[i]; });
          weighted.feed(n, [g, from, m](std::int64_t i) { return g[i] * (from[i] - m); });
        });
        out[0] += plain.total();
        out[1] += weighted.total();
      }
    });
  for_strip_pieces(p, [&](std::int64_t column, std::int64_t width, std::int64_t begin, std::int64_t end, std::int64_t piece) {
    double totals[2][kStrip] = {};
    if (width == kStrip)
      strip_grad_sums<true>(p, x, dy, mean, column, width, begin, end, totals);
    else
      strip_grad_sums<false>(p, x, dy, mean, column, width, begin, end, totals);
    for (std::int64_t j = 0; j < width; ++j) {
      double* out = partial(p, workspace, column + j, piece);
      out[0] = totals[0][j];
      out[1] = totals[1][j];
    }
  });
}

// dx = scale dy + (x - mean) q + p
template <class T>
void apply_batch_grad(const BatchPlan& p, const Coefficients<T>& k, const Images<T>& x, const Images<T>& dy,
                      const Images<T>& dx) {
  const T *mean = k.array(0), *scale = k.array(1), *q = k.array(2), *shift = k.array(3);
  for_all(
      p,
      [&](std::int64_t image, std::int64_t channel) {
        const T m = mean[channel], a = scale[channel], b = q[channel], c = shift[channel];
        const std::int64_t at = channel * p.s;
        const T *from = x.image(image) + at, *g = dy.image(image) + at;
        T* to = dx.image(image) + at;
        TAPEDECK_INDEPENDENT
        for (std::int64_t i = 0; i < p.s; ++i) to[i] = g[i] * a + ((from[i] - m) * b + c);
      },
      [&](std::int64_t image) {
        const T *from = x.image(image), *g = dy.image(image);
        T* to = dx.image(image);
        TAPEDECK_INDEPENDENT
        for (std::int64_t j = 0; j < p.columns; ++j) to[j] = g[j] * scale[j] + ((from[j] - mean[j]) * q[j] + shift[j]);
      });
}

template <class T>
void batch_norm_grad_of(const KernelCall& call) {
  const BatchPlan p = batch_plan(call.inputs[0]);
  const double eps = call.attributes<BatchNormAttrs>().eps;
  double* workspace = static_cast<double*>(call.workspace);
  const Coefficients<T> k(p, workspace);
  const Images<T> x(call.inputs[0]), dy(call.inputs[1]);
  const T *mean = call.inputs[2].as<T>(), *variance = call.inputs[3].as<T>(), *dmean = call.inputs[4].as<T>(),
          *dvariance = call.inputs[5].as<T>(), *weight = weight_of<T>(call, 6);
  batch_grad_sums(p, x, dy, mean, workspace);
  for (std::int64_t channel = 0; channel < p.c; ++channel) {
    double plain = 0, weighted = 0;
    for (std::int64_t i = 0; i < columns_per_channel(p) * p.pieces; ++i) {
      const double* sums = partial(p, workspace, channel * columns_per_channel(p), i);
      plain += sums[0];
      weighted += sums[1];
    }
    const double rstd = 1 / std::sqrt(static_cast<double>(variance[channel]) + eps),
                 w = weight ? static_cast<double>(weight[channel]) : 1;
    const double drstd = -2 * static_cast<double>(dvariance[channel]) / (rstd * rstd * rstd);
    const GradCoefficients g = grad_coefficients(static_cast<double>(p.n * p.s), rstd, plain * w, weighted * w,
                                                 static_cast<double>(dmean[channel]), drstd);
    k.set(p, 0, channel, static_cast<double>(mean[channel]));
    k.set(p, 1, channel, g.scale * w);
    k.set(p, 2, channel, g.q);
    k.set(p, 3, channel, g.p);
    if (call.n_outputs < 3) continue;
    call.outputs[1].as<T>()[channel] = static_cast<T>(weighted * rstd);
    call.outputs[2].as<T>()[channel] = static_cast<T>(plain);
  }
  apply_batch_grad(p, k, x, dy, Images<T>(call.outputs[0]));
}

// ---- layer_norm and rms_norm: rows ----

// Sees x as `rows` rows of `length` elements.
RowPlan row_plan(const KernelCall& call, const View& x) {
  const int kept = x.rank - static_cast<int>(call.attributes<LayerNormAttrs>().dims);
  std::int64_t rows = 1, length = 1;
  for (int d = 0; d < x.rank; ++d) (d < kept ? rows : length) *= x.sizes[d];
  return {rows, length};
}

template <class F>
void for_rows(std::int64_t rows, std::int64_t length, F&& f) {
  parallel_for(rows, grain_for(kNsPerElement * static_cast<double>(length) + 10), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) f(row);
  });
}

template <class T>
void normalise_row(std::int64_t n, const T* x, T mean, T rstd, const T* weight, const T* bias, T* y) {
  if (weight && bias) {
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < n; ++j) y[j] = (x[j] - mean) * rstd * weight[j] + bias[j];
  } else if (weight) {
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < n; ++j) y[j] = (x[j] - mean) * rstd * weight[j];
  } else {
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < n; ++j) y[j] = (x[j] - mean) * rstd;
  }
}

template <class T>
void layer_norm_of(const KernelCall& call) {
  const RowPlan p = row_plan(call, call.inputs[0]);
  const double eps = call.attributes<LayerNormAttrs>().eps;
  const T *weight = weight_of<T>(call, 1), *bias = weight_of<T>(call, 2);
  for_rows(p.rows, p.length, [&](std::int64_t row) {
    const T* x = call.inputs[0].as<T>() + row * p.length;
    const Moments m = moments_of(x, p.length);
    const T mean = static_cast<T>(m.mean), rstd = static_cast<T>(1 / std::sqrt(m.variance() + eps));
    call.outputs[1].as<T>()[row] = mean;
    call.outputs[2].as<T>()[row] = rstd;
    normalise_row(p.length, x, mean, rstd, weight, bias, call.outputs[0].as<T>() + row * p.length);
  });
}

template <class T>
void rms_norm_of(const KernelCall& call) {
  const RowPlan p = row_plan(call, call.inputs[0]);
  const double eps = call.attributes<LayerNormAttrs>().eps;
  const T* weight = weight_of<T>(call, 1);
  for_rows(p.rows, p.length, [&](std::int64_t row) {
    const T* x = call.inputs[0].as<T>() + row * p.length;
    const double squares = blocked_sum<T>(p.length, [x](std::int64_t j) { return x[j] * x[j]; });
    const double mean_square = p.length > 0 ? squares / static_cast<double>(p.length) : 0;
    const T rstd = static_cast<T>(1 / std::sqrt(mean_square + eps));
    call.outputs[1].as<T>()[row] = rstd;
    normalise_row(p.length, x, T(0), rstd, weight, static_cast<const T*>(nullptr), call.outputs[0].as<T>() + row * p.length);
  });
}

// Computes dx of one row. If `dweight` is given, also adds the row's contribution to the gradient of the weight, and of the
// bias unless `dbias` is null.
template <class T>
void row_grad(std::int64_t n, const T* x, const T* dy, const T* weight, T mean, T rstd, GradCoefficients k, T* dx, T* dweight,
              T* dbias) {
  const T a = static_cast<T>(k.scale), q = static_cast<T>(k.q), p = static_cast<T>(k.p);
  if (!weight) {
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < n; ++j) dx[j] = dy[j] * a + ((x[j] - mean) * q + p);
    return;
  }
  if (dbias) {
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < n; ++j) dbias[j] += dy[j];
  }
  TAPEDECK_INDEPENDENT
  for (std::int64_t j = 0; j < n; ++j) {
    const T centred = x[j] - mean, g = dy[j];
    dweight[j] += g * (centred * rstd);
    dx[j] = g * weight[j] * a + (centred * q + p);
  }
}

// Adds the sums of all pieces: to[j] = the sum of from[p * step + j] over the pieces p.
template <class T>
void add_pieces(const T* from, std::int64_t step, std::int64_t pieces, std::int64_t length, T* to) {
  parallel_for(length, grain_for(0.5 * static_cast<double>(pieces) + 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) {
      double total = 0;
      for (std::int64_t p = 0; p < pieces; ++p) total += static_cast<double>(from[p * step + j]);
      to[j] = static_cast<T>(total);
    }
  });
}

// Calls row(index, dweight, dbias) for all rows. Each piece of rows has its own sums, and the sums of the pieces are added up.
// `results` says how many gradients are needed: 0 = none, 1 = of the weight, 2 = of weight and bias.
template <class T, class F>
void for_grad_rows(const KernelCall& call, const RowPlan& p, int results, F&& row) {
  T* sums = static_cast<T*>(call.workspace);
  parallel_for(p.pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      T* dweight = results > 0 ? sums + 2 * piece * p.length : nullptr;
      T* dbias = results > 1 ? dweight + p.length : nullptr;
      if (dweight) std::fill_n(dweight, 2 * p.length, T(0));
      for (std::int64_t r = piece * p.piece; r < std::min(p.rows, (piece + 1) * p.piece); ++r) row(r, dweight, dbias);
    }
  });
  for (int k = 0; k < results; ++k)
    add_pieces(sums + k * p.length, 2 * p.length, p.pieces, p.length, call.outputs[1 + k].as<T>());
}

template <class T>
T weighted(const T* dy, const T* weight, std::int64_t j) {
  return weight ? dy[j] * weight[j] : dy[j];
}

template <class T>
void layer_norm_grad_of(const KernelCall& call) {
  const RowPlan p = row_plan(call, call.inputs[0]);
  const T *means = call.inputs[2].as<T>(), *rstds = call.inputs[3].as<T>(), *dmeans = call.inputs[4].as<T>(),
          *drstds = call.inputs[5].as<T>();
  const T* weight = weight_of<T>(call, 6);
  for_grad_rows<T>(call, p, call.n_outputs - 1, [&](std::int64_t row, T* dweight, T* dbias) {
    const T *x = call.inputs[0].as<T>() + row * p.length, *dy = call.inputs[1].as<T>() + row * p.length;
    const T mean = means[row], rstd = rstds[row];
    const double sum_g = blocked_sum<T>(p.length, [=](std::int64_t j) { return weighted(dy, weight, j); });
    const double sum_gx = blocked_sum<T>(p.length, [=](std::int64_t j) { return weighted(dy, weight, j) * (x[j] - mean); });
    const GradCoefficients k = grad_coefficients(static_cast<double>(p.length), static_cast<double>(rstd), sum_g, sum_gx,
                                                 static_cast<double>(dmeans[row]), static_cast<double>(drstds[row]));
    row_grad(p.length, x, dy, weight, mean, rstd, k, call.outputs[0].as<T>() + row * p.length, dweight, dbias);
  });
}

template <class T>
void rms_norm_grad_of(const KernelCall& call) {
  const RowPlan p = row_plan(call, call.inputs[0]);
  const T *rstds = call.inputs[2].as<T>(), *drstds = call.inputs[3].as<T>(), *weight = weight_of<T>(call, 4);
  for_grad_rows<T>(call, p, call.n_outputs - 1, [&](std::int64_t row, T* dweight, T* dbias) {
    const T *x = call.inputs[0].as<T>() + row * p.length, *dy = call.inputs[1].as<T>() + row * p.length;
    const double sum_gx = blocked_sum<T>(p.length, [=](std::int64_t j) { return weighted(dy, weight, j) * x[j]; });
    const GradCoefficients k = grad_coefficients(static_cast<double>(p.length), static_cast<double>(rstds[row]), 0, sum_gx, 0,
                                                 static_cast<double>(drstds[row]));
    row_grad(p.length, x, dy, weight, T(0), rstds[row], k, call.outputs[0].as<T>() + row * p.length, dweight, dbias);
  });
}

// ---- group_norm: a row holds several channels ----

struct GroupLayout {
  std::int64_t n, c, s, groups, per_group;

  GroupLayout(const KernelCall& call, const View& x)
      : n(x.sizes[0]), c(x.sizes[1]), s(1), groups(call.attributes<GroupNormAttrs>().groups), per_group(c / groups) {
    for (int d = 2; d < x.rank; ++d) s *= x.sizes[d];
  }
  std::int64_t rows() const { return n * groups; }
  std::int64_t length() const { return per_group * s; }
  std::int64_t channel(std::int64_t row, std::int64_t k) const { return row % groups * per_group + k; }
  template <class T>
  T* row(const Images<T>& images, std::int64_t row) const {
    return images.image(row / groups) + row % groups * length();
  }
};

template <class T>
void group_norm_of(const KernelCall& call) {
  const GroupLayout g(call, call.inputs[0]);
  const double eps = call.attributes<GroupNormAttrs>().eps;
  const T *weight = weight_of<T>(call, 1), *bias = weight_of<T>(call, 2);
  const Images<T> in(call.inputs[0]), out(call.outputs[0]);
  for_rows(g.rows(), g.length(), [&](std::int64_t row) {
    const T* x = g.row(in, row);
    T* y = g.row(out, row);
    const Moments m = moments_of(x, g.length());
    const T mean = static_cast<T>(m.mean), rstd = static_cast<T>(1 / std::sqrt(m.variance() + eps));
    call.outputs[1].as<T>()[row] = mean;
    call.outputs[2].as<T>()[row] = rstd;
    for (std::int64_t k = 0; k < g.per_group; ++k) {
      const T scale = weight ? rstd * weight[g.channel(row, k)] : rstd, shift = bias ? bias[g.channel(row, k)] : T(0);
      TAPEDECK_INDEPENDENT
      for (std::int64_t i = k * g.s; i < (k + 1) * g.s; ++i) y[i] = (x[i] - mean) * scale + shift;
    }
  });
}

// The sum of f over one plane. A plane of few elements is summed without lanes.
template <class T, class F>
double plane_sum(std::int64_t n, F&& f) {
  if (n >= kRowLanes) return blocked_sum<T>(n, f);
  T total = T(0);
  for (std::int64_t i = 0; i < n; ++i) total += f(i);
  return static_cast<double>(total);
}

// Computes dx of one row. The sums of dy and of dy (x - mean) of the row's channel k go to plain[k] and product[k].
template <class T>
void group_row_grad(const GroupLayout& g, std::int64_t row, const T* x, const T* dy, const T* weight, double mean, double rstd,
                    double dmean, double drstd, double* plain, double* product, T* dx) {
  const T centre = static_cast<T>(mean);
  double sum_g = 0, sum_gx = 0;
  for (std::int64_t k = 0; k < g.per_group; ++k) {
    const T *from = x + k * g.s, *grad = dy + k * g.s;
    plain[k] = plane_sum<T>(g.s, [=](std::int64_t i) { return grad[i]; });
    product[k] = plane_sum<T>(g.s, [=](std::int64_t i) { return grad[i] * (from[i] - centre); });
    const double w = weight ? static_cast<double>(weight[g.channel(row, k)]) : 1;
    sum_g += w * plain[k];
    sum_gx += w * product[k];
  }
  const GradCoefficients c = grad_coefficients(static_cast<double>(g.length()), rstd, sum_g, sum_gx, dmean, drstd);
  const T q = static_cast<T>(c.q), p = static_cast<T>(c.p);
  for (std::int64_t k = 0; k < g.per_group; ++k) {
    const T a = static_cast<T>(c.scale * (weight ? static_cast<double>(weight[g.channel(row, k)]) : 1));
    TAPEDECK_INDEPENDENT
    for (std::int64_t i = k * g.s; i < (k + 1) * g.s; ++i) dx[i] = dy[i] * a + ((x[i] - centre) * q + p);
    product[k] *= rstd;
  }
}

template <class T>
void group_norm_grad_of(const KernelCall& call) {
  const GroupLayout g(call, call.inputs[0]);
  const T* weight = weight_of<T>(call, 6);
  const Images<T> x(call.inputs[0]), dy(call.inputs[1]), dx(call.outputs[0]);
  double *plain = static_cast<double*>(call.workspace), *product = plain + g.n * g.c;
  auto number = [&](int input, std::int64_t row) { return static_cast<double>(call.inputs[input].as<T>()[row]); };
  for_rows(g.rows(), 2 * g.length(), [&](std::int64_t row) {
    const std::int64_t channels = row * g.per_group;
    group_row_grad(g, row, static_cast<const T*>(g.row(x, row)), static_cast<const T*>(g.row(dy, row)), weight, number(2, row),
                   number(3, row), number(4, row), number(5, row), plain + channels, product + channels, g.row(dx, row));
  });
  if (call.n_outputs < 3) return;
  for (std::int64_t channel = 0; channel < g.c; ++channel) {
    double dweight = 0, dbias = 0;
    for (std::int64_t i = 0; i < g.n; ++i) {
      dweight += product[i * g.c + channel];
      dbias += plain[i * g.c + channel];
    }
    call.outputs[1].as<T>()[channel] = static_cast<T>(dweight);
    call.outputs[2].as<T>()[channel] = static_cast<T>(dbias);
  }
}

struct Ema {
  double momentum;

  template <class T>
  T operator()(T running, T batch) const {
    return running + static_cast<T>(momentum) * (batch - running);
  }
};

}  // namespace

#define TAPEDECK_NORM_KERNEL(name)                                                          \
  void name(const KernelCall& call) {                                                       \
    for_floats(call, call.outputs[0].dtype, [&](auto t) { name##_of<decltype(t)>(call); }); \
  }
TAPEDECK_NORM_KERNEL(batch_norm)
TAPEDECK_NORM_KERNEL(batch_norm_inference)
TAPEDECK_NORM_KERNEL(batch_norm_grad)
TAPEDECK_NORM_KERNEL(layer_norm)
TAPEDECK_NORM_KERNEL(layer_norm_grad)
TAPEDECK_NORM_KERNEL(rms_norm)
TAPEDECK_NORM_KERNEL(rms_norm_grad)
TAPEDECK_NORM_KERNEL(group_norm)
TAPEDECK_NORM_KERNEL(group_norm_grad)
#undef TAPEDECK_NORM_KERNEL

void ema(const KernelCall& call) {
  const Ema f{call.attributes<EmaAttrs>().momentum};
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T, T>(call, f);
  });
}

}  // namespace tapedeck::kernels::cpu
