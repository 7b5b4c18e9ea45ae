// GPT-2 (Radford et al., 2019), by default the small model of 124,439,808 parameters. Each block begins with its norm.
// Positions are learned, and the table of embeddings is also the output layer. A sequence longer than the original's 1024 gets
// a longer table of positions.
#pragma once

#include <tapedeck/samples/zoo/language.h>

#include <algorithm>

namespace zoo {

inline constexpr std::int64_t kGpt2Words = 50257, kGpt2Context = 1024;

inline Tensor gelu_tanh(const Arg& x) { return gelu(x, "tanh"); }

struct Gpt2 : Module {
  Embedding words, positions;
  Dropout drop;
  LayerNorm norm;
  ModuleList<TransformerBlock> blocks{*this, "block"};

  explicit Gpt2(const ModelOptions& o)
      : words(*this, "words", kGpt2Words, o.width, 0.02),
        positions(*this, "positions", std::max(kGpt2Context, o.seq), o.width, 0.01),
        drop(*this, "drop", 0.1),
        norm(*this, "norm", o.width) {
    const TransformerOptions how{.heads = heads_of("gpt2", o.width), .causal = true, .dropout = 0.1, .activation = &gelu_tanh};
    for (std::int64_t i = 0; i < o.layers; ++i) blocks.add(o.width, how);
  }
  Tensor operator()(const Tensor& tokens) {
    Tensor h = drop(words(tokens) + slice(positions.weight, 0, 0, tokens.size(1)));
    for (TransformerBlock& block : blocks) h = block(h);
    return tied_logits(word_rows(norm(h)), words.weight);
  }
};

}  // namespace zoo
