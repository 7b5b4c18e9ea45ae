// The updates of optimizers for the device, in the emulator, against the CPU kernels, bit for bit.
#include <tapedeck/kernels/attrs/optimizer.h>
#include <tapedeck/kernels/cuda/optimizer/list.h>
#include <tapedeck/tests/kernels/cuda/cases.h>
#include <tapedeck/kernels/cuda/optimizer/updates.inl>

namespace tapedeck::kernels::cpu {
TAPEDECK_CUDA_OPTIMIZER(TAPEDECK_DECLARE_CPU, TAPEDECK_DECLARE_CPU)
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing::cuda {
namespace {

class CudaUpdates : public RandomCalls {
 protected:
  Buffer scalar(DType dtype, double low, double high) { return draws_.dense(dtype, {}, {low, high, false}); }
  Buffer count(std::int64_t value) {
    Buffer b = draws_.dense(DType::i64, {});
    *b.view.as<std::int64_t>() = value;
    return b;
  }
  Buffer condition(bool value) {
    Buffer b = draws_.dense(DType::boolean, {});
    *b.view.as<std::uint8_t>() = value;
    return b;
  }

  // One update of random tensors. `operands` counts the parameter, the gradient and the states; the states from `positive` on
  // hold means of squares. `switched` is the condition, or -1 for none.
  void try_update(const Case& c, int operands, int positive, bool counted, const void* attrs, DType t, int switched) {
    const DType rates[] = {t, DType::f32, DType::f64};
    for (const std::int64_t n : {0, 1, 3, 4, 5, 64, 1027}) {
      Operands call;
      for (int k = 0; k < operands; ++k)
        call.inputs.push_back(draws_.dense(t, {n}, k >= positive ? Range{0, 1, false} : Range{-3, 3, k == 1}));
      if (counted) call.inputs.push_back(count(1 + draws_.below(9)));
      call.inputs.push_back(scalar(rates[draws_.below(3)], 0.01, 0.1));
      if (switched >= 0) call.inputs.push_back(condition(switched == 1));
      for (int k = 0; k < operands - 1; ++k) call.outputs.push_back(draws_.dense(t, {n}));
      if (draws_.chance(0.5))
        for (int k = 0; k < operands - 1; ++k) call.in_place.push_back({k, k == 0 ? 0 : k + 1});
      compare(c, call, attrs);
    }
  }
  void try_updates(const Case& c, int operands, int positive, bool counted, const void* attrs) {
    for (const DType t : kFloats)
      for (const int switched : {-1, 0, 1}) try_update(c, operands, positive, counted, attrs, t, switched);
  }
};

constexpr int kNone = 9;  // no operand is a mean of squares

TEST_F(CudaUpdates, SgdEqualsCpu) {
  SgdAttrs sgd;
  sgd.weight_decay = 0.1;
  try_updates(TAPEDECK_CASE(sgd), 2, kNone, false, &sgd);
  MomentumAttrs momentum;
  momentum.weight_decay = 0.1, momentum.dampening = 0.3;
  for (const bool nesterov : {false, true})
    for (const bool counted : {false, true}) {
      momentum.nesterov = nesterov;
      try_updates(TAPEDECK_CASE(sgd_momentum), 3, kNone, counted, &momentum);
    }
}

TEST_F(CudaUpdates, AdamEqualsCpu) {
  AdamAttrs attrs;
  attrs.weight_decay = 0.1;
  try_updates(TAPEDECK_CASE(adamw), 4, 3, true, &attrs);
  try_updates(TAPEDECK_CASE(adam), 4, 3, true, &attrs);
  try_updates(TAPEDECK_CASE(adamw_amsgrad), 5, 3, true, &attrs);
  try_updates(TAPEDECK_CASE(adam_amsgrad), 5, 3, true, &attrs);
}

TEST_F(CudaUpdates, RmspropEqualsCpu) {
  RmspropAttrs attrs;
  attrs.weight_decay = 0.1, attrs.momentum = 0.9;
  try_updates(TAPEDECK_CASE(rmsprop), 3, 2, false, &attrs);
  try_updates(TAPEDECK_CASE(rmsprop_momentum), 4, 2, false, &attrs);
  try_updates(TAPEDECK_CASE(rmsprop_centered), 4, 2, false, &attrs);
  try_updates(TAPEDECK_CASE(rmsprop_centered_momentum), 5, 2, false, &attrs);
}

TEST_F(CudaUpdates, OthersEqualCpu) {
  AdagradAttrs adagrad;
  adagrad.lr_decay = 0.1, adagrad.weight_decay = 0.1;
  try_updates(TAPEDECK_CASE(adagrad), 3, 2, true, &adagrad);
  AdadeltaAttrs adadelta;
  adadelta.weight_decay = 0.1;
  try_updates(TAPEDECK_CASE(adadelta), 4, 2, false, &adadelta);
  LionAttrs lion;
  lion.weight_decay = 0.1;
  try_updates(TAPEDECK_CASE(lion), 3, kNone, false, &lion);
}

TEST_F(CudaUpdates, CountersEqualCpu) {
  const Buffer next = draws_.dense(DType::i64, {});
  compare(TAPEDECK_CASE(count_next), {{count(41)}, {next}, {}});
  for (const bool on : {false, true}) {
    compare(TAPEDECK_CASE(count_next), {{count(41), condition(on)}, {next}, {}});
    compare(TAPEDECK_CASE(count_next), {{count(41), condition(on)}, {next}, {{0, 0}}});
  }
}

TEST_F(CudaUpdates, LossScaleEqualsCpu) {
  LossScaleAttrs attrs;
  attrs.interval = 3;
  for (const DType t : kFloats)
    for (const std::int64_t streak : {0, 1, 2, 5})
      for (const bool finite : {false, true})
        for (const double scale : {1.0, 3.0, 60000.0, 3e38}) {
          Operands call{{scalar(t, scale, scale), count(streak), condition(finite)}, {scalar(t, 0, 1), count(0)}, {}};
          compare(TAPEDECK_CASE(loss_scale_next), call, &attrs);
          call.in_place = {{0, 0}, {1, 1}};
          compare(TAPEDECK_CASE(loss_scale_next), call, &attrs);
        }
}

}  // namespace
}  // namespace tapedeck::testing::cuda
