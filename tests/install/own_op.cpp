// Loads acme.cube and uses it like any other op: eagerly, differentiated twice, captured and replayed.
#include <tapedeck/engine/ir/load_op_library.h>
#include <tapedeck/tapedeck.h>

#include <cstdio>

using namespace tapedeck;

Tensor cube(const Arg& x) { return apply(*find_op("acme.cube"), {&x.tensor()}, nullptr, x.site()); }

int main(int, char** argv) {
  try {
    load_ops("./no_such_library.so");
    return 1;
  } catch (const FileError& e) {
    std::printf("%s\n", e.what());
  }
  load_ops(argv[1]);
  load_ops(argv[1]);  // a second call of load_ops for the same library changes nothing
  const Tensor x = tensor({1, 2, 3}).requires_grad(true);
  const Tensor y = cube(transpose(reshape(x, {3, 1}), {1, 0}));
  const Tensor g = gradients({sum(y)}, {x}, {.create_graph = true})[0];
  const Tensor h = gradients({sum(g)}, {x})[0];
  const bool exact = bit_equal(reshape(y.detach(), {3}), tensor({1, 8, 27})) && bit_equal(g.detach(), tensor({3, 12, 27})) &&
                     bit_equal(h, tensor({6, 12, 18}));

  Capture capture("own");
  const Tensor in = capture.input("x", tensor({1, -2}));
  capture.output("y", cube(in) + 1);
  Executor replay(make_plan(capture.finish().graph));
  replay.set_input(0, tensor({2, 3}));
  replay.run();
  const bool replayed = bit_equal(replay.output("y"), tensor({9, 28}));
  std::printf("exact: %d, replayed: %d\n", exact, replayed);
  return exact && replayed ? 0 : 1;
}
