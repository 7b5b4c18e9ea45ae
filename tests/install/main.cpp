// A training step is written eagerly, captured while it runs, planned, saved, loaded and replayed. The replays must give the
// state of eager steps, bit for bit.
#include <tapedeck/tapedeck.h>

#include <cstdio>
#include <string>
#include <vector>

using namespace tapedeck;

struct Net : Module {
  Linear in{*this, "in", 16, 64}, mid{*this, "mid", 64, 64}, out{*this, "out", 64, 4};
  Tensor operator()(const Tensor& x) { return out(relu(mid(relu(in(x))))); }
};

Tensor train(Net& net, Optimizer& optimizer, const Tensor& x, const Tensor& y) {
  const Tensor loss = cross_entropy(net(x), y);
  backward(loss);
  optimizer.step();
  optimizer.zero_grad();
  return loss;
}

int main() {
  manual_seed(1);
  Net net;
  Sgd optimizer(net.parameters());
  const Tensor x = normal({256, 16}), y = cast(argmax(matmul(x, normal({16, 4}))), DType::i32);

  Capture capture("step");
  const Tensor cx = capture.input("x", x), cy = capture.input("y", y);
  capture.output("loss", train(net, optimizer, cx, cy));
  const Captured step = capture.finish();
  TapeFile file;
  file.captured = step.graph;
  file.plan = make_plan(step.graph);
  save_tape("step.tape", file);

  Executor replay(*load_tape("step.tape").plan);
  const std::vector<std::string> state = replay.state_names();
  for (std::size_t i = 0; i < state.size(); ++i) replay.set_state(state[i], step.state[i]);
  for (std::size_t i = 0; i < step.inputs.size(); ++i) replay.set_input(static_cast<int>(i), step.inputs[i]);
  for (int i = 0; i < 10; ++i) {
    replay.run();
    train(net, optimizer, x, y);
  }

  bool equal = replay.observed_peak_bytes() == replay.plan().peak_bytes;
  for (std::size_t i = 0; i < state.size(); ++i) equal = equal && bit_equal(replay.state(state[i]), step.state[i]);
  std::printf("loss %.4f, equal to eager: %s\n", replay.output("loss").item(), equal ? "yes" : "no");
  return equal ? 0 : 1;
}
