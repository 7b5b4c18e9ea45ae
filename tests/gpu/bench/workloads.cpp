#include <tapedeck/tests/gpu/bench/workloads.h>

#include <tapedeck/samples/zoo/training_step.h>

namespace tapedeck::gpu {
namespace {

using zoo::Sample;

// ---- W1 and W6: chains ----

Captured adds() {
  const Tensor start = normal({4096}), add = normal({4096});
  Capture capture("adds");
  const Tensor x = capture.input("x", start), step = capture.input("step", add);
  Tensor y = x;
  for (int i = 0; i < 100; ++i) y = y + step;
  capture.output("y", y);
  return capture.finish();
}

Captured chain() {
  const Tensor start = normal({64, 1024, 1024});  // 256 MiB
  Capture capture("chain");
  const Tensor x = capture.input("x", start);
  Tensor y = tanh(x * 0.5 + 1.0);
  y = relu(y - 0.25);
  y = sigmoid(y * 1.5) * 2.0;
  capture.output("y", y);
  return capture.finish();
}

// ---- W2: a perceptron ----

struct Perceptron : Module {
  Linear a{*this, "a", 256, 256}, b{*this, "b", 256, 256}, c{*this, "c", 256, 256}, head{*this, "head", 256, 10};
  Tensor operator()(const Tensor& x) { return head(relu(c(relu(b(relu(a(x))))))); }
};

Captured perceptron() {
  return zoo::record_classifier<Perceptron>("perceptron", {.batch = 64, .optimizer = "adamw"}, {256}, 10);
}

// ---- W3: a recurrent layer ----

struct GruNet : Module {
  Gru gru{*this, "gru", 256, 256};
  Linear head{*this, "head", 256, 10};
  Tensor operator()(const Tensor& x) {
    const Tensor h = gru(x).h;
    return head(reshape(h, {h.size(1), h.size(2)}));
  }
};

Captured recurrent() {
  return zoo::record_training<GruNet>(
      "gru", {.batch = 32, .seq = 64, .optimizer = "adamw"},
      [](const ModelOptions& o) {
        return std::vector<Sample>{{"x", zoo::sample_floats({o.seq, o.batch, 256})},
                                   {"y", zoo::sample_integers({o.batch}, 10)}};
      },
      [](GruNet& net, const std::vector<Tensor>& in) { return cross_entropy(net(in[0]), in[1]); });
}

// ---- W4: a transformer ----

constexpr std::int64_t kWords = 1024, kWidth = 256;

Tensor gelu_tanh(const Arg& x) { return gelu(x, "tanh"); }

struct Transformer : Module {
  Embedding words{*this, "words", kWords, kWidth, 0.02}, positions{*this, "positions", 128, kWidth, 0.01};
  ModuleList<TransformerBlock> blocks{*this, "block"};
  LayerNorm norm{*this, "norm", kWidth};
  Linear head{*this, "head", kWidth, kWords};

  Transformer() {
    for (int i = 0; i < 4; ++i) blocks.add(kWidth, TransformerOptions{.heads = 4, .causal = true, .activation = &gelu_tanh});
  }
  Tensor operator()(const Tensor& tokens) {
    Tensor h = words(tokens) + positions.weight;
    for (TransformerBlock& block : blocks) h = block(h);
    h = norm(h);
    return head(reshape(h, {h.size(0) * h.size(1), kWidth}));
  }
};

Captured transformer(const std::string& dtype) {
  return zoo::record_training<Transformer>(
      "transformer", {.batch = 8, .seq = 128, .dtype = dtype, .optimizer = "adamw"},
      [](const ModelOptions& o) {
        return std::vector<Sample>{{"tokens", zoo::sample_integers({o.batch, o.seq}, kWords)},
                                   {"next", zoo::sample_integers({o.batch, o.seq}, kWords)}};
      },
      [](Transformer& net, const std::vector<Tensor>& in) {
        return cross_entropy(net(in[0]), reshape(in[1], {in[1].numel()}));
      });
}

// ---- W5: a residual net ----

Captured residual(const std::string& dtype) {
  return record_model(*find_model("resnet18"), {.batch = 32, .image = 32, .dtype = dtype, .optimizer = "adamw"});
}

}  // namespace

std::vector<Workload> workloads() {
  PlanOptions no_passes, fused;
  no_passes.level = OptimizationLevel::none;
  fused.level = OptimizationLevel::fused;
  std::vector<Workload> all = {{"W1 100 adds", &adds, no_passes},
                               {"W2 mlp", &perceptron},
                               {"W3 gru", &recurrent},
                               {"W4 transformer bf16", [] { return transformer("bf16"); }},
                               {"W4 transformer f32", [] { return transformer("f32"); }},
                               {"W5 resnet18 bf16", [] { return residual("bf16"); }},
                               {"W5 resnet18 f32", [] { return residual("f32"); }},
                               {"W6 chain", &chain}};
  for (std::size_t i = 0, n = all.size(); i < n; ++i) all.push_back({all[i].name + " fused", all[i].record, fused});
  return all;
}

}  // namespace tapedeck::gpu
