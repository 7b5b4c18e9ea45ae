// Every op and its gradient on a device. The device is the fake, whose kernels are those of the CPU, so results must have the
// bits of the host. Operands are larger than those that may go along from the host, so a gradient that makes a tensor on the
// host, where the others are on the device, is an error.
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/tests/engine/device/fake_device.h>
#include <tapedeck/tests/engine/differences.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tapedeck::testing {
namespace {

// Results, and gradients of all results together.
std::vector<Tensor> results_and_gradients(const Example& e, const std::vector<Tensor>& operands) {
  std::vector<Tensor> xs;
  for (const Tensor& t : operands) {
    xs.push_back(t.detach());
    if (is_floating(t.dtype())) xs.back().requires_grad(true);
  }
  std::vector<Tensor> all = run(e, xs);
  if (!differentiable(*e.op)) return all;
  constexpr std::size_t kMostHeads = 4;
  const std::size_t n = std::min(all.size(), kMostHeads);
  for (std::size_t i = 0; i < n; ++i)
    if (all[i].requires_grad()) backward(sum(all[i]), {.retain = true});
  for (const Tensor& x : xs)
    if (x.grad().defined()) all.push_back(x.grad());
  return all;
}

void expect_same_on_device(const Example& e, DType real) {
  const std::vector<Tensor> operands = make_operands(e, real, 9);
  std::vector<Tensor> there;
  for (const Tensor& t : operands) there.push_back(to_device(t, "cuda"));
  const std::vector<Tensor> expected = results_and_gradients(e, operands);
  const OnDevice gpu("cuda");
  const std::vector<Tensor> got = results_and_gradients(e, there);
  ASSERT_EQ(got.size(), expected.size()) << e.text;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(device_name(got[i]), "cuda") << e.text << ", result or gradient " << i;
    EXPECT_TRUE(bit_equal(to_device(got[i].detach(), "cpu"), expected[i].detach())) << e.text << ", result or gradient " << i;
  }
}

class AllOpsDevice : public ::testing::Test {
 protected:
  FakeDevice gpu_;
  ScopedEagerDevice scope_{"cuda", gpu_};
};

TEST_F(AllOpsDevice, ResultsAndGradientsAreThoseOfTheHost) {
  for_every_example([](const Example& e) {
    if (std::string(e.op->name) != "to_device") expect_same_on_device(enlarged(e, 2000, 20), DType::f64);
  });
}

}  // namespace
}  // namespace tapedeck::testing
