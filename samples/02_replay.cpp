// A whole training step in forty lines: written as eager code, recorded while it runs, planned under a memory budget, and
// replayed.
#include <tapedeck/tapedeck.h>

#include <cstdio>

using namespace tapedeck;

struct Net : Module {
  Linear in{*this, "in", 16, 64}, a{*this, "a", 64, 64}, b{*this, "b", 64, 64}, out{*this, "out", 64, 4};
  Dropout drop{*this, "drop", 0.1};
  Tensor operator()(const Tensor& x) { return out(drop(relu(b(relu(a(relu(in(x)))))))); }
};

int main() {
  manual_seed(1);
  Net net;
  AdamW optimizer(net.parameters(), {.lr = 3e-3});
  const Tensor x = normal({1024, 16});
  const Tensor y = cast(argmax(matmul(x, normal({16, 4}))), DType::i32);  // the rule to learn

  // Ordinary eager C++. The first two calls run and record the function; later calls replay the plan.
  CapturedStep step = capture(
      [&](const std::vector<Tensor>& in) {
        const Tensor loss = cross_entropy(net(in[0]), in[1]);
        backward(loss);
        optimizer.step();
        optimizer.zero_grad();
        return std::vector<Tensor>{loss};
      },
      {.plan = {.budget_percent = 80}, .input_names = {"x", "y"}});

  for (int i = 0; i <= 100; ++i) {
    const double loss = step({x, y})[0].item();
    if (i % 50 == 0) std::printf("step %3d  loss %.4f\n", i, loss);
  }
  std::printf("recorded %d times, replayed %d times\n", step.recordings(), step.replays());
  step.save("step.tape");  // the graph, the plan and the state as it is now: tapedeck-viewer step.tape

  // The program prints:
  // step   0  loss 1.3996
  // step  50  loss 0.0368
  // step 100  loss 0.0040
  // recorded 2 times, replayed 99 times
}
