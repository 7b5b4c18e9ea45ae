// Tests that the error about every wrong call reads "[op] mistake: types (file:line)" with the line of the user's call.
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/mistakes.h>

namespace tapedeck {
namespace {

using testing::expect_mistakes;
using testing::f32;
using testing::f64;
using testing::i32;
using testing::message_of;
using testing::Mistake;
using testing::without_folders;

// Applies an op that has no author function. The call has to fit on one line: compilers differ in the line of a longer one.
void apply_to(const Op& op, const Tensor& x, Site site = {__builtin_FILE(), __builtin_LINE()}) {
  apply_all(op, std::vector<Tensor>{x}, nullptr, site);
}

const Mistake kErrorMessagesMistakes[] = {
    MISTAKE("[add] shapes do not broadcast: f32[2,3] and f32[2]", f32({2, 3}) + f32({2})),
    MISTAKE("[mul] shapes do not broadcast: f32[4] and f32[3]", f32({4}) * f32({3})),
    MISTAKE("[less] shapes do not broadcast: i32[4] and i32[3]", less(i32({4}), i32({3}))),
    MISTAKE("[exp] needs a floating type, got i32[3]", exp(i32({3}))),
    MISTAKE("[logical_not] needs bools, got f32[3]", logical_not(f32({3}))),
    MISTAKE("[logical_and] needs bools, got i32[3]", logical_and(i32({3}), i32({3}))),
    MISTAKE("[where] the condition must be bool, not f32[3]", where(f32({3}), f32({3}), f32({3}))),
    MISTAKE("[where] shapes do not broadcast: bool[2] and f32[3]", where(zeros({2}, DType::boolean), f32({3}), f32({3}))),
    MISTAKE("[matmul] inner sizes differ: f32[64,784] x f32[783,10]", matmul(f32({64, 784}), f32({783, 10}))),
    MISTAKE("[matmul] operands need at least one dimension: f32[] x f32[4,2]", matmul(f32({}), f32({4, 2}))),
    MISTAKE("[matmul] inner sizes differ: f32[3] x f32[4,2]", matmul(f32({3}), f32({4, 2}))),
    MISTAKE("[matmul] leading dimensions do not broadcast: f32[2,3,4] x f32[3,4,5]", matmul(f32({2, 3, 4}), f32({3, 4, 5}))),
    MISTAKE("[matmul] no product of bool", matmul(zeros({2, 2}, DType::boolean), zeros({2, 2}, DType::boolean))),
    MISTAKE("[sum] axis 2 is outside f32[3,5]", sum(f32({3, 5}), {2})),
    MISTAKE("[sum] axis -1 is outside f32[3,5]", sum(f32({3, 5}), {-3})),
    MISTAKE("[sum] axes must ascend and not repeat", sum(f32({3, 5}), {0, 0})),
    MISTAKE("[mean] needs a floating type, got i32[3]", mean(i32({3}))),
    MISTAKE("[max] no extreme of an empty range of f32[3,0]", max(f32({3, 0}), {1})),
    MISTAKE("[argmax] no largest element along an empty axis of f32[0]", argmax(f32({0}))),
    MISTAKE("[reshape] f32[3,4] has 12 elements, [5] has 5", reshape(f32({3, 4}), {5})),
    MISTAKE("[reshape] only one size may be -1", reshape(f32({3, 4}), {-1, -1})),
    MISTAKE("[reshape] no size for -1: f32[3,4] has 12 elements, the others make 5", reshape(f32({3, 4}), {5, -1})),
    MISTAKE("[transpose] axes must be a permutation", transpose(f32({3, 4}), {0, 0})),
    MISTAKE("[transpose] axes lists 1 numbers for f32[3,4]", transpose(f32({3, 4}), {0})),
    MISTAKE("[slice] dimension 2 is outside f32[3,4]", slice(f32({3, 4}), 2, 0, 1)),
    MISTAKE("[broadcast_to] f32[3] does not broadcast to [4]", broadcast_to(f32({3}), {4})),
    MISTAKE("[concat] f32[2,4] does not continue f32[3,3] along axis 0", concat({f32({3, 3}), f32({2, 4})}, 0)),
    MISTAKE("[concat] f64[3,1] does not continue f64[3] along axis 0", concat({f32({3}), f64({3, 1})}, 0)),
    MISTAKE("[concat] axis 1 is outside f32[3]", concat({f32({3})}, 1)),
    MISTAKE("[pad] padding must not be negative", pad(f32({3}), {-1}, {0})),
    MISTAKE("[softmax] axis 2 is outside f32[3,4]", softmax(f32({3, 4}), 2)),
    MISTAKE("[cross_entropy] labels i32[3] do not fit logits f32[4,10]", cross_entropy(f32({4, 10}), i32({3}))),
    MISTAKE("[cross_entropy] labels must be i32 or i64, not f32[4]", cross_entropy(f32({4, 10}), f32({4}))),
    MISTAKE("[cross_entropy] logits need at least two dimensions, got f32[4]", cross_entropy(f32({4}), i32({4}))),
    MISTAKE("[one_hot] labels must be i32 or i64, not f32[4]", one_hot(f32({4}), 3)),
    MISTAKE("[conv2d] channels differ: x f32[1,2,5,5] has 2, weights f32[4,3,3,3] take 3",
            conv2d(f32({1, 2, 5, 5}), f32({4, 3, 3, 3}))),
    MISTAKE("[conv2d] the window of f32[4,3,7,7] does not fit into f32[1,3,5,5]", conv2d(f32({1, 3, 5, 5}), f32({4, 3, 7, 7}))),
    MISTAKE("[conv2d] operands differ in dtype: f32[1,3,5,5] and f64[4,3,3,3]", conv2d(f32({1, 3, 5, 5}), f64({4, 3, 3, 3}))),
    MISTAKE("[conv2d] stride must be at least 1", conv2d(f32({1, 3, 5, 5}), f32({4, 3, 3, 3}), {.stride = {0, 1}})),
    MISTAKE("[max_pool2d] the window does not fit into f32[1,1,1,4]", max_pool2d(f32({1, 1, 1, 4}))),
    MISTAKE("[dropout] p must be at least 0 and below 1", dropout(f32({3}), 1.5)),
    MISTAKE("[dropout] needs a floating type, got i32[3]", dropout(i32({3}), 0.5)),
    MISTAKE("[uniform] draws floating types, not i32", uniform({3}, 0, 1, DType::i32)),
    MISTAKE("[rng_next] the random state must be i64[2], not i64[0]", apply_to(ops::rng_next, zeros({0}, DType::i64))),
    MISTAKE("[count_next] the step count must be i64[], not i64[2]", apply_to(ops::count_next, zeros({2}, DType::i64))),
    MISTAKE("[add] operand 0 is undefined", Tensor() + f32({3})),
};

TEST(ErrorMessages, NameTheOpTheTypesAndTheLine) { expect_mistakes(kErrorMessagesMistakes, "error_messages_test.cpp"); }

TEST(ErrorMessages, ModulesReportTheCallOfTheModule) {
  struct Net : Module {
    Linear fc{*this, "fc", 4, 3};
  } net;
  const Tensor x = f32({2, 5});
  const int line = __LINE__ + 1;
  const std::string text = message_of<TypeError>([&] { net.fc(x); });
  EXPECT_EQ(without_folders(text),
            "[matmul] inner sizes differ: f32[2,5] x f32[4,3] (error_messages_test.cpp:" + std::to_string(line) + ")");
}

TEST(ErrorMessages, KernelsReportWhatTheyMet) {
  const Tensor labels = from_vector(std::vector<std::int32_t>{0, 7}, {2});
  const int line = __LINE__ + 1;
  const std::string text = message_of<ExecutionError>([&] { cross_entropy(f32({2, 3}), labels); });
  EXPECT_EQ(text.rfind("[cross_entropy] ", 0), 0u) << text;
  EXPECT_MENTIONS(text, "7");
  EXPECT_MENTIONS(text, "error_messages_test.cpp:" + std::to_string(line));
}

}  // namespace
}  // namespace tapedeck
