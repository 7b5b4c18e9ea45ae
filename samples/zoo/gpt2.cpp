// GPT-2 (Radford et al., 2019), by default the small model of 124,439,808 parameters. Each block begins with its norm.
// Positions are learned, and the table of embeddings is also the output layer. A sequence longer than the original's 1024 gets
// a longer table of positions.
#include <tapedeck/samples/zoo/language.h>

#include <algorithm>

namespace {

using namespace tapedeck;

constexpr std::int64_t kWords = 50257, kContext = 1024;

Tensor gelu_tanh(const Arg& x) { return gelu(x, "tanh"); }

struct Gpt2 : Module {
  Embedding words, positions;
  Dropout drop;
  LayerNorm norm;
  ModuleList<TransformerBlock> blocks{*this, "block"};

  explicit Gpt2(const ModelOptions& o)
      : words(*this, "words", kWords, o.width, 0.02),
        positions(*this, "positions", std::max(kContext, o.seq), o.width, 0.01),
        drop(*this, "drop", 0.1),
        norm(*this, "norm", o.width) {
    const TransformerOptions how{
        .heads = zoo::heads_of("gpt2", o.width), .causal = true, .dropout = 0.1, .activation = &gelu_tanh};
    for (std::int64_t i = 0; i < o.layers; ++i) blocks.add(o.width, how);
  }
  Tensor operator()(const Tensor& tokens) {
    Tensor h = drop(words(tokens) + slice(positions.weight, 0, 0, tokens.size(1)));
    for (TransformerBlock& block : blocks) h = block(h);
    return zoo::tied_logits(zoo::word_rows(norm(h)), words.weight);
  }
};

std::vector<zoo::Sample> samples(const ModelOptions& o) {
  return {{"tokens", zoo::sample_integers({o.batch, o.seq}, kWords)}, {"next", zoo::sample_integers({o.batch, o.seq}, kWords)}};
}

Captured record(const ModelOptions& options) {
  return zoo::record_training<Gpt2>("gpt2", options, samples,
                                    [](Gpt2& net, const std::vector<Tensor>& in) { return zoo::word_loss(net(in[0]), in[1]); });
}

const bool registered = [] {
  register_model({"gpt2",
                  "GPT-2 small: 12 causal transformer blocks of width 768, 124 million parameters",
                  record,
                  {"batch", "seq", "layers", "width", "dtype"},
                  {.batch = 8, .seq = kContext, .layers = 12, .width = 768, .optimizer = "adamw"}});
  return true;
}();

}  // namespace
