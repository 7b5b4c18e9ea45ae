// Tests the comparison of tensors, and the search for the first node that differs, against small cases worked out by hand.
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/eager_difference.h>
#include <tapedeck/capture/replay/elements.h>
#include <tapedeck/capture/replay/tensor_difference.h>
#include <tapedeck/capture/replay/tensor_statistics.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>

namespace tapedeck {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

TEST(TensorDifference, NamesTheFirstAndTheWorst) {
  const Tensor expected = from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor got = from_vector(std::vector<float>{1, 2.5f, 3, 4, 9, 6}, {2, 3});
  const TensorDifference d = compare_tensors(got, expected);
  EXPECT_FALSE(d.equal());
  EXPECT_EQ(d.elements, 6);
  EXPECT_EQ(d.differing, 2);
  EXPECT_EQ(d.first.index, "[0,1]");
  EXPECT_EQ(d.first.got, "2.5");
  EXPECT_EQ(d.first.expected, "2");
  EXPECT_EQ(d.first.absolute, 0.5);
  EXPECT_EQ(d.first.relative, 0.25);
  EXPECT_EQ(d.worst.index, "[1,1]");
  EXPECT_EQ(d.worst.absolute, 4);
  EXPECT_EQ(to_text(d),
            "2 of 6 elements differ; first [0,1]: got 2.5, expected 2 (absolute 0.5, relative 0.25); worst [1,1]: got 9, "
            "expected 5 (absolute 4, relative 0.8)");
  EXPECT_EQ(to_text(compare_tensors(expected, expected)), "equal");
}

TEST(TensorDifference, ToleranceIsAbsolutePlusRelative) {
  const Tensor expected = tensor({100, 0}), got = tensor({101, 0.5f});
  EXPECT_EQ(compare_tensors(got, expected).differing, 2);
  EXPECT_EQ(compare_tensors(got, expected, {.relative = 0.01}).first.index, "[1]");
  EXPECT_EQ(compare_tensors(got, expected, {.absolute = 0.5}).first.index, "[0]");
  EXPECT_TRUE(compare_tensors(got, expected, {.relative = 0.005, .absolute = 0.5}).equal());
}

TEST(TensorDifference, NumbersThatAreNotFinite) {
  const Tensor expected = tensor({kNan, kInf, -kInf, 1, kInf});
  EXPECT_TRUE(compare_tensors(tensor({kNan, kInf, -kInf, 1, kInf}), expected).equal());
  // No tolerance makes an infinity equal to a number.
  const TensorDifference d = compare_tensors(tensor({1, kInf, kInf, kNan, 5}), expected, {.relative = 1, .absolute = 1e30});
  EXPECT_EQ(d.differing, 4);
  EXPECT_EQ(d.first.index, "[0]");
  EXPECT_EQ(d.worst.index, "[0]");
  EXPECT_TRUE(std::isinf(d.first.absolute) && std::isinf(d.first.relative));
  EXPECT_TRUE(std::isinf(compare_tensors(tensor({1}), tensor({0})).first.relative));
}

TEST(TensorDifference, BitsTellZerosApart) {
  const Tensor plus = tensor({0.0f}), minus = tensor({-0.0f});
  EXPECT_TRUE(compare_tensors(plus, minus).equal());
  const TensorDifference d = compare_tensors(plus, minus, {.bits = true});
  EXPECT_EQ(d.differing, 1);
  EXPECT_EQ(d.first.expected, "-0");
}

TEST(TensorDifference, Types) {
  EXPECT_EQ(compare_tensors(tensor({1, 2}), tensor({1, 2, 3})).types, "got f32[2], expected f32[3]");
  EXPECT_FALSE(compare_tensors(tensor({1}), from_vector(std::vector<std::int32_t>{1}, {1})).equal());
  EXPECT_TRUE(compare_tensors(tensor({0.5f}), from_vector(std::vector<double>{0.5}, {1})).equal());
  EXPECT_FALSE(compare_tensors(tensor({0.5f}), from_vector(std::vector<double>{0.5}, {1}), {.bits = true}).equal());
  // Integers that no double tells apart.
  const std::int64_t large = (std::int64_t{1} << 60) + 1;
  const TensorDifference d = compare_tensors(integer_scalar(large), integer_scalar(large - 1));
  EXPECT_EQ(d.first.index, "[]");
  EXPECT_EQ(d.first.got, "1152921504606846977");
  EXPECT_EQ(d.first.absolute, 1);
}

TEST(Elements, StatisticsLeaveOutWhatIsNotFinite) {
  const TensorStatistics s = statistics(tensor({1, kNan, -3, kInf, 8}));
  EXPECT_EQ(s.elements, 5);
  EXPECT_EQ(s.not_finite(), 2);
  EXPECT_EQ(s.min, -3);
  EXPECT_EQ(s.max, 8);
  EXPECT_EQ(s.mean, 2);
  const TensorStatistics none = statistics(tensor({kNan}));
  EXPECT_EQ(none.not_finite(), 1);
  EXPECT_EQ(none.mean, 0);
}

TEST(EagerDifference, NamesTheNodeThatWasChanged) {
  const char* const text = R"(graph g(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %b: f32[8] = FORGED(%a)
    %c: f32[8] = tanh(%b)
    %d: f32[8] = exp(%c)
    return %d
  })";
  const auto graph_with = [&](const char* op) {
    std::string whole = text;
    return parse(whole.replace(whole.find("FORGED"), 6, op));
  };
  const Graph captured = graph_with("sin");
  const std::vector<Tensor> inputs = stand_ins(captured, 0, 1, 3);
  for (const int threads : {1, 2}) {
    EXPECT_FALSE(first_differing_node(make_plan(captured), captured, inputs, {}, threads));
    const auto found = first_differing_node(make_plan(graph_with("cos")), captured, inputs, {}, threads);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->value, "b");
    EXPECT_EQ(found->op, "cos");
    EXPECT_EQ(found->difference.first.index, "[0]");
    EXPECT_EQ(found->difference.elements, 8);
  }
}

#ifdef TAPEDECK_TOOL
// A tape whose plan computes something else than its captured graph: `replay --check-eager` names the output, the step and the
// node.
TEST(EagerDifference, TheToolNamesTheNode) {
  if (!std::filesystem::exists(TAPEDECK_TOOL)) GTEST_SKIP() << "this build has no tool";  // that of the thread sanitizer
  const auto graph_with = [](const std::string& op) {
    return parse("graph g(%x: f32[8]) {\n  %a: f32[8] = exp(%x)\n  %b: f32[8] = " + op + "(%a)\n  return %b\n}");
  };
  const TemporaryFolder folder;
  TapeFile file;
  file.captured = graph_with("sin");
  file.plan = make_plan(graph_with("cos"));
  save_tape(folder.file("forged.tape"), file);
  const auto run = [&](const std::string& options) {
    std::ostringstream command;
    command << TAPEDECK_TOOL << " replay " << folder.file("forged.tape") << " --check-eager " << options << " > "
            << folder.file("out");
    const int status = std::system(command.str().c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
    return read_all(folder.file("out"));
  };
  const std::string text = run("--steps 2"), json = run("--json");
  EXPECT_NE(text.find("NO, first at 'b' in step 1"), std::string::npos) << text;
  EXPECT_NE(text.find("first node     %b: f32[8] = cos(%a)"), std::string::npos) << text;
  for (const char* word : {"\"first_difference\": \"b\"", "\"first_differing_node\"", "\"op\": \"cos\"", "\"differing\": 8"})
    EXPECT_NE(json.find(word), std::string::npos) << word << " is not in " << json;
}
#endif

}  // namespace
}  // namespace tapedeck
