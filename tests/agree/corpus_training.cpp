// Hand-written programs that are whole training steps: optimizers and their step counters, schedules, gradient clipping,
// loss scaling, gradient accumulation, several losses, several dtypes.
#include <tapedeck/tests/agree/corpus.h>

namespace tapedeck::agree {

namespace {

struct Net : Module {
  Linear fc1{*this, "fc1", 5, 7}, fc2{*this, "fc2", 7, 3};
  Tensor operator()(const Tensor& x) { return fc2(tanh(fc1(x))); }
};

Net& net_of(Program& p) {
  p.input({4, 5});
  p.input({4}, {0, 3}, DType::i32);
  Net& net = p.own<Net>();
  p.watch(net);
  return net;
}

// A step computes the cross entropy and then runs one step of an optimizer.
template <class Opt, class Options>
Opt& trained_by(Program& p, Options options) {
  Net& net = net_of(p);
  Opt& optimizer = p.own<Opt>(net.parameters(), options);
  p.train([&net](const Tensors& in) -> Tensors { return {cross_entropy(net(in[0]), in[1])}; }, net.parameters(), &optimizer);
  return optimizer;
}

}  // namespace

PROGRAM(sgd_plain) { trained_by<Sgd>(p, SgdOptions{.lr = 0.1, .weight_decay = 0.01}); }
PROGRAM(sgd_nesterov) { trained_by<Sgd>(p, SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true}); }
PROGRAM(sgd_dampening) { trained_by<Sgd>(p, SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5}); }
PROGRAM(adam) { trained_by<Adam>(p, AdamOptions{.lr = 0.01}); }
PROGRAM(adamw_amsgrad) { trained_by<AdamW>(p, AdamWOptions{.lr = 0.01, .amsgrad = true}); }
PROGRAM(rmsprop_centered) { trained_by<Rmsprop>(p, RmspropOptions{.momentum = 0.5, .centered = true}); }
PROGRAM(adagrad) { trained_by<Adagrad>(p, AdagradOptions{.lr_decay = 0.1}); }
PROGRAM(lion) { trained_by<Lion>(p, LionOptions{.lr = 0.01}); }

PROGRAM(learning_rate_that_changes) {
  AdamW& optimizer = trained_by<AdamW>(p, AdamWOptions{.lr = 0.01});
  p.before([&optimizer](int step) { optimizer.set_lr(0.01 / (1 + step)); });
}

PROGRAM(schedule_of_the_step) {
  Net& net = net_of(p);
  p.input({}, {0, 9}, DType::i64);
  AdamW& optimizer = p.own<AdamW>(net.parameters(), AdamWOptions{});
  p.watch(optimizer.state());
  p.step([&](const Tensors& in) -> Tensors {
    optimizer.set_lr(schedule::warmup_cosine(in[2], 0.01, 2, 10));
    const Tensor loss = cross_entropy(net(in[0]), in[1]);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return {loss};
  });
}

PROGRAM(clipped_gradients) {
  Net& net = net_of(p);
  Sgd& optimizer = p.own<Sgd>(net.parameters(), SgdOptions{.lr = 0.1});
  p.step([&](const Tensors& in) -> Tensors {
    const Tensor loss = cross_entropy(net(in[0]), in[1]);
    backward(loss);
    const Tensor length = clip_grad_norm_(net.parameters(), 0.1);
    clip_grad_value_(net.parameters(), 0.02);
    optimizer.step();
    optimizer.zero_grad();
    return {loss, length};
  });
}

PROGRAM(scaled_losses) {
  Net& net = net_of(p);
  AdamW& optimizer = p.own<AdamW>(net.parameters(), AdamWOptions{});
  GradScaler& scaler = p.own<GradScaler>(GradScalerOptions{.scale = 256, .interval = 2});
  p.watch(optimizer.state());
  p.watch(scaler.state());
  p.step([&](const Tensors& in) -> Tensors {
    const Tensor loss = cross_entropy(net(in[0]), in[1]);
    backward(scaler.scale_loss(loss));
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
    return {loss};
  });
}

PROGRAM(accumulated_over_micro_steps) {
  Net& net = net_of(p);
  Sgd& optimizer = p.own<Sgd>(net.parameters(), SgdOptions{.lr = 0.1, .momentum = 0.9});
  p.watch(optimizer.state());
  p.step([&](const Tensors& in) -> Tensors {
    Tensors losses;
    for (int half = 0; half < 2; ++half) {
      losses.push_back(cross_entropy(net(slice(in[0], 0, 2 * half, 2 * half + 2)), slice(in[1], 0, 2 * half, 2 * half + 2)) *
                       0.5);
      backward(losses.back());
    }
    optimizer.step();
    optimizer.zero_grad();
    return losses;
  });
}

PROGRAM(two_losses_one_trunk) {
  Net& net = net_of(p);
  Sgd& optimizer = p.own<Sgd>(net.parameters(), SgdOptions{.lr = 0.1});
  p.step([&](const Tensors& in) -> Tensors {
    const Tensor y = net(in[0]), a = cross_entropy(y, in[1]), b = mean(square(y));
    backward(a, {.retain = true});
    backward(b);
    optimizer.step();
    optimizer.zero_grad();
    return {a, b};
  });
}

PROGRAM(gradients_written_added_and_none) {
  p.input({4});
  Tensor a = p.parameter("a", {4}), b = p.parameter("b", {4}), c = p.parameter("c", {4});
  a.grad_request(GradRequest::write);
  c.grad_request(GradRequest::none);
  p.step([=](const Tensors& in) -> Tensors {
    const Tensor y = sum(square(in[0] * a * b + c));
    backward(y, {.retain = true});
    backward(y);
    Tensors results{y, a.grad(), b.grad()};
    for (Tensor t : {a, b}) t.set_grad(Tensor());
    return results;
  });
}

PROGRAM(second_gradients) {
  p.input({4});
  const Tensor w = p.parameter("w", {4});
  p.step([=](const Tensors& in) -> Tensors {
    const Tensor y = sum(exp(in[0] * w) + w * w * w);
    const Tensor first = gradients({y}, {w}, {.create_graph = true})[0];
    const Tensor second = gradients({sum(square(first))}, {w})[0];
    return {y, first, second};
  });
}

PROGRAM(gradient_penalty) {
  Net& net = net_of(p);
  Sgd& optimizer = p.own<Sgd>(net.parameters(), SgdOptions{.lr = 0.1});
  p.step([&](const Tensors& in) -> Tensors {
    const Tensor h = net.fc1(in[0]);
    const Tensor dh = gradients({sum(tanh(net.fc2(tanh(h))))}, {h}, {.create_graph = true})[0];
    const Tensor loss = mean(square(dh)) + mean(square(net(in[0])));
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return {loss, dh};
  });
}

PROGRAM(hooks_and_kept_gradients) {
  p.input({4});
  const Tensor w = p.parameter("w", {4});
  p.step([=](const Tensors& in) -> Tensors {
    Tensor h = in[0] * w;
    h.retain_grad();
    h.on_grad([](const Tensor& g) { return g * 0.5; });
    const Tensor y = sum(square(h));
    backward(y);
    Tensors results{y, h.grad(), w.grad()};
    Tensor(w).set_grad(Tensor());
    return results;
  });
}

PROGRAM(two_optimizers_against_each_other) {
  p.input({4, 3});
  p.input({4, 2});
  struct Pair : Module {
    Linear maker{*this, "maker", 2, 3}, judge{*this, "judge", 3, 1};
  };
  Pair& net = p.own<Pair>();
  p.watch(net);
  Sgd& makes = p.own<Sgd>(net.maker.parameters(), SgdOptions{.lr = 0.1});
  Adam& judges = p.own<Adam>(net.judge.parameters(), AdamOptions{.lr = 0.01});
  p.watch(judges.state());
  p.step([&](const Tensors& in) -> Tensors {
    const Tensor fake = tanh(net.maker(in[1]));
    const Tensor judged = mean(softplus(-net.judge(in[0]))) + mean(softplus(net.judge(fake.detach())));
    backward(judged);
    judges.step();
    makes.zero_grad();
    judges.zero_grad();
    const Tensor fooled = mean(softplus(-net.judge(fake)));
    backward(fooled);
    makes.step();
    makes.zero_grad();
    judges.zero_grad();
    return {judged, fooled};
  });
}

PROGRAM(averaged_weights) {
  Net& net = net_of(p);
  Sgd& optimizer = p.own<Sgd>(net.parameters(), SgdOptions{.lr = 0.1});
  const Tensor average = p.buffer("average", {5, 7}, {0, 0});
  p.step([=, &net, &optimizer](const Tensors& in) -> Tensors {
    const Tensor loss = cross_entropy(net(in[0]), in[1]);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    const NoGrad no_grad;
    mul_(average, 0.9);
    add_(average, net.fc1.weight * 0.1);
    return {loss, matmul(in[0], average)};
  });
}

PROGRAM(everything_in_one_step) {
  p.input({6, 5});
  p.input({6}, {0, 3}, DType::i32);
  struct Deep : Module {
    Linear fc1{*this, "fc1", 5, 8};
    BatchNorm1d bn{*this, "bn", 8};
    Dropout drop{*this, "drop", 0.3};
    Linear fc2{*this, "fc2", 8, 3};
  };
  Deep& net = p.own<Deep>();
  p.watch(net);
  AdamW& optimizer = p.own<AdamW>(net.parameters(), AdamWOptions{.lr = 0.01});
  p.train(
      [&net](const Tensors& in) -> Tensors {
        const Tensor h = net.drop(relu(net.bn(net.fc1(in[0]))));
        return {cross_entropy(net.fc2(h), in[1], {.label_smoothing = 0.1}), h};
      },
      net.parameters(), &optimizer);
}

PROGRAM(autocast_to_bf16) {
  Net& net = net_of(p);
  Sgd& optimizer = p.own<Sgd>(net.parameters(), SgdOptions{.lr = 0.1});
  p.train(
      [&net](const Tensors& in) -> Tensors {
        const Autocast autocast(DType::bf16);
        const Tensor y = net(in[0]);
        return {cross_entropy(y, in[1]), y};
      },
      net.parameters(), &optimizer);
}

PROGRAM(half_precision) {
  p.input({3, 4}, {}, DType::f16);
  const Tensor w = p.parameter("w", {4, 5}, {}, DType::f16), b = p.parameter("b", {5}, {}, DType::f32);
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor h = matmul(in[0], w);
        return {mean(softmax(h) * exp(h) + b), h, cast(h, DType::bf16)};
      },
      {w, b});
}

PROGRAM(double_precision) {
  p.input({3, 4}, {}, DType::f64);
  const Tensor w = p.parameter("w", {4, 4}, {}, DType::f64);
  Sgd& optimizer = p.own<Sgd>(Tensors{w}, SgdOptions{.lr = 0.1, .momentum = 0.9});
  p.train([=](const Tensors& in) -> Tensors { return {mean(layer_norm(matmul(in[0], w) / 3.0) + sin(in[0]))}; }, {w},
          &optimizer);
}

PROGRAM(mixed_dtypes) {
  p.input({3, 4}, {}, DType::bf16);
  p.input({4}, {-3, 3}, DType::i32);
  const Tensor w = p.parameter("w", {4}), v = p.parameter("v", {4}, {}, DType::f64);
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor y = in[0] * w + in[1];
        return {sum(cast(y * v, DType::f32)), y, cast(y, DType::i32)};
      },
      {w, v});
}

}  // namespace tapedeck::agree
