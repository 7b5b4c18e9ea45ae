// layer_norm, rms_norm, group_norm and their gradients, on the device. A team of threads normalises a row: the last dimensions
// of layer_norm and rms_norm, or a group of channels of group_norm. The gradients of weight and bias are folds over the rows
// (fold.h); they come first, because dx may overwrite dy.
//
//     dx = a dy w + (x - mean) q + p     where a, q and p are constant in a row
#pragma once

#include <tapedeck/kernels/attrs/norm.h>
#include <tapedeck/kernels/cuda/fold.h>
#include <tapedeck/kernels/cuda/normalization/images.h>
#include <tapedeck/kernels/cuda/packed_rows.h>

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

// ---- rows of layer_norm and rms_norm in f32, all of whose operands are whole packs ----

template <class S>
struct PackedNormArgs {
  RowNormArgs<S> a;
  bool keeps;
  std::int64_t stride;  // of kept rows, in bytes
};

template <class S>
TAPEDECK_DEVICE Pack<S, kPackWidth<S>> pack_at(const S* from, std::int64_t at) {
  return *reinterpret_cast<const Pack<S, kPackWidth<S>>*>(from + at);
}

// Calls f(at) for the first element of every pack that is this thread's.
template <class Team, class S, class F>
TAPEDECK_DEVICE void each_pack(std::int64_t length, const F& f) {
  for (std::int64_t at = Team::rank() * kPackWidth<S>; at < length; at += Team::size() * kPackWidth<S>) f(at);
}

template <class S, class Team>
TAPEDECK_WIDE_KERNEL void normalise_packed(const PackedNormArgs<S> args) {
  constexpr int kWidth = kPackWidth<S>;
  const RowNormArgs<S>& a = args.a;
  const std::int64_t length = a.g.length(), step = static_cast<std::int64_t>(gridDim.x) * Team::teams();
  const float count = static_cast<float>(length);
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * Team::teams() + Team::index(); row < a.g.images;
       row += step) {
    const auto x = KeptRow<S>::template of<Team>(a.x.image(row), args.keeps, args.stride, 0, 1);
    float sum = 0, squares = 0;
    first_pass<Team>(
        x, RowPacks{length, 0, length / kWidth},
        [&](const typename KeptRow<S>::Items& items) {
          TAPEDECK_UNROLLED
          for (int e = 0; e < kWidth; ++e) sum += read(items.element[e]);
        },
        [](const S&) {});
    const float mean = a.centred ? Team::fold(sum, 0.0f, Adds{}) / count : 0.0f;
    const S* const from = x.again();
    each_pack<Team, S>(length, [&](std::int64_t at) {
      const auto items = pack_at(from, at);
      TAPEDECK_UNROLLED
      for (int e = 0; e < kWidth; ++e) squares += (read(items.element[e]) - mean) * (read(items.element[e]) - mean);
    });
    const double variance = static_cast<double>(Team::fold(squares, 0.0f, Adds{})) / static_cast<double>(count);
    const float rstd = static_cast<float>(1 / std::sqrt(variance + a.eps));
    if (Team::rank() == 0) {
      if (a.centred) a.mean_out[row] = written<S>(mean);
      a.rstd_out[row] = written<S>(rstd);
    }
    S* const y = a.out.image(row);
    each_pack<Team, S>(length, [&](std::int64_t at) {
      auto items = pack_at(from, at);
      typename KeptRow<S>::Items weight{}, bias{};
      if (a.weight) weight = pack_at(a.weight, at);
      if (a.bias) bias = pack_at(a.bias, at);
      TAPEDECK_UNROLLED
      for (int e = 0; e < kWidth; ++e) {
        float value = (read(items.element[e]) - mean) * rstd;
        if (a.weight) value *= read(weight.element[e]);
        if (a.bias) value += read(bias.element[e]);
        items.element[e] = written<S>(value);
      }
      *reinterpret_cast<typename KeptRow<S>::Items*>(y + at) = items;
    });
  }
}

template <class S, class Team>
TAPEDECK_WIDE_KERNEL void packed_gradients(const PackedNormArgs<S> args) {
  constexpr int kWidth = kPackWidth<S>;
  const RowNormArgs<S>& a = args.a;
  const std::int64_t length = a.g.length(), step = static_cast<std::int64_t>(gridDim.x) * Team::teams();
  const double inverse = 1 / static_cast<double>(length);
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * Team::teams() + Team::index(); row < a.g.images;
       row += step) {
    const auto kept_x = KeptRow<S>::template of<Team>(a.x.image(row), args.keeps, args.stride, 0, 2);
    const auto kept_dy = KeptRow<S>::template of<Team>(a.dy.image(row), args.keeps, args.stride, 1, 2);
    const float mean = a.centred ? read(a.mean[row]) : 0.0f, rstd = read(a.rstd[row]);
    Two<float> sums{0, 0};
    each_pack<Team, S>(length, [&](std::int64_t at) {
      const auto x = kept_x.pack(at), dy = kept_dy.pack(at);
      typename KeptRow<S>::Items weight{};
      if (a.weight) weight = pack_at(a.weight, at);
      kept_x.keep(at, x);
      kept_dy.keep(at, dy);
      TAPEDECK_UNROLLED
      for (int e = 0; e < kWidth; ++e) {
        const float g = a.weight ? read(dy.element[e]) * read(weight.element[e]) : read(dy.element[e]);
        sums = {sums.a + g, sums.b + g * (read(x.element[e]) - mean)};
      }
    });
    sums = Team::fold(sums, Two<float>{0, 0}, Adds{});
    const double r = static_cast<double>(rstd), cube = r * r * r, drstd = static_cast<double>(read(a.drstd[row]));
    const float q = static_cast<float>(-(cube * static_cast<double>(sums.b) + drstd * cube) * inverse);
    float p = 0;
    if (a.centred)
      p = static_cast<float>((static_cast<double>(read(a.dmean[row])) - r * static_cast<double>(sums.a)) * inverse);
    S* const dx = a.out.image(row);
    each_pack<Team, S>(length, [&](std::int64_t at) {
      const auto x = pack_at(kept_x.again(), at);
      auto dy = pack_at(kept_dy.again(), at);
      typename KeptRow<S>::Items weight{};
      if (a.weight) weight = pack_at(a.weight, at);
      TAPEDECK_UNROLLED
      for (int e = 0; e < kWidth; ++e) {
        const float g = a.weight ? read(dy.element[e]) * read(weight.element[e]) : read(dy.element[e]);
        dy.element[e] = written<S>(g * rstd + ((read(x.element[e]) - mean) * q + p));
      }
      *reinterpret_cast<typename KeptRow<S>::Items*>(dx + at) = dy;
    });
  }
}

template <class S>
bool takes_packed_rows(const RowNormArgs<S>& a) {
  constexpr int kWidth = kPackWidth<S>;
  const auto fits = [](const auto& i) { return is_aligned(i.first, 16) && i.stride % kWidth == 0; };
  return std::is_same_v<Compute<S>, float> && a.g.groups == 1 && a.g.plane.divisor == 1 && a.g.length() >= 32 &&
         a.g.length() % kWidth == 0 && fits(a.x) && fits(a.dy) && fits(a.out) && is_aligned(a.weight, 16) &&
         is_aligned(a.bias, 16);
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
  // Packs of neighbouring channels, where planes have one element and there is one group.
  static constexpr int kWidth = static_cast<int>(16 / sizeof(S));
  struct Packed {
    Pack<S, kWidth> x, dy;
    C mean, rstd;
  };
  TAPEDECK_DEVICE Packed pack(const Place& p, std::int64_t row) const {
    using Items = Pack<S, kWidth>;
    return {*reinterpret_cast<const Items*>(x.image(row) + p.first), *reinterpret_cast<const Items*>(dy.image(row) + p.first),
            mean ? read(mean[row]) : C(0), read(rstd[row])};
  }
  TAPEDECK_DEVICE A of_pack(const Place&, const Packed& from, int e, std::int64_t) const {
    const C gradient = read(from.dy.element[e]);
    return {gradient * ((read(from.x.element[e]) - from.mean) * from.rstd), gradient};
  }
  bool takes_packs() const {
    const auto fits = [](const Images<const S>& i) { return is_aligned(i.first, 16) && i.stride % kWidth == 0; };
    return g.plane.divisor == 1 && g.groups == 1 && g.channels % kWidth == 0 && fits(x) && fits(dy);
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

inline Pieces weight_grad_pieces(const RowGroups& g) {
  return {g.channels, g.images * g.plane.divisor, lie_side_by_side(g.plane.divisor)};
}
template <class S>
void fold_weight_grads(const KernelCall& call, const WeightGradTask<S>& task) {
  const Pieces cut = weight_grad_pieces(task.g);
  if constexpr (std::is_same_v<Compute<S>, float>)
    if (task.takes_packs()) return fold_across_by_packs(call, task, cut, call.workspace);
  fold(call, task, cut, lie_side_by_side(task.g.plane.divisor), call.workspace);
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

template <class S>
void launch_rows(const KernelCall& call, const RowNormArgs<S>& a) {
  if constexpr (std::is_same_v<Compute<S>, float>) {
    if (takes_packed_rows(a)) {
      const RowLaunch l = row_launch(a.g.rows(), a.g.length(), sizeof(S), 1);
      return launch(call, l.warps ? &normalise_packed<S, OneWarp> : &normalise_packed<S, WholeBlock>, l.size,
                    {a, l.keeps, l.stride});
    }
  }
  with_row_team(a.g, [&](auto team) {
    using Team = decltype(team);
    launch(call, &normalise_rows<S, Team>, for_rows<Team>(a.g.rows()), a);
  });
}
template <class S>
void launch_row_gradients(const KernelCall& call, const RowNormArgs<S>& a) {
  if constexpr (std::is_same_v<Compute<S>, float>) {
    if (takes_packed_rows(a)) {
      const RowLaunch l = row_launch(a.g.rows(), a.g.length(), sizeof(S), 2);
      return launch(call, l.warps ? &packed_gradients<S, OneWarp> : &packed_gradients<S, WholeBlock>, l.size,
                    {a, l.keeps, l.stride});
    }
  }
  with_row_team(a.g, [&](auto team) {
    using Team = decltype(team);
    launch(call, &row_gradients<S, Team>, for_rows<Team>(a.g.rows()), a);
  });
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
  launch_rows(call, a);
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
    fold_weight_grads(call, task);
  }
  launch_row_gradients(call, a);
}

inline std::int64_t weight_grad_workspace(const KernelCall& call, const RowGroups& g) {
  return call.n_outputs > 1 ? weight_grad_pieces(g).bytes(sizeof(Two<double>)) : 0;
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
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    folds::norm_forward<decltype(t)>(call, folds::layer_rows(call), call.attributes<LayerNormAttrs>().eps, true, true);
  });
}
void rms_norm(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    folds::norm_forward<decltype(t)>(call, folds::layer_rows(call), call.attributes<LayerNormAttrs>().eps, false, true);
  });
}
void group_norm(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    folds::norm_forward<decltype(t)>(call, folds::group_rows(call), call.attributes<GroupNormAttrs>().eps, true, false);
  });
}
void layer_norm_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype,
             [&](auto t) { folds::norm_backward<decltype(t)>(call, folds::layer_rows(call), true, true); });
}
void rms_norm_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype,
             [&](auto t) { folds::norm_backward<decltype(t)>(call, folds::layer_rows(call), false, true); });
}
void group_norm_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype,
             [&](auto t) { folds::norm_backward<decltype(t)>(call, folds::group_rows(call), true, false); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
