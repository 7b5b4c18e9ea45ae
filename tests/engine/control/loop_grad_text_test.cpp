// Tests what the text of a loop_grad node may say. The kernel copies carried values, gradients and slices by the types that
// inference found, so inference must refuse a node whose regions or operands have other types.
#include <tapedeck/engine/control/interpret.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <string>

namespace tapedeck {
namespace {

using testing::message_of;

// The gradient of the loop  c, y = c * w + x[i], c * 2  over the three slices of x.
const char* const kLoopGrad =
    R"(graph back(%n: i64[], %c: f32[2], %x: f32[3,2], %w: f32[2], %dc: f32[2], %dw: f32[2], %dy: f32[3,2]) {
  %gc: f32[2], %gw: f32[2], %gx: f32[3,2] = loop_grad(%n, %c, %x, %w, %dc, %dw, %dy) {carried=1, scanned=1, trips=3, reverse=false, checkpoint=0, needs="111"} (%i: i64[],
    %c: f32[2], %s: f32[2], %w: f32[2]) {
    %p: f32[2] = mul(%c, %w)
    %q: f32[2] = add(%p, %s)
    %y: f32[2] = add(%c, %c)
    return %q, %y
  } (%i: i64[], %c: f32[2], %s: f32[2], %w: f32[2], %d: f32[2], %dw: f32[2], %dy: f32[2]) {
    %a: f32[2] = mul(%d, %w)
    %b: f32[2] = add(%dy, %dy)
    %e: f32[2] = add(%a, %b)
    %f: f32[2] = mul(%d, %c)
    %g: f32[2] = add(%dw, %f)
    return %e, %g, %d
  }
  return %gc, %gw, %gx
}
)";

std::string changed_gradient(std::string from, std::string to) {
  std::string text = kLoopGrad;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::vector<Tensor> run(const Graph& g, std::int64_t trips) {
  const Tensor given[] = {from_bytes({DType::i64, {}}, &trips),
                          tensor({1, 2}),
                          from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2}),
                          tensor({2, 3}),
                          tensor({1, 1}),
                          tensor({0, 0}),
                          full({3, 2}, 0)};
  return interpret(g, given).outputs;
}

TEST(LoopGradText, ComputesTheGradientByHand) {
  const std::vector<Tensor> out = run(parse(kLoopGrad), 3);
  EXPECT_EQ(out[0].to_vector<float>(), (std::vector<float>{8, 27}));  // w^3
  EXPECT_EQ(out[1].to_vector<float>(), (std::vector<float>{1 * 4 + 3 * 2 + 9, 2 * 9 + 8 * 3 + 28}));
  EXPECT_EQ(out[2].to_vector<float>(), (std::vector<float>{4, 9, 2, 3, 1, 1}));  // w^2, w, 1
}

TEST(LoopGradText, RulesNameWhatIsWrong) {
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"carried=1", "carried=4", "4 carried and 1 scanned operands, but the loop has 3 operands"},
      {"scanned=1", "scanned=-1", "1 carried and -1 scanned operands"},
      {"needs=\"111\"", "needs=\"11111111\"", "7 operands cannot hold a number of passes and the 8 operands of the loop"},
      {"needs=\"111\"", "needs=\"1x1\"", "needs=\"1x1\" has a character other than 0, 1 and 2"},
      {"needs=\"111\"", "needs=\"110\"", "takes 2 gradients, got 3"},
      {"trips=3", "trips=4", "operand 2 has 3 slices, not 4"},
      {"trips=3", "trips=-2", "-2 passes make no sense"},
      {"checkpoint=0", "checkpoint=-3", "checkpoint=-3 makes no sense"},
      {"%n: i64[]", "%n: i32[]", "the number of passes must be i64[], not i32[]"},
      {"%x: f32[3,2]", "%x: f32[4,2]", "operand 2 has 4 slices, not 3"},
      {"%x: f32[3,2]", "%x: f32[]", "operand 2 is scanned, but has no axis"},
      {"%dc: f32[2]", "%dc: f32[]", "operand 4 is a gradient of type f32[2], not f32[]"},
      {"%dw: f32[2]", "%dw: f32[1]", "operand 5 is a gradient of type f32[2], not f32[1]"},
      {"%dy: f32[3,2]", "%dy: f32[2,2]", "operand 6 is a gradient of type f32[3,2], not f32[2,2]"},
      {"    return %q, %y", "    %z: f32[3,2] = full() {shape=[3,2], dtype=f32, value=1.0}\n    return %z, %y",
       "a pass makes f32[3,2] of carried value 0, which is f32[2]"},
      {"    return %q, %y", "    return", "a pass gives fewer results than are carried"},
      {"    return %q, %y", "    return %q", "takes 2 gradients, got 3"},
      {"    return %e, %g, %d", "    return %e, %g", "the gradient of a pass gives 2 results, not 3"},
      {"    return %e, %g, %d", "    %z: f32[2,2] = full() {shape=[2,2], dtype=f32, value=1.0}\n    return %e, %g, %z",
       "result 2 of the gradient of a pass is f32[2,2], not f32[2]"},
  };
  for (const auto& c : cases) {
    const std::string message = message_of<ParseError>([&] { parse(changed_gradient(c.from, c.to), "t"); });
    EXPECT_NE(message.find(std::string("t:2:")), std::string::npos) << message;
    EXPECT_NE(message.find(std::string("[loop_grad] ") + c.message), std::string::npos) << c.to << ": " << message;
  }
}

TEST(LoopGradText, RefusesANumberOfPassesThatTheLoopCannotHaveMade) {
  const Graph g = parse(kLoopGrad);
  for (const std::int64_t trips : {std::int64_t{4}, std::int64_t{-1}, std::int64_t{1} << 62})
    EXPECT_NE(message_of<ExecutionError>([&] { run(g, trips); }).find("[loop_grad] the loop cannot have made so many passes"),
              std::string::npos)
        << trips;
}

// A constant of a region without data reaches no kernel, whichever op holds the region.
TEST(ControlText, AConstantWithoutDataIsNotRun) {
  const std::string region = R"((%a: f32[2]) {
    %c: f32[2] = constant() {abstract=true}
    %z: f32[2] = add(%a, %c)
    return %z
  })";
  const std::string pass = R"((%i: i64[], %a: f32[2]) {
    %c: f32[2] = constant() {abstract=true}
    %z: f32[2] = add(%a, %c)
    return %z
  })";
  const std::string nodes[] = {"%y: f32[2] = dynamic(%x) " + region, "%y: f32[2] = scan(%x) {carried=1, trips=2} " + pass,
                               "%t: bool[] = constant() {value=[true]}\n %y: f32[2] = cond(%t, %x) " + region + region};
  for (const std::string& node : nodes) {
    const Graph g = parse("graph g(%x: f32[2]) {\n " + node + "\n return %y\n}");
    const Tensor given[] = {tensor({1, 2})};
    const std::string message = message_of<ExecutionError>([&] { interpret(g, given); });
    EXPECT_NE(message.find("[constant] its data is not known: %c: f32[2] is abstract"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace tapedeck
