// Every allocation of a training step fails once: of an eager step, of a capture, and of a replay.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/kernels/parallel.h>

#include <tapedeck/tests/allocation/every_allocation.h>
#include <tapedeck/tests/allocation/failures.h>
#include <tapedeck/tests/allocation/training.h>
#include <tapedeck/tests/capture/replay_check.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

namespace tapedeck {
namespace {

using test::bits;
using test::fail_every_allocation;
using test::Training;

TEST(AllocationFails, InAStepOfAWarmThread) {
  Training training;
  training.step();
  training.save();
  fail_every_allocation({.name = "an eager step"}, [&] {
    training.restore();
    const std::string loss = bits(training.step());
    return loss + training.bits_of_state();
  });
}

// The types that an op inferred are remembered by its attributes. Bytes between their fields do not count.
TEST(Allocations, AreAsFewWhateverLiesBehindTheFieldsOfAttributes) {
  const Tensor x = full({4, 3}, 0.5), labels = from_vector(std::vector<std::int64_t>{0, 1, 2, 1}, {4});
  const NoGrad no_grad;
  const kernels::OneThreadScope one_thread;
  const auto allocations = [&](unsigned char filling) {
    const CrossEntropyAttrs attrs;
    alignas(CrossEntropyAttrs) unsigned char bytes[sizeof(CrossEntropyAttrs)];
    std::memcpy(bytes, &attrs, sizeof attrs);
    for (std::size_t i = offsetof(CrossEntropyAttrs, loss_in_f32) + 1; i < sizeof bytes; ++i) bytes[i] = filling;
    const test::FailAllocation none;
    apply(ops::cross_entropy, {&x, &labels}, bytes, {});
    return none.counted();
  };
  allocations(0);
  const long warm = allocations(0);
  EXPECT_EQ(allocations(0xAB), warm);
}

TEST(AllocationFails, InTheFirstStepsOfANewThread) {
  fail_every_allocation({.name = "a network, and two eager steps, on a new thread", .own_threads = true}, [] {
    Training training;
    training.step();
    const std::string loss = bits(training.step());
    return loss + training.bits_of_state();
  });
}

Graph captured_graph(Training& training) {
  Capture capture("step");
  capture.input("x", training.x());
  capture.input("y", training.y());
  capture.output("loss", training.step());
  return capture.finish().graph;
}

TEST(AllocationFails, InACapture) {
  Training training;
  training.step();
  training.save();
  fail_every_allocation({.name = "a captured step"}, [&] {
    training.restore();
    const std::string text = print(captured_graph(training));
    return text + training.bits_of_state();
  });
}

std::string replayed(const Plan& plan) {
  const Graph& g = plan.graph;
  Executor executor(plan, {.threads = 1});
  set_all(executor, stand_ins(g, 0, g.n_inputs, 1), stand_ins(g, g.n_inputs, g.n_state, 7));
  executor.run();
  executor.run();
  std::string text;
  for (const Tensor& t : executor.outputs()) text += bits(t);
  for (const std::string& name : executor.state_names()) text += bits(executor.state(name));
  return text;
}

TEST(AllocationFails, InAReplay) {
  Training training;
  training.step();
  const Plan plan = make_plan(captured_graph(training));
  fail_every_allocation({.name = "an executor and two steps"}, [&] { return replayed(plan); });
}

}  // namespace
}  // namespace tapedeck
