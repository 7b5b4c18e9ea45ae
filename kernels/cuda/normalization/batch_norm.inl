// batch_norm, its gradient and batch_norm_inference, on the device. Two steps: sums over every channel, which are folds
// (fold.h) that also write the coefficients of the channel, and then one pass over the elements:
//
//     y = (x - mean) scale + shift          dx = dy scale + (x - mean) q + p
//
// The moments come from one pass: sums of d and of d^2 in f64, where d is the distance from the first element of the channel.
// The cancellation is harmless: the square of that distance from the mean is at most n times the variance.
#pragma once

#include <tapedeck/kernels/attrs/norm.h>
#include <tapedeck/kernels/cuda/fold.h>
#include <tapedeck/kernels/cuda/normalization/images.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

// x as [n, c, s].
struct Channels {
  std::int64_t n = 0, c = 0;
  QuickDivisor plane, channels;  // s and c

  explicit Channels(const View& x) : n(x.sizes[0]), c(x.sizes[1]), plane(plane_of(x)), channels(c) {}
  TAPEDECK_HD std::int64_t length() const { return n * plane.divisor; }
  std::int64_t numel() const { return c * length(); }
  Pieces pieces() const { return {c, length(), across()}; }
  bool across() const { return lie_side_by_side(plane.divisor); }
};

// The coefficients of every channel, one array after the other.
template <class C>
struct Coefficients {
  C* first;
  std::int64_t c;
  TAPEDECK_DEVICE C& at(int k, std::int64_t channel) const { return first[k * c + channel]; }
};

inline std::int64_t batch_norm_bytes(const Channels& k) {
  return k.pieces().bytes(sizeof(Two<double>)) + 4 * k.c * static_cast<std::int64_t>(sizeof(double));
}
template <class C>
Coefficients<C> coefficients(const KernelCall& call, const Channels& k) {
  return {reinterpret_cast<C*>(static_cast<char*>(call.workspace) + k.pieces().bytes(sizeof(Two<double>))), k.c};
}

// Both folds have this in common: element i of a channel.
template <class S>
struct ChannelTask {
  using A = Two<double>;
  Channels k;
  Images<const S> x;
  const S* weight;
  Coefficients<Compute<S>> out;
  double eps;

  TAPEDECK_DEVICE A identity() const { return {0, 0}; }
  TAPEDECK_DEVICE A combine(const A& a, const A& b) const { return {a.a + b.a, a.b + b.b}; }
  TAPEDECK_DEVICE double weight_of(std::int64_t channel) const {
    return weight ? static_cast<double>(read(weight[channel])) : 1;
  }
  static constexpr int kWidth = static_cast<int>(16 / sizeof(S));
  using Items = Pack<S, kWidth>;
  TAPEDECK_DEVICE Items items(const Images<const S>& from, std::int64_t channel, std::int64_t i) const {
    const auto at = spot(channel, i);
    return *reinterpret_cast<const Items*>(from.image(at.image) + at.offset);
  }
  struct Spot {
    std::int64_t image, offset;
  };
  TAPEDECK_DEVICE Spot spot(std::int64_t channel, std::int64_t i) const {
    const std::int64_t image = k.plane.of(i);
    return {image, channel * k.plane.divisor + (i - image * k.plane.divisor)};
  }
};

template <class S>
struct MomentsTask : ChannelTask<S> {
  using typename ChannelTask<S>::A;
  struct Place {
    std::int64_t channel;
    double first;
  };
  const S* bias;
  S *mean, *variance;

  TAPEDECK_DEVICE Place place(std::int64_t channel) const {
    if (this->k.length() == 0) return {channel, 0};
    return {channel, static_cast<double>(read(this->x.first[channel * this->k.plane.divisor]))};
  }
  TAPEDECK_DEVICE A at(const Place& p, std::int64_t i) const {
    const auto spot = this->spot(p.channel, i);
    const double d = static_cast<double>(read(this->x.image(spot.image)[spot.offset])) - p.first;
    return {d, d * d};
  }
  using Packed = typename ChannelTask<S>::Items;
  TAPEDECK_DEVICE Packed pack(const Place& p, std::int64_t i) const { return this->items(this->x, p.channel, i); }
  TAPEDECK_DEVICE A of_pack(const Place& p, const Packed& x, int e, std::int64_t) const {
    const double d = static_cast<double>(read(x.element[e])) - p.first;
    return {d, d * d};
  }
  TAPEDECK_DEVICE void finish(std::int64_t channel, const A& total) const {
    using C = Compute<S>;
    const double n = this->k.length() > 0 ? static_cast<double>(this->k.length()) : 1, shift = total.a / n;
    const double m = place(channel).first + shift, squares = total.b / n - shift * shift;
    const double v = squares < 0 ? 0 : squares;  // NaN stays NaN
    mean[channel] = written<S>(static_cast<C>(m));
    variance[channel] = written<S>(static_cast<C>(v));
    this->out.at(0, channel) = static_cast<C>(m);
    this->out.at(1, channel) = static_cast<C>(this->weight_of(channel) / std::sqrt(v + this->eps));
    this->out.at(2, channel) = bias ? read(bias[channel]) : C(0);
  }
};

template <class S>
struct BatchGradTask : ChannelTask<S> {
  using typename ChannelTask<S>::A;
  struct Place {
    std::int64_t channel;
    double mean;
  };
  Images<const S> dy;
  const S *mean, *variance, *dmean, *dvariance;
  S *dweight, *dbias;  // null: not wanted

  TAPEDECK_DEVICE Place place(std::int64_t channel) const { return {channel, static_cast<double>(read(mean[channel]))}; }
  TAPEDECK_DEVICE A at(const Place& p, std::int64_t i) const {
    const auto spot = this->spot(p.channel, i);
    const double g = static_cast<double>(read(dy.image(spot.image)[spot.offset]));
    return {g, g * (static_cast<double>(read(this->x.image(spot.image)[spot.offset])) - p.mean)};
  }
  struct Packed {
    typename ChannelTask<S>::Items x, dy;
  };
  TAPEDECK_DEVICE Packed pack(const Place& p, std::int64_t i) const {
    return {this->items(this->x, p.channel, i), this->items(dy, p.channel, i)};
  }
  TAPEDECK_DEVICE A of_pack(const Place& p, const Packed& from, int e, std::int64_t) const {
    const double g = static_cast<double>(read(from.dy.element[e]));
    return {g, g * (static_cast<double>(read(from.x.element[e])) - p.mean)};
  }
  TAPEDECK_DEVICE void finish(std::int64_t channel, const A& total) const {
    using C = Compute<S>;
    const double w = this->weight_of(channel), inverse = this->k.length() > 0 ? 1 / static_cast<double>(this->k.length()) : 0;
    const double rstd = 1 / std::sqrt(static_cast<double>(read(variance[channel])) + this->eps);
    const double q = -(rstd * rstd * rstd * total.b * w - 2 * static_cast<double>(read(dvariance[channel]))) * inverse;
    this->out.at(0, channel) = read(mean[channel]);
    this->out.at(1, channel) = static_cast<C>(rstd * w);
    this->out.at(2, channel) = static_cast<C>(q);
    this->out.at(3, channel) = static_cast<C>((static_cast<double>(read(dmean[channel])) - rstd * total.a * w) * inverse);
    if (dweight) dweight[channel] = written<S>(static_cast<C>(total.b * rstd));
    if (dbias) dbias[channel] = written<S>(static_cast<C>(total.a));
  }
};

template <class S>
struct InferenceArgs {
  Coefficients<Compute<S>> out;
  const S *mean, *variance, *weight, *bias;
  double eps;
};

template <class S>
TAPEDECK_KERNEL void inference_coefficients(const InferenceArgs<S> a) {
  using C = Compute<S>;
  for (std::int64_t channel = thread_index(); channel < a.out.c; channel += thread_count()) {
    const double rstd = 1 / std::sqrt(static_cast<double>(read(a.variance[channel])) + a.eps);
    a.out.at(0, channel) = read(a.mean[channel]);
    a.out.at(1, channel) = static_cast<C>(a.weight ? rstd * static_cast<double>(read(a.weight[channel])) : rstd);
    a.out.at(2, channel) = a.bias ? read(a.bias[channel]) : C(0);
  }
}

template <class S>
struct ApplyArgs {
  Coefficients<Compute<S>> with;
  QuickDivisor plane, channels;
  std::int64_t numel;
  Images<const S> x, dy;  // dy.first is null: the forward formula
  Images<S> out;
};

// One item is kWidth neighbouring elements of one plane.
template <class S, int kWidth>
TAPEDECK_KERNEL void apply_channels(const ApplyArgs<S> a) {
  using C = Compute<S>;
  using Items = Pack<S, kWidth>;
  for (std::int64_t item = thread_index(); item < a.numel / kWidth; item += thread_count()) {
    const std::int64_t at = item * kWidth, plane = a.plane.of(at), image = a.channels.of(plane);
    const std::int64_t channel = plane - image * a.channels.divisor, offset = at - image * a.channels.divisor * a.plane.divisor;
    const C mean = a.with.at(0, channel), scale = a.with.at(1, channel), second = a.with.at(2, channel);
    const Items x = *reinterpret_cast<const Items*>(a.x.image(image) + offset);
    Items out;
    if (a.dy.first) {
      const Items dy = *reinterpret_cast<const Items*>(a.dy.image(image) + offset);
      const C third = a.with.at(3, channel);
      TAPEDECK_UNROLLED
      for (int i = 0; i < kWidth; ++i)
        out.element[i] = written<S>(read(dy.element[i]) * scale + ((read(x.element[i]) - mean) * second + third));
    } else {
      TAPEDECK_UNROLLED
      for (int i = 0; i < kWidth; ++i) out.element[i] = written<S>((read(x.element[i]) - mean) * scale + second);
    }
    *reinterpret_cast<Items*>(a.out.image(image) + offset) = out;
  }
}

template <class S, class T>
bool in_packs(const Images<T>& images, int width) {
  return reinterpret_cast<std::uintptr_t>(images.first) % (sizeof(S) * static_cast<unsigned>(width)) == 0 &&
         images.stride % width == 0;
}

template <class S>
void apply_batch(const KernelCall& call, const Channels& k, const Images<const S>& x, const Images<const S>& dy) {
  constexpr int kWidth = 16 / sizeof(S);
  const ApplyArgs<S> a{coefficients<Compute<S>>(call, k), k.plane, k.channels, k.numel(), x, dy, Images<S>(call.outputs[0])};
  if (a.numel == 0) return;
  if (k.plane.divisor % kWidth == 0 && in_packs<S>(a.x, kWidth) && in_packs<S>(a.dy, kWidth) && in_packs<S>(a.out, kWidth))
    launch(call, &apply_channels<S, kWidth>, for_items(a.numel / kWidth), a);
  else
    launch(call, &apply_channels<S, 1>, for_items(a.numel), a);
}

// Folds the channels by packs where all packs lie in one plane and are aligned.
template <class S, class Task>
void fold_channels(const KernelCall& call, const Task& task, const Images<const S>& dy) {
  const Channels& k = task.k;
  if constexpr (std::is_same_v<Compute<S>, float>) {
    constexpr int kWidth = Task::kWidth;
    if (!k.across() && k.plane.divisor % kWidth == 0 && in_packs<S>(task.x, kWidth) && in_packs<S>(dy, kWidth))
      return fold_along_by_packs(call, task, k.pieces(), call.workspace);
  }
  fold(call, task, k.pieces(), k.across(), call.workspace);
}

template <class S>
const S* given(const KernelCall& call, int index) {
  return index < call.n_inputs ? call.inputs[index].as<const S>() : nullptr;
}

template <class S>
void batch_norm_of(const KernelCall& call) {
  const Channels k(call.inputs[0]);
  const Images<const S> x(call.inputs[0]);
  const MomentsTask<S> task{{k, x, given<S>(call, 1), coefficients<Compute<S>>(call, k), call.attributes<BatchNormAttrs>().eps},
                            given<S>(call, 2),
                            call.outputs[1].as<S>(),
                            call.outputs[2].as<S>()};
  fold_channels<S>(call, task, {});
  apply_batch<S>(call, k, x, {});
}

template <class S>
void batch_norm_inference_of(const KernelCall& call) {
  const Channels k(call.inputs[0]);
  const InferenceArgs<S> a{
      coefficients<Compute<S>>(call, k),    given<S>(call, 1), given<S>(call, 2), given<S>(call, 3), given<S>(call, 4),
      call.attributes<BatchNormAttrs>().eps};
  launch(call, &inference_coefficients<S>, for_items(k.c), a);
  apply_batch<S>(call, k, Images<const S>(call.inputs[0]), {});
}

template <class S>
void batch_norm_grad_of(const KernelCall& call) {
  const Channels k(call.inputs[0]);
  const Images<const S> x(call.inputs[0]), dy(call.inputs[1]);
  const bool weighted = call.n_outputs > 2;
  const BatchGradTask<S> task{
      {k, x, given<S>(call, 6), coefficients<Compute<S>>(call, k), call.attributes<BatchNormAttrs>().eps},
      dy,
      given<S>(call, 2),
      given<S>(call, 3),
      given<S>(call, 4),
      given<S>(call, 5),
      weighted ? call.outputs[1].as<S>() : nullptr,
      weighted ? call.outputs[2].as<S>() : nullptr};
  fold_channels<S>(call, task, dy);
  apply_batch<S>(call, k, x, dy);
}

}  // namespace folds

std::int64_t batch_norm_workspace(const KernelCall& call) { return folds::batch_norm_bytes(folds::Channels(call.inputs[0])); }
std::int64_t batch_norm_grad_workspace(const KernelCall& call) { return batch_norm_workspace(call); }
std::int64_t batch_norm_inference_workspace(const KernelCall& call) { return batch_norm_workspace(call); }

void batch_norm(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { folds::batch_norm_of<decltype(t)>(call); });
}
void batch_norm_inference(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { folds::batch_norm_inference_of<decltype(t)>(call); });
}
void batch_norm_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { folds::batch_norm_grad_of<decltype(t)>(call); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
