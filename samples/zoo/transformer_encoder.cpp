// An encoder like BERT (Devlin et al., 2019), by default of the base size. Every word sees every other word of its row, and the
// net learns to predict the masked words. The norm is the first layer of every branch. Rows are padded at the end; `lengths`
// holds their true lengths.
#include <tapedeck/samples/zoo/language.h>

#include <algorithm>

namespace {

using namespace tapedeck;

constexpr std::int64_t kEncoderWords = 30522, kContext = 512, kSegments = 2;
// kMask is the word that replaces a masked word. kUnmasked is the label of a word that the net need not predict.
constexpr int kMask = 103, kUnmasked = -100;

Tensor gelu_exact(const Arg& x) { return gelu(x); }

struct Encoder : Module {
  Embedding words, positions, segments;
  LayerNorm first_norm;
  Dropout drop;
  std::vector<std::unique_ptr<TransformerBlock>> blocks;
  LayerNorm norm;
  Linear transform;
  LayerNorm head_norm;
  Tensor head_bias;

  explicit Encoder(const ModelOptions& o)
      : words(*this, "words", kEncoderWords, o.width, 0.02),
        positions(*this, "positions", std::max(kContext, o.seq), o.width, 0.02),
        segments(*this, "segments", kSegments, o.width, 0.02),
        first_norm(*this, "first_norm", o.width),
        drop(*this, "drop", 0.1),
        norm(*this, "norm", o.width),
        transform(*this, "transform", o.width, o.width),
        head_norm(*this, "head_norm", o.width),
        head_bias(parameter("head_bias", zeros({kEncoderWords}))) {
    const TransformerOptions how{
        .heads = zoo::heads_of("transformer_encoder", o.width), .dropout = 0.1, .activation = &gelu_exact};
    for (std::int64_t i = 0; i < o.layers; ++i)
      blocks.push_back(std::make_unique<TransformerBlock>(*this, fmt::format("block{}", i), o.width, how));
  }
  Tensor operator()(const Tensor& tokens, const Tensor& segment_ids, const Tensor& lengths) {
    const std::int64_t batch = tokens.size(0), steps = tokens.size(1);
    const Tensor visible = reshape(zoo::within(lengths, steps), {batch, 1, 1, steps});
    Tensor h = words(tokens) + segments(segment_ids) + slice(positions.weight, 0, 0, steps);
    h = drop(first_norm(h));
    for (auto& block : blocks) h = (*block)(h, visible);
    const Tensor told = head_norm(gelu(transform(zoo::word_rows(norm(h)))));
    return zoo::tied_logits(told, words.weight) + head_bias;
  }
};

// Masks every seventh word.
std::vector<zoo::Sample> transformer_samples(const ModelOptions& o) {
  const Tensor text = zoo::sample_integers({o.batch, o.seq}, kEncoderWords);
  const Tensor masked = equal(remainder(arange(o.seq, DType::i32), 7), 0);
  return {{"tokens", where(masked, kMask, text)},
          {"segments", zoo::sample_integers({o.batch, o.seq}, kSegments)},
          {"lengths", zoo::sample_integers({o.batch}, o.seq) + 1},
          {"labels", where(masked, text, kUnmasked)}};
}

Captured record_transformer_encoder(const ModelOptions& options) {
  return zoo::record_training<Encoder>(
      "transformer_encoder", options, transformer_samples,
      [](Encoder& net, const std::vector<Tensor>& in) { return zoo::word_loss(net(in[0], in[1], in[2]), in[3]); });
}

const bool transformer_encoder_model = [] {
  register_model({"transformer_encoder",
                  "BERT-like encoder: 12 transformer blocks of width 768, masked words to be told",
                  record_transformer_encoder,
                  {"batch", "seq", "layers", "width", "dtype"},
                  {.batch = 16, .seq = 128, .layers = 12, .width = 768, .optimizer = "adamw"}});
  return true;
}();

}  // namespace
