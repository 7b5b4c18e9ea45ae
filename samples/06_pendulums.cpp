// Loops: finds the length and the friction of a thousand pendulums from their positions after a minute, by gradients through
// every step of the simulation. A captured loop is one node. Its backward may keep the state of every step, of every n-th step,
// of about sqrt(steps) steps, or of log2(steps) steps. It computes the other states again.
//
//     scan:  (angle, speed) --step--> (angle, speed) --step--> ...        backward: <-- <-- <--
//
// Usage: 06_pendulums [--steps N] [--seed N]     (N training steps)
#include <tapedeck/samples/options.h>

#include <tapedeck/tapedeck.h>

#include <chrono>
#include <cmath>

using namespace tapedeck;

constexpr std::int64_t kPendulums = 1024, kTicks = 600;
constexpr double kTick = 0.01;

struct World : Module {
  Tensor length = parameter("length", full({}, 1.0)), friction = parameter("friction", full({}, 0.0));

  // The angles after kTicks ticks, by the semi-implicit Euler method.
  Tensor simulate(const Tensor& angle, const Tensor& speed, std::int64_t checkpoint_every) {
    LoopOptions options;
    options.max_trips = kTicks;
    options.checkpoint_every = checkpoint_every;
    const LoopResult end = scan(
        [&](const Tensors& state) {
          const Tensor pull = sin(state[0]) * (-9.81) / length - state[1] * friction;
          const Tensor faster = state[1] + pull * kTick;
          return Tensors{state[0] + faster * kTick, faster};
        },
        {angle, speed}, {}, {}, options);
    return end.carried[0];
  }
};

// One captured training step; `keep` says which states of the loop are kept for backward.
struct Trainer {
  World world;
  AdamW optimizer{world.parameters(), {.lr = 2e-2, .weight_decay = 0}};
  CapturedStep step;

  explicit Trainer(std::int64_t keep)
      : step(capture([this, keep](const Tensors& in) {
          const Tensor error = world.simulate(in[0], in[1], keep) - in[2];
          const Tensor loss = mean(error * error);
          backward(loss);
          optimizer.step();
          optimizer.zero_grad();
          return Tensors{loss};
        })) {}
};

int main(int argc, char** argv) {
  const samples::Options options = samples::parse_options(argc, argv, {.data = "", .steps = 150});
  manual_seed(options.seed);
  World truth;
  const Tensor angle = uniform({kPendulums}, -0.6, 0.6), speed = uniform({kPendulums}, -0.5, 0.5);
  Tensor seen;
  {
    const NoGrad no_grad;
    fill_(truth.length, 1.3);
    fill_(truth.friction, 0.15);
    seen = truth.simulate(angle, speed, 0);
  }

  const struct {
    const char* what;
    std::int64_t keep;
  } choices[] = {{"every step", 0}, {"every 50th step", 50}, {"about sqrt", kCheckpointSqrt}, {"about log2", kCheckpointLog}};
  std::printf("%-18s %14s %12s %10s\n", "backward keeps", "planned peak", "ms per step", "loss");
  for (const auto& choice : choices) {
    Trainer trainer(choice.keep);
    for (int i = 0; i < 2; ++i) trainer.step({angle, speed, seen});  // the two recordings
    const auto start = std::chrono::steady_clock::now();
    constexpr int kRuns = 5;
    double loss = 0;
    for (int i = 0; i < kRuns; ++i) loss = trainer.step({angle, speed, seen})[0].item();
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / kRuns;
    std::printf("%-18s %14lld %12.2f %10.6f\n", choice.what, static_cast<long long>(trainer.step.plan()->peak_bytes), ms, loss);
  }

  Trainer trainer(kCheckpointSqrt);
  for (int i = 1; i <= options.steps; ++i) {
    const double loss = trainer.step({angle, speed, seen})[0].item();
    if (i % 25 == 0)
      std::printf("step %4d  loss %.6f  length %.4f  friction %.4f\n", i, loss, trainer.world.length.item(),
                  trainer.world.friction.item());
  }

  // The program prints, on one core:
  // backward keeps       planned peak  ms per step       loss
  // every step                7426500         7.71   0.065104
  // every 50th step            561668        15.57   0.065104
  // about sqrt                 455172        12.69   0.065104
  // about log2                 160260        20.75   0.065104
  // step  150  loss 0.000055  length 1.3149  friction 0.1696      (they were made with 1.3 and 0.15)
}
