// Tests the text of nodes with regions: it must parse to the same graph. The rules of control flow must refuse wrong graphs
// with a clear message.
#include <tapedeck/engine/control/interpret.h>
#include <tapedeck/engine/ir/extract.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <string>

namespace tapedeck {
namespace {

using testing::message_of;

const char* const kLoop = R"(graph step(%x: f32[2], %w: f32[2]) {
  %n: i64[], %y: f32[2], %all: f32[4,2] = while(%x, %w) {carried=1, scanned=0, trips=4, reverse=false, residuals=0, checkpoint=0} (%i: i64[],
    %c: f32[2], %k: f32[2]) {
    %s: f32[] = sum(%c) {axes=[0], keepdims=false}
    %limit: f32[] = constant() {value=[100.0]}
    %go: bool[] = less(%s, %limit)
    return %go
  } (%i: i64[], %c: f32[2], %k: f32[2]) {
    %p: bool[] = constant() {value=[true]}
    %d: f32[2] = cond(%p, %c, %k) (%a: f32[2], %b: f32[2]) {
      %m: f32[2] = mul(%a, %b)
      return %m
    } (%a: f32[2], %b: f32[2]) {
      return %a
    }
    return %d, %c
  }
  return %y, %n, %all
}
)";

std::string changed(std::string from, std::string to) {
  std::string text = kLoop;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ControlText, RoundTripsAndRuns) {
  const Graph g = parse(kLoop);
  EXPECT_EQ(print(g), kLoop);
  const Tensor given[2] = {tensor({3, 4}), tensor({2, 3})};
  const std::vector<Tensor> out = interpret(g, given).outputs;
  // The carried pairs are (3,4) (6,12) (12,36) (24,108): the sum exceeds 100 after three iterations.
  EXPECT_EQ(out[0].to_vector<float>(), (std::vector<float>{24, 108}));
  EXPECT_EQ(out[1].item(), 3);
  EXPECT_EQ(out[2].to_vector<float>(), (std::vector<float>{3, 4, 6, 12, 12, 36, 0, 0}));
}

TEST(ControlText, ARegionSeesNoNamesFromOutside) {
  EXPECT_NE(
      message_of<ParseError>([] { parse(changed("less(%s, %limit)", "less(%s, %x)"), "t"); }).find("error: undefined value %x"),
      std::string::npos);
}

TEST(ControlText, RulesNameWhatIsWrong) {
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"carried=1", "carried=3", "[while] 3 carried and 0 scanned operands, but 2 in all"},
      {"return %d, %c", "return", "[while] the body gives 0 results, but 1 values are carried"},
      {"return %go", "return %s", "[while] the condition must give one bool[], not f32[]"},
      {"trips=4", "trips=-1", "[while] results are stacked, but the number of passes has no bound (trips)"},
      {"%all: f32[4,2]", "%all: f32[3,2]", "[while] gives f32[4,2], but f32[3,2] is declared"},
      {"cond(%p, %c, %k)", "cond(%p, %c)", "[cond] the first branch takes 2 values, the node gives it 1"},
      {"cond(%p, %c, %k)", "cond(%i, %c, %k)", "[cond] the predicate must be bool[], not i64[]"},
      {"      return %a\n", "      return %a, %b\n", "[cond] one branch gives 1 results, the other 2"},
      {"checkpoint=0", "checkpoint=-7", "[while] checkpoint=-7 makes no sense"},
  };
  for (const auto& c : cases) {
    const std::string message = message_of<ParseError>([&] { parse(changed(c.from, c.to)); });
    EXPECT_NE(message.find(c.message), std::string::npos) << c.to << ": " << message;
  }
}

TEST(ControlText, NestingIsBounded) {
  std::string text = "graph g(%p: bool[], %x: f32[]) { ", end;
  for (int depth = 0; depth < 100; ++depth) {
    text += "%y: f32[] = cond(%p, %p, %x) (%p: bool[], %x: f32[]) { ";
    end += " return %y }";
  }
  EXPECT_NE(message_of<ParseError>([&] { parse(text + end + end); }).find("regions are nested more than 32 deep"),
            std::string::npos);
}

TEST(ControlText, VerifyLooksIntoRegions) {
  Graph g = parse(kLoop);
  Graph broken = *g.regions[0];
  broken.values[broken.outputs[0]].type.dtype = DType::f32;
  g.regions[0] = std::make_shared<const Graph>(broken);
  EXPECT_NE(message_of<InvalidGraphError>([&] { verify(g); }).find("(in region 0 of node 0, while)"), std::string::npos);
}

TEST(Extract, TakesWhatIsNeededAndNamesWhatIsMissing) {
  const Graph g = parse(R"(graph g(%x: f32[2], %y: f32[2]) {
    %a: f32[2] = exp(%x)
    %b: f32[2] = mul(%a, %y)
    %c: f32[2] = add(%b, %a)
    %d: f32[2] = neg(%y)
    return %c, %d
  })");
  auto id = [&](const char* name) {
    for (ValueId v = 0; v < g.value_count(); ++v)
      if (g.values[v].name == Name(name)) return v;
    return kNone;
  };
  const ValueId cut[] = {id("b"), id("x")}, wanted[] = {id("c")};
  EXPECT_EQ(print(extract(g, cut, wanted)),
            "graph g(%b: f32[2], %x: f32[2]) {\n  %a: f32[2] = exp(%x)\n  %c: f32[2] = add(%b, %a)\n  return %c\n}\n");
  const ValueId too_little[] = {id("x")};
  EXPECT_NE(
      message_of<InvalidGraphError>([&] { extract(g, too_little, wanted); }).find("%y is needed, and not among the inputs"),
      std::string::npos);
}

}  // namespace
}  // namespace tapedeck
