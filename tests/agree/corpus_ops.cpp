// Hand-written programs that use ops of every family and their gradients. Some nodes have several results or integer
// operands, which a plan must place as well.
#include <tapedeck/tests/agree/corpus.h>

namespace tapedeck::agree {

PROGRAM(reductions) {
  p.input({3, 4, 5});
  const Tensor w = p.parameter("w", {4, 1});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * w;
        return {mean(x) + sum(max(x, {1})) + sum(min(x, {0, 2}, true)) + sum(logsumexp(x, {2})), var(x, {1}), std(x, {0}),
                prod(x, {2}), norm(x)};
      },
      {w});
}

PROGRAM(integer_reductions) {
  p.input({4, 5}, {-9, 9}, DType::i32);
  const Tensor seen = p.buffer("seen", {4}, {0, 1}, DType::i64);
  p.step([=](const Tensors& in) -> Tensors {
    add_(seen, count_nonzero(in[0], {1}));
    return {sum(in[0], {0}),          max(in[0]), argmax(in[0], 1), argmin(in[0], 0), any(greater(in[0], 7)),
            all(less(in[0], 9), {1}), seen * 2};
  });
}

PROGRAM(matmuls) {
  p.input({2, 3, 4});
  const Tensor a = p.parameter("a", {4, 5}), b = p.parameter("b", {2, 5, 3}), v = p.parameter("v", {3});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor h = matmul(matmul(in[0], a), b);
        return {sum(matmul(h, v)), einsum("bij,bjk->ik", {in[0], matmul(a, b)}), outer(v, v)};
      },
      {a, b, v});
}

PROGRAM(linear_layers) {
  p.input({5, 6});
  struct Net : Module {
    Linear fc1{*this, "fc1", 6, 8}, fc2{*this, "fc2", 8, 3};
  };
  Net& net = p.own<Net>();
  p.watch(net);
  p.train([&net](const Tensors& in) -> Tensors { return {mean(square(net.fc2(relu(net.fc1(in[0])))))}; }, net.parameters());
}

PROGRAM(convolution_and_pools) {
  p.input({2, 2, 8, 8});
  struct Net : Module {
    Conv2d c1{*this, "c1", 2, 3, 3, Padding(1)}, c2{*this, "c2", 3, 4, 3, Stride(2)};
  };
  Net& net = p.own<Net>();
  p.watch(net);
  p.train(
      [&net](const Tensors& in) -> Tensors {
        const Tensor h = max_pool2d(relu(net.c1(in[0])));
        return {mean(square(net.c2(avg_pool2d(h, {.window = {3}, .stride = {1}, .padding = {1}})))), global_avg_pool(h)};
      },
      net.parameters());
}

PROGRAM(grouped_and_transposed_convolution) {
  p.input({1, 4, 6});
  p.input({1, 2, 3, 3});
  const Tensor w = p.parameter("w", {4, 2, 3}), t = p.parameter("t", {2, 3, 2, 2});
  p.train(
      [=](const Tensors& in) -> Tensors {
        return {mean(conv1d(in[0], w, {.padding = {1}, .groups = 2})) +
                sum(square(conv_transpose2d(in[1], t, {.stride = {2}})))};
      },
      {w, t});
}

PROGRAM(norms) {
  p.input({2, 4, 3});
  const Tensor w = p.parameter("w", {4, 3}), b = p.parameter("b", {4, 3}), r = p.parameter("r", {3}), c = p.parameter("c", {4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor a = layer_norm(in[0], w, b, 1e-5, 2), d = rms_norm(in[0], r), e = group_norm(in[0], 2, c, c);
        return {sum(sin(a + d + e)) + mean(instance_norm(in[0]) * normalize(in[0]))};
      },
      {w, b, r, c});
}

PROGRAM(batch_norm_statistics) {
  p.input({6, 3, 2, 2});
  struct Net : Module {
    Conv2d conv{*this, "conv", 3, 4, 1};
    BatchNorm2d bn{*this, "bn", 4};
  };
  Net& net = p.own<Net>();
  p.watch(net);
  Sgd& sgd = p.own<Sgd>(net.parameters(), SgdOptions{.lr = 0.1});
  p.train([&net](const Tensors& in) -> Tensors { return {mean(tanh(net.bn(net.conv(in[0]))))}; }, net.parameters(), &sgd);
}

PROGRAM(batch_norm_while_evaluating) {
  p.input({4, 3});
  struct Net : Module {
    BatchNorm1d bn{*this, "bn", 3};
  };
  Net& net = p.own<Net>();
  net.train(false);
  p.watch(net);
  p.train([&net](const Tensors& in) -> Tensors { return {sum(square(net.bn(in[0])))}; }, net.parameters());
}

PROGRAM(embeddings) {
  p.input({2, 5}, {0, 7}, DType::i32);
  p.input({2, 5}, {0, 7}, DType::i64);
  struct Net : Module {
    Embedding table{*this, "table", 7, 4};
  };
  Net& net = p.own<Net>();
  p.watch(net);
  Sgd& sgd = p.own<Sgd>(net.parameters(), SgdOptions{.lr = 0.1, .momentum = 0.9});
  p.train([&net](const Tensors& in) -> Tensors { return {mean(net.table(in[0]) * net.table(in[1]))}; }, net.parameters(), &sgd);
}

PROGRAM(gather_scatter_and_index) {
  p.input({4, 5});
  p.input({4, 3}, {0, 5}, DType::i64);
  p.input({3}, {0, 4}, DType::i32);
  const Tensor w = p.parameter("w", {4, 5});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * w, picked = gather(x, in[1], 1), rows = index_select(x, 0, in[2]);
        const Tensor put = scatter_add(x, in[1], picked, 1), more = index_add(put, 0, in[2], rows);
        return {sum(more * x) + mean(take(x, in[2])), scatter(x, in[1], picked, 1)};
      },
      {w});
}

PROGRAM(masks_and_where) {
  p.input({4, 4});
  const Tensor w = p.parameter("w", {4, 4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * w, high = greater(x, 0.1), low = less(in[0], -0.1);
        const Tensor y = where(logical_or(high, low), x, x * 0.1);
        return {sum(masked_fill(y, high, 2) + where(low, y, 0)), high, cast(low, DType::f32), abs(sign(x))};
      },
      {w});
}

PROGRAM(sort_and_topk) {
  p.input({3, 6});
  const Tensor w = p.parameter("w", {6});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * w;
        const auto [values, places] = sort(x, 1, true);
        const auto [best, where_best] = topk(x, 2, 1);
        return {sum(values * values) + sum(best), places, where_best, argsort(x, 0)};
      },
      {w});
}

PROGRAM(scans) {
  p.input({3, 5});
  const Tensor w = p.parameter("w", {5}, {0.5, 1.5});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * w, c = cumsum(x, 1);
        const auto [high, place] = cummax(x, 1);
        return {sum(tanh(c) + cumprod(x, 1)) + mean(logcumsumexp(x, 0)) + sum(high), place,
                cumsum(x, 1, {.exclusive = true, .reverse = true})};
      },
      {w});
}

PROGRAM(integer_math) {
  p.input({4}, {-20, 20}, DType::i32);
  p.input({4}, {1, 6}, DType::i32);
  p.input({4}, {0, 2}, DType::boolean);
  const Tensor n = p.buffer("n", {4}, {0, 9}, DType::i64);
  p.step([=](const Tensors& in) -> Tensors {
    const Tensor a = in[0], b = in[1];
    add_(n, a);
    return {
        a + b * 3, floor_divide(a, b), remainder(a, b), bitwise_xor(a, b), left_shift(b, 2), maximum(a, b), a * in[2], a / b,
        n + 1};
  });
}

PROGRAM(losses) {
  p.input({4, 5});
  p.input({4}, {0, 5}, DType::i32);
  p.input({4, 5}, {0, 1});
  const Tensor w = p.parameter("w", {5, 5});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor z = matmul(in[0], w);
        const Tensor a = cross_entropy(z, in[1], {.label_smoothing = 0.1}), b = nll_loss(log_softmax(z), in[1]);
        const Tensor c = binary_cross_entropy_with_logits(z, in[2]), d = kl_div(log_softmax(z), softmax(in[2]));
        return {a + b + c + d + huber_loss(z, in[2]) + l1_loss(z, in[2]) + mse_loss(sigmoid(z), in[2]), a, b, c, d};
      },
      {w});
}

PROGRAM(functions_of_one) {
  p.input({3, 4}, {0.2, 0.9});
  const Tensor w = p.parameter("w", {4}, {0.2, 0.9});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * w;
        const Tensor a = exp(x) + log(x) + sqrt(x) + sin(x) * cos(x) + erf(x) + lgamma(x) + atanh(x);
        return {sum(a + gelu(x) + silu(x) + softplus(x) + elu(x) + mish(x)), reciprocal(x), clamp(x, 0.3, 0.5), round(x * 10)};
      },
      {w});
}

PROGRAM(numbers_of_an_op_written_elsewhere) {
  p.input({2, 6});
  const Tensor w = p.parameter("w", {6});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * w;
        return {sum(lerp(x, in[0], 0.3) + addcmul(x, x, in[0], 2)) + mean(hypot(x, 1.5)),
                interpolate(reshape(x, {1, 2, 6}), {9}), one_hot(argmax(x), 6)};
      },
      {w});
}

}  // namespace tapedeck::agree
