// Normalizations.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

namespace tapedeck::onnx {

namespace {

// In training the statistics are those of the batch. The running ones follow them: running = momentum running + (1 - momentum)
// batch. With --train they are state, which the step updates in place.
Tensors batch_normalize(NodeCall& n) {
  const double eps = n.real("epsilon", 1e-5F), momentum = n.real("momentum", 0.9F);
  const bool training = n.opset() >= 14 && n.flag("training_mode");
  if (!training && !n.trains()) return {batch_norm_inference(n.arg(0), n[3], n[4], n[1], n[2], eps)};
  const BatchNormResult r = batch_norm(n.arg(0), n[1], n[2], eps);
  const Tensor mean = stop_gradient(n.arg(r.mean)), variance = stop_gradient(n.arg(r.variance));
  if (n.trains() && n[3].role() == Role::statistic && n[4].role() == Role::statistic) {
    ema_in_place(n.arg(3), mean, 1 - momentum);
    ema_in_place(n.arg(4), variance, 1 - momentum);
    return {r.y, n.wants(1) ? alias(n.arg(3)) : Tensor(), n.wants(2) ? alias(n.arg(4)) : Tensor()};
  }
  const auto followed = [&](const Tensor& running, const Tensor& batch) {
    return add(n.arg(mul(n.arg(running), momentum)), mul(n.arg(batch), 1 - momentum));
  };
  return {r.y, n.wants(1) ? followed(n[3], mean) : Tensor(), n.wants(2) ? followed(n[4], variance) : Tensor()};
}

// From `axis` on. The mean and the inverse deviation are results, too.
Tensors layer_normalize(NodeCall& n) {
  const Tensor& x = n[0];
  const std::int64_t axis = n.axis(n.integer("axis", -1), x.rank());
  const double eps = n.real("epsilon", 1e-5F);
  Shape tail;
  for (std::int64_t i = axis; i < x.rank(); ++i) tail.sizes[tail.rank++] = x.size(static_cast<int>(i));
  const bool fits = n[1].shape() == tail && (!n.has(2) || n[2].shape() == tail);
  Tensors results;
  if (fits) {
    results = {layer_norm(n.arg(0), n[1], n.or_none(2), eps)};
  } else {
    const Tensor scaled = mul(n.arg(layer_norm(n.arg(0), {}, {}, eps, tail.rank)), n[1]);
    results = {n.has(2) ? add(n.arg(scaled), n[2]) : scaled};
  }
  if (!n.wants(1) && !n.wants(2)) return results;
  Ints axes;
  for (std::int64_t i = axis; i < x.rank(); ++i) axes.push_back(i);
  const Tensor centre = mean(n.arg(0), axes, true);
  results.push_back(centre);
  results.push_back(rsqrt(add(mean(square(sub(n.arg(0), centre)), axes, true), eps)));
  return results;
}

Tensors root_mean_square_normalize(NodeCall& n) {
  const std::int64_t axis = n.axis(n.integer("axis", -1), n[0].rank()), dims = n[0].rank() - axis;
  const double eps = n.real("epsilon", 1e-5F);
  if (n[1].rank() == dims) return {rms_norm(n.arg(0), n[1], eps)};
  return {mul(n.arg(rms_norm(n.arg(0), {}, eps, dims)), n[1])};
}

Tensors instance_normalize(NodeCall& n) { return {instance_norm(n.arg(0), n[1], n[2], n.real("epsilon", 1e-5F))}; }

// Before opset 21 scale and bias had one element for each group.
Tensors group_normalize(NodeCall& n) {
  const std::int64_t groups = n.integer("num_groups");
  n.require(n[0].rank() >= 2 && groups > 0 && n[0].size(1) % groups == 0, "the channels must be a multiple of the groups");
  const auto for_channels = [&](const Tensor& t) {
    if (n.opset() >= 21 || t.numel() == n[0].size(1)) return t;
    return repeat_interleave(n.arg(t), n[0].size(1) / groups, 0);
  };
  return {group_norm(n.arg(0), groups, for_channels(n[1]), for_channels(n[2]), n.real("epsilon", 1e-5F))};
}

Tensors local_response_normalize(NodeCall& n) {
  const std::int64_t size = n.integer("size");
  n.require(n[0].rank() >= 2 && size >= 1 && size <= 4096, "the window must have 1 to 4,096 channels of [n,c,...]");
  // Of an even window, ONNX has the additional channel behind, and the op of Tapedeck in front.
  const Tensor x = size % 2 == 0 ? flip(n.arg(0), {1}) : n[0];
  const Tensor y = local_response_norm(n.arg(x), size, n.real("alpha", 1e-4), n.real("beta", 0.75), n.real("bias", 1));
  return {size % 2 == 0 ? flip(n.arg(y), {1}) : y};
}

Tensors lp_normalize(NodeCall& n) {
  const std::int64_t axis = n.axis(n.integer("axis", -1), n[0].rank());
  return {normalize(n.arg(0), static_cast<double>(n.integer("p", 2)), axis)};
}

Tensors mean_variance_normalize(NodeCall& n) {
  const Ints axes = n.list(n.integers("axes", {0, 2, 3}));
  const Tensor centred = sub(n.arg(0), mean(n.arg(0), axes, true));
  return {div(n.arg(centred), add(sqrt(mean(square(centred), axes, true)), 1e-9))};
}

}  // namespace

std::vector<OnnxOp> norm_ops() {
  return {
      {"BatchNormalization", 7, "epsilon momentum training_mode spatial", batch_normalize},
      {"LayerNormalization", 17, "axis epsilon stash_type", layer_normalize},
      {"RMSNormalization", 23, "axis epsilon stash_type", root_mean_square_normalize},
      {"InstanceNormalization", 6, "epsilon", instance_normalize},
      {"GroupNormalization", 18, "epsilon num_groups stash_type", group_normalize},
      {"LRN", 1, "alpha beta bias size", local_response_normalize},
      {"LpNormalization", 1, "axis p", lp_normalize},
      {"MeanVarianceNormalization", 9, "axes", mean_variance_normalize},
  };
}

}  // namespace tapedeck::onnx
