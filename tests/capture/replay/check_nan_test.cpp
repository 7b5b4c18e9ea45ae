// Tests that a replay under TAPEDECK_CHECK_NAN stops at the first node that makes NaN or infinity, as eager code does.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <limits>

namespace tapedeck {
namespace {

using testing::message_of;

const char* const kText = R"(graph g(%x: f32[2,3]) {
  %t: f32[3,2] = transpose(%x) {axes=[1,0]}
  %y: f32[3,2] = log(%t)
  %z: f32[3,2] = exp(%y)
  return %z
})";

Settings checking() {
  Settings s = settings();
  s.check_nan = true;
  return s;
}

Tensor numbers(float last) { return from_vector(std::vector<float>{1, 2, 3, 4, 5, last}, {2, 3}); }

TEST(CheckNan, AReplayNamesTheNodeAndTheElement) {
  const ScopedSettings scope(checking());
  for (int threads : {1, 2}) {
    Executor executor(make_plan(parse(kText)), {.threads = threads});
    executor.set_input("x", numbers(6));
    EXPECT_NO_THROW(executor.run());
    executor.set_input("x", numbers(-1));
    const std::string message = message_of<ExecutionError>([&] { executor.run(); });
    EXPECT_NE(message.find("[log] made NaN at element 5 of %y: f32[3,2] from (f32[3,2])"), std::string::npos) << message;
    executor.set_input("x", numbers(0));
    EXPECT_NE(message_of<ExecutionError>([&] { executor.run(); }).find("[log] made an infinity"), std::string::npos);
  }
}

TEST(CheckNan, AReplayRunsOnWithoutTheSetting) {
  Executor executor(make_plan(parse(kText)));
  executor.set_input("x", numbers(-1));
  EXPECT_NO_THROW(executor.run());
}

}  // namespace
}  // namespace tapedeck
