// Tests tensors that are made of C++ numbers and read as C++ numbers: nested lists, vectors, single elements and operands.
// Expected values are written by hand.
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <cmath>
#include <limits>

namespace tapedeck {
namespace {

using testing::message_of;

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                             DType::i32, DType::i64, DType::u8,  DType::boolean};
constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;  // no double equals it

// ---- lists ----

TEST(Elements, AreF32UnlessTheyAreBoolsOrADtypeIsGiven) {
  EXPECT_EQ(tensor({1, 2}).type(), (Type{DType::f32, {2}}));
  EXPECT_EQ(tensor({1.5, 2.5}).type(), (Type{DType::f32, {2}}));
  EXPECT_EQ(tensor({1, 2.5f}).to_vector<float>(), (std::vector<float>{1, 2.5f}));
  EXPECT_EQ(tensor({true, false}).type(), (Type{DType::boolean, {2}}));
  EXPECT_EQ(tensor({{true, false}, {false, true}}).type(), (Type{DType::boolean, {2, 2}}));
  EXPECT_EQ(tensor({{1, 2}, {3, 4}}).to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(tensor({std::int64_t{3}}).dtype(), DType::f32);
  EXPECT_TRUE(std::signbit(tensor({1, -0.0f}).to_vector<float>()[1]));
  for (DType dtype : kDTypes) {
    const Tensor x = tensor({{1, 0}, {0, 1}}, dtype);
    EXPECT_EQ(x.type(), (Type{dtype, {2, 2}}));
    EXPECT_TRUE(bit_equal(x, eye(2, dtype))) << dtype_name(dtype);
    EXPECT_TRUE(bit_equal(tensor({1, 0}, dtype), reshape(slice(x, 0, 0, 1), {2}))) << dtype_name(dtype);
  }
}

TEST(Elements, NestToAnyDepth) {
  EXPECT_EQ(tensor(5).type(), (Type{DType::f32, {}}));
  EXPECT_EQ(tensor(2.5, DType::f64).item<double>(), 2.5);
  EXPECT_EQ(tensor({}).type(), (Type{DType::f32, {0}}));
  EXPECT_EQ(tensor({{}, {}}).type(), (Type{DType::f32, {2, 0}}));
  EXPECT_EQ(tensor({{1}, {2}}).shape(), (Shape{2, 1})) << "not a list of two numbers";
  EXPECT_EQ(tensor({{1, 2}}).shape(), (Shape{1, 2}));
  EXPECT_EQ(tensor({{{1, 2}, {3, 4}, {5, 6}}}).shape(), (Shape{1, 3, 2}));
  EXPECT_EQ(tensor({{{{{{{{7, 8}}}}}}}}).shape(), (Shape{1, 1, 1, 1, 1, 1, 1, 2}));
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({{{{{{{{{7, 8}}}}}}}}}); }), "lists are nested more than 8 deep");
}

TEST(Elements, OfAListMakeABox) {
  const int line = __LINE__ + 1;
  const std::string message = message_of<TypeError>([] { tensor({{1, 2}, {3}}); });
  EXPECT_MENTIONS(message, "[tensor] the list at [1] has 1 elements, and the lists before have 2");
  EXPECT_MENTIONS(message, "elements_test.cpp:" + std::to_string(line));
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({{{1}, {2}}, {{3}, {4, 5}}}); }), "the list at [1,1] has 2 elements");
  EXPECT_MENTIONS(message_of<TypeError>([] {
                    tensor({{1, 2}, 3});
                  }),
                  "a number stands at [1], where the lists before have lists");
  EXPECT_MENTIONS(message_of<TypeError>([] {
                    tensor({1, {2, 3}});
                  }),
                  "a list stands at [1], where the lists before have numbers");
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({{}, {1}}); }), "the list at [1] has 1 elements");
}

TEST(Elements, MustBeValuesOfTheDtype) {
  EXPECT_EQ(tensor({kOdd}, DType::i64).item<std::int64_t>(), kOdd);
  EXPECT_EQ(tensor({{kOdd, -kOdd}}, DType::i64).to_vector<std::int64_t>(), (std::vector<std::int64_t>{kOdd, -kOdd}));
  EXPECT_MENTIONS(message_of<TypeError>([] {
                    tensor({16777216, 16777217});
                  }),
                  "[tensor] 16777217 at [1] is not a value of f32; choose another dtype");
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({{0, 0}, {0, kOdd}}, DType::f64); }), "9007199254740993 at [1,1] is not");
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({0.5}, DType::i32); }), "0.5 at [0] is not a value of i32");
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({255, 256}, DType::u8); }), "256 at [1] is not a value of u8");
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({-1}, DType::u8); }), "-1 at [0] is not a value of u8");
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor(~std::uint64_t{0}, DType::i64); }), "18446744073709551615 at [] is not");
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({2049}, DType::f16); }), "2049 at [0] is not a value of f16");
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({-100000}, DType::f16); }), "-100000 at [0] is not a value of f16");
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({std::nan("")}, DType::i64); }), "is not a value of i64");
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({0x1p63}, DType::i64); }), "is not a value of i64");
  EXPECT_EQ(tensor({-0x1p63}, DType::i64).item<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(tensor({3.0}, DType::i32).item<std::int32_t>(), 3);
  EXPECT_EQ(tensor({0.1}, DType::f64).item<double>(), 0.1);
  EXPECT_EQ(tensor({0.1}).item<float>(), 0.1f) << "fractions are rounded";
  EXPECT_EQ(tensor({0.1}, DType::f16).to_vector<std::uint16_t>(), (std::vector<std::uint16_t>{0x2e66}));
  for (DType half : {DType::f16, DType::bf16}) {  // just above the middle of 1 and the next number
    const double step = half == DType::f16 ? 0x1p-10 : 0x1p-7;
    EXPECT_EQ(tensor({1 + step / 2 + 0x1p-40}, half).item<float>(), 1 + static_cast<float>(step)) << "rounded once";
    EXPECT_EQ(tensor({1 + step / 2 - 0x1p-40}, half).item<float>(), 1);
    EXPECT_EQ(tensor({-1 - step / 2 - 0x1p-40}, half).item<float>(), -1 - static_cast<float>(step));
  }
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({1e39}); }), "1e+39 at [0] is not a value of f32");
  EXPECT_MENTIONS(message_of<TypeError>([] { tensor({-65520.0}, DType::f16); }), "-65520 at [0] is not a value of f16");
  EXPECT_EQ(tensor({65519.0}, DType::f64).item<double>(), 65519);
  EXPECT_EQ(tensor({65519.5}, DType::f16).item<float>(), 65504);
  EXPECT_TRUE(std::isinf(tensor({std::numeric_limits<double>::infinity()}, DType::bf16).item<float>()));
  EXPECT_EQ(tensor({2, 0, -1}, DType::boolean).to_vector<bool>(), (std::vector<bool>{true, false, true}));
  const std::uint16_t one = 1;
  EXPECT_EQ(tensor({one}, DType::f16).item<float>(), 1) << "a number, no bits";
  const unsigned char two = 2;
  EXPECT_EQ(tensor({two}, DType::boolean).to_vector<unsigned char>(), (std::vector<unsigned char>{1}));
}

// ---- vectors ----

template <class T>
void expect_round_trip(DType dtype, const std::vector<T>& values) {
  const Tensor x = from_vector(values, Shape{static_cast<std::int64_t>(values.size())}, dtype);
  EXPECT_EQ(x.dtype(), dtype);
  EXPECT_EQ(x.to_vector<T>(), values) << dtype_name(dtype);
  EXPECT_EQ(slice(x, 0, 1, 2).item<T>(), values[1]) << dtype_name(dtype);
  EXPECT_EQ(flip(x, {0}).to_vector<T>(), std::vector<T>(values.rbegin(), values.rend()));
}

TEST(Elements, GoToVectorsAndBack) {
  expect_round_trip<float>(DType::f32, {0.1f, -2, std::numeric_limits<float>::infinity()});
  expect_round_trip<double>(DType::f64, {0.1, -2});
  expect_round_trip<float>(DType::f16, {0.5f, -2, 65504});
  expect_round_trip<float>(DType::bf16, {0.5f, -2, 0x1p100f});
  expect_round_trip<std::uint16_t>(DType::f16, {0x3c00, 0xc000});
  expect_round_trip<std::uint16_t>(DType::bf16, {0x3f80, 0xc000});
  expect_round_trip<std::int32_t>(DType::i32, {-5, std::numeric_limits<std::int32_t>::min()});
  expect_round_trip<std::int64_t>(DType::i64, {kOdd, std::numeric_limits<std::int64_t>::max()});
  expect_round_trip<long long>(DType::i64, {kOdd, -1});
  expect_round_trip<unsigned char>(DType::u8, {0, 255});
  expect_round_trip<unsigned char>(DType::boolean, {1, 0});
  expect_round_trip<bool>(DType::boolean, {true, false, true});
  EXPECT_EQ(from_vector(std::vector<unsigned char>{1, 2}, {2}).dtype(), DType::u8);
  EXPECT_EQ(from_vector(std::vector<bool>{true, false}, {2, 1}).type(), (Type{DType::boolean, {2, 1}}));
  EXPECT_EQ(from_vector(std::vector<long long>{1}, {}).dtype(), DType::i64);
}

TEST(Elements, OfAVectorMustBeValuesOfTheDtype) {
  EXPECT_EQ(from_vector(std::vector<double>{1, 300}, {2}, DType::i32).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{1, 300}));
  EXPECT_EQ(from_vector(std::vector<std::size_t>{1, 2}, {2}, DType::i64).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(from_vector(std::vector<short>{-1, 2}, {2}, DType::f16).to_vector<float>(), (std::vector<float>{-1, 2}));
  const int line = __LINE__ + 1;
  const std::string message = message_of<TypeError>([] { from_vector(std::vector<int>{1, 2, 3, 300}, {2, 2}, DType::u8); });
  EXPECT_MENTIONS(message, "[from_vector] 300 at [1,1] is not a value of u8; choose another dtype");
  EXPECT_MENTIONS(message, "elements_test.cpp:" + std::to_string(line));
  EXPECT_MENTIONS(message_of<TypeError>([] {
                    from_vector(std::vector<float>{1, 2, 3}, {2, 2});
                  }),
                  "3 values do not fill [2,2]");
  EXPECT_MENTIONS(message_of<TypeError>([] { from_vector(std::vector<bool>{true}, {2}); }), "1 values do not fill [2]");
}

TEST(Elements, AreRefusedAsAnotherType) {
  const Tensor f = tensor({1, 2}), b = tensor({true});
  EXPECT_MENTIONS(message_of<TypeError>([&] { f.to_vector<bool>(); }), "[to_vector] the elements of f32[2] are float");
  EXPECT_MENTIONS(message_of<TypeError>([&] { b.to_vector<float>(); }), "the elements of bool[1] are");
  EXPECT_MENTIONS(message_of<TypeError>([&] { cast(f, DType::f64).to_vector<float>(); }), "the elements of f64[2] are double");
  EXPECT_MENTIONS(message_of<TypeError>([&] { b.item<std::int32_t>(); }), "[item] the elements of bool[1]");
  EXPECT_TRUE(b.item<bool>());
  EXPECT_EQ(cast(tensor({2.5}), DType::bf16).item<float>(), 2.5f);
}

// ---- operands ----

enum Unscoped { kFour = 4 };

TEST(Elements, OfAnyCppTypeAreOperands) {
  const Tensor x = tensor({8, 4});
  const std::vector<float> v(4);
  const std::vector<float> quotient = {2, 1};
  EXPECT_EQ((x / v.size()).to_vector<float>(), quotient);
  EXPECT_EQ((x / static_cast<short>(4)).to_vector<float>(), quotient);
  EXPECT_EQ((x / 4u).to_vector<float>(), quotient);
  EXPECT_EQ((x / 4LL).to_vector<float>(), quotient);
  EXPECT_EQ((x / 4ULL).to_vector<float>(), quotient);
  EXPECT_EQ((x / static_cast<unsigned char>(4)).to_vector<float>(), quotient);
  EXPECT_EQ((x / 4.0L).to_vector<float>(), quotient);
  EXPECT_EQ((x / kFour).to_vector<float>(), quotient);
  EXPECT_EQ((8 / tensor({4, 8}, DType::i64)).to_vector<std::int64_t>(), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ((tensor({1, 2}, DType::i32) * v.size()).dtype(), DType::i32);
  EXPECT_EQ((tensor({0}, DType::i64) + static_cast<std::uint64_t>(kOdd)).item<std::int64_t>(), kOdd);
  EXPECT_EQ((x + true).to_vector<float>(), (std::vector<float>{9, 5}));
  const int line = __LINE__ + 1;
  const std::string message = message_of<TypeError>([&] { x + ~std::uint64_t{0}; });
  EXPECT_MENTIONS(message, "18446744073709551615 is larger than the largest i64");
  EXPECT_MENTIONS(message, "elements_test.cpp:" + std::to_string(line));
}

}  // namespace
}  // namespace tapedeck
