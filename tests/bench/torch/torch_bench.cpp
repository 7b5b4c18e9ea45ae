// Measures training steps of Tapedeck beside the same steps of libtorch: eager beside eager, replay beside TorchScript. The
// default is one thread.
//
//   torch_bench [--threads N] [--seconds S] [--only NAME]
//
// In every round all ways run for a while, one after the other, so that other load on the machine slows all ways alike. The
// table gives medians over the rounds, and their ratios to libtorch's eager step.
#include <tapedeck/tests/bench/torch/peer.h>

#include <tapedeck/samples/zoo/vision.h>
#include <tapedeck/tapedeck.h>

#include <fmt/format.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;
using peer::Step;

struct Settings {
  int threads = 1;
  double seconds = 2;  // seconds of each way
  std::string only;
};

struct Way {
  std::string name;
  Step step;
  std::vector<double> us = {};
};

double seconds_of(const Step& step, int times) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) step();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

void compare(const std::string& name, std::vector<Way> ways, const Settings& settings) {
  if (!settings.only.empty() && name.find(settings.only) == name.npos) return;
  constexpr int kRounds = 11;
  std::vector<int> times;
  for (Way& way : ways) {
    // warms up: recordings, profiling runs of the script executor, first touches of memory
    for (int i = 0; i < 5; ++i) way.step();
    const double once = seconds_of(way.step, 3) / 3;
    times.push_back(std::max(1, static_cast<int>(settings.seconds / kRounds / std::max(once, 1e-9))));
  }
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t w = 0; w < ways.size(); ++w) ways[w].us.push_back(seconds_of(ways[w].step, times[w]) / times[w] * 1e6);
  fmt::print("{}\n", name);
  for (const Way& way : ways)
    fmt::print("  {:<28} {:>12.2f} us per step   x{:.2f}\n", way.name, median(way.us), median(ways[0].us) / median(way.us));
}

// A net of Tapedeck, with its step as eager code and as a captured step.
class Deck {
 public:
  using Loss = std::function<Tensor(const std::vector<Tensor>&)>;

  Deck(std::vector<Tensor> parameters, std::vector<Tensor> inputs, Loss loss, int threads)
      : inputs_(std::move(inputs)),
        loss_(std::move(loss)),
        optimizer_(std::move(parameters), SgdOptions{.lr = 0.01}),
        arena_(threads) {
    CapturedStepOptions options;
    options.executor.threads = threads;
    captured_ = std::make_unique<CapturedStep>([this](const std::vector<Tensor>& in) { return body(in); }, options);
  }

  void eager() {
    arena_.execute([&] { body(inputs_); });
  }
  void replay() { (*captured_)(inputs_); }
  // Runs the replay alone, without copying inputs in and results out.
  void bare_replay() {
    if (!executor_) {
      (*captured_)(inputs_), (*captured_)(inputs_), (*captured_)(inputs_);
      executor_ = std::make_unique<Executor>(*captured_->plan(), ExecutorOptions{.threads = arena_.max_concurrency()});
      for (std::size_t i = 0; i < inputs_.size(); ++i) executor_->set_input(static_cast<int>(i), inputs_[i]);
      const Graph& g = executor_->plan().graph;
      for (ValueId v = static_cast<ValueId>(inputs_.size()); v < g.n_inputs; ++v)
        executor_->set_input(v, full(g.values[v].type.shape, 0.01, g.values[v].type.dtype));
      for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v) {
        const Type& type = g.values[v].type;
        const Tensor value = default_value(type, 1, g.value_name(v));
        executor_->set_state(g.value_name(v),
                             // small numbers stay free of denormals after many steps
                             type.dtype == DType::f32 ? value * 0.05 : value);
      }
    }
    executor_->run();
  }

 private:
  std::vector<Tensor> body(const std::vector<Tensor>& in) {
    const Tensor loss = loss_(in);
    backward(loss);
    optimizer_.step();
    optimizer_.zero_grad();
    return {loss};
  }

  std::vector<Tensor> inputs_;
  Loss loss_;
  Sgd optimizer_;
  tbb::task_arena arena_;
  std::unique_ptr<CapturedStep> captured_;
  std::unique_ptr<Executor> executor_;
};

std::vector<Way> ways_of(Step torch_eager, Step torch_script, const std::shared_ptr<Deck>& deck) {
  return {{"libtorch eager", std::move(torch_eager)},
          {"libtorch TorchScript", std::move(torch_script)},
          {"tapedeck eager", [deck] { deck->eager(); }},
          {"tapedeck captured step", [deck] { deck->replay(); }},
          {"tapedeck replay", [deck] { deck->bare_replay(); }}};
}

Tensor labels(std::int64_t batch, std::int64_t classes) {
  std::vector<std::int32_t> y;
  for (std::int64_t i = 0; i < batch; ++i) y.push_back(static_cast<std::int32_t>(i * 7 % classes));
  return from_vector(y, {batch});
}

struct Mlp : Module {
  Linear fc1, fc2, fc3;
  explicit Mlp(const peer::MlpSize& s)
      : fc1(*this, "fc1", s.width, s.width), fc2(*this, "fc2", s.width, s.width), fc3(*this, "fc3", s.width, s.classes) {}
  Tensor operator()(const Tensor& x) { return fc3(relu(fc2(relu(fc1(x))))); }
};

void compare_mlp(const Settings& settings, const peer::MlpSize& size) {
  const auto net = std::make_shared<Mlp>(size);
  const auto deck = std::make_shared<Deck>(
      net->parameters(), std::vector<Tensor>{normal({size.batch, size.width}), labels(size.batch, size.classes)},
      [net](const std::vector<Tensor>& in) { return cross_entropy((*net)(in[0]), in[1]); }, settings.threads);
  compare(fmt::format("mlp {0}-{0}-{0}-{1}, batch {2}", size.width, size.classes, size.batch),
          ways_of(peer::mlp_step(peer::Mode::eager, size), peer::mlp_step(peer::Mode::script, size), deck), settings);
}

void compare_lstm_cell(const Settings& settings, const peer::LstmCellSize& size) {
  struct Net : Module {
    LstmCell cell;
    explicit Net(std::int64_t width) : cell(*this, "cell", width, width) {}
  };
  const auto net = std::make_shared<Net>(size.width);
  const Shape shape{size.batch, size.width};
  const auto deck = std::make_shared<Deck>(
      net->parameters(), std::vector<Tensor>{normal(shape), normal(shape), normal(shape), normal(shape)},
      [net](const std::vector<Tensor>& in) {
        return mse_loss(net->cell(in[0], {in[1], in[2]}).h, in[3]);
      },
      settings.threads);
  compare(fmt::format("lstm cell, width {}, batch {}", size.width, size.batch),
          ways_of(peer::lstm_cell_step(peer::Mode::eager, size), peer::lstm_cell_step(peer::Mode::script, size), deck),
          settings);
}

// The residual block of the zoo's resnet, written again here, because the zoo's own net cannot be called outside a
// recording.
struct Block : Module {
  zoo::Stack<zoo::ConvNorm> body, shortcut;
  Block(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, std::int64_t stride)
      : Module(parent, name) {
    body.add(*this, "a", in, out, zoo::same_size(3, stride));
    body.add(*this, "b", out, out, zoo::same_size(3), nullptr);
    if (stride != 1) shortcut.add(*this, "shortcut", in, out, zoo::same_size(1, stride), nullptr);
  }
  Tensor operator()(const Tensor& x) { return relu(body(x) + shortcut(x)); }
};

struct Resnet18 : Module {
  zoo::ConvNorm stem{*this, "stem", 3, 64, zoo::same_size(7, 2)};
  zoo::Stack<Block> blocks;
  Linear fc;
  explicit Resnet18(std::int64_t classes) : fc(*this, "fc", 512, classes) {
    std::int64_t in = 64;
    for (const std::int64_t out : {64, 128, 256, 512})
      for (int i = 0; i < 2; ++i, in = out) blocks.add(*this, fmt::format("block{}_{}", out, i), in, out, in == out ? 1 : 2);
  }
  Tensor operator()(const Tensor& x) {
    return fc(zoo::plane_means(blocks(max_pool2d(stem(x), {.window = {3}, .stride = {2}, .padding = {1}}))));
  }
};

void compare_resnet18(const Settings& settings, const peer::ResnetSize& size) {
  const auto net = std::make_shared<Resnet18>(size.classes);
  const auto deck = std::make_shared<Deck>(
      net->parameters(), std::vector<Tensor>{normal({size.batch, 3, size.image, size.image}), labels(size.batch, size.classes)},
      [net](const std::vector<Tensor>& in) { return cross_entropy((*net)(in[0]), in[1]); }, settings.threads);
  compare(fmt::format("resnet18, batch {}, {}x{}", size.batch, size.image, size.image),
          ways_of(peer::resnet18_step(peer::Mode::eager, size), peer::resnet18_step(peer::Mode::script, size), deck), settings);
}

Settings parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0 && i + 1 < argc; };
    if (is("--threads"))
      s.threads = std::max(1, std::atoi(argv[++i]));
    else if (is("--seconds"))
      s.seconds = std::max(0.1, std::atof(argv[++i]));
    else if (is("--only"))
      s.only = argv[++i];
    else {
      std::fprintf(stderr, "torch_bench [--threads N] [--seconds S] [--only NAME]\n");
      std::exit(2);
    }
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = parse(argc, argv);
  peer::use_threads(settings.threads);
  fmt::print("libtorch {}, {} thread{}\n", peer::version(), settings.threads, settings.threads == 1 ? "" : "s");
  compare_mlp(settings, {8, 16, 4});
  compare_mlp(settings, {64, 256, 10});
  compare_lstm_cell(settings, {1, 16});
  compare_lstm_cell(settings, {16, 128});
  compare_resnet18(settings, {8, 64, 10});
}
