// Hand-written programs that train small networks of many kinds, with random ops, checkpoint regions and custom gradients.
#include <tapedeck/tests/agree/corpus.h>

namespace tapedeck::agree {

namespace {

// Makes a net that the program owns. Each step trains it on a loss of the program's only input.
template <class Net>
Net& trained(Program& p, Tensor (*loss)(Net&, const Tensors&), double lr = 0.05) {
  Net& net = p.own<Net>();
  p.watch(net);
  Sgd& sgd = p.own<Sgd>(net.parameters(), SgdOptions{.lr = lr});
  p.train([&net, loss](const Tensors& in) -> Tensors { return {loss(net, in)}; }, net.parameters(), &sgd);
  return net;
}

struct TwoLayers : Module {
  Linear fc1{*this, "fc1", 6, 10}, fc2{*this, "fc2", 10, 3};
  Dropout drop{*this, "drop", 0.4};
};

}  // namespace

PROGRAM(dropout_module) {
  p.input({5, 6});
  trained<TwoLayers>(p,
                     [](TwoLayers& net, const Tensors& in) { return mean(square(net.fc2(net.drop(relu(net.fc1(in[0])))))); });
}

PROGRAM(dropout_functional) {
  p.input({5, 6});
  const Tensor w = p.parameter("w", {6});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * w;
        return {sum(dropout(x, 0.5) * dropout(x, 0.5)), dropout(in[0], 0.2)};
      },
      {w});
}

PROGRAM(draws_of_every_kind) {
  p.input({3, 4});
  const Tensor w = p.parameter("w", {3, 4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * w + 0.1 * normal({3, 4}) + rand_like(in[0]);
        return {sum(x * bernoulli({3, 4}, 0.5)), randint(0, 9, {4}), uniform({2}, -1, 1), randn_like(in[0]),
                multinomial(sigmoid(in[0]), 2)};
      },
      {w});
}

PROGRAM(dropout_channels_and_alpha) {
  p.input({2, 4, 3});
  struct Net : Module {
    Dropout2d channels{*this, "channels", 0.5};
    AlphaDropout alpha{*this, "alpha", 0.2};
    Linear fc{*this, "fc", 3, 2};
  };
  trained<Net>(p, [](Net& net, const Tensors& in) { return mean(net.fc(selu(net.alpha(net.channels(in[0]))))); });
}

PROGRAM(shared_weights) {
  p.input({4, 5});
  struct Net : Module {
    Linear fc{*this, "fc", 5, 5};
  };
  trained<Net>(p, [](Net& net, const Tensors& in) { return mean(net.fc(tanh(net.fc(tanh(net.fc(in[0])))))); });
}

PROGRAM(tied_embedding) {
  p.input({3, 4}, {0, 8}, DType::i32);
  struct Net : Module {
    Embedding table{*this, "table", 8, 6};
  };
  trained<Net>(p, [](Net& net, const Tensors& in) {
    const Tensor logits = matmul(tanh(net.table(in[0])), transpose_last(net.table.weight));
    return cross_entropy(reshape(logits, {12, 8}), reshape(in[0], {12}));
  });
}

PROGRAM(attention_block) {
  p.input({2, 4, 8});
  struct Net : Module {
    TransformerBlock block{*this, "block", 8, {.heads = 2, .hidden = 12, .causal = true, .dropout = 0.1}};
  };
  trained<Net>(p, [](Net& net, const Tensors& in) { return mean(square(net.block(in[0]))); });
}

PROGRAM(cross_attention_with_a_mask) {
  p.input({2, 3, 4});
  p.input({2, 5, 4});
  p.input({3, 5}, {0, 2}, DType::boolean);
  struct Net : Module {
    MultiheadAttention attention{*this, "attention", 4, 2};
  };
  trained<Net>(p, [](Net& net, const Tensors& in) {
    const Tensor some = logical_or(in[2], cast(eye(3, 5), DType::boolean));
    return mean(net.attention(in[0], in[1], some));
  });
}

PROGRAM(lstm_over_time) {
  p.input({4, 2, 3});
  struct Net : Module {
    Lstm lstm{*this, "lstm", 3, 5};
    Linear out{*this, "out", 5, 2};
  };
  trained<Net>(p, [](Net& net, const Tensors& in) { return mean(square(net.out(net.lstm(in[0]).y))); });
}

PROGRAM(gru_both_ways) {
  p.input({3, 2, 3});
  struct Net : Module {
    Gru gru{*this, "gru", 3, 4, {.layers = 2, .bidirectional = true, .dropout = 0.3}};
  };
  trained<Net>(p, [](Net& net, const Tensors& in) { return mean(net.gru(in[0]).y); });
}

PROGRAM(state_carried_between_steps) {
  p.input({2, 3});
  struct Net : Module {
    RnnCell cell{*this, "cell", 3, 4};
  };
  Net& net = p.own<Net>();
  p.watch(net);
  const Tensor h = p.buffer("h", {2, 4}, {0, 0});
  Sgd& sgd = p.own<Sgd>(net.parameters(), SgdOptions{.lr = 0.1});
  p.step([=, &net, &sgd](const Tensors& in) -> Tensors {
    const Tensor next = net.cell(in[0], copy(h));
    const Tensor loss = mean(square(next));
    backward(loss);
    sgd.step();
    sgd.zero_grad();
    copy_(h, next.detach());
    return {loss, h};
  });
}

PROGRAM(character_lstm) {
  p.input({4, 3}, {0, 6}, DType::i32);
  p.input({4, 3}, {0, 6}, DType::i32);
  struct Net : Module {
    Embedding table{*this, "table", 6, 4};
    LstmCell cell{*this, "cell", 4, 5};
    Linear out{*this, "out", 5, 6};
  };
  trained<Net>(p, [](Net& net, const Tensors& in) {
    LstmState state;
    Tensor loss;
    for (int t = 0; t < 4; ++t) {
      state = net.cell(net.table(select(in[0], 0, t)), state);
      const Tensor piece = cross_entropy(net.out(state.h), select(in[1], 0, t));
      loss = loss.defined() ? loss + piece : piece;
    }
    return loss * 0.25;
  });
}

PROGRAM(skip_connections) {
  p.input({1, 2, 8, 8});
  struct Net : Module {
    Conv2d down1{*this, "down1", 2, 3, 3, Padding(1)}, down2{*this, "down2", 3, 4, 3, Stride(2), Padding(1)};
    ConvTranspose2d up{*this, "up", 4, 3};
    Conv2d out{*this, "out", 6, 1, 1};
  };
  trained<Net>(p, [](Net& net, const Tensors& in) {
    const Tensor a = relu(net.down1(in[0]));
    return mean(square(net.out(concat({a, relu(net.up(relu(net.down2(a))))}, 1))));
  });
}

PROGRAM(residual_blocks) {
  p.input({3, 6});
  struct Net : Module {
    Linear a{*this, "a", 6, 6}, b{*this, "b", 6, 6}, c{*this, "c", 6, 6};
    LayerNorm norm{*this, "norm", 6};
  };
  trained<Net>(p, [](Net& net, const Tensors& in) {
    Tensor h = in[0];
    h = h + relu(net.a(h));
    h = h + net.c(relu(net.b(net.norm(h))));
    return mean(h * h);
  });
}

PROGRAM(checkpoint_of_a_block) {
  p.input({4, 6});
  trained<TwoLayers>(p, [](TwoLayers& net, const Tensors& in) {
    const Tensor h = checkpoint([&] { return gelu(net.fc1(tanh(in[0]))); });
    return mean(square(net.fc2(h)));
  });
}

PROGRAM(checkpoint_with_dropout) {
  p.input({4, 6});
  trained<TwoLayers>(p, [](TwoLayers& net, const Tensors& in) {
    const Tensor h = checkpoint([&] { return net.drop(relu(net.fc1(in[0]))); });
    return mean(square(checkpoint([&] { return dropout(tanh(net.fc2(h)), 0.3); })));
  });
}

PROGRAM(checkpoints_in_a_chain) {
  p.input({4, 5});
  struct Net : Module {
    Linear a{*this, "a", 5, 5}, b{*this, "b", 5, 5}, c{*this, "c", 5, 5};
  };
  trained<Net>(p, [](Net& net, const Tensors& in) {
    Tensor h = in[0];
    for (Linear* layer : {&net.a, &net.b, &net.c}) h = checkpoint([&] { return h + tanh(relu((*layer)(h)) * 0.5); });
    return mean(square(h));
  });
}

PROGRAM(checkpoint_with_statistics) {
  p.input({6, 4});
  struct Net : Module {
    Linear fc{*this, "fc", 4, 3};
    BatchNorm1d bn{*this, "bn", 3};
  };
  trained<Net>(
      p, [](Net& net, const Tensors& in) { return mean(square(checkpoint([&] { return tanh(net.bn(net.fc(in[0]))); }))); });
}

PROGRAM(checkpoint_of_a_buffer_written_later) {
  p.input({5});
  const Tensor w = p.parameter("w", {5}), mean_of_all = p.buffer("mean", {5});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor y = checkpoint([&] { return sin(w * tanh(mean_of_all)) * in[0]; });
        const Tensor loss = sum(square(y));
        const NoGrad no_grad;
        add_(mean_of_all, in[0]);
        return {loss, mean_of_all};
      },
      {w});
}

PROGRAM(checkpoint_of_what_nobody_wants_written_later) {
  p.input({5});
  const Tensor w = p.parameter("w", {5});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor a = w * in[0], b = w + in[0];
        const Tensor y = checkpoint([&] {
          const Tensor unused = sin(b);
          return cos(a);
        });
        mul_(b, 2);
        return {sum(square(y)), b};
      },
      {w});
}

PROGRAM(lora_with_checkpointing) {
  p.input({4, 10});
  struct Net : Module {
    Linear base{*this, "base", 10, 10};
    Tensor down = parameter("down", initial_uniform(*this, "down", {10, 2}, 10)), up = parameter("up", zeros({2, 10}));
    Tensor operator()(const Tensor& x) { return base(x) + matmul(matmul(x, down), up); }
  };
  Net& net = p.own<Net>();
  net.base.weight.requires_grad(false);
  net.base.bias.requires_grad(false);
  p.watch(net);
  Sgd& sgd = p.own<Sgd>(Tensors{net.down, net.up}, SgdOptions{.lr = 0.01});
  p.train(
      [&net](const Tensors& in) -> Tensors {
        const Tensor y = checkpoint([&] { return net(in[0]); });
        return {mean(square(y - 1)), y};
      },
      {net.down, net.up}, &sgd);
}

PROGRAM(lora_three_layers_with_checkpointing) {
  p.input({2, 10});
  struct Lora : Module {
    Lora(Module& parent, const std::string& name) : Module(parent, name), base(*this, "base", 10, 10) {
      down = parameter("down", initial_uniform(*this, "down", {10, 2}, 10));
      up = parameter("up", initial_uniform(*this, "up", {2, 10}, 2));
      base.weight.requires_grad(false);
      base.bias.requires_grad(false);
    }
    Tensor operator()(const Tensor& x) { return base(x) + matmul(matmul(x, down), up); }
    Linear base;
    Tensor down, up;
  };
  struct Net : Module {
    Lora a{*this, "a"}, b{*this, "b"}, c{*this, "c"};
  };
  Net& net = p.own<Net>();
  p.watch(net);
  const Tensors side{net.a.down, net.a.up, net.b.down, net.b.up, net.c.down, net.c.up};
  Sgd& sgd = p.own<Sgd>(side, SgdOptions{.lr = 0.001});
  p.train(
      [&net](const Tensors& in) -> Tensors {
        Tensor h = in[0];
        for (Lora* layer : {&net.a, &net.b}) h = checkpoint([&] { return gelu((*layer)(h)); });
        return {mean(square(checkpoint([&] { return net.c(h); })))};
      },
      side, &sgd);
}

PROGRAM(gradient_of_ones_own) {
  p.input({4});
  const Tensor w = p.parameter("w", {4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensors y = custom_gradient(
            {in[0] * w}, [](const Tensors& xs) -> Tensors { return {round(xs[0] * 4) * 0.25}; },
            [](const Tensors&, const Tensors&, const Tensors& dys) -> Tensors {
              return {clamp(dys[0], -0.5, 0.5)};
            });  // straight-through estimator: the gradient passes unchanged
        return {sum(square(y[0])), y[0]};
      },
      {w});
  p.own_gradients();
}

PROGRAM(stopped_gradients) {
  p.input({4});
  const Tensor w = p.parameter("w", {4}), v = p.parameter("v", {4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor target = stop_gradient(tanh(in[0] * v));
        const Tensor y = in[0] * w;
        return {sum(square(y - target)) + sum(y.detach() * v), target};
      },
      {w, v});
}

PROGRAM(parameter_out_of_reach) {
  p.input({4});
  const Tensor w = p.parameter("w", {4}), unused = p.parameter("unused", {4}), stopped = p.parameter("stopped", {4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        return {sum(in[0] * w * stop_gradient(stopped)), unused * 2};
      },
      {w, unused, stopped});
}

}  // namespace tapedeck::agree
