// Normalizations, products, attention and recurrent cells, with their gradients.
#include <tapedeck/capture/onnx/export/export_ops.h>

#include <tapedeck/kernels/attrs/attention.h>
#include <tapedeck/kernels/attrs/norm.h>

#include <limits>

namespace tapedeck::onnx {

namespace {

using N = NodeExport;

// ---- products ----

Terms linear(N& n) {
  if (n.count() == 2) return {product(n[0], n[1])};
  if (n.in(0).shape.rank == 2) return {n.add("Gemm", {n[0], n[1], n[2]}, n.in(0).dtype)};
  return {product(n[0], n[1]) + n[2]};
}

// ---- normalizations ----

// The elements that are normalised together: the axes, the shape of statistics beside x, the shape of weights beside x, the
// axes over which the gradients of weights are summed, and how many elements a statistic has.
struct Groups {
  Integers axes, statistic, weight, others;
  double count = 1;
};

Groups channels_of(const Shape& x) {
  Groups g;
  for (int i = 0; i < x.rank; ++i) {
    g.statistic.push_back(i == 1 ? x[1] : 1);
    if (i == 1) continue;
    g.axes.push_back(i);
    g.count *= static_cast<double>(x[i]);
  }
  g.weight = g.statistic;
  g.others = g.axes;
  return g;
}

Groups rows_of(const Shape& x, std::int64_t dims) {
  Groups g;
  for (int i = 0; i < x.rank; ++i) {
    const bool inner = i >= x.rank - dims;
    g.statistic.push_back(inner ? 1 : x[i]);
    g.weight.push_back(inner ? x[i] : 1);
    (inner ? g.axes : g.others).push_back(i);
    if (inner) g.count *= static_cast<double>(x[i]);
  }
  return g;
}

Term mean_of(const Term& x, const Groups& g) { return reduced("ReduceMean", x, g.axes, true); }

// The BatchNormalization of ONNX has a mode of training, too; but optimizers of graphs in other programs take it for the one of
// inference, and join it with a convolution.
Terms batch_norm(N& n) {
  const Groups g = channels_of(n.in(0).shape);
  if (g.count == 0)  // a mean of nothing is 0 here, and NaN in ONNX
    return {n[0], n.filled(n.out(1).shape, 0, n.out(1).dtype), n.filled(n.out(2).shape, 0, n.out(2).dtype)};
  const Term mean = mean_of(n[0], g), far = n[0] - mean, variance = mean_of(far * far, g);
  Term y = far * root_of(variance + n.attributes<BatchNormAttrs>().eps).apply("Reciprocal");
  if (n.count() > 1) y = y * reshaped(n[1], g.statistic);
  if (n.count() > 2) y = y + reshaped(n[2], g.statistic);
  return {y, n.wants(1) ? reshaped(mean, n.out(1).shape) : Term(), n.wants(2) ? reshaped(variance, n.out(2).shape) : Term()};
}

Terms batch_norm_inference(N& n) {
  const DType dtype = n.in(0).dtype;
  const Shape channels = {n.in(0).shape[1]};
  const auto or_filled = [&](int i, double value) { return n.count() > i ? n[i] : n.filled(channels, value, dtype); };
  return {n.add("BatchNormalization", {n[0], or_filled(3, 1), or_filled(4, 0), n[1], n[2]}, dtype,
                {{"epsilon", n.attributes<BatchNormAttrs>().eps}})};
}

// The gradient of (x - mean) rstd weight + bias, where the statistics depend on x, for x: without what the statistics
// themselves get. `apart` is (x - mean) rstd.
Term through_norm(const Term& g, const Term& apart, const Term& rstd, const Groups& groups) {
  return rstd * (g - mean_of(g, groups) - apart * mean_of(g * apart, groups));
}

Terms with_weights(N& n, const Term& dx, const Term& apart, const Groups& g, const Shape& weight, int first) {
  if (n.count() <= first) return {dx};
  return {dx, reshaped(reduced("ReduceSum", n[1] * apart, g.others, false), weight),
          reshaped(reduced("ReduceSum", n[1], g.others, false), weight)};
}

Terms batch_norm_grad(N& n) {
  const Groups g = channels_of(n.in(0).shape);
  const auto beside = [&](int i) { return reshaped(n[i], g.statistic); };
  const Term far = n[0] - beside(2), rstd = root_of(beside(3) + n.attributes<BatchNormAttrs>().eps).apply("Reciprocal");
  const Term apart = far * rstd, dy = n.count() > 6 ? n[1] * beside(6) : n[1];
  const Term statistics = (beside(4) + beside(5) * far * 2) * (1 / g.count);
  return with_weights(n, through_norm(dy, apart, rstd, g) + statistics, apart, g, {n.in(0).shape[1]}, 6);
}

// y, mean and rstd.
Terms layer_norm(N& n) {
  const auto& a = n.attributes<LayerNormAttrs>();
  const Groups g = rows_of(n.in(0).shape, a.dims);
  const DType dtype = n.in(0).dtype;
  Integers inner;
  for (const std::int64_t axis : g.axes) inner.push_back(n.in(0).shape[static_cast<int>(axis)]);
  const Term weight = n.count() > 1 ? n[1] : n.filled(shape_of(inner), 1, dtype);
  std::vector<DType> results = {dtype};
  if (n.wants(1) || n.wants(2)) results.resize(3, DType::f32);
  const Terms all = n.add_several("LayerNormalization", {n[0], weight, n[2]}, results, {{"axis", -a.dims}, {"epsilon", a.eps}});
  if (results.size() == 1) return all;
  return {all[0], reshaped(all[1].as(dtype), n.out(1).shape), reshaped(all[2].as(dtype), n.out(2).shape)};
}

// rstd is (variance + eps)^(-1/2), and its gradient for x is -rstd^2 apart / count.
Term through_statistics(const Term& dmean, const Term& drstd, const Term& apart, const Term& rstd, double count) {
  return (dmean - drstd * rstd * rstd * apart) * (1 / count);
}

Terms layer_norm_grad(N& n) {
  const Groups g = rows_of(n.in(0).shape, n.attributes<LayerNormAttrs>().dims);
  const auto beside = [&](int i) { return reshaped(n[i], g.statistic); };
  const Term rstd = beside(3), apart = (n[0] - beside(2)) * rstd, dy = n.count() > 6 ? n[1] * n[6] : n[1];
  const Term dx = through_norm(dy, apart, rstd, g) + through_statistics(beside(4), beside(5), apart, rstd, g.count);
  return with_weights(n, dx, apart, g, n.count() > 6 ? n.in(6).shape : Shape(), 6);
}

Terms rms_norm(N& n) {
  const auto& a = n.attributes<LayerNormAttrs>();
  const Groups g = rows_of(n.in(0).shape, a.dims);
  const Term rstd = root_of(mean_of(n[0] * n[0], g) + a.eps).apply("Reciprocal"), y = n[0] * rstd;
  return {n.count() > 1 ? y * n[1] : y, n.wants(1) ? reshaped(rstd, n.out(1).shape) : Term()};
}

Terms rms_norm_grad(N& n) {
  const Groups g = rows_of(n.in(0).shape, n.attributes<LayerNormAttrs>().dims);
  const Term rstd = reshaped(n[2], g.statistic), apart = n[0] * rstd, dy = n.count() > 4 ? n[1] * n[4] : n[1];
  const Term dx =
      rstd * (dy - apart * mean_of(dy * apart, g)) - reshaped(n[3], g.statistic) * rstd * rstd * apart * (1 / g.count);
  return with_weights(n, dx, apart, g, n.count() > 4 ? n.in(4).shape : Shape(), 4);
}

// x as [n, groups, rest]: then a group is a row.
struct Grouped {
  Shape shape;
  Groups rows;
  Integers weight;  // [c, 1, ...]
};

Grouped grouped(const Shape& x, std::int64_t groups) {
  const std::int64_t rest = x[0] * groups == 0 ? 0 : x.numel() / (x[0] * groups);
  Grouped g{{x[0], groups, rest}, {}, Integers(static_cast<std::size_t>(x.rank) - 1, 1)};
  g.rows = rows_of(g.shape, 1);
  g.weight[0] = x[1];
  return g;
}

Terms group_norm(N& n) {
  const auto& a = n.attributes<GroupNormAttrs>();
  const Shape& x = n.in(0).shape;
  if (a.groups == x[1] && n.count() == 3 && !n.wants(1) && !n.wants(2) && x.rank > 2)
    return {n.add("InstanceNormalization", {n[0], n[1], n[2]}, n.in(0).dtype, {{"epsilon", a.eps}})};
  const Grouped g = grouped(x, a.groups);
  const Term flat = reshaped(n[0], g.shape), mean = mean_of(flat, g.rows), far = flat - mean;
  const Term rstd = root_of(mean_of(far * far, g.rows) + a.eps).apply("Reciprocal");
  Term y = reshaped(far * rstd, x);
  if (n.count() > 1) y = y * reshaped(n[1], g.weight);
  if (n.count() > 2) y = y + reshaped(n[2], g.weight);
  return {y, n.wants(1) ? reshaped(mean, n.out(1).shape) : Term(), n.wants(2) ? reshaped(rstd, n.out(2).shape) : Term()};
}

Terms group_norm_grad(N& n) {
  const Shape& x = n.in(0).shape;
  const Grouped g = grouped(x, n.attributes<GroupNormAttrs>().groups);
  const auto beside = [&](int i) { return reshaped(n[i], g.rows.statistic); };
  const Term rstd = beside(3), apart = (reshaped(n[0], g.shape) - beside(2)) * rstd;
  const Term dy = reshaped(n.count() > 6 ? n[1] * reshaped(n[6], g.weight) : n[1], g.shape);
  const Term dx = through_norm(dy, apart, rstd, g.rows) + through_statistics(beside(4), beside(5), apart, rstd, g.rows.count);
  return with_weights(n, reshaped(dx, x), reshaped(apart, x), channels_of(x), {x[1]}, 6);
}

// ---- attention ----

// The masked scores [b,h,t,s] of queries and keys.
Term scores(N& n, const Term& mask) {
  const auto& a = n.attributes<AttentionAttrs>();
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  Term all = product(n[0], transposed(n[1], {0, 1, 3, 2})) * a.scale;
  if (!mask.name().empty()) all = mask.dtype() == DType::boolean ? choose(mask, all, kNever) : all + mask;
  if (!a.causal) return all;
  const std::int64_t queries = n.in(0).shape[2], keys = n.in(1).shape[2];
  return choose(counted(n, keys) <= reshaped(counted(n, queries), Integers{queries, 1}), all, kNever);
}

// A query that sees no key gives 0.
Terms attention(N& n) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const DType wide = n.out(1).dtype;
  const Term all = scores(n, n[3]).as(wide), total = reduced("ReduceLogSumExp", all, {3}, true);
  const Term shares = exp_of(all - choose(is(total, kNever), 0, total)).as(n.in(0).dtype);
  return {product(shares, n[2]), n.wants(1) ? reshaped(total, n.out(1).shape) : Term()};
}

Terms attention_grad(N& n) {
  const DType wide = n.in(4).dtype, own = n.in(0).dtype;
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const auto column = [&](int i) {
    Integers sizes = list_of(n.in(i).shape);
    sizes.push_back(1);
    return reshaped(n[i], sizes);
  };
  const Integers swap = {0, 1, 3, 2};
  const Term total = column(4), shares = exp_of(scores(n, n[7]).as(wide) - choose(is(total, kNever), 0, total));
  const Term inner = reduced("ReduceSum", (n[5] * n[3]).as(wide), {3}, true) - column(6);
  const Term dscores =
      (shares * (product(n[5], transposed(n[2], swap)).as(wide) - inner) * n.attributes<AttentionAttrs>().scale).as(own);
  return {product(dscores, n[1]), product(transposed(dscores, swap), n[0]), product(transposed(shares.as(own), swap), n[5])};
}

// ---- recurrent cells ----

Terms gates_of(const Term& x, std::int64_t count, std::int64_t hidden) {
  N& n = x.at();
  const auto several = static_cast<std::size_t>(count);
  return n.add_several("Split", {x, n.list(Integers(several, hidden))}, std::vector<DType>(several, x.dtype()), {{"axis", 1}});
}

Terms lstm_cell(N& n) {
  const Terms gates = gates_of(n[0], 4, n.in(1).shape[1]);
  const Term c = sigmoid_of(gates[1]) * n[1] + sigmoid_of(gates[0]) * tanh_of(gates[2]);
  return {sigmoid_of(gates[3]) * tanh_of(c), c};
}

Terms lstm_cell_grad(N& n) {
  const Terms gates = gates_of(n[0], 4, n.in(1).shape[1]);
  const Term i = sigmoid_of(gates[0]), f = sigmoid_of(gates[1]), g = tanh_of(gates[2]), o = sigmoid_of(gates[3]);
  const Term t = tanh_of(f * n[1] + i * g), dc = n[3] + n[2] * o * (1 - t * t);
  return {joined({dc * g * i * (1 - i), dc * n[1] * f * (1 - f), dc * i * (1 - g * g), n[2] * t * o * (1 - o)}, 1), dc * f};
}

struct Gru {
  Term r, z, fresh, state;  // state: the part of s that r scales
};

Gru gru_of(N& n) {
  const std::int64_t hidden = n.in(2).shape[1];
  const Terms x = gates_of(n[0], 3, hidden), s = gates_of(n[1], 3, hidden);
  const Term r = sigmoid_of(x[0] + s[0]), z = sigmoid_of(x[1] + s[1]);
  return {r, z, tanh_of(x[2] + r * s[2]), s[2]};
}

Terms gru_cell(N& n) {
  const Gru g = gru_of(n);
  return {(1 - g.z) * g.fresh + g.z * n[2]};
}

Terms gru_cell_grad(N& n) {
  const Gru g = gru_of(n);
  const Term dn = n[3] * (1 - g.z) * (1 - g.fresh * g.fresh), dr = dn * g.state * g.r * (1 - g.r);
  const Term dz = n[3] * (n[2] - g.fresh) * g.z * (1 - g.z);
  return {joined({dr, dz, dn}, 1), joined({dr, dz, dn * g.r}, 1), n[3] * g.z};
}

}  // namespace

std::vector<ExportOp> norm_exports() {
  return {
      same("matmul", "MatMul"),
      composed("linear", linear),
      composed("batch_norm", batch_norm),
      composed("batch_norm_grad", batch_norm_grad),
      composed("batch_norm_inference", batch_norm_inference),
      composed("layer_norm", layer_norm),
      composed("layer_norm_grad", layer_norm_grad),
      composed("rms_norm", rms_norm),
      composed("rms_norm_grad", rms_norm_grad),
      composed("group_norm", group_norm),
      composed("group_norm_grad", group_norm_grad),
      composed("ema", [](N& n) { return Terms{n[0] + n.attributes<EmaAttrs>().momentum * (n[1] - n[0])}; }),
      composed("scaled_dot_product_attention", attention),
      composed("scaled_dot_product_attention_grad", attention_grad),
      composed("lstm_cell", lstm_cell),
      composed("lstm_cell_grad", lstm_cell_grad),
      composed("gru_cell", gru_cell),
      composed("gru_cell_grad", gru_cell_grad),
  };
}

}  // namespace tapedeck::onnx
