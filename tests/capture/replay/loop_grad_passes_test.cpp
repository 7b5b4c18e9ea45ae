// A replay walks back over as many passes as an operand of loop_grad says. The plan has room for a known number of them, so the
// replay must refuse a larger one.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

namespace tapedeck::testing {
namespace {

const char* const kStacked = R"(graph back(%n: i64[], %x: f32[3,2], %dc: f32[2]) {
  %c: f32[2] = constant() {value=[1.0, 2.0]}
  %gc: f32[2], %gx: f32[3,2] = loop_grad(%n, %c, %x, %dc) {carried=1, scanned=1, trips=3, needs="11"} (%i: i64[],
    %c: f32[2], %s: f32[2]) {
    %q: f32[2] = mul(%c, %s)
    return %q
  } (%i: i64[], %c: f32[2], %s: f32[2], %d: f32[2]) {
    %a: f32[2] = mul(%d, %s)
    %f: f32[2] = mul(%d, %c)
    return %a, %f
  }
  return %gc, %gx
})";

TEST(LoopGradPasses, AReplayRefusesMorePassesThanThePlanHasRoomFor) {
  const Graph g = parse(kStacked);
  Executor executor(make_plan(g));
  executor.set_input("x", from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2}));
  executor.set_input("dc", tensor({1, 1}));
  const auto run = [&](std::int64_t trips) {
    executor.set_input("n", from_bytes({DType::i64, {}}, &trips));
    executor.run();
  };
  EXPECT_NO_THROW(run(3));
  for (const std::int64_t trips : {std::int64_t{4}, std::int64_t{-1}, std::int64_t{1} << 62})
    EXPECT_NE(message_of<ExecutionError>([&] { run(trips); }).find("the loop cannot have made so many passes"),
              std::string::npos)
        << trips;
  EXPECT_NO_THROW(run(0));
}

}  // namespace
}  // namespace tapedeck::testing
