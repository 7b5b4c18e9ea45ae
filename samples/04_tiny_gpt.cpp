// A budget: a small GPT learns a text, its step planned to hold half of what it would keep for backward. The plan computes the rest
// again where it is needed; the losses are the same to the last bit. Then the net writes some text of its own.
//
// Usage: 04_tiny_gpt [--data FILE] [--steps N] [--seed N]
#include <tapedeck/samples/data/text.h>
#include <tapedeck/samples/options.h>

#include <memory>
#include <random>

using namespace tapedeck;

constexpr std::int64_t kRows = 8, kContext = 64, kWidth = 64, kBlocks = 4, kHeads = 4;

Tensor gelu_tanh(const Arg& x) { return gelu(x, "tanh"); }

struct TinyGpt : Module {
  Embedding characters, positions;
  std::vector<std::unique_ptr<TransformerBlock>> blocks;
  LayerNorm norm;

  explicit TinyGpt(std::int64_t kinds)
      : characters(*this, "characters", kinds, kWidth, 0.1), positions(*this, "positions", kContext, kWidth, 0.1), norm(*this, "norm", kWidth) {
    for (std::int64_t i = 0; i < kBlocks; ++i)
      blocks.push_back(std::make_unique<TransformerBlock>(*this, "block" + std::to_string(i), kWidth,
                                                          TransformerOptions{.heads = kHeads, .causal = true, .activation = &gelu_tanh}));
  }
  // text [rows,t] -> logits of what follows each character: [rows t,kinds].
  Tensor operator()(const Tensor& text) {
    const std::int64_t rows = text.size(0), t = text.size(1);
    Tensor h = characters(text) + slice(positions.weight, 0, 0, t);
    for (auto& block : blocks) h = (*block)(h);
    return matmul(reshape(norm(h), {rows * t, kWidth}), transpose_last(characters.weight));
  }
};

// Goes on from `start`, drawing every next character from what the net expects.
std::string compose(TinyGpt& net, const samples::Text& text, const std::string& start, int length, std::mt19937& random) {
  const NoGrad no_grad;
  std::string written = start;
  for (int i = 0; i < length; ++i) {
    const std::string last = written.substr(written.size() > kContext ? written.size() - kContext : 0);
    const auto t = static_cast<std::int64_t>(last.size());
    const Tensor logits = net(from_vector(text.encode(last), {1, t}));
    const std::vector<float> chances = softmax(select(logits, 0, t - 1) / 0.6).to_vector<float>();
    std::discrete_distribution<std::size_t> draw(chances.begin(), chances.end());
    written += text.characters[draw(random)];
  }
  return written;
}

int main(int argc, char** argv) {
  const samples::Options options = samples::parse_options(argc, argv, {.data = samples::kLicense, .steps = 1000});
  const samples::Text text = samples::read_text(options.data);
  if (text.length() <= kContext + 1) return 0;

  manual_seed(options.seed);
  std::mt19937 random(options.seed);
  TinyGpt net(text.kinds());
  AdamW optimizer(net.parameters(), {.lr = 3e-3});
  const auto train = [&](const std::vector<Tensor>& in) {
    const Tensor loss = cross_entropy(net(in[0]), reshape(in[1], {kRows * kContext}));
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return std::vector<Tensor>{loss};
  };
  CapturedStep step = capture(train, {.plan = {.budget_percent = 60}, .input_names = {"text", "next"}});

  double total = 0;
  for (int i = 0; i < options.steps; ++i) {
    if (i == options.steps * 3 / 4) optimizer.set_lr(1e-3);
    std::vector<std::int64_t> at(kRows);
    for (std::int64_t& place : at) place = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(text.length() - kContext - 1));
    const Tensor now = text.pieces(at, kContext);
    for (std::int64_t& place : at) ++place;
    total += step({now, text.pieces(at, kContext)})[0].item();
    if ((i + 1) % 100 == 0 || i + 1 == options.steps) {
      std::printf("step %4d  loss %.3f\n", i + 1, total / (i % 100 + 1));
      total = 0;
    }
  }
  const std::string start(1, text.characters[static_cast<std::size_t>(text.numbers[0])]);
  std::printf("\n%s\n", compose(net, text, start, 300, random).c_str());
}
