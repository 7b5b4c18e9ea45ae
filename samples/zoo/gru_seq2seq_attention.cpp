// Translation with attention (Bahdanau et al., 2015). GRU layers read the source in both directions. At every step a GRU cell
// computes the next word of the target from two inputs: the true previous word (teacher forcing), and a mean of the source
// whose weights come from a small perceptron.
//
//     scores[s] = v tanh(W state + U source[s])
//     context   = sum of softmax(scores)[s] source[s]
//     state     = cell([word, context], state)
#include <tapedeck/samples/zoo/language.h>

#include <limits>

namespace {

using namespace tapedeck;

constexpr std::int64_t kTranslatorWords = 8000;
constexpr int kPadding = 0;  // the word behind the end of a target; its loss is ignored

// Attention over a source [b,s,in]: the state [b,width] determines a weighted mean [b,in]. The part that depends on the source
// alone is computed once.
struct Attention : Module {
  Linear of_state, of_source;
  Tensor v;

  Attention(Module& parent, const std::string& name, std::int64_t width, std::int64_t in)
      : Module(parent, name),
        of_state(*this, "of_state", width, width),
        of_source(*this, "of_source", in, width),
        v(parameter("v", initial_uniform(*this, "v", {width, 1}, width))) {}

  struct Source {
    Tensor values, keys, visible;  // [b,s,in], [b,s,width], bool [b,s]
  };
  Source read(const Tensor& source, const Tensor& lengths) {
    const std::int64_t batch = source.size(0), steps = source.size(1);
    const Tensor keys = of_source(zoo::word_rows(source));
    return {source, reshape(keys, {batch, steps, keys.size(1)}), zoo::within(lengths, steps)};
  }
  Tensor operator()(const Tensor& state, const Source& source) {
    const std::int64_t batch = source.keys.size(0), steps = source.keys.size(1);
    const Tensor query = reshape(of_state(state), {batch, 1, source.keys.size(2)});
    const Tensor scores = reshape(matmul(zoo::word_rows(tanh(query + source.keys)), v), {batch, steps});
    const Tensor weights = softmax(where(source.visible, scores, -std::numeric_limits<double>::infinity()));
    return reshape(matmul(reshape(weights, {batch, 1, steps}), source.values), {batch, source.values.size(2)});
  }
};

struct Translator : Module {
  Embedding source_words, target_words;
  Gru encoder;
  Linear bridge;
  Attention attention;
  GruCell cell;
  Linear join, out;
  Dropout drop;

  explicit Translator(const ModelOptions& o)
      : source_words(*this, "source_words", kTranslatorWords, o.width, 0.1),
        target_words(*this, "target_words", kTranslatorWords, o.width, 0.1),
        encoder(*this, "encoder", o.width, o.width, {.layers = static_cast<int>(o.layers), .bidirectional = true}),
        bridge(*this, "bridge", o.width, o.width),
        attention(*this, "attention", o.width, 2 * o.width),
        cell(*this, "cell", 3 * o.width, o.width),
        join(*this, "join", 4 * o.width, o.width),
        out(*this, "out", o.width, kTranslatorWords),
        drop(*this, "drop", 0.2) {}

  // source [b,s], lengths [b], target [b,t] -> the logits of the word after each target word: [b t,words].
  Tensor operator()(const Tensor& source, const Tensor& lengths, const Tensor& target) {
    const RecurrentResult read = encoder(source_words(transpose_last(source)));
    const Attention::Source memory = attention.read(transpose(read.y, {1, 0, 2}), lengths);
    // The backward direction of the last layer read the first source word last, so its final state starts the target.
    Tensor state = tanh(bridge(select(read.h, 0, read.h.size(0) - 1)));
    std::vector<Tensor> rows;
    for (const Tensor& word : unstack(target_words(transpose_last(target)))) {
      const Tensor context = attention(state, memory);
      state = cell(concat({word, context}, 1), state);
      rows.push_back(concat({word, context, state}, 1));
    }
    return out(drop(tanh(join(zoo::word_rows(stack(rows, 1))))));
  }
};

// Word 0 is padding: it fills a row behind the end of its sentence.
std::vector<zoo::Sample> gru_samples(const ModelOptions& o) {
  const auto words = [&] { return zoo::sample_integers({o.batch, o.seq}, kTranslatorWords - 1) + 1; };
  const auto lengths = [&] { return zoo::sample_integers({o.batch}, o.seq) + 1; };
  const Tensor source_lengths = lengths();
  const Tensor in_target = zoo::within(lengths(), o.seq);
  return {{"source", where(zoo::within(source_lengths, o.seq), words(), kPadding)},
          {"source_lengths", source_lengths},
          {"target", where(in_target, words(), kPadding)},
          {"next", where(in_target, words(), kPadding)}};
}

Captured record_gru_seq2seq_attention(const ModelOptions& options) {
  return zoo::record_training<Translator>(
      "gru_seq2seq_attention", options, gru_samples, [](Translator& net, const std::vector<Tensor>& in) {
        return cross_entropy(net(in[0], in[1], in[2]), reshape(in[3], {in[3].numel()}), {.ignore_index = kPadding});
      });
}

const bool gru_seq2seq_attention_model = [] {
  register_model({"gru_seq2seq_attention",
                  "translation: GRU encoder in both directions, GRU decoder with attention, teacher forcing",
                  record_gru_seq2seq_attention,
                  {"batch", "seq", "layers", "width", "dtype"},
                  {.batch = 32, .seq = 30, .layers = 1, .width = 512, .optimizer = "adamw"}});
  return true;
}();

}  // namespace
