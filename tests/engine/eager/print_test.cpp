// Tests the text of tensors. The expected texts are what numpy.array2string gives, with our dtype and shape at the end; bools
// and bf16 are written by hand.
#include <tapedeck/engine/eager/print.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <limits>
#include <sstream>

namespace tapedeck {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor doubles(const std::vector<double>& values) {
  return from_vector(values, Shape{static_cast<std::int64_t>(values.size())});
}
Tensor float_row(const std::vector<float>& values) {
  return from_vector(values, Shape{static_cast<std::int64_t>(values.size())});
}
Tensor integer_row(const std::vector<std::int64_t>& values) {
  return from_vector(values, Shape{static_cast<std::int64_t>(values.size())});
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

TEST(Print, AlignsTheNumbersOfATensor) {
  EXPECT_EQ(to_string(reshape(float_row({1, 2, 3, 4}), {2, 2})), "[[1. 2.]\n [3. 4.]] f32[2,2]");
  EXPECT_EQ(to_string(reshape(float_row({1, 2.5, -3, 40}), {2, 2})), "[[ 1.   2.5]\n [-3.  40. ]] f32[2,2]");
  EXPECT_EQ(to_string(reshape(integer_row({0, 1, 2, 3, 4, 5, 6, 7}), {2, 2, 2})),
            "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]] i64[2,2,2]");
  EXPECT_EQ(to_string(doubles({1, -0.0})), "[ 1. -0.] f64[2]");
}

TEST(Print, GivesTheFewestDigitsOfTheDtype) {
  EXPECT_EQ(to_string(doubles({0.1, 1.0 / 3})), "[0.1        0.33333333] f64[2]");
  EXPECT_EQ(to_string(float_row({1.0f / 3})), "[0.33333334] f32[1]");
  EXPECT_EQ(to_string(float_row({0.1f, 0.25f})), "[0.1  0.25] f32[2]");
  EXPECT_EQ(to_string(cast(float_row({0.1f, -2}), DType::f16)), "[ 0.1 -2. ] f16[2]");
  EXPECT_EQ(to_string(cast(float_row({1.0f / 3}), DType::f16)), "[0.3333] f16[1]");
  EXPECT_EQ(to_string(cast(float_row({0.1f, 100}), DType::bf16)), "[  0.1 100. ] bf16[2]");
  EXPECT_EQ(to_string(doubles({1.0 / 3, 2}), {.precision = 3}), "[0.333 2.   ] f64[2]");
  EXPECT_EQ(to_string(doubles({0.5, 2}), {.precision = 0}), "[0. 2.] f64[2]");
}

TEST(Print, TakesExponentsForNumbersFarFromOneOrFromEachOther) {
  EXPECT_EQ(to_string(doubles({1e-5, 1})), "[1.e-05 1.e+00] f64[2]");
  EXPECT_EQ(to_string(doubles({1.5e10, -1})), "[ 1.5e+10 -1.0e+00] f64[2]");
  EXPECT_EQ(to_string(doubles({1e100, 1})), "[1.e+100 1.e+000] f64[2]");
  EXPECT_EQ(to_string(doubles({1234.5678, 0.0123})), "[1.2345678e+03 1.2300000e-02] f64[2]");
  EXPECT_EQ(to_string(doubles({99999999})), "[99999999.] f64[1]");
  EXPECT_EQ(to_string(doubles({100000000})), "[1.e+08] f64[1]");
  EXPECT_EQ(to_string(float_row({1e-4f})), "[0.0001] f32[1]") << "0.0001f is not below itself";
}

TEST(Print, PrintsNumbersThatAreNotFinite) {
  EXPECT_EQ(to_string(doubles({kNan, 1.5, -kInf})), "[ nan  1.5 -inf] f64[3]");
  EXPECT_EQ(to_string(doubles({kNan, 1})), "[nan  1.] f64[2]");
  EXPECT_EQ(to_string(doubles({kInf, kNan})), "[inf nan] f64[2]");
  EXPECT_EQ(to_string(cast(doubles({-kInf, kNan}), DType::f16)), "[-inf  nan] f16[2]");
  EXPECT_EQ(to_string(doubles({1e-5, kInf})), "[1.e-05    inf] f64[2]");
}

TEST(Print, PrintsIntegersExactlyAndBoolsAsWords) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(to_string(integer_row({most, -1})), "[9223372036854775807                  -1] i64[2]");
  EXPECT_EQ(to_string(integer_row({least})), "[-9223372036854775808] i64[1]");
  EXPECT_EQ(to_string(cast(integer_row({7, 200}), DType::u8)), "[  7 200] u8[2]");
  EXPECT_EQ(to_string(cast(integer_row({-7, 20}), DType::i32)), "[-7 20] i32[2]");
  EXPECT_EQ(to_string(greater(float_row({1, 3}), 2)), "[false  true] bool[2]");
}

TEST(Print, PrintsPointsAndTensorsWithoutElements) {
  EXPECT_EQ(to_string(scalar(1.5)), "1.5 f32[]");
  EXPECT_EQ(to_string(scalar(-3, DType::i32)), "-3 i32[]");
  EXPECT_EQ(to_string(zeros({0})), "[] f32[0]");
  EXPECT_EQ(to_string(zeros({2, 0, 3})), "[] f32[2,0,3]");
  EXPECT_EQ(to_string(Tensor()), "undefined");
  EXPECT_EQ(to_string(abstract_tensor({DType::bf16, {64, 10}})), "abstract bf16[64,10]");
}

TEST(Print, GoesOnInTheNextLine) {
  const std::vector<std::string> text = lines(to_string(arange(30.0)));
  ASSERT_EQ(text.size(), 2u);
  EXPECT_EQ(text[0], "[ 0.  1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13. 14. 15. 16. 17.");
  EXPECT_EQ(text[1], " 18. 19. 20. 21. 22. 23. 24. 25. 26. 27. 28. 29.] f32[30]");
  EXPECT_EQ(to_string(arange(6), {.line_width = 7}), "[0 1 2\n 3 4 5] i64[6]");
  EXPECT_EQ(to_string(reshape(arange(6), {2, 3}), {.line_width = 7}), "[[0 1\n  2]\n [3 4\n  5]] i64[2,3]");
  EXPECT_EQ(to_string(arange(2), {.line_width = 1}), "[0\n 1] i64[2]") << "a word wider than the line stays whole";
}

TEST(Print, ShortensLargeTensors) {
  EXPECT_EQ(to_string(arange(1000)).find("..."), std::string::npos);
  EXPECT_EQ(to_string(arange(1001)), "[   0    1    2 ...  998  999 1000] i64[1001]");
  EXPECT_EQ(to_string(zeros({1000, 1000})),
            "[[0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]\n ...\n"
            " [0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]] f32[1000,1000]");
  EXPECT_EQ(to_string(reshape(arange(8), {2, 4}), {.threshold = 7, .edge_items = 1}), "[[0 ... 3]\n [4 ... 7]] i64[2,4]");
  EXPECT_EQ(to_string(reshape(arange(12), {4, 3, 1}), {.threshold = 0, .edge_items = 1}),
            "[[[ 0]\n  ...\n  [ 2]]\n\n ...\n\n [[ 9]\n  ...\n  [11]]] i64[4,3,1]");
}

TEST(Print, ReadsOnlyWhatItShows) {
  // 2^40 elements that all lie in the same four bytes: to copy or to format all of them would not end.
  const std::int64_t n = std::int64_t{1} << 40;
  EXPECT_EQ(to_string(broadcast_to(scalar(2.5), {n})), "[2.5 2.5 2.5 ... 2.5 2.5 2.5] f32[1099511627776]");
}

TEST(Print, FollowsTheStridesOfViews) {
  const Tensor x = reshape(arange(6), {2, 3});
  EXPECT_EQ(to_string(transpose(x, {1, 0})), "[[0 3]\n [1 4]\n [2 5]] i64[3,2]");
  EXPECT_EQ(to_string(slice(x, {0, 1}, {2, 3}, {1, 1})), "[[1 2]\n [4 5]] i64[2,2]");
  EXPECT_EQ(to_string(slice(x, 1, 2, 3)), "[[2]\n [5]] i64[2,1]");
}

TEST(Print, GoesToStreams) {
  std::ostringstream out;
  out << "x = " << float_row({1, 2}) << "; " << Tensor() << '\n';
  EXPECT_EQ(out.str(), "x = [1. 2.] f32[2]; undefined\n");
}

TEST(Print, RecordsNothing) {
  Tensor w = float_row({1, 2});
  w.requires_grad(true);
  const Tensor y = w * 2;
  const std::int64_t nodes = tape_stats().nodes;
  EXPECT_EQ(to_string(y), "[2. 4.] f32[2]");
  EXPECT_EQ(tape_stats().nodes, nodes);
}

}  // namespace
}  // namespace tapedeck
