// A small network that is trained, for the tests whose allocations fail.
#pragma once

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>

#include <cstring>
#include <string>
#include <vector>

namespace tapedeck::test {

struct Mlp : Module {
  Linear first{*this, "first", 6, 5}, second{*this, "second", 5, 3};
  Tensor operator()(const Tensor& x) { return second(relu(first(x))); }
};

inline std::string bits(const Tensor& t) {
  const auto* bytes = static_cast<const char*>(t.data());
  return std::string(bytes, bytes + t.bytes());
}

// A network, its optimizer and its batch. Steps begin with the same parameters, moments and random state.
class Training {
 public:
  Tensor step() { return step(x_, y_); }
  Tensor step(const Tensor& x, const Tensor& y) {
    optimizer_.zero_grad();
    const Tensor loss = cross_entropy(net_(x), y);
    backward(loss);
    optimizer_.step();
    return loss;
  }

  std::string bits_of_state() const {
    std::string text;
    for (const Tensor& t : state()) text += bits(t);
    return text;
  }

  void save() {
    for (const Tensor& t : state()) saved_.push_back(bits(t));
  }
  void restore() {
    manual_seed(11);
    const std::vector<Tensor> now = state();
    for (std::size_t i = 0; i < saved_.size(); ++i)
      std::memcpy(const_cast<void*>(now[i].data()), saved_[i].data(), saved_[i].size());
  }
  const Tensor& x() const { return x_; }
  const Tensor& y() const { return y_; }

 private:
  struct Seed {
    Seed() { manual_seed(11); }
  };

  std::vector<Tensor> state() const {
    std::vector<Tensor> all = net_.parameters();
    for (const Tensor& t : optimizer_.state()) all.push_back(t);
    return all;
  }

  Seed seed_;  // before the network draws its parameters
  Mlp net_;
  Adam optimizer_{net_.parameters(), {.lr = 0.1}};
  Tensor x_ = full({4, 6}, 0.5), y_ = from_vector(std::vector<std::int64_t>{0, 1, 2, 1}, {4});
  std::vector<std::string> saved_;
};

}  // namespace tapedeck::test
