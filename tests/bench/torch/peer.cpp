// Implements peer.h with libtorch: the perceptron, the LSTM cell and resnet18, eager and as TorchScript.
#include <tapedeck/tests/bench/torch/peer.h>

#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/torch.h>

#include <stdexcept>

namespace peer {

namespace {

using Tensors = std::vector<torch::Tensor>;
using Forward = std::function<torch::Tensor(const Tensors& parameters)>;

// A training step: a loss as a function of parameters, its backward, and the update.
class Training {
 public:
  Training(Mode mode, Tensors parameters, Forward forward) : parameters_(std::move(parameters)), forward_(std::move(forward)) {
    for (torch::Tensor& p : parameters_) p.requires_grad_(true);
    if (mode == Mode::script) trace();
  }

  void step() {
    const torch::Tensor loss = executor_ ? run_script() : forward_(parameters_);
    loss.backward();
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& p : parameters_) {
      if (!p.grad().defined()) continue;
      p.sub_(p.grad(), 0.01);
      p.mutable_grad().reset();
    }
  }

 private:
  void trace() {
    torch::jit::Stack inputs(parameters_.begin(), parameters_.end());
    const auto names = [](const torch::Tensor&) { return std::string(); };
    const auto body = [&](torch::jit::Stack in) {
      Tensors parameters;
      for (const torch::IValue& v : in) parameters.push_back(v.toTensor());
      return torch::jit::Stack{forward_(parameters)};
    };
    auto traced = torch::jit::tracer::trace(inputs, body, names);
    executor_ = std::make_unique<torch::jit::GraphExecutor>(traced.first->graph, "forward");
  }

  torch::Tensor run_script() {
    torch::jit::Stack stack(parameters_.begin(), parameters_.end());
    executor_->run(stack);
    return stack.at(0).toTensor();
  }

  Tensors parameters_;
  Forward forward_;
  std::unique_ptr<torch::jit::GraphExecutor> executor_;
};

Step as_step(Mode mode, Tensors parameters, Forward forward) {
  auto training = std::make_shared<Training>(mode, std::move(parameters), std::move(forward));
  return [training] { training->step(); };
}

torch::Tensor weight(c10::IntArrayRef sizes) {
  std::int64_t fan_in = 1;
  for (std::size_t i = 1; i < sizes.size(); ++i) fan_in *= sizes[i];
  return torch::randn(sizes) * std::sqrt(2.0 / static_cast<double>(fan_in));
}

// ---- resnet18 in libtorch ----

// The first walk through the net creates the parameters and appends them. Later walks run the same code and get these
// parameters in the same order.
class Parameters {
 public:
  const torch::Tensor& next(const std::function<torch::Tensor()>& make) {
    if (!given_) own_.push_back(make());
    return given_ ? given_->at(at_++) : own_.back();
  }
  Tensors take() { return std::move(own_); }
  void give(const Tensors& all) { given_ = &all, at_ = 0; }

 private:
  Tensors own_;
  const Tensors* given_ = nullptr;
  std::size_t at_ = 0;
};

torch::Tensor conv_norm(Parameters& p, const torch::Tensor& x, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  const torch::Tensor w = p.next([&] { return weight({out, x.size(1), kernel, kernel}); });
  const torch::Tensor gamma = p.next([&] { return torch::ones({out}); }), beta = p.next([&] { return torch::zeros({out}); });
  const torch::Tensor y = torch::conv2d(x, w, {}, stride, kernel / 2);
  return torch::batch_norm(y, gamma, beta, {}, {}, true, 0.1, 1e-5, false);
}

torch::Tensor block(Parameters& p, const torch::Tensor& x, std::int64_t out, std::int64_t stride) {
  torch::Tensor y = torch::relu(conv_norm(p, x, out, 3, stride));
  y = conv_norm(p, y, out, 3, 1);
  const bool same = stride == 1 && x.size(1) == out;
  return torch::relu(y + (same ? x : conv_norm(p, x, out, 1, stride)));
}

torch::Tensor resnet18(Parameters& p, torch::Tensor x, const torch::Tensor& y, std::int64_t classes) {
  x = torch::max_pool2d(torch::relu(conv_norm(p, x, 64, 7, 2)), 3, 2, 1);
  for (const std::int64_t width : {64, 128, 256, 512})
    for (int i = 0; i < 2; ++i) x = block(p, x, width, i == 0 && width > 64 ? 2 : 1);
  x = x.mean({2, 3});
  const torch::Tensor w = p.next([&] { return weight({classes, 512}); }), b = p.next([&] { return torch::zeros({classes}); });
  return torch::cross_entropy_loss(torch::linear(x, w, b), y);
}

}  // namespace

std::string version() { return TORCH_VERSION; }

void use_threads(int threads) { torch::set_num_threads(threads); }

Step mlp_step(Mode mode, const MlpSize& s) {
  Tensors parameters = {weight({s.width, s.width}), torch::zeros({s.width}),      weight({s.width, s.width}),
                        torch::zeros({s.width}),    weight({s.classes, s.width}), torch::zeros({s.classes})};
  const torch::Tensor x = torch::randn({s.batch, s.width}), y = torch::randint(s.classes, {s.batch}, torch::kLong);
  return as_step(mode, std::move(parameters), [x, y](const Tensors& p) {
    const torch::Tensor h = torch::relu(torch::linear(x, p[0], p[1]));
    return torch::cross_entropy_loss(torch::linear(torch::relu(torch::linear(h, p[2], p[3])), p[4], p[5]), y);
  });
}

Step lstm_cell_step(Mode mode, const LstmCellSize& s) {
  Tensors parameters = {weight({4 * s.width, s.width}), weight({4 * s.width, s.width}), torch::zeros({4 * s.width}),
                        torch::zeros({4 * s.width})};
  const torch::Tensor x = torch::randn({s.batch, s.width}), h = torch::randn({s.batch, s.width}),
                      c = torch::randn({s.batch, s.width}), target = torch::randn({s.batch, s.width});
  return as_step(mode, std::move(parameters), [=](const Tensors& p) {
    const auto [h1, c1] = torch::lstm_cell(x, {h, c}, p[0], p[1], p[2], p[3]);
    return torch::mse_loss(h1, target);
  });
}

Step resnet18_step(Mode mode, const ResnetSize& s) {
  const torch::Tensor x = torch::randn({s.batch, 3, s.image, s.image}), y = torch::randint(s.classes, {s.batch}, torch::kLong);
  Parameters made;
  {
    const torch::NoGradGuard no_grad;
    resnet18(made, x, y, s.classes);
  }
  return as_step(mode, made.take(), [x, y, classes = s.classes](const Tensors& all) {
    Parameters p;
    p.give(all);
    return resnet18(p, x, y, classes);
  });
}

}  // namespace peer
