// Tests the calls of host functions outside of a capture, and the rules of the op `on_host`.
// tests/capture/record/host_call_test.cpp tests them inside a capture.
#include <tapedeck/engine/control/interpret.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <string>
#include <vector>

namespace tapedeck {
namespace {

using testing::message_of;
using testing::without_folders;

// ---- the rules of the op ----

TEST(OnHost, TheFirstResultIsAToken) {
  const auto refusal = [](const std::string& node) {
    return message_of<ParseError>([&] { parse("graph g(%x: f32[2]) {\n" + node + "\nreturn %x\n}"); });
  };
  for (const char* node :
       {"on_host(%x)", "%t: f32[0] = on_host(%x)", "%t: u8[1] = on_host(%x)", "%y: f32[2], %t: u8[0] = on_host(%x)"})
    EXPECT_MENTIONS(refusal(node), "[on_host] its first result is a token u8[0]");
}

TEST(OnHost, AChainedCallReadsATokenLast) {
  const auto refusal = [](const std::string& node) {
    return message_of<ParseError>([&] { parse("graph g(%x: f32[2]) {\n%s: u8[0] = on_host(%x)\n" + node + "\nreturn %x\n}"); });
  };
  for (const char* node : {"%t: u8[0] = on_host() {chained=true}", "%t: u8[0] = on_host(%x) {chained=true}",
                           "%t: u8[0] = on_host(%s, %x) {chained=true}"})
    EXPECT_MENTIONS(refusal(node), "[on_host] its last operand must be a token u8[0]");
  EXPECT_NO_THROW(
      parse("graph g(%x: f32[2]) {\n%s: u8[0] = on_host(%x)\n%t: u8[0] = on_host(%x, %s) {chained=true}\nreturn %x\n}"));
}

TEST(OnHost, ATextHoldsNoFunction) {
  const Graph g = parse("graph g(%x: f32[2]) {\n%t: u8[0] = on_host(%x) {name=\"tap\"}\nreturn %x\n}");
  const std::vector<Tensor> given{tensor({1, 2})};
  EXPECT_EQ(message_of<ExecutionError>([&] { interpret(g, given); }),
            "its function is not there: the graph was read from text, or the capture that held it is gone");
}

// ---- calls ----

TEST(OnHost, CallsTheFunctionOnceWithACopy) {
  const Tensor x = tensor({1, 2});
  int calls = 0;
  const Tensor& same = on_host(x, [&](const Tensor& t) {
    ++calls;
    EXPECT_TRUE(bit_equal(t, x));
    Tensor own = t;
    static_cast<float*>(own.mutable_data())[0] = 9;
  });
  EXPECT_EQ(&same, &x);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(bit_equal(x, tensor({1, 2}))) << "the function wrote a copy";
}

TEST(OnHost, AbstractExecutionCallsNothing) {
  int calls = 0;
  const HostFunction count = [&](const Tensor&) { ++calls; };
  on_host(abstract_tensor({DType::f32, {2}}), count);
  const Tensor x = tensor({1});
  {
    const AbstractMode abstract;
    on_host(x, count);
  }
  EXPECT_EQ(calls, 0);
  on_host(x, count);
  EXPECT_EQ(calls, 1);
}

TEST(OnHost, OperandsMustBeDefined) {
  int calls = 0;
  const int line = __LINE__ + 1;
  const std::string tap = message_of<TypeError>([&] { on_host(Tensor(), [&](const Tensor&) { ++calls; }); });
  EXPECT_EQ(without_folders(tap), "[on_host] an operand is undefined (host_test.cpp:" + std::to_string(line) + ")");
  const HostStretch pass = [&](const std::vector<Tensor>& xs) { return ++calls, xs; };
  const std::vector<Tensor> operands{tensor({1}), Tensor()};
  const int next = __LINE__ + 1;
  const std::string stretch = message_of<TypeError>([&] { exclude_from_capture(operands, pass); });
  EXPECT_EQ(without_folders(stretch),
            "[exclude_from_capture] an operand is undefined (host_test.cpp:" + std::to_string(next) + ")");
  EXPECT_EQ(calls, 0);
}

TEST(ExcludeFromCapture, IsThePlainCallOutsideOfACapture) {
  const Tensor w = tensor({1, 2}).requires_grad(true);
  const std::vector<Tensor> ys = exclude_from_capture({w}, [&](const std::vector<Tensor>& xs) {
    EXPECT_EQ(xs[0].impl(), w.impl()) << "no copy";
    return std::vector<Tensor>{xs[0] * xs[0], Tensor()};
  });
  ASSERT_EQ(ys.size(), 2u);
  EXPECT_FALSE(ys[1].defined());
  backward(sum(ys[0]));
  EXPECT_TRUE(bit_equal(w.grad(), tensor({2, 4})));
}

}  // namespace
}  // namespace tapedeck
