// A memory budget: a small GPT learns a text, with a plan whose peak is 60 % of the peak of the plan that keeps everything for
// backward. The plan computes the dropped values again, so the losses and the text are those of the plan that keeps everything.
// Then the net writes a text itself.
//
// Usage: 04_tiny_gpt [--data FILE] [--steps N] [--seed N]
#include <tapedeck/samples/data/text.h>
#include <tapedeck/samples/options.h>

#include <algorithm>
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
      : characters(*this, "characters", kinds, kWidth, 0.1),
        positions(*this, "positions", kContext, kWidth, 0.1),
        norm(*this, "norm", kWidth) {
    for (std::int64_t i = 0; i < kBlocks; ++i)
      blocks.push_back(
          std::make_unique<TransformerBlock>(*this, "block" + std::to_string(i), kWidth,
                                             TransformerOptions{.heads = kHeads, .causal = true, .activation = &gelu_tanh}));
  }
  // text [rows,t] -> the logits of the character after each character: [rows t,kinds].
  Tensor operator()(const Tensor& text) {
    const std::int64_t rows = text.size(0), t = text.size(1);
    Tensor h = characters(text) + slice(positions.weight, 0, 0, t);
    for (auto& block : blocks) h = (*block)(h);
    return matmul(reshape(norm(h), {rows * t, kWidth}), transpose_last(characters.weight));
  }
};

// Continues the text `start`: draws each next character from the probabilities that the net gives.
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
  const samples::Options options = samples::parse_options(argc, argv, {.data = samples::kLicense, .steps = 2000});
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
    for (std::int64_t& place : at)
      place = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(text.length() - kContext - 1));
    const Tensor now = text.pieces(at, kContext);
    for (std::int64_t& place : at) ++place;
    total += step({now, text.pieces(at, kContext)})[0].item();
    if ((i + 1) % 200 == 0 || i + 1 == options.steps) {
      std::printf("step %4d  loss %.3f\n", i + 1, total / (i % 200 + 1));
      total = 0;
    }
  }
  const std::string plan = step.explain();
  std::printf("%s", plan.substr(std::min(plan.rfind("planned"), plan.size())).c_str());
  const std::string start(1, text.characters[text.numbers[0]]);
  std::printf("\n%s\n", compose(net, text, start, 300, random).c_str());

  // The program prints, in 45 seconds on one core (the plan that keeps everything has a peak of 12,234,016 bytes, and gives the
  // same losses and text):
  // step  200  loss 2.697
  // step  600  loss 1.831
  // step 1000  loss 1.443
  // step 2000  loss 0.863
  // planned peak 7327008 bytes in 96 segments
  //
  //  of the GNU General Public License, we to as a product from of the
  // User Product has is covered work wither as a work with the or a work in a way grants of the programs
  // a copyright on a work der in conveying the the Program is covered work is is this the work material be you may
}
