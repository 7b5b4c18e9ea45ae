// Recurrent layers. Gates have PyTorch's order (i f g o for LSTM, r z n for GRU). Weights are [in, gates] as in Linear, and
// there are two bias vectors.
#pragma once

#include <tapedeck/engine/nn/module.h>
#include <tapedeck/engine/ops/recurrent.h>

#include <vector>

namespace tapedeck TAPEDECK_API {

struct RecurrentWeights {
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};

// A module with weights named "weight_ih", "weight_hh", "bias_ih" and "bias_hh", each with a suffix.
class RecurrentModule : public Module {
 protected:
  using Module::Module;
  RecurrentWeights make_weights(std::int64_t in, std::int64_t hidden, std::int64_t gates, const std::string& suffix = "");
};

// ---- one step: x [n,in] and the state [n,hidden] -> the next state. An undefined state means zeros ----

struct LstmCell : RecurrentModule {
  LstmCell(Module& parent, const std::string& name, std::int64_t in, std::int64_t hidden);
  LstmState operator()(const Arg& x, const LstmState& state = {});
  RecurrentWeights weights;
};
struct GruCell : RecurrentModule {
  GruCell(Module& parent, const std::string& name, std::int64_t in, std::int64_t hidden);
  Tensor operator()(const Arg& x, const Tensor& h = {});
  RecurrentWeights weights;
};
struct RnnCell : RecurrentModule {
  RnnCell(Module& parent, const std::string& name, std::int64_t in, std::int64_t hidden,
          RnnActivation activation = RnnActivation::tanh);
  Tensor operator()(const Arg& x, const Tensor& h = {});
  RecurrentWeights weights;
  RnnActivation activation;
};

// ---- sequences: x [t,n,in] -> y [t,n,hidden] and the states after the last step, [layers,n,hidden] ----

struct RecurrentOptions {
  int layers = 1;              // each layer takes the outputs of the layer before
  bool bidirectional = false;  // y is [t,n,2 hidden]; states are [2 layers,n,hidden], forward before reverse
  double dropout = 0;          // applied between layers while training
};

// The base of Lstm, Gru and Rnn: the weights "weight_ih_l0", "weight_ih_l0_reverse", ..., and the loop over layers,
// directions and steps. The products with the input are computed for all steps at once.
class RecurrentLayers : public RecurrentModule {
 public:
  std::vector<RecurrentWeights> weights;  // layer by layer; in each layer forward before reverse
  RecurrentOptions options;

 protected:
  using States = std::vector<Tensor>;  // the tensor h, or h and c
  struct Result {
    Tensor y;
    States states;
  };
  RecurrentLayers(Module& parent, const std::string& name, std::int64_t in, std::int64_t hidden, std::int64_t gates,
                  RecurrentOptions options);
  Result run(const Arg& x, const States& initial);

 private:
  Result run_layers(Tensor x, const States& initial, Site site) const;
  virtual Tensor project(const RecurrentWeights& w, const Tensor& rows) const = 0;
  virtual States step(const RecurrentWeights& w, const Tensor& projected, const States& before) const = 0;
  Tensor run_direction(const RecurrentWeights& w, const Tensor& x, bool reverse, States* states) const;
};

struct LstmResult {
  Tensor y;
  LstmState state;
};
struct Lstm : RecurrentLayers {
  Lstm(Module& parent, const std::string& name, std::int64_t in, std::int64_t hidden, RecurrentOptions options = {})
      : RecurrentLayers(parent, name, in, hidden, 4, options) {}
  LstmResult operator()(const Arg& x, const LstmState& initial = {});

 private:
  Tensor project(const RecurrentWeights& w, const Tensor& x) const override;
  States step(const RecurrentWeights& w, const Tensor& projected, const States& before) const override;
};

struct RecurrentResult {
  Tensor y, h;
};
struct Gru : RecurrentLayers {
  Gru(Module& parent, const std::string& name, std::int64_t in, std::int64_t hidden, RecurrentOptions options = {})
      : RecurrentLayers(parent, name, in, hidden, 3, options) {}
  RecurrentResult operator()(const Arg& x, const Tensor& initial = {});

 private:
  Tensor project(const RecurrentWeights& w, const Tensor& x) const override;
  States step(const RecurrentWeights& w, const Tensor& projected, const States& before) const override;
};
struct Rnn : RecurrentLayers {
  Rnn(Module& parent, const std::string& name, std::int64_t in, std::int64_t hidden, RecurrentOptions options = {},
      RnnActivation activation = RnnActivation::tanh)
      : RecurrentLayers(parent, name, in, hidden, 1, options), activation(activation) {}
  RecurrentResult operator()(const Arg& x, const Tensor& initial = {});
  RnnActivation activation;

 private:
  Tensor project(const RecurrentWeights& w, const Tensor& x) const override;
  States step(const RecurrentWeights& w, const Tensor& projected, const States& before) const override;
};

}  // namespace TAPEDECK_API
