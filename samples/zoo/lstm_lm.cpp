// A language model over words with two LSTM layers, of the medium size of Zaremba et al. (2014). Text is read in pieces: the
// state at the end of a piece is the state at the start of the next, and no gradient goes back across pieces. The output layer
// is the table of embeddings (Press and Wolf, 2017), or a table of its own.
#include <tapedeck/samples/zoo/language.h>

#include <tapedeck/engine/eager/inplace.h>

namespace {

using namespace tapedeck;

constexpr std::int64_t kLstmWords = 10000;
constexpr double kDrop = 0.5;

struct LstmLm : Module {
  Embedding words;
  Dropout drop_in, drop_out;
  Lstm lstm;
  Tensor h, c;  // [layers,batch,width]; carried from step to step

  LstmLm(const ModelOptions& o, double deviation)
      : words(*this, "words", kLstmWords, o.width, deviation),
        drop_in(*this, "drop_in", kDrop),
        drop_out(*this, "drop_out", kDrop),
        lstm(*this, "lstm", o.width, o.width, {.layers = static_cast<int>(o.layers), .dropout = kDrop}),
        h(buffer("h", zeros({o.layers, o.batch, o.width}))),
        c(buffer("c", zeros({o.layers, o.batch, o.width}))) {}

  // tokens [b,t] -> [b t,width]. The state is copied before its use, because backward reads the old state after the update.
  Tensor features(const Tensor& tokens) {
    const Tensor x = drop_in(words(transpose_last(tokens)));
    const LstmResult r = lstm(x, {copy(h), copy(c)});
    {
      const NoGrad no_grad;
      copy_(h, r.state.h);
      copy_(c, r.state.c);
    }
    return zoo::word_rows(transpose(drop_out(r.y), {1, 0, 2}));
  }
};

struct Tied : LstmLm {
  Tensor bias;
  explicit Tied(const ModelOptions& o) : LstmLm(o, 0.05), bias(parameter("bias", zeros({kLstmWords}))) {}
  Tensor operator()(const Tensor& tokens) { return zoo::tied_logits(features(tokens), words.weight) + bias; }
};

struct Untied : LstmLm {
  Linear out;
  explicit Untied(const ModelOptions& o) : LstmLm(o, 1), out(*this, "out", o.width, kLstmWords) {}
  Tensor operator()(const Tensor& tokens) { return out(features(tokens)); }
};

std::vector<zoo::Sample> lstm_samples(const ModelOptions& o) {
  return {{"tokens", zoo::sample_integers({o.batch, o.seq}, kLstmWords)},
          {"next", zoo::sample_integers({o.batch, o.seq}, kLstmWords)}};
}

template <class Net>
Captured record_lstm_lm(const ModelOptions& options) {
  return zoo::record_training<Net>("lstm_lm", options, lstm_samples,
                                   [](Net& net, const std::vector<Tensor>& in) { return zoo::word_loss(net(in[0]), in[1]); });
}

const bool lstm_lm_model = [] {
  const std::vector<std::string> taken = {"batch", "seq", "layers", "width", "dtype"};
  const ModelOptions defaults = {.batch = 20, .seq = 35, .layers = 2, .width = 650};
  register_model({"lstm_lm", "LSTM language model, 2 layers of 650, output layer tied to the embeddings", record_lstm_lm<Tied>,
                  taken, defaults});
  register_model({"lstm_lm_untied", "LSTM language model, 2 layers of 650, an output layer of its own", record_lstm_lm<Untied>,
                  taken, defaults});
  return true;
}();

}  // namespace
