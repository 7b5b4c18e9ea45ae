// Tests what a captured step tells about the program that ran last: its graph, plan, state and values, and the file that it
// writes of it. Tests its monitors, the names of its results, and that a step can be assigned.
#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/file/load_executor.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/threads.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/capture/step/dropout_net.h>
#include <tapedeck/tests/capture/temporary_folder.h>
#include <tapedeck/tests/engine/messages.h>

namespace tapedeck {
namespace {

using Tensors = std::vector<Tensor>;

// A net that trains, and its step.
struct QueriedTraining {
  testing::DropoutNet net;
  AdamW optimizer{net.parameters(), {.lr = 1e-2}};
  Tensor x = normal({5, 3}), y = normal({5, 2});

  Tensors run(const Tensors& in) {
    const Tensor loss = mean(square(net(in[0]) - in[1]));
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return {loss};
  }
  CapturedStep step(CapturedStepOptions options = {}) {
    options.input_names = {"x", "y"};
    options.output_names = {"loss"};
    return capture([this](const Tensors& in) { return run(in); }, options);
  }
};

TEST(StepQueries, ASavedStepGoesOnInAnExecutor) {
  manual_seed(4);
  const TemporaryFolder folder;
  QueriedTraining training;
  CapturedStep step = training.step();
  for (int i = 0; i < 3; ++i) step({training.x, training.y});
  step.save(folder.file("s.tape"), {{"note", "after three steps"}});

  // The executor has the state of now, so its next step is the next step of the net.
  Executor executor = load_executor(folder.file("s.tape"));
  EXPECT_EQ(executor.plan().peak_bytes, step.plan()->peak_bytes);
  for (int i = 0; i < 3; ++i) {
    executor.run();
    const Tensor loss = step({training.x, training.y})[0];
    EXPECT_TRUE(bit_equal(executor.output("loss"), loss)) << i;
  }
  for (const std::string& name : step.state_names()) EXPECT_TRUE(bit_equal(executor.state(name), step.state(name))) << name;

  const TapeFile file = load_tape(folder.file("s.tape"));
  EXPECT_EQ(file.metadata.at("note"), "after three steps");
  EXPECT_TRUE(bit_equal(file.inputs.at("x"), training.x));
  EXPECT_EQ(file.state.size(), step.state_names().size());
}

TEST(StepQueries, AFileMayHoldNoPlanOrAnother) {
  const TemporaryFolder folder;
  QueriedTraining training;
  CapturedStep step = training.step();
  EXPECT_EQ(step.captured(), nullptr);
  EXPECT_MENTIONS(message_of<UsageError>([&] { step.save(folder.file("s.tape")); }), "[save]");
  EXPECT_MENTIONS(message_of<UsageError>([&] { step.save(folder.file("s.tape")); }), "was not called yet");
  EXPECT_MENTIONS(message_of<UsageError>([&] { step.state_names(); }), "[state_names]");
  EXPECT_MENTIONS(message_of<UsageError>([&] { step.state_names(); }), "was not called yet");
  step({training.x, training.y});
  step.save(folder.file("first.tape"));  // recorded once: there is no plan yet
  EXPECT_FALSE(load_tape(folder.file("first.tape")).plan);
  EXPECT_EQ(step.plan(), nullptr);
  step({training.x, training.y});

  const Plan small = make_plan(step.captured()->graph, {.budget_percent = 90});
  save_tape(folder.file("small.tape"), step, small);
  EXPECT_EQ(load_tape(folder.file("small.tape")).plan->peak_bytes, small.peak_bytes);
  EXPECT_LT(small.peak_bytes, step.plan()->peak_bytes);
  Executor executor = load_executor(folder.file("first.tape"), PlanOptions{.budget_percent = 90});
  executor.run();
  EXPECT_EQ(executor.observed_peak_bytes(), small.peak_bytes);
  EXPECT_THROW(load_executor(folder.file("first.tape"), PlanOptions{.budget = 10}), InfeasibleError);
  step.forget();
  EXPECT_EQ(step.captured(), nullptr);
}

TEST(StepQueries, AStepThatCallsTheHostIsNotSaved) {
  const TemporaryFolder folder;
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    const Tensor y = in[0] * 2;
    return {on_host(y, [](const Tensor&) {})};
  });
  step({tensor({1, 2})});
  EXPECT_MENTIONS(message_of<UsageError>([&] { step.save(folder.file("s.tape")); }), "save_tape");
  EXPECT_MENTIONS(message_of<UsageError>([&] { step.save(folder.file("s.tape")); }), "calls back into this process");
  EXPECT_THROW(load_tape(folder.file("s.tape")), FileError);
}

TEST(StepQueries, ValuesStateAndThePeakAreThoseOfTheReplay) {
  QueriedTraining training;
  CapturedStep step = training.step();
  const auto call = [&] { return step({training.x, training.y})[0]; };
  call();
  call();
  EXPECT_THROW(step.value("loss"), ExecutionError);  // nothing was replayed yet
  const Tensor loss = call();
  EXPECT_EQ(step.replays(), 1);
  EXPECT_EQ(step.observed_peak_bytes(), step.plan()->peak_bytes);
  EXPECT_TRUE(bit_equal(step.value("loss"), loss));
  EXPECT_EQ(step.state("in.weight").impl(), training.net.in.weight.impl());
  EXPECT_MENTIONS(message_of<UsageError>([&] { step.state("in.wait"); }), "no state 'in.wait'");
  EXPECT_MENTIONS(message_of<UsageError>([&] { step.state("in.wait"); }), "in.weight");
}

TEST(StepQueries, ResultsHaveTheNamesThatTheyWereGiven) {
  CapturedStepOptions options;
  const auto multiples = [](const Tensors& in) -> Tensors { return {in[0] * 2, in[0] * 3}; };
  CapturedStep unnamed = capture(multiples, options);
  unnamed({tensor({1})});
  EXPECT_EQ(unnamed.captured()->report.outputs[1].name, "out1");
  options.output_names = {"double", "triple"};
  CapturedStep named = capture(multiples, options);
  named({tensor({1})});
  EXPECT_EQ(named.captured()->report.outputs[0].name, "double");
  EXPECT_EQ(named.captured()->report.outputs[1].name, "triple");
}

TEST(StepMonitors, WatchTheReplaysOfEveryProgram) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {tanh(exp(in[0]))}; });
  std::vector<float> seen;
  const std::int32_t exps = step.monitor("exp", [&](const Monitored& m) { seen.push_back(m.value.to_vector<float>()[0]); });
  const Tensor one = tensor({0}), two = tensor({0, 1});
  for (int i = 0; i < 2; ++i) step({one}), step({two});
  EXPECT_TRUE(seen.empty());  // these calls recorded
  step({one});
  step({two});
  EXPECT_EQ(seen, (std::vector<float>{1, 1}));

  // One more while programs exist, and one that matches nothing.
  int tanhs = 0;
  step.monitor("tanh", [&](const Monitored&) { ++tanhs; });
  step.monitor("no such op", [](const Monitored&) { FAIL(); });
  step({one});
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(tanhs, 1);

  step.remove_monitor(exps);
  step({one});
  step({two});
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(tanhs, 3);
  EXPECT_MENTIONS(message_of<UsageError>([&] { step.remove_monitor(exps); }), "no monitor 0");
  EXPECT_THROW(step.monitor("exp", nullptr), UsageError);

  // Recorded anew: the monitors are there again.
  step.forget();
  for (int i = 0; i < 3; ++i) step({one});
  EXPECT_EQ(tanhs, 4);
}

TEST(CapturedStep, CanBeAssigned) {
  const auto times = [](float by) { return capture([by](const Tensors& in) -> Tensors { return {in[0] * by}; }); };
  CapturedStep step = times(2);
  for (int i = 0; i < 3; ++i) step({tensor({1})});
  step = times(5);
  EXPECT_EQ(step.replays(), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step({tensor({1})})[0].item(), 5);
  EXPECT_EQ(step.replays(), 1);
}

// The default: eager ops and replays use one number of threads, and the plan does not depend on it.
TEST(CapturedStep, ThePlanIsTheSameForAnyNumberOfThreads) {
  const int before = thread_count();
  std::vector<std::string> plans;
  for (const int threads : {1, 2, 5}) {
    set_threads(threads);
    manual_seed(8);
    QueriedTraining training;
    CapturedStep step = training.step();
    for (int i = 0; i < 3; ++i) step({training.x, training.y});
    Plan plan = *step.plan();
    plan.solve_ms = 0;
    plans.push_back(plan_to_json(plan) + std::to_string(step({training.x, training.y})[0].item()));
  }
  set_threads(before);
  EXPECT_EQ(plans[0], plans[1]);
  EXPECT_EQ(plans[0], plans[2]);
}

}  // namespace
}  // namespace tapedeck
