// Tests that no element changes silently between C++ and a tensor: wrong element types, integers that no double equals, numbers
// that a dtype cannot hold, and dimensions that a shape does not have.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <limits>
#include <stdexcept>

namespace tapedeck {
namespace {

using testing::message_of;

constexpr std::int64_t kExactOdd = (std::int64_t{1} << 53) + 1;  // no double equals it

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ExactElements, ToVectorRefusesATypeOfTheSameSize) {
  const Tensor x = from_vector(std::vector<float>{1, 2}, {2}), n = from_vector(std::vector<std::int32_t>{1, 2}, {2});
  EXPECT_EQ(n.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2}));
  const std::string message = message_of<TypeError>([&] { n.to_vector<float>(); });
  EXPECT_TRUE(has(message, "[to_vector] the elements of i32[2] are std::int32_t")) << message;
  EXPECT_TRUE(has(message, "exact_elements_test.cpp:")) << message;
  message_of<TypeError>([&] { x.to_vector<std::int32_t>(); });
  message_of<TypeError>([&] { cast(x, DType::f64).to_vector<std::int64_t>(); });
  EXPECT_EQ(cast(x, DType::f16).to_vector<std::uint16_t>().size(), 2u);
  EXPECT_EQ(greater(x, 1).to_vector<unsigned char>(), (std::vector<unsigned char>{0, 1}));
}

TEST(ExactElements, ItemGivesTheExactElement) {
  const Tensor x = integer_scalar(kExactOdd);
  EXPECT_EQ(x.item<std::int64_t>(), kExactOdd);
  EXPECT_TRUE(has(message_of<TypeError>([&] { x.item(); }), "no double equals 9007199254740993; call item<std::int64_t>()"));
  EXPECT_EQ(integer_scalar(kExactOdd - 1).item(), 0x1p53);
  message_of<TypeError>([&] { integer_scalar(std::numeric_limits<std::int64_t>::max()).item(); });
  EXPECT_EQ(integer_scalar(std::numeric_limits<std::int64_t>::min()).item(), -0x1p63);
  EXPECT_TRUE(has(message_of<TypeError>([&] { x.item<double>(); }), "[item] the elements of i64[] are std::int64_t"));
  message_of<TypeError>([&] { from_vector(std::vector<float>{1, 2}, {2}).item<float>(); });
}

TEST(ExactElements, IntegersOfTheAuthorStayExact) {
  const Tensor x = from_vector(std::vector<std::int64_t>{0, -1}, {2});
  EXPECT_EQ((x + kExactOdd).to_vector<std::int64_t>(), (std::vector<std::int64_t>{kExactOdd, kExactOdd - 1}));
  EXPECT_EQ(where(less(x, 0), x, kExactOdd).to_vector<std::int64_t>(), (std::vector<std::int64_t>{kExactOdd, -1}));
  EXPECT_EQ(maximum(x, kExactOdd).to_vector<std::int64_t>(), (std::vector<std::int64_t>{kExactOdd, kExactOdd}));
  Tensor y = from_vector(std::vector<std::int64_t>{1}, {1});
  add_(y, kExactOdd);
  EXPECT_EQ(y.to_vector<std::int64_t>(), (std::vector<std::int64_t>{kExactOdd + 1}));
}

TEST(ExactElements, AnAttributeTakesNoIntegerThatNoDoubleEquals) {
  const Tensor x = from_vector(std::vector<std::int64_t>{0, kExactOdd}, {2});
  const std::string message = message_of<TypeError>([&] { full({2}, kExactOdd, DType::i64); });
  EXPECT_TRUE(has(message, "[full] no double equals 9007199254740993; make it a tensor by integer_scalar()")) << message;
  EXPECT_TRUE(has(message, "exact_elements_test.cpp:")) << message;
  EXPECT_TRUE(
      has(message_of<TypeError>([&] { clamp(x, -kExactOdd, kExactOdd); }), "[clamp] no double equals -9007199254740993"));
  message_of<TypeError>([&] { clamp(x, 0, kExactOdd); });
  message_of<TypeError>([&] { clamp(x, kExactOdd); });
  message_of<TypeError>([&] { full({2}, std::numeric_limits<std::int64_t>::max(), DType::i64); });
  EXPECT_TRUE(has(message_of<TypeError>([&] { full_like(x, kExactOdd); }), "[full_like] no double equals 9007199254740993"));
  EXPECT_TRUE(has(message_of<TypeError>([&] { fill_(x, kExactOdd); }), "[full] no double equals 9007199254740993"));
  EXPECT_TRUE(
      has(message_of<TypeError>([&] { pad(x, {1}, {0}, "constant", kExactOdd); }), "[pad] no double equals 9007199254740993"));
  EXPECT_TRUE(
      has(message_of<TypeError>([&] { arange(kExactOdd, kExactOdd + 3); }), "[arange] no double equals 9007199254740993"));
  message_of<TypeError>([&] { arange(kExactOdd); });
  EXPECT_EQ(x.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, kExactOdd})) << "a refused fill_ writes nothing";
  EXPECT_EQ(full_like(x, kExactOdd - 1).to_vector<std::int64_t>(), (std::vector<std::int64_t>{kExactOdd - 1, kExactOdd - 1}));
  EXPECT_EQ(pad(x, {1}, {0}, "constant", 7).to_vector<std::int64_t>(), (std::vector<std::int64_t>{7, 0, kExactOdd}));
  EXPECT_EQ(arange(kExactOdd - 2, kExactOdd - 1).to_vector<std::int64_t>(), (std::vector<std::int64_t>{kExactOdd - 2}));
  EXPECT_EQ(full({1}, kExactOdd - 1, DType::i64).item<std::int64_t>(), kExactOdd - 1);
  EXPECT_EQ(clamp(x, 1, kExactOdd - 1).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, kExactOdd - 1}));
  EXPECT_EQ(minimum(maximum(x, 1), kExactOdd).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, kExactOdd}));
}

TEST(ExactElements, ANumberThatDoesNotFitIsAnError) {
  const Tensor x = from_vector(std::vector<std::int32_t>{1}, {1});
  const std::int64_t large = 3000000000;
  const std::string message = message_of<TypeError>([&] { x + large; });
  EXPECT_TRUE(has(message, "3000000000 does not fit the dtype of the other operand, i32")) << message;
  EXPECT_TRUE(has(message, "exact_elements_test.cpp:")) << message;
  Tensor y = from_vector(std::vector<std::int32_t>{1}, {1});
  message_of<TypeError>([&] { add_(y, large); });
  EXPECT_TRUE(has(message_of<TypeError>([&] { full({2}, 3e9, DType::i32); }), "[full] value 3000000000 does not fit i32"));
  message_of<TypeError>([&] { full({2}, std::numeric_limits<double>::quiet_NaN(), DType::i64); });
  message_of<TypeError>([&] { scalar(1e300, DType::i64); });
  EXPECT_EQ(scalar(-1, DType::u8).item(), 255);  // as PyTorch
  EXPECT_EQ(scalar(2.75, DType::i32).item(), 2);
  EXPECT_EQ(scalar(-2147483648.0, DType::i32).item(), -2147483648.0);
}

TEST(ExactElements, AShapeCountsNegativeDimensionsFromTheEnd) {
  const Tensor x = full({2, 3, 5}, 0);
  EXPECT_EQ(x.shape()[-1], 5);
  EXPECT_EQ(x.shape()[-3], 2);
  EXPECT_TRUE(has(message_of<TypeError>([&] { (void)x.shape()[3]; }), "the shape [2,3,5] has no dimension 3"));
  message_of<TypeError>([&] { (void)x.shape()[-4]; });
  message_of<TypeError>([&] { (void)full({}, 0).shape()[0]; });
}

TEST(ExactElements, AListHoldsNoMoreThanEightNumbers) {
  try {
    sum(full({2}, 0), {0, 0, 0, 0, 0, 0, 0, 0, 0});
    ADD_FAILURE() << "a list of nine axes was accepted";
  } catch (const std::length_error& error) {
    EXPECT_TRUE(has(error.what(), "at most 8 numbers, not 9")) << error.what();
    EXPECT_TRUE(has(error.what(), "exact_elements_test.cpp:")) << error.what();
  }
}

}  // namespace
}  // namespace tapedeck
