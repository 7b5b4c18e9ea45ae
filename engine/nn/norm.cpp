#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/hooks.h>
#include <tapedeck/engine/nn/norm.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {
namespace {

void require_rank(const std::string& path, const Arg& x, int least, int most) {
  const Tensor& t = x.tensor();
  if (!t.defined()) throw TypeError(error_text("batch_norm", "the operand is undefined", x.site()));
  if (t.rank() >= least && t.rank() <= most) return;
  const std::string wanted = least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  throw TypeError(
      error_text("batch_norm", fmt::format("'{}' takes {} dimensions, got {}", path, wanted, to_string(t.type())), x.site()));
}

}  // namespace

BatchNorm::BatchNorm(Module& parent, const std::string& name, std::int64_t channels, BatchNormOptions o)
    : Module(parent, name),
      weight(o.affine ? parameter("weight", ones({channels})) : Tensor()),
      bias(o.affine ? parameter("bias", zeros({channels})) : Tensor()),
      running_mean(buffer("running_mean", zeros({channels}))),
      running_var(buffer("running_var", ones({channels}))),
      options(o) {}

Tensor BatchNorm::operator()(const Arg& x) { return normalised(x, 2, kMaxRank); }

Tensor BatchNorm::normalised(const Arg& operand, int least_rank, int most_rank) {
  return hooked(*this, operand, [&](const Arg& x) {
    require_rank(path(), x, least_rank, most_rank);
    if (!training()) return batch_norm_inference(x, running_mean, running_var, weight, bias, options.eps);
    const BatchNormResult r = batch_norm(x, weight, bias, options.eps);
    const NoGrad no_grad;
    const Tensor& t = x.tensor();
    const double n = static_cast<double>(t.numel() / std::max<std::int64_t>(1, t.size(1)));
    ema_in_place(running_mean, r.mean, options.momentum);
    ema_in_place(running_var, mul(r.variance, n / std::max(n - 1, 1.0)), options.momentum);
    return r.y;
  });
}

LayerNorm::LayerNorm(Module& parent, const std::string& name, const Shape& sizes, double epsilon)
    : Module(parent, name), weight(parameter("weight", ones(sizes))), bias(parameter("bias", zeros(sizes))), eps(epsilon) {}

Tensor LayerNorm::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) { return layer_norm(x, weight, bias, eps); });
}

RmsNorm::RmsNorm(Module& parent, const std::string& name, std::int64_t size, double epsilon)
    : Module(parent, name), weight(parameter("weight", ones({size}))), eps(epsilon) {}

Tensor RmsNorm::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) { return rms_norm(x, weight, eps); });
}

GroupNorm::GroupNorm(Module& parent, const std::string& name, std::int64_t n, std::int64_t channels, double epsilon)
    : Module(parent, name),
      weight(parameter("weight", ones({channels}))),
      bias(parameter("bias", zeros({channels}))),
      groups(n),
      eps(epsilon) {}

Tensor GroupNorm::operator()(const Arg& operand) {
  return hooked(*this, operand, [&](const Arg& x) { return group_norm(x, groups, weight, bias, eps); });
}

}  // namespace tapedeck
