// The results of an op that the caller did not ask for are freed with the call.
#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/allocation/failures.h>

#include <gtest/gtest.h>

#include <vector>

namespace tapedeck {
namespace {

TEST(Results, ThatNobodyAskedForAreFreed) {
  const NoGrad no_grad;
  const Tensor x = from_vector(std::vector<float>{1, 2, 3, 4}, {2, 2});
  const LayerNormAttrs attrs;
  const test::CountBytes scope;
  std::int64_t before = 0;
  for (int i = 0; i < 20; ++i) {
    apply(ops::rms_norm, {&x}, &attrs, {__FILE__, __LINE__});  // gives y and rstd
    if (i == 9) before = test::live_bytes();                   // caches are warm
  }
  EXPECT_EQ(test::live_bytes(), before);
}

}  // namespace
}  // namespace tapedeck
