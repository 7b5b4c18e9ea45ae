// Tests that every op gives the same bits on one, two and four threads, and in every run.
#include <tapedeck/tests/engine/differences.h>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <functional>

namespace tapedeck::testing {
namespace {

// Limits of the enlarged examples; sanitizer builds are slow.
#ifdef TAPEDECK_SANITIZED
constexpr bool kSanitized = true;
constexpr std::int64_t kElements = 2000;
constexpr double kMicroseconds = 10;
#else
constexpr bool kSanitized = false;
constexpr std::int64_t kElements = 100000;
constexpr double kMicroseconds = 1000;
#endif

constexpr std::size_t kMostHeads = 8;  // an enlarged `unstack` has thousands of results, whose gradients are alike

// Runs f on `n` threads, even on a machine with fewer cores.
std::vector<Tensor> on_threads(int n, const std::function<std::vector<Tensor>()>& f) {
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 4);
  tbb::task_arena arena(n);
  std::vector<Tensor> results;
  arena.execute([&] { results = f(); });
  return results;
}

// Large calls of ops whose examples cannot be enlarged, because attributes fix their sizes.
constexpr const char* kLarge[] = {
    "full() {shape=[300,1001], dtype=f32, value=2.5}",
    "uniform(i64[2] in (0,100)) {shape=[300,1001], low=-1.0, high=1.0}",
    "normal(i64[2] in (0,100)) {shape=[300,1001]}",
    "dropout(f32[300,1001], i64[2] in (0,100)) {p=0.3}",
    "conv2d_input_grad(f32[8,8,30,29], f32[8,4,3,3]) {padding=[1,1], size=[30,29]}",
    "conv2d_weight_grad(f32[8,8,30,29], f32[8,4,30,29]) {padding=[1,1], size=[3,3]}",
    "sum(f32[1000003]) {axes=[0]}",
    "sum(f32[3,300001]) {axes=[1]}",
    "sum(f32[300001,3]) {axes=[0]}",
    "mean(f32[70,130,60]) {axes=[0,2]}",
    "max(f32[300001,3]) {axes=[0]}",
    "concat(f32[300,701], f32[300,0], f32[300,302]) {axis=1}",
    "pad(f32[301,702]) {before=[1,7], after=[0,2]}",
    "softmax(f32[1001,300]) {axis=1}",
    "softmax(f32[300,1001]) {axis=0}",
    "matmul(f32[130,257], f32[257,301])",
    "matmul(f32[7,1,65,33], f32[5,33,66])",
};

// Compares results, and gradients if there are any, on every number of threads.
void expect_same_on_all_threads(const Example& e, DType real) {
  const std::vector<Tensor> operands = make_operands(e, real, 9);
  auto forward = [&] { return run(e, operands); };
  const std::vector<Tensor> one = on_threads(1, forward);
  auto here = [&](const char* what, int n) { return what + e.text + " on " + std::to_string(n) + " threads"; };
  for (int n : {1, 2, 4}) expect_equal_bits(on_threads(n, forward), one, here("", n));
  if (!differentiable(*e.op)) return;
  auto gradients = [&] {
    std::vector<Tensor> xs, all;
    for (const Tensor& t : operands) {
      xs.push_back(t.detach());
      if (is_floating(t.dtype())) xs.back().requires_grad(true);
    }
    const std::vector<Tensor> ys = run(e, xs);
    for (std::size_t i = 0; i < std::min(ys.size(), kMostHeads); ++i)
      if (ys[i].requires_grad()) backward(ys[i], {.retain = true, .head = ones(ys[i].shape(), ys[i].dtype())});
    for (const Tensor& x : xs)
      if (x.grad().defined()) all.push_back(x.grad());
    return all;
  };
  const std::vector<Tensor> first = on_threads(1, gradients);
  for (int n : {2, 4}) expect_equal_bits(on_threads(n, gradients), first, here("gradients of ", n));
}

TEST(AllOpsThreads, EqualBitsOnAnyNumber) {
  for_every_example(
      [](const Example& e) { expect_same_on_all_threads(enlarged(e, 5 * kElements, 10 * kMicroseconds), DType::f32); });
}

TEST(AllOpsThreads, EqualBitsInDoublePrecision) {
  for_every_example([](const Example& e) { expect_same_on_all_threads(enlarged(e, kElements, kMicroseconds), DType::f64); });
}

TEST(AllOpsThreads, EqualBitsOfLargeOperandsByHand) {
  if (kSanitized) GTEST_SKIP() << "minutes under sanitizers; ordinary builds run it";
  const std::vector<const Op*> chosen = chosen_ops();
  for (const char* text : kLarge) {
    const std::string name(text, std::string(text).find('('));
    for (const Op* op : chosen)
      if (name == op->name) guarded(*op, text, [&] { expect_same_on_all_threads(parse_example(*op, text), DType::f32); });
    EXPECT_NE(find_op(name), nullptr) << name;
  }
}

TEST(AllOpsThreads, RunTwiceToTheSameBits) {
  for_every_example([](const Example& e) {
    for (DType real : {DType::f32, DType::f64})
      expect_equal_bits(run(e, make_operands(e, real, 9)), run(e, make_operands(e, real, 9)), dtype_name(real));
  });
}

}  // namespace
}  // namespace tapedeck::testing
