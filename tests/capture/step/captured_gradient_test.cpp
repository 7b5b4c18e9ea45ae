// Tests the gradient of a captured forward pass: it equals the gradient of the eager code, or asking for it is an error.
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

namespace tapedeck {
namespace {

TEST(CapturedGradient, AnAuthorsOwnGradientIsNotReplacedByTheDerivative) {
  Capture capture("forward");
  const Tensor x = capture.input("x", tensor({1, 2}).requires_grad(true));
  const std::vector<Tensor> y = custom_gradient(
      {x}, [](const std::vector<Tensor>& xs) { return std::vector<Tensor>{exp(xs[0])}; },
      [](const std::vector<Tensor>&, const std::vector<Tensor>&, const std::vector<Tensor>& dys) {
        return std::vector<Tensor>{dys[0] * 2.0};
      });
  capture.output("y", sum(y[0]));
  const Captured captured = capture.finish();
  const ValueId of = captured.graph.outputs[0], wrt = 0;
  const std::string message = testing::message_of<GradientError>([&] { gradient(captured.graph, {&of, 1}, {&wrt, 1}); });
  EXPECT_NE(message.find("own_gradient"), std::string::npos) << message;
  EXPECT_NE(message.find("captured_gradient_test.cpp:"), std::string::npos) << message;
  PassRunner passes;
  const Graph simplified = simplify(captured.graph, &passes);  // no pass may remove the mark of a custom gradient
  const ValueId of_simplified = simplified.outputs[0];
  EXPECT_THROW(gradient(simplified, {&of_simplified, 1}, {&wrt, 1}), GradientError);
}

}  // namespace
}  // namespace tapedeck
