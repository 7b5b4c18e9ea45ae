// A script: a program of one file that `tapedeck run` compiles and runs. It reads pairs of numbers from stdin, one pair a line,
// and fits a line through them by captured steps.
//     printf '0 1\n1 3\n2 5\n' | tapedeck run samples/09_script.cpp 400
//     printf '0 1\n1 3\n2 5\n' | tapedeck run --view samples/09_script.cpp 400      # and shows the step in the viewer
#include <tapedeck/tapedeck.h>

#include <cstdio>
#include <cstdlib>

using namespace tapedeck;

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 200;
  std::vector<float> xs, ys;
  for (float x = 0, y = 0; std::scanf("%f %f", &x, &y) == 2;) xs.push_back(x), ys.push_back(y);
  if (xs.empty()) {
    std::fprintf(stderr, "no numbers on stdin; give two a line: x and y\n");
    return 2;
  }
  const Shape shape = {static_cast<std::int64_t>(xs.size())};
  const Tensor x = from_vector(xs, shape), y = from_vector(ys, shape);
  const Tensor slope = zeros({}).requires_grad(true), offset = zeros({}).requires_grad(true);
  Sgd optimizer({slope, offset}, {.lr = 0.1});

  CapturedStep step = capture(
      [&](const std::vector<Tensor>& in) {
        const Tensor loss = mean(square(slope * in[0] + offset - in[1]));
        backward(loss);
        optimizer.step();
        optimizer.zero_grad();
        return std::vector<Tensor>{loss};
      },
      {.input_names = {"x", "y"}, .output_names = {"loss"}});
  for (int i = 0; i < steps; ++i) step({x, y});
  std::printf("y = %.3f x + %.3f, replayed %d times\n", slope.item(), offset.item(), step.replays());

  // The first line above prints:
  // y = 2.000 x + 1.000, replayed 398 times
}
