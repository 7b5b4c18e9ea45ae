// Two models so small that a person can follow every choice of a planner by eye. In `rnn_cell` recomputation saves nothing: the
// sum under the tanh is as large as its result. In `mlp_attention` it saves much: each question to the slots makes a row for
// every slot, and all these rows can be computed again from one row of the state and one projection of the slots.
#include <tapedeck/samples/zoo/training_step.h>

namespace {

using namespace tapedeck;

// h' = tanh(W x + U h).
struct RnnStep : Module {
  Linear of_input, of_state;
  explicit RnnStep(const ModelOptions& o)
      : of_input(*this, "of_input", o.width, o.width), of_state(*this, "of_state", o.width, o.width) {}
  Tensor operator()(const Tensor& x, const Tensor& h) { return tanh(of_input(x) + of_state(h)); }
};

// A state [n,width] asks slots [n,s,width] `layers` times. Each time, the state becomes tanh(C [context, state]). The context
// is the mean of the slots, weighted by softmax of v tanh(W state + U slot).
struct MlpAttention : Module {
  std::int64_t times;
  Linear of_state, of_slots, score, combine;
  explicit MlpAttention(const ModelOptions& o)
      : times(o.layers),
        of_state(*this, "of_state", o.width, o.width),
        of_slots(*this, "of_slots", o.width, o.width),
        score(*this, "score", o.width, 1),
        combine(*this, "combine", 2 * o.width, o.width) {}

  Tensor operator()(const Tensor& slots, Tensor state) {
    const std::int64_t n = slots.size(0), s = slots.size(1), width = slots.size(2);
    const Tensor keys = reshape(of_slots(reshape(slots, {n * s, width})), {n, s, width});
    for (std::int64_t i = 0; i < times; ++i) {
      const Tensor hidden = tanh(reshape(of_state(state), {n, 1, width}) + keys);
      const Tensor weights = softmax(reshape(score(reshape(hidden, {n * s, width})), {n, 1, s}));
      const Tensor context = reshape(matmul(weights, slots), {n, width});
      state = tanh(combine(concat({context, state}, 1)));
    }
    return state;
  }
};

template <class Net>
Tensor squared_error(Net& net, const std::vector<Tensor>& in) {
  return mse_loss(net(in[0], in[1]), in[2]);
}

Captured record_rnn_cell(const ModelOptions& options) {
  const auto samples = [](const ModelOptions& o) {
    const Shape rows{o.batch, o.width};
    return std::vector<zoo::Sample>{
        {"x", zoo::sample_floats(rows)}, {"h", zoo::sample_floats(rows)}, {"target", zoo::sample_floats(rows)}};
  };
  return zoo::record_training<RnnStep>("rnn_cell", options, samples, squared_error<RnnStep>);
}

Captured record_mlp_attention(const ModelOptions& options) {
  const auto samples = [](const ModelOptions& o) {
    const Shape rows{o.batch, o.width};
    return std::vector<zoo::Sample>{{"slots", zoo::sample_floats({o.batch, o.seq, o.width})},
                                    {"state", zoo::sample_floats(rows)},
                                    {"target", zoo::sample_floats(rows)}};
  };
  return zoo::record_training<MlpAttention>("mlp_attention", options, samples, squared_error<MlpAttention>);
}

const bool recurrent_cells_model = [] {
  register_model({"rnn_cell",
                  "one step of a recurrent net: tanh of two products",
                  record_rnn_cell,
                  {"batch", "width", "dtype"},
                  {.batch = 64, .width = 128}});
  register_model({"mlp_attention",
                  "a recurrent cell that asks a few slots by attention, scored by a small perceptron",
                  record_mlp_attention,
                  {"batch", "seq", "layers", "width", "dtype"},
                  {.batch = 64, .seq = 16, .layers = 4, .width = 128}});
  return true;
}();

}  // namespace
