#include <tapedeck/samples/zoo/gpt2.h>

namespace {

using namespace zoo;

std::vector<Sample> gpt2_samples(const ModelOptions& o) {
  return {{"tokens", sample_integers({o.batch, o.seq}, kGpt2Words)}, {"next", sample_integers({o.batch, o.seq}, kGpt2Words)}};
}

Captured record_gpt2(const ModelOptions& options) {
  return record_training<Gpt2>("gpt2", options, gpt2_samples,
                               [](Gpt2& net, const std::vector<Tensor>& in) { return word_loss(net(in[0]), in[1]); });
}

const bool gpt2_model = [] {
  register_model({"gpt2",
                  "GPT-2 small: 12 causal transformer blocks of width 768, 124 million parameters",
                  record_gpt2,
                  {"batch", "seq", "layers", "width", "dtype"},
                  {.batch = 8, .seq = kGpt2Context, .layers = 12, .width = 768, .optimizer = "adamw"}});
  return true;
}();

}  // namespace
