// Tests eager backward: the order in which gradient pieces add up, the tensors it keeps, the calls it refuses, and that it
// leaves nothing on the tape. Expected values are written by hand.
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

namespace tapedeck {
namespace {

using Floats = std::vector<float>;
using testing::message_of;
using testing::without_folders;

Tensor leaf(std::initializer_list<float> values) {
  Tensor t = tensor(values);
  t.requires_grad(true);
  return t;
}

Floats grad_of(const Tensor& t) { return t.grad().to_vector<float>(); }

// Each gradient function holds the operand of its call, so the last tensor holds all of them.
TEST(Backward, DropsALongChainOfOwnGradientsThatHoldTheirOperands) {
  using Tensors = std::vector<Tensor>;
  const auto twice = [](const Tensors& xs) -> Tensors { return {xs[0] * 2.0}; };
  Tensor x = leaf({1, 2});
  for (int i = 0; i < 100'000; ++i) {
    const Tensor held = x;
    x = custom_gradient({held}, twice,
                        [held](const Tensors&, const Tensors&, const Tensors& dys) -> Tensors { return {dys[0] * held}; })[0];
  }
  EXPECT_GE(saved().size(), 1u);
  x = Tensor();
  EXPECT_TRUE(saved().empty());
}

TEST(Backward, FollowsAChain) {
  Tensor x = leaf({1, 2, 3});
  backward(sum(mul(square(x), 2)));
  EXPECT_EQ(grad_of(x), (Floats{4, 8, 12}));
}

TEST(Backward, AddsOverAllUsesOfAValue) {
  for (int uses = 1; uses <= 9; ++uses) {
    Tensor x = leaf({1, 2});
    const Tensor h = x * 3;
    Tensor total = h;
    for (int i = 1; i < uses; ++i) total = total + h;
    backward(sum(total));
    EXPECT_EQ(grad_of(x), (Floats(2, 3.0f * static_cast<float>(uses)))) << uses;
  }
}

TEST(Backward, OneOperandTwice) {
  Tensor x = leaf({1, 2});
  backward(sum(mul(x, x)));
  EXPECT_EQ(grad_of(x), (Floats{2, 4}));
}

// Pieces add up in reverse recording order, and the first piece is written. With these floats any other order gives other
// bits.
TEST(Backward, PiecesAddInReverseRecordingOrder) {
  const float big = 1e8f;
  Tensor x = leaf({1});
  const Tensor first = x * 3.0, second = x * static_cast<double>(big), third = x * static_cast<double>(-big);
  backward(sum(first + second + third));
  EXPECT_EQ(grad_of(x)[0], (-big + big) + 3.0f);
}

TEST(Backward, AccumulatesUntilZeroed) {
  Tensor x = leaf({1, 2});
  backward(sum(x * 2));
  backward(sum(x * 3));
  EXPECT_EQ(grad_of(x), (Floats{5, 5}));
  Sgd optimizer({x});
  optimizer.zero_grad();
  EXPECT_FALSE(x.grad().defined());
  backward(sum(x));
  EXPECT_EQ(grad_of(x), (Floats{1, 1}));
}

TEST(Backward, RunsAgainOnlyWithRetain) {
  Tensor x = leaf({1, 2});
  const Tensor loss = sum(square(x));
  backward(loss, {.retain = true});
  backward(loss);
  EXPECT_EQ(grad_of(x), (Floats{4, 8}));
  const std::string text = message_of<GradientError>([&] { backward(loss); });
  EXPECT_MENTIONS(text, "was freed by an earlier backward; call that with retain");
  EXPECT_EQ(grad_of(x), (Floats{4, 8})) << "a refused backward writes no gradient";
}

TEST(Backward, TakesAHeadGradient) {
  Tensor x = leaf({1, 2});
  backward(x * 2, {.head = tensor({10, 100})});
  EXPECT_EQ(grad_of(x), (Floats{20, 200}));
  const Tensor y = x * 2;
  EXPECT_MENTIONS(message_of<GradientError>([&] { backward(y); }), "f32[2] is not a scalar; give a head gradient");
  EXPECT_MENTIONS(message_of<TypeError>([&] { backward(y, {.head = tensor({1})}); }),
                  "the head gradient f32[1] does not fit f32[2]");
}

TEST(Backward, LossWithoutHistoryIsAnError) {
  const Tensor constant = sum(tensor({1, 2}));
  EXPECT_MENTIONS(message_of<GradientError>([&] { backward(constant); }),
                  "f32[] has no gradient history on this thread's tape");
  EXPECT_THROW(backward(Tensor()), GradientError);
  Tensor x = leaf({1});
  const Tensor cut = sum(x).detach();
  EXPECT_THROW(backward(cut), GradientError);
}

TEST(Backward, OpWithoutAGradientIsNamed) {
  Tensor x = from_vector(std::vector<float>{1, 2, 3, 4}, {1, 1, 2, 2});
  x.requires_grad(true);
  const Tensor dy = ones({1, 1, 1, 1});
  const Tensor loss = sum(max_pool2d_grad(x, dy, {}));
  const int line = __LINE__ - 1;
  EXPECT_EQ(without_folders(message_of<GradientError>([&] { backward(loss); }))
                .rfind("[backward] 'max_pool2d_grad' at backward_test.cpp:" + std::to_string(line) +
                           " has no gradient (backward_test.cpp:",
                       0),
            0u);
}

// E5 of the founding systems. max_pool2d_grad has no gradient.
TEST(Backward, OpWithoutAGradientNeedsNoneForZeros) {
  Tensor x = from_vector(std::vector<float>{1, 2, 3, 4}, {1, 1, 2, 2});
  x.requires_grad(true);
  const auto opaque = [&]() -> Tensor { return max_pool2d_grad(x, ones({1, 1, 1, 1}), {}); };

  const Tensor pooled = opaque();
  const std::vector<Tensor> both = gradients({pooled, square(x)}, {x}, {.heads = {zeros(x.shape()), ones(x.shape())}});
  EXPECT_EQ(both[0].to_vector<float>(), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_NO_THROW(backward(opaque(), {.head = reshape(zeros({4}), x.shape())})) << "a view of zeros";
  EXPECT_FALSE(x.grad().defined());

  Tensor written = zeros(x.shape());
  fill_(written, 1);
  EXPECT_THROW(backward(opaque(), {.head = written}), GradientError);
  Tensor handed_out = zeros(x.shape());
  static_cast<float*>(handed_out.mutable_data())[0] = 1;
  EXPECT_THROW(backward(opaque(), {.head = handed_out}), GradientError);
  EXPECT_THROW(backward(opaque(), {.head = from_vector(std::vector<float>(4, 0), {1, 1, 2, 2})}), GradientError)
      << "these zeros are data";
}

TEST(Backward, OverwrittenValueNamesBothPlaces) {
  Tensor x = leaf({1, 2}), w = tensor({3, 4});
  const Tensor loss = sum(x * w);
  const int read = __LINE__ - 1;
  apply_in_place(ops::add, std::vector<Tensor>{w, tensor({1, 1})}, nullptr, {__FILE__, __LINE__});
  const int wrote = __LINE__ - 1;
  const std::string text = without_folders(message_of<GradientError>([&] { backward(loss); }));
  EXPECT_MENTIONS(text, "f32[2] saved for 'mul' at backward_test.cpp:" + std::to_string(read) +
                            " was modified in place at backward_test.cpp:" + std::to_string(wrote));
}

TEST(Backward, WriteThroughAPointerNamesItsPlaceToo) {
  Tensor x = leaf({1, 2}), w = tensor({3, 4});
  const Tensor loss = sum(x * w);
  w.mutable_data();
  const int wrote = __LINE__ - 1;
  EXPECT_MENTIONS(without_folders(message_of<GradientError>([&] { backward(loss); })),
                  "was modified in place at backward_test.cpp:" + std::to_string(wrote));
}

TEST(Backward, WritingAViewMakesTheBaseStale) {
  Tensor x = leaf({1, 2}), w = tensor({3, 4});
  const Tensor loss = sum(x * w);
  apply_in_place(ops::neg, std::vector<Tensor>{slice(w, 0, 0, 1)}, nullptr, {});
  EXPECT_EQ(w.to_vector<float>(), (Floats{-3, 4}));
  EXPECT_THROW(backward(loss), GradientError);
}

TEST(Backward, WritingWhatNobodySavedIsFine) {
  Tensor x = leaf({1, 2}), b = tensor({3, 4});
  const Tensor loss = sum(x + b);
  apply_in_place(ops::neg, std::vector<Tensor>{b}, nullptr, {});
  backward(loss);
  EXPECT_EQ(grad_of(x), (Floats{1, 1}));
}

TEST(Backward, LeavesMayNotBeWrittenOutsideNoGrad) {
  Tensor x = leaf({1, 2});
  EXPECT_THROW(apply_in_place(ops::neg, std::vector<Tensor>{x}, nullptr, {}), GradientError);
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2}));
  const NoGrad no_grad;
  apply_in_place(ops::neg, std::vector<Tensor>{x}, nullptr, {});
  EXPECT_EQ(x.to_vector<float>(), (Floats{-1, -2}));
}

TEST(Backward, OnlyFloatingLeavesRequireGradients) {
  Tensor i = from_vector(std::vector<std::int32_t>{1, 2}, {2});
  EXPECT_MENTIONS(message_of<TypeError>([&] { i.requires_grad(true); }), "i32[2] holds integers: no gradient");
  EXPECT_FALSE(i.requires_grad());
}

TEST(Backward, OnlyLeavesCanBeMarked) {
  Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  EXPECT_TRUE(y.requires_grad());
  EXPECT_THROW(y.requires_grad(true), GradientError);
  EXPECT_THROW(y.requires_grad(false), GradientError);
}

TEST(Backward, NoGradAndDetachCut) {
  Tensor x = leaf({1, 2});
  Tensor constant;
  {
    const NoGrad no_grad;
    constant = x * 10;
    const NoGrad nested;
  }
  EXPECT_FALSE(constant.requires_grad());
  EXPECT_FALSE((x * 10).detach().requires_grad());
  EXPECT_FALSE(argmax(x).requires_grad());
  backward(sum(x * constant + x * x.detach()));
  EXPECT_EQ(grad_of(x), (Floats{11, 22}));
}

TEST(Backward, GradientsHaveNoHistory) {
  Tensor x = leaf({1, 2});
  backward(sum(square(x)));
  EXPECT_FALSE(x.grad().requires_grad());
  EXPECT_EQ(tape_stats().nodes, 0);
}

TEST(Backward, SetGradChecksTheType) {
  Tensor x = leaf({1, 2});
  EXPECT_THROW(x.set_grad(tensor({1})), TypeError);
  x.set_grad(tensor({5, 6}));
  backward(sum(x));
  EXPECT_EQ(grad_of(x), (Floats{6, 7}));
}

TEST(Backward, TwoLossesShareOneForward) {
  Tensor x = leaf({1, 2});
  const Tensor h = x * 2;
  const Tensor a = sum(h), b = sum(square(h));
  backward(a, {.retain = true});
  backward(b);
  EXPECT_EQ(grad_of(x), (Floats{2 + 8, 2 + 16}));
}

// ---- nothing stays on the tape ----

TEST(Tape, EmptiesWithTheLastHandle) {
  Tensor x = leaf({1, 2});
  EXPECT_EQ(tape_stats().nodes, 0);
  {
    const Tensor y = x * 2;
    const Tensor z = exp(y);
    EXPECT_EQ(tape_stats().nodes, 2);
  }
  EXPECT_EQ(tape_stats().nodes, 0);
  EXPECT_EQ(tape_stats().saved_bytes, 0);
}

TEST(Tape, AnErrorRecordsNothing) {
  Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  EXPECT_THROW(y + tensor({1, 2, 3}), TypeError);
  EXPECT_EQ(tape_stats().nodes, 1);
}

TEST(Tape, BackwardFreesWhatWasSaved) {
  Tensor x = leaf({1, 2});
  const Tensor loss = sum(exp(x * 2));
  EXPECT_GT(tape_stats().saved_bytes, 0);
  backward(loss);
  EXPECT_EQ(tape_stats().saved_bytes, 0);
}

TEST(Tape, ATrainingLoopLeaksNothing) {
  struct Net : Module {
    Linear fc1{*this, "fc1", 4, 8}, fc2{*this, "fc2", 8, 3};
    Dropout drop{*this, "drop", 0.5};
    Tensor operator()(const Tensor& x) { return fc2(drop(relu(fc1(x)))); }
  } net;
  AdamW optimizer(net.parameters());
  const Tensor x = normal({5, 4}), y = from_vector(std::vector<std::int32_t>{0, 1, 2, 0, 1}, {5});
  std::int64_t bytes = 0, blocks = 0;
  for (int step = 0; step < 1000; ++step) {
    backward(cross_entropy(net(x), y));
    optimizer.step();
    optimizer.zero_grad();
    const MemoryStats now = Allocator::host().stats();
    if (step == 0) bytes = now.bytes_in_use, blocks = now.blocks_in_use;
    ASSERT_EQ(now.bytes_in_use, bytes) << "step " << step;
    ASSERT_EQ(now.blocks_in_use, blocks) << "step " << step;
    ASSERT_EQ(tape_stats().nodes, 0);
  }
}

// ---- derived save sets: bytes kept after one op on leaves of 100 floats ----

struct Kept {
  const char* what;
  std::int64_t bytes;
  std::function<Tensor(const Tensor&, const Tensor&)> op;
};

TEST(SaveSet, IsWhatTheGradientReads) {
  constexpr std::int64_t kOne = 400;
  const Kept table[] = {
      {"add keeps nothing", 0, [](const Tensor& a, const Tensor& b) { return a + b; }},
      {"sub keeps nothing", 0, [](const Tensor& a, const Tensor& b) { return a - b; }},
      {"mul keeps both operands", 2 * kOne, [](const Tensor& a, const Tensor& b) { return a * b; }},
      {"mul by a constant keeps the constant", 4, [](const Tensor& a, const Tensor&) { return a * 3; }},
      {"div keeps the divisor and the result", 2 * kOne, [](const Tensor& a, const Tensor& b) { return a / b; }},
      {"relu keeps its result", kOne, [](const Tensor& a, const Tensor&) { return relu(a); }},
      {"exp keeps its result", kOne, [](const Tensor& a, const Tensor&) { return exp(a); }},
      {"log keeps its operand", kOne, [](const Tensor& a, const Tensor&) { return log(a); }},
      {"tanh keeps its result", kOne, [](const Tensor& a, const Tensor&) { return tanh(a); }},
      {"neg keeps nothing", 0, [](const Tensor& a, const Tensor&) { return neg(a); }},
      {"sum keeps nothing", 0, [](const Tensor& a, const Tensor&) { return sum(a); }},
      {"mean keeps nothing", 0, [](const Tensor& a, const Tensor&) { return mean(a); }},
      {"reshape keeps nothing", 0,
       [](const Tensor& a, const Tensor&) {
         return reshape(a, {50, 2});
       }},
      {"slice keeps nothing", 0, [](const Tensor& a, const Tensor&) { return slice(a, 0, 1, 2); }},
      {"concat keeps nothing", 0,
       [](const Tensor& a, const Tensor& b) {
         return concat({a, b}, 0);
       }},
      {"dropout keeps the random state, no mask", 16, [](const Tensor& a, const Tensor&) { return dropout(a, 0.5); }},
      {"matmul keeps both operands", 2 * kOne,
       [](const Tensor& a, const Tensor& b) {
         return matmul(a, transpose(b, {1, 0}));
       }},
      {"softmax keeps its result", kOne, [](const Tensor& a, const Tensor&) { return softmax(a); }},
  };
  for (const Kept& kept : table) {
    Tensor a = full({10, 10}, 0.5), b = full({10, 10}, 2);
    a.requires_grad(true);
    b.requires_grad(true);
    const Tensor y = kept.op(a, b);
    EXPECT_EQ(tape_stats().saved_bytes, kept.bytes) << kept.what;
  }
}

TEST(SaveSet, DependsOnWhoNeedsAGradient) {
  Tensor a = full({10, 10}, 0.5);
  const Tensor b = full({10, 10}, 2);
  a.requires_grad(true);
  {
    const Tensor y = a * b;
    EXPECT_EQ(tape_stats().saved_bytes, 400) << "only the other factor";
  }
  const Tensor y = matmul(a, b);
  EXPECT_EQ(tape_stats().saved_bytes, 400);
}

TEST(SaveSet, ConvolutionKeepsOperandsAndCrossEntropyItsLogits) {
  Tensor x = full({2, 3, 6, 5}, 0.5), w = full({4, 3, 3, 3}, 0.1);
  x.requires_grad(true);
  w.requires_grad(true);
  {
    const Tensor y = conv2d(x, w);
    EXPECT_EQ(tape_stats().saved_bytes, x.bytes() + w.bytes());
  }
  Tensor logits = zeros({5, 3});
  logits.requires_grad(true);
  const Tensor labels = from_vector(std::vector<std::int32_t>{0, 1, 2, 0, 1}, {5});
  const Tensor loss = cross_entropy(logits, labels);
  EXPECT_EQ(tape_stats().saved_bytes, logits.bytes() + labels.bytes());
}

TEST(SaveSet, SharedStorageCountsOnce) {
  Tensor x = full({10, 10}, 0.5);
  x.requires_grad(true);
  const Tensor y = log(x), z = square(x);
  EXPECT_EQ(tape_stats().saved_bytes, 400);
}

}  // namespace
}  // namespace tapedeck
