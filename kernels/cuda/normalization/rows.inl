// layer_norm, rms_norm, group_norm and their gradients, on the device. A team of threads normalises a row: the last dimensions
// of layer_norm and rms_norm, or a group of channels of group_norm. The gradients of weight and bias are folds over the rows
// (fold.h); they come first, because dx may overwrite dy.
//
//     dx = a dy w + (x - mean) q + p     where a, q and p are constant in a row
#pragma once

#include <tapedeck/kernels/attrs/norm.h>
#include <tapedeck/kernels/cuda/fold.h>
#include <tapedeck/kernels/cuda/normalization/images.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

// Images [n, channels, s] whose channels fall into groups; a row is a group of an image. layer_norm has one group, and its
// channels are the elements of a row.
struct RowGroups {
  std::int64_t images = 1, channels = 1, groups = 1;
  QuickDivisor plane, of_group;  // s, and the channels of a group

  RowGroups(std::int64_t n, std::int64_t c, std::int64_t s, std::int64_t n_groups)
      : images(n), channels(c), groups(n_groups), plane(s), of_group(c / n_groups) {}
  std::int64_t rows() const { return images * groups; }
  TAPEDECK_HD std::int64_t length() const { return of_group.divisor * plane.divisor; }
};

template <class S>
struct RowNormArgs {
  RowGroups g;
  double eps;
  bool centred;  // false: rms_norm, which has no mean
  Images<const S> x, dy;
  Images<S> out;
  const S *weight, *bias;  // null: none
  const S *mean, *rstd, *dmean, *drstd;
  S *mean_out, *rstd_out;

  TAPEDECK_DEVICE Compute<S> weight_of(std::int64_t group, std::int64_t j) const {
    return weight ? read(weight[channel(group, j)]) : Compute<S>(1);
  }
  TAPEDECK_DEVICE std::int64_t channel(std::int64_t group, std::int64_t j) const {
    return group * g.of_group.divisor + g.plane.of(j);
  }
};

template <class S, class Team>
TAPEDECK_KERNEL void normalise_rows(const RowNormArgs<S> a) {
  using C = Compute<S>;
  const std::int64_t length = a.g.length(), rows = a.g.images * a.g.groups;
  const C count = static_cast<C>(length > 0 ? length : 1);
  for (std::int64_t row = first_row<Team>(); row < rows; row += row_step<Team>()) {
    const std::int64_t image = row / a.g.groups, group = row % a.g.groups;
    const S* x = a.x.image(image) + group * length;
    S* y = a.out.image(image) + group * length;
    C mean = 0, squares = 0;
    if (a.centred) {
      for (std::int64_t j = Team::rank(); j < length; j += Team::kSize) mean += read(x[j]);
      mean = Team::sum(mean) / count;
    }
    for (std::int64_t j = Team::rank(); j < length; j += Team::kSize) squares += (read(x[j]) - mean) * (read(x[j]) - mean);
    const double variance = static_cast<double>(Team::sum(squares)) / static_cast<double>(count);
    const C rstd = static_cast<C>(1 / std::sqrt(variance + a.eps));
    if (Team::rank() == 0) {
      if (a.centred) a.mean_out[row] = written<S>(mean);
      a.rstd_out[row] = written<S>(rstd);
    }
    for (std::int64_t j = Team::rank(); j < length; j += Team::kSize) {
      C value = (read(x[j]) - mean) * rstd;
      if (a.weight) value *= read(a.weight[a.channel(group, j)]);
      if (a.bias) value += read(a.bias[a.channel(group, j)]);
      y[j] = written<S>(value);
    }
  }
}

template <class S, class Team>
TAPEDECK_KERNEL void row_gradients(const RowNormArgs<S> a) {
  using C = Compute<S>;
  const std::int64_t length = a.g.length(), rows = a.g.images * a.g.groups;
  const double inverse = length > 0 ? 1 / static_cast<double>(length) : 0;
  for (std::int64_t row = first_row<Team>(); row < rows; row += row_step<Team>()) {
    const std::int64_t image = row / a.g.groups, group = row % a.g.groups;
    const S *x = a.x.image(image) + group * length, *dy = a.dy.image(image) + group * length;
    S* dx = a.out.image(image) + group * length;
    const C mean = a.centred ? read(a.mean[row]) : C(0), rstd = read(a.rstd[row]);
    Two<C> sums{C(0), C(0)};
    for (std::int64_t j = Team::rank(); j < length; j += Team::kSize) {
      const C g = read(dy[j]) * a.weight_of(group, j);
      sums = {sums.a + g, sums.b + g * (read(x[j]) - mean)};
    }
    sums = Team::sum(sums);
    const double r = static_cast<double>(rstd), cube = r * r * r, drstd = static_cast<double>(read(a.drstd[row]));
    const C q = static_cast<C>(-(cube * static_cast<double>(sums.b) + drstd * cube) * inverse);
    C p = 0;
    if (a.centred) p = static_cast<C>((static_cast<double>(read(a.dmean[row])) - r * static_cast<double>(sums.a)) * inverse);
    for (std::int64_t j = Team::rank(); j < length; j += Team::kSize)
      dx[j] = written<S>(read(dy[j]) * a.weight_of(group, j) * rstd + ((read(x[j]) - mean) * q + p));
  }
}

// The gradients of the weight and the bias of one channel: the sums of dy (x - mean) rstd and of dy.
template <class S>
struct WeightGradTask {
  using C = Compute<S>;
  using A = Two<C>;
  struct Place {
    std::int64_t first, group;
  };
  RowGroups g;
  Images<const S> x, dy;
  const S *mean, *rstd;  // mean is null for rms_norm
  S *dweight, *dbias;    // dbias is null for rms_norm

  TAPEDECK_DEVICE A identity() const { return {C(0), C(0)}; }
  TAPEDECK_DEVICE A combine(const A& a, const A& b) const { return {a.a + b.a, a.b + b.b}; }
  TAPEDECK_DEVICE Place place(std::int64_t channel) const { return {channel * g.plane.divisor, channel / g.of_group.divisor}; }
  TAPEDECK_DEVICE A at(const Place& p, std::int64_t i) const {
    const std::int64_t image = g.plane.of(i), offset = p.first + (i - image * g.plane.divisor);
    const std::int64_t row = image * g.groups + p.group;
    const C gradient = read(dy.image(image)[offset]), centre = mean ? read(mean[row]) : C(0);
    return {gradient * ((read(x.image(image)[offset]) - centre) * read(rstd[row])), gradient};
  }
  TAPEDECK_DEVICE void finish(std::int64_t channel, const A& total) const {
    dweight[channel] = written<S>(total.a);
    if (dbias) dbias[channel] = written<S>(total.b);
  }
};

inline RowGroups layer_rows(const KernelCall& call) {
  const View& x = call.inputs[0];
  const int kept = x.rank - static_cast<int>(call.attributes<LayerNormAttrs>().dims);
  std::int64_t rows = 1, length = 1;
  for (int d = 0; d < x.rank; ++d) (d < kept ? rows : length) *= x.sizes[d];
  return {rows, length, 1, 1};
}
inline RowGroups group_rows(const KernelCall& call) {
  const View& x = call.inputs[0];
  return {x.sizes[0], x.sizes[1], plane_of(x), call.attributes<GroupNormAttrs>().groups};
}

template <class S>
const S* input(const KernelCall& call, int index) {
  return index >= 0 && index < call.n_inputs ? call.inputs[index].as<const S>() : nullptr;
}

// Calls f with the team for rows of this length.
template <class F>
void with_row_team(const RowGroups& g, const F& f) {
  if (g.length() > kLongRow) return f(BlockTeam{});
  f(WarpTeam{});
}

// `layer`: the rows of x lie one after the other, and else x holds images, which may lie apart.
template <class S>
void norm_forward(const KernelCall& call, const RowGroups& g, double eps, bool centred, bool layer) {
  RowNormArgs<S> a{g,       eps,     centred, {},      {},      {},      input<S>(call, 1),
                   nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  a.x = layer ? Images<const S>(call.inputs[0], g.length()) : Images<const S>(call.inputs[0]);
  a.out = layer ? Images<S>(call.outputs[0], g.length()) : Images<S>(call.outputs[0]);
  if (centred) {
    a.bias = input<S>(call, 2);
    a.mean_out = call.outputs[1].as<S>();
  }
  a.rstd_out = call.outputs[centred ? 2 : 1].as<S>();
  with_row_team(g, [&](auto team) {
    using Team = decltype(team);
    launch(call, &normalise_rows<S, Team>, for_rows<Team>(g.rows()), a);
  });
}

// Operands: x, dy[, mean], rstd[, dmean], drstd[, weight].
template <class S>
void norm_backward(const KernelCall& call, const RowGroups& g, bool centred, bool layer) {
  RowNormArgs<S> a{g,       0,       centred, {},      {},      {},      input<S>(call, centred ? 6 : 4),
                   nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  a.x = layer ? Images<const S>(call.inputs[0], g.length()) : Images<const S>(call.inputs[0]);
  a.dy = layer ? Images<const S>(call.inputs[1], g.length()) : Images<const S>(call.inputs[1]);
  a.out = layer ? Images<S>(call.outputs[0], g.length()) : Images<S>(call.outputs[0]);
  a.mean = centred ? input<S>(call, 2) : nullptr;
  a.rstd = input<S>(call, centred ? 3 : 2);
  a.dmean = centred ? input<S>(call, 4) : nullptr;
  a.drstd = input<S>(call, centred ? 5 : 3);
  if (call.n_outputs > 1) {
    const WeightGradTask<S> task{
        g, a.x, a.dy, a.mean, a.rstd, call.outputs[1].as<S>(), call.n_outputs > 2 ? call.outputs[2].as<S>() : nullptr};
    const Pieces cut(g.channels, g.images * g.plane.divisor);
    fold(call, task, cut, lie_side_by_side(g.plane.divisor), call.workspace);
  }
  with_row_team(g, [&](auto team) {
    using Team = decltype(team);
    launch(call, &row_gradients<S, Team>, for_rows<Team>(g.rows()), a);
  });
}

inline std::int64_t weight_grad_workspace(const KernelCall& call, const RowGroups& g) {
  return call.n_outputs > 1 ? Pieces(g.channels, g.images * g.plane.divisor).bytes(sizeof(Two<double>)) : 0;
}

}  // namespace folds

std::int64_t layer_norm_grad_workspace(const KernelCall& call) {
  return folds::weight_grad_workspace(call, folds::layer_rows(call));
}
std::int64_t rms_norm_grad_workspace(const KernelCall& call) {
  return folds::weight_grad_workspace(call, folds::layer_rows(call));
}
std::int64_t group_norm_grad_workspace(const KernelCall& call) {
  return folds::weight_grad_workspace(call, folds::group_rows(call));
}

void layer_norm(const KernelCall& call) {
  folds::for_floats(call, call.outputs[0].dtype, [&](auto t) {
    folds::norm_forward<decltype(t)>(call, folds::layer_rows(call), call.attributes<LayerNormAttrs>().eps, true, true);
  });
}
void rms_norm(const KernelCall& call) {
  folds::for_floats(call, call.outputs[0].dtype, [&](auto t) {
    folds::norm_forward<decltype(t)>(call, folds::layer_rows(call), call.attributes<LayerNormAttrs>().eps, false, true);
  });
}
void group_norm(const KernelCall& call) {
  folds::for_floats(call, call.outputs[0].dtype, [&](auto t) {
    folds::norm_forward<decltype(t)>(call, folds::group_rows(call), call.attributes<GroupNormAttrs>().eps, true, false);
  });
}
void layer_norm_grad(const KernelCall& call) {
  folds::for_floats(call, call.outputs[0].dtype,
                    [&](auto t) { folds::norm_backward<decltype(t)>(call, folds::layer_rows(call), true, true); });
}
void rms_norm_grad(const KernelCall& call) {
  folds::for_floats(call, call.outputs[0].dtype,
                    [&](auto t) { folds::norm_backward<decltype(t)>(call, folds::layer_rows(call), false, true); });
}
void group_norm_grad(const KernelCall& call) {
  folds::for_floats(call, call.outputs[0].dtype,
                    [&](auto t) { folds::norm_backward<decltype(t)>(call, folds::group_rows(call), true, false); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
