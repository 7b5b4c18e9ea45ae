// Tests the op `dynamic`: how it reads its attribute `follows`, which statements it refuses, and how its region runs. The
// oracle is arithmetic by hand, or the same ops outside of a region.
#include <tapedeck/engine/control/interpret.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <string>
#include <vector>

namespace tapedeck {
namespace {

using testing::message_of;

Tensor mask_of(const std::vector<unsigned char>& held) {
  return from_bytes({DType::boolean, {static_cast<std::int64_t>(held.size())}}, held.data());
}

std::vector<Tensor> run(const Graph& g, const std::vector<Tensor>& given) { return interpret(g, given).outputs; }

// ---- the statements of `follows` ----

std::string following(const std::string& follows) {
  return "graph g(%x: f32[4,2]) {\n  %y: f32[8] = dynamic(%x) {follows=\"" + follows + R"("} (%a: f32[4,2]) {
    %e: f32[8] = reshape(%a) {shape=[8]}
    %k: f32[8] = full() {shape=[8], dtype=f32, value=1.0}
    %y: f32[8] = reshape(%e) {shape=[8]}
    return %y
  }
  return %y
})";
}

TEST(Dynamic, TakesStatementsThatFitTheRegion) {
  const Tensor x = from_vector(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  for (const char* follows : {"", "y.shape.0=e@0", "y.shape.0=e@0, k.shape.0=e@0", "k.shape.0=e@0, y.shape.0=k@0"}) {
    SCOPED_TRACE(follows);
    const Graph g = parse(following(follows));
    EXPECT_EQ(print(parse(print(g))), print(g));
    EXPECT_TRUE(bit_equal(run(g, {x})[0], reshape(x, {8})));
  }
}

TEST(Dynamic, RefusesStatementsThatDoNotFitTheRegion) {
  const char* const statements[] = {
      "nonsense",
      "y.shape.0",
      "y.shape.0=e",
      "y.shape.0@0",
      "y.shape.0@0=e",  // not of the form a.b.c=d@e
      "yshape0=e@0",
      ".0=e@0",
      "shape.0=e@0",
      "y.shape.=e@0",
      "y.shape.0=e@",
      "=@",  // a piece of it is missing
      "y.shape.x=e@0",
      "y.shape.-1=e@0",
      "y.shape.100=e@0",
      "y.shape.0=e@x",  // not a small number
      "y.shape.1=e@0",
      "y.shape.0=e@1",
      "q.shape.0=e@0",
      "y.shape.0=q@0",
      "y.no.0=e@0",  // not there
      "k.dtype.0=e@0",
      "k.value.0=e@0",  // not a list of integers
      "a.shape.0=a@0",
      "e.shape.0=y@0",
      "y.shape.0=y@0",  // no node makes it, or the node runs before the size is known
      ", y.shape.0=e@0",
      "y.shape.0=e@0, nonsense",
      "y.shape.0=e@0,y.shape.0=e@0",
  };
  for (const std::string statement : statements)
    EXPECT_MENTIONS(message_of<ParseError>([&] { parse(following(statement)); }),
                    "[dynamic] `follows` speaks of what the region does not have: " + statement);
}

TEST(Dynamic, TheOperandsAreThoseOfTheRegion) {
  const auto refusal = [](const std::string& operands) {
    return message_of<ParseError>([&] {
      parse("graph g(%x: f32[2], %k: f32[3]) {\n%y: f32[2] = dynamic(" + operands +
            ") (%a: f32[2]) {\n%z: f32[2] = exp(%a)\nreturn %z\n}\nreturn %y\n}");
    });
  };
  EXPECT_MENTIONS(refusal("%x, %x"), "[dynamic] 2 operands for a region with 1 inputs");
  EXPECT_MENTIONS(refusal("%k"), "[dynamic] operand 0 is f32[3], the region wants f32[2]");
}

// ---- runs ----

// The sum over the selected elements of (element + 10), its negative if it is above 50, and a value that only `opaque` knows.
constexpr const char* kSelected = R"(graph g(%x: f32[6], %m: bool[6]) {
  %t: f32[], %u: f32[], %o: f32[2] = dynamic(%x, %m) {follows="k.shape.0=p@0, q.shape.0=p@0"} (%a: f32[6], %b: bool[6]) {
    %p: f32[6] = masked_select(%a, %b) {count=6}
    %k: f32[6] = full() {shape=[6], dtype=f32, value=10.0}
    %q: f32[6] = reshape(%p) {shape=[6]}
    %r: f32[6] = add(%q, %k)
    %s: f32[] = sum(%r) {axes=[0]}
    %limit: f32[] = constant() {value=[50.0]}
    %above: bool[] = greater(%s, %limit)
    %t: f32[] = cond(%above, %s) (%c: f32[]) {
      %n: f32[] = neg(%c)
      return %n
    } (%c: f32[]) {
      return %c
    }
    %o: f32[2] = opaque(%s) {us=1.0}
    return %t, %s, %o
  }
  return %t, %u, %o
})";

TEST(Dynamic, SizesFollowTheCountsOfTheRun) {
  const Graph g = parse(kSelected);
  const Graph alone = parse("graph g(%s: f32[]) {\n%o: f32[2] = opaque(%s) {us=1.0}\nreturn %o\n}");
  const std::vector<float> elements{1, 2, 3, 4, 5, 6};
  for (const std::vector<unsigned char>& held : std::vector<std::vector<unsigned char>>{
           {1, 1, 1, 1, 1, 1}, {0, 1, 0, 0, 1, 0}, {0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 0, 0}, {0, 0, 0, 0, 0, 1}}) {
    float sum = 0;
    for (std::size_t i = 0; i < held.size(); ++i) sum += held[i] ? elements[i] + 10 : 0;
    const std::vector<Tensor> got = run(g, {from_vector(elements, {6}), mask_of(held)});
    EXPECT_EQ(got[0].item(), sum > 50 ? -sum : sum);
    EXPECT_EQ(got[1].item(), sum);
    EXPECT_TRUE(bit_equal(got[2], run(alone, {scalar(sum)})[0]));
  }
}

TEST(Dynamic, AResultOfAnotherSizeThanTheRegionStatesIsAnError) {
  const Graph g = parse(R"(graph g(%x: f32[3], %m: bool[3]) {
    %y: f32[3] = dynamic(%x, %m) (%a: f32[3], %b: bool[3]) {
      %p: f32[3] = masked_select(%a, %b) {count=3}
      return %p
    }
    return %y
  })");
  const Tensor x = tensor({1, 2, 3});
  EXPECT_TRUE(bit_equal(run(g, {x, mask_of({1, 1, 1})})[0], x));
  EXPECT_MENTIONS(message_of<ExecutionError>([&] {
                    run(g, {x, mask_of({1, 0, 1})});
                  }),
                  "[dynamic] result 0 came out as f32[2], the plan has room for f32[3]");
}

}  // namespace
}  // namespace tapedeck
