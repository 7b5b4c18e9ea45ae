// Tests the rules of the updates of optimizers: which learning rates they take, with which message they refuse others, and that
// the dtype of the rate does not change the result.
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/optimizer.h>

#include <tapedeck/tests/engine/messages.h>

#include <vector>

namespace tapedeck {
namespace {

using testing::message_of;

constexpr DType kFloats[] = {DType::f16, DType::bf16, DType::f32, DType::f64};

bool may_be_rate_of(DType rate, DType parameter) { return rate == parameter || rate == DType::f32 || rate == DType::f64; }

TEST(OptimizerOps, TheRateIsF32F64OrOfTheDtypeOfTheParameter) {
  const SgdAttrs attrs;
  for (const DType parameter : kFloats)
    for (const DType rate : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i32, DType::boolean}) {
      SCOPED_TRACE(std::string(dtype_name(parameter)) + " with a rate of " + dtype_name(rate));
      const Type w{parameter, {3}}, inputs[3] = {w, w, Type{rate, {}}};
      std::vector<Type> outputs;
      if (may_be_rate_of(rate, parameter)) {
        infer_types(ops::sgd, inputs, &attrs, outputs);
        EXPECT_EQ(outputs, std::vector<Type>{w});
        continue;
      }
      const bool half = parameter == DType::f16 || parameter == DType::bf16;
      EXPECT_EQ(message_of<TypeError>([&] { infer_types(ops::sgd, inputs, &attrs, outputs); }),
                std::string("[sgd] the learning rate must be f32[] or f64[]") +
                    (half ? std::string(" or ") + dtype_name(parameter) + "[]" : "") + ", not " + dtype_name(rate) + "[]");
    }
}

TEST(OptimizerOps, TheRateIsOneNumber) {
  const SgdAttrs attrs;
  const Type w{DType::bf16, {3}}, inputs[3] = {w, w, Type{DType::bf16, {1}}};
  std::vector<Type> outputs;
  EXPECT_EQ(message_of<TypeError>([&] { infer_types(ops::sgd, inputs, &attrs, outputs); }),
            "[sgd] the learning rate must be f32[] or f64[] or bf16[], not bf16[1]");
}

// All numbers here are exact in every dtype.
TEST(OptimizerOps, TheDtypeOfTheRateDoesNotChangeTheResult) {
  const SgdAttrs attrs;
  for (const DType parameter : kFloats)
    for (const DType rate : kFloats) {
      if (!may_be_rate_of(rate, parameter)) continue;
      SCOPED_TRACE(std::string(dtype_name(parameter)) + " with a rate of " + dtype_name(rate));
      const Tensor w = full({2}, 1.0, parameter), g = full({2}, 0.5, parameter), lr = scalar(0.25, rate);
      EXPECT_TRUE(bit_equal(apply(ops::sgd, {&w, &g, &lr}, &attrs, {}), full({2}, 0.875, parameter)));
    }
}

TEST(OptimizerOps, TheStepCountIsAnI64) {
  const AdamAttrs attrs;
  const Type w{DType::f32, {3}}, rate{DType::f32, {}};
  const Type inputs[6] = {w, w, w, w, Type{DType::i32, {}}, rate};
  std::vector<Type> outputs;
  EXPECT_EQ(message_of<TypeError>([&] { infer_types(ops::adamw, inputs, &attrs, outputs); }),
            "[adamw] the step count must be i64[], not i32[]");
}

}  // namespace
}  // namespace tapedeck
