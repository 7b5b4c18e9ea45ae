// Tests pooling as authors call it: values worked out by hand, the gradient, and the message of each mistake.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/mistakes.h>
#include <tapedeck/tests/engine/values.h>

#include <cmath>
#include <limits>

namespace tapedeck {
namespace {

using testing::counting;
using testing::expect_mistakes;
using testing::f32;
using testing::f32_of;
using testing::kInf;
using testing::kNan;
using testing::message_of;
using testing::Mistake;
using Floats = std::vector<float>;
using Bytes = std::vector<unsigned char>;

Tensor line(const Floats& values) { return f32_of(values, {1, 1, static_cast<std::int64_t>(values.size())}); }
Tensor indices(const Bytes& values, const Shape& shape) { return from_bytes({DType::u8, shape}, values.data()); }

// The gradient of sum(head * f(x)) for x, with head = 1, 2, 3...
template <class F>
Tensor weighted_gradient(const Tensor& x, F&& f) {
  Tensor leaf = x.detach();
  leaf.requires_grad(true);
  const Tensor y = f(leaf);
  backward(sum(mul(y, add(counting(y.shape()), 1))));
  return leaf.grad();
}

// ---- max pooling ----

TEST(MaxPool, WindowsStandSideBySideUnlessTold) {
  const Tensor x = line({3, 1, 4, 1, 5, 9, 2});
  EXPECT_EQ(max_pool1d(x).to_vector<float>(), (Floats{3, 4, 9}));
  EXPECT_EQ(max_pool1d(x, {.window = {3}}).to_vector<float>(), (Floats{4, 9}));
  EXPECT_EQ(max_pool1d(x, {.window = {3}, .stride = {1}}).to_vector<float>(), (Floats{4, 4, 5, 9, 9}));
  EXPECT_EQ(max_pool1d(x, {.window = {2}, .stride = {2}, .dilation = {3}}).to_vector<float>(), (Floats{3, 9}));
  EXPECT_EQ(max_pool2d(counting({1, 1, 4, 6})).to_vector<float>(), (Floats{7, 9, 11, 19, 21, 23}));
  EXPECT_EQ(max_pool3d(counting({1, 1, 2, 2, 4})).to_vector<float>(), (Floats{13, 15}));
}

TEST(MaxPool, PaddingNeverWins) {
  EXPECT_EQ(max_pool1d(line({-3, -1, -4}), {.window = {2}, .padding = {1}}).to_vector<float>(), (Floats{-3, -1}));
  EXPECT_EQ(max_pool2d(full({1, 1, 2, 2}, -7), {.window = {2}, .padding = {1}}).to_vector<float>(), Floats(4, -7));
}

TEST(MaxPool, CeilingKeepsWindowsThatBeginInside) {
  const Tensor x = line({1, 2, 3, 4, 5});
  EXPECT_EQ(max_pool1d(x, {.window = {2}, .ceil_mode = true}).to_vector<float>(), (Floats{2, 4, 5}));
  // A third window would begin in the padding behind the image, so ceil_mode does not add it.
  EXPECT_EQ(max_pool1d(x, {.window = {2}, .stride = {3}, .padding = {1}, .ceil_mode = true}).to_vector<float>(),
            (Floats{1, 4}));
}

TEST(MaxPool, PropagatesNanAndInfinity) {
  const Floats y = max_pool1d(line({1, kNan, 3, kInf, -kInf, -kInf})).to_vector<float>();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], kInf);
  EXPECT_EQ(y[2], -kInf);
}

TEST(MaxPool, FirstMaximumGetsTheGradient) {
  const auto pool = [](const Tensor& x) { return max_pool2d(x); };
  EXPECT_EQ(weighted_gradient(f32_of({1, 2, 2, 2, 3, 3, 0, kNan}, {2, 1, 2, 2}), pool).to_vector<float>(),
            (Floats{0, 1, 0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(weighted_gradient(full({1, 1, 2, 2}, -kInf), pool).to_vector<float>(), (Floats{1, 0, 0, 0}));
  EXPECT_EQ(weighted_gradient(line({1, 5, 2, 7}), [](const Tensor& x) { return max_pool1d(x, {.window = {3}, .stride = {1}}); })
                .to_vector<float>(),
            (Floats{0, 1, 0, 2}));
  EXPECT_EQ(weighted_gradient(line({1, 9, 2}), [](const Tensor& x) { return max_pool1d(x, {.window = {2}, .stride = {1}}); })
                .to_vector<float>(),
            (Floats{0, 3, 0}));
}

TEST(MaxPool, IndexIsThePlaceInTheWindow) {
  EXPECT_EQ(max_pool2d_index(f32_of({1, 2, 4, 3, 5, 5, 0, 1}, {1, 1, 2, 4})).to_vector<unsigned char>(), (Bytes{2, 0}));
  // The first window is {_, a, b}: its first place lies in the padding.
  EXPECT_EQ(max_pool2d_index(f32_of({1, 3, 2, 4}, {1, 1, 1, 4}), {.window = {1, 3}, .stride = {2}, .padding = {0, 1}})
                .to_vector<unsigned char>(),
            (Bytes{2, 2}));
  EXPECT_EQ(max_pool2d_index(zeros({1, 1, 16, 16}), {.window = {16}}).dtype(), DType::u8);
  const Tensor large = max_pool2d_index(counting({1, 1, 17, 17}), {.window = {17}});
  EXPECT_EQ(large.dtype(), DType::i32);
  EXPECT_EQ(large.to_vector<std::int32_t>(), std::vector<std::int32_t>{288});
}

TEST(MaxPool, WindowsOfPaddingAloneHaveNoElement) {
  // With dilation 3, the first window reads places -1 and 2 of two elements, so it reads padding alone.
  const Tensor x = f32_of({1, 2}, {1, 1, 1, 2});
  const PoolAttrs a{.window = {1, 2}, .stride = {1}, .padding = {0, 1}, .dilation = {1, 3}};
  EXPECT_EQ(max_pool2d(x, a).to_vector<float>(), (Floats{-kInf}));
  EXPECT_EQ(weighted_gradient(x, [&](const Tensor& t) { return max_pool2d(t, a); }).to_vector<float>(), (Floats{0, 0}));
}

TEST(MaxPool, IndexOutsideTheWindowIsAFault) {
  const Tensor index = indices({4}, {1, 1, 1, 1}), dy = ones({1, 1, 1, 1});
  EXPECT_MENTIONS(message_of<ExecutionError>([&] {
                    max_pool2d_grad_from_index(index, dy, {.size = {2, 2}});
                  }),
                  "[max_pool2d_grad_from_index] index outside the window (4)");
}

TEST(MaxPool, RowsLongerThanAPart) {
  const Floats y = max_pool1d(counting({1, 1, 1000}), {.window = {3}, .stride = {1}, .padding = {1}}).to_vector<float>();
  ASSERT_EQ(y.size(), 1000u);
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(y[i], static_cast<float>(std::min<std::size_t>(i + 1, 999)));
}

// ---- average pooling ----

TEST(AvgPool, DividesByWhatItCounts) {
  const Tensor x = line({2, 4, 6, 8, 10});
  EXPECT_EQ(avg_pool1d(x).to_vector<float>(), (Floats{3, 7}));
  EXPECT_EQ(avg_pool1d(x, {.window = {3}, .stride = {2}, .padding = {1}}).to_vector<float>(), (Floats{2, 6, 6}));
  EXPECT_EQ(avg_pool1d(x, {.window = {3}, .stride = {2}, .padding = {1}, .count_include_pad = false}).to_vector<float>(),
            (Floats{3, 6, 9}));
  // Places that ceil_mode adds beyond the padding never count.
  EXPECT_EQ(avg_pool1d(x, {.window = {2}, .ceil_mode = true}).to_vector<float>(), (Floats{3, 7, 10}));
  EXPECT_EQ(avg_pool2d(counting({1, 1, 2, 4})).to_vector<float>(), (Floats{2.5f, 4.5f}));
  EXPECT_EQ(avg_pool3d(counting({1, 1, 2, 2, 2})).to_vector<float>(), (Floats{3.5f}));
}

TEST(AvgPool, SpreadsTheGradient) {
  EXPECT_EQ(weighted_gradient(line({0, 0, 0}), [](const Tensor& x) { return avg_pool1d(x, {.window = {2}, .stride = {1}}); })
                .to_vector<float>(),
            (Floats{0.5f, 1.5f, 1}));
}

// ---- adaptive and global pooling ----

TEST(AdaptivePool, WindowsShareThePlane) {
  const Tensor x = f32_of({1, 2, 3, 4, 5}, {1, 1, 1, 5});
  EXPECT_EQ(adaptive_avg_pool2d(x, {1, 2}).to_vector<float>(), (Floats{2, 4}));     // windows {1,2,3} {3,4,5}
  EXPECT_EQ(adaptive_max_pool2d(x, {1, 3}).to_vector<float>(), (Floats{2, 4, 5}));  // windows {1,2} {2,3,4} {4,5}
  EXPECT_EQ(adaptive_avg_pool2d(x, {2, 5}).to_vector<float>(), (Floats{1, 2, 3, 4, 5, 1, 2, 3, 4, 5}));
  EXPECT_EQ(weighted_gradient(x,
                              [](const Tensor& t) {
                                return adaptive_max_pool2d(t, {1, 3});
                              })
                .to_vector<float>(),
            (Floats{0, 1, 0, 2, 3}));
  EXPECT_EQ(weighted_gradient(x,
                              [](const Tensor& t) {
                                return adaptive_avg_pool2d(t, {1, 2});
                              })
                .to_vector<float>(),
            (Floats{1 / 3.0f, 1 / 3.0f, 1 / 3.0f + 2 / 3.0f, 2 / 3.0f, 2 / 3.0f}));
}

TEST(AdaptivePool, OfSizesThatDivideIsAPlainPool) {
  const Tensor x = normal({2, 3, 6, 8});
  EXPECT_TRUE(bit_equal(adaptive_avg_pool2d(x, {3, 2}), avg_pool2d(x, {.window = {2, 4}})));
  EXPECT_TRUE(bit_equal(adaptive_max_pool2d(x, {3, 2}), max_pool2d(x, {.window = {2, 4}})));
  EXPECT_TRUE(bit_equal(adaptive_avg_pool2d(x, {1}), global_avg_pool(x)));
}

TEST(GlobalPool, KeepsTheDimensions) {
  EXPECT_EQ(global_avg_pool(counting({1, 2, 3})).to_vector<float>(), (Floats{1, 4}));
  EXPECT_EQ(global_max_pool(counting({1, 2, 2, 2})).to_vector<float>(), (Floats{3, 7}));
  EXPECT_EQ(global_avg_pool(zeros({2, 3, 4, 5, 6})).shape(), (Shape{2, 3, 1, 1, 1}));
}

// ---- mistakes and their messages ----

const Mistake kPoolMistakes[] = {
    MISTAKE("[max_pool1d] needs three dimensions, got f32[1,4]", max_pool1d(f32({1, 4}))),
    MISTAKE("[max_pool1d] the window does not fit into f32[1,1,2]", max_pool1d(f32({1, 1, 2}), {.window = {3}})),
    MISTAKE("[max_pool1d] the operand is undefined", max_pool1d(Tensor())),
    MISTAKE("[avg_pool1d] stride takes one number, got 2", avg_pool1d(f32({1, 1, 2}), {.window = {2}, .stride = {1, 1}})),
    MISTAKE("[max_pool2d] needs four dimensions, got f32[1,1,4]", max_pool2d(f32({1, 1, 4}))),
    MISTAKE("[max_pool2d] needs a floating type, got i32[1,1,4,4]", max_pool2d(zeros({1, 1, 4, 4}, DType::i32))),
    MISTAKE("[max_pool2d] the window does not fit into f32[1,1,0,4]", max_pool2d(f32({1, 1, 0, 4}))),
    MISTAKE("[max_pool2d] window takes 1 or 2 numbers, got 3", max_pool2d(f32({1, 1, 4, 4}), {.window = {1, 1, 1}})),
    MISTAKE("[max_pool2d] window must be at least 1", max_pool2d(f32({1, 1, 4, 4}), {.window = {0}})),
    MISTAKE("[max_pool2d] padding 2 is more than half of the window 3",
            max_pool2d(f32({1, 1, 4, 4}), {.window = {3}, .padding = {2}})),
    MISTAKE("[max_pool2d] the window is too large", max_pool2d(f32({1, 1, 4, 4}), {.window = {1 << 16}})),
    MISTAKE("[max_pool2d_grad_from_index] the index has type u8[1,1,1,1], not u8[1,1,2,2]",
            max_pool2d_grad_from_index(zeros({1, 1, 1, 1}, DType::u8), f32({1, 1, 2, 2}), {.size = {4, 4}})),
    MISTAKE("[max_pool2d_grad_from_index] the gradient has type f32[1,1,2,3], not f32[1,1,2,2]",
            max_pool2d_grad_from_index(zeros({1, 1, 2, 3}, DType::u8), f32({1, 1, 2, 3}), {.size = {4, 4}})),
    MISTAKE("[max_pool2d_at_index] the index has type i32[1,1,2,2], not u8[1,1,2,2]",
            max_pool2d_at_index(f32({1, 1, 4, 4}), zeros({1, 1, 2, 2}, DType::i32))),
    MISTAKE("[avg_pool2d_grad] size takes 2 numbers, got 0", avg_pool2d_grad(f32({1, 1, 2, 2}), {.size = {}})),
    MISTAKE("[avg_pool2d_grad] size must be at least 1", avg_pool2d_grad(f32({1, 1, 2, 2}), {.size = {4, 0}})),
    MISTAKE("[avg_pool3d] needs five dimensions, got f32[1,1,4,4]", avg_pool3d(f32({1, 1, 4, 4}))),
    MISTAKE("[adaptive_avg_pool2d] size must be at least 1", adaptive_avg_pool2d(f32({1, 1, 4, 4}), {0, 2})),
    MISTAKE("[adaptive_avg_pool2d] nothing to pool in f32[1,1,0,4]", adaptive_avg_pool2d(f32({1, 1, 0, 4}), {1, 2})),
    MISTAKE("[adaptive_max_pool2d] needs four dimensions, got f32[1,4,4]", adaptive_max_pool2d(f32({1, 4, 4}), {2})),
    MISTAKE("[global_avg_pool] needs [n,c,spatial], got f32[2,3]", global_avg_pool(f32({2, 3}))),
    MISTAKE("[global_max_pool] the operand is undefined", global_max_pool(Tensor())),
};

TEST(PoolErrors, NameTheFunctionTheTypesAndTheLine) { expect_mistakes(kPoolMistakes, "pool_test.cpp"); }

}  // namespace
}  // namespace tapedeck
