// Attributes of the losses.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// cross_entropy cross_entropy_grad. `reduction` is "none", "mean" or "sum", here and in the structs below. Rows with the label
// `ignore_index` are left out: of the sum, and of the count that a mean divides by. With `loss_in_f32` the loss of f16 and bf16
// scores is f32, as under autocast; else it has their type. The gradient does not read it.
struct CrossEntropyAttrs {
  double label_smoothing = 0;
  std::int64_t ignore_index = -100;
  Name reduction = "mean";
  bool loss_in_f32 = false;
  ATTR_FIELDS(ATTR_FIELD(CrossEntropyAttrs, label_smoothing), never_size(ATTR_FIELD(CrossEntropyAttrs, ignore_index)),
              ATTR_FIELD(CrossEntropyAttrs, reduction), added_later(ATTR_FIELD(CrossEntropyAttrs, loss_in_f32)))
};

// nll_loss: as CrossEntropyAttrs, without smoothing.
struct NllAttrs {
  std::int64_t ignore_index = -100;
  Name reduction = "mean";
  ATTR_FIELDS(never_size(ATTR_FIELD(NllAttrs, ignore_index)), ATTR_FIELD(NllAttrs, reduction))
};

// nll_loss_grad: as NllAttrs, and the number of classes, because the operands do not determine it.
struct NllGradAttrs {
  std::int64_t classes = 0;
  std::int64_t ignore_index = -100;
  Name reduction = "mean";
  ATTR_FIELDS(ATTR_REQUIRED(NllGradAttrs, classes), never_size(ATTR_FIELD(NllGradAttrs, ignore_index)),
              ATTR_FIELD(NllGradAttrs, reduction))
};

// huber: quadratic where |x - target| <= delta, linear beyond.
struct HuberAttrs {
  double delta = 1;
  ATTR_FIELDS(ATTR_FIELD(HuberAttrs, delta))
};

// kl_div. With `log_target`, the target holds logarithms of probabilities.
struct KlDivAttrs {
  bool log_target = false;
  ATTR_FIELDS(ATTR_FIELD(KlDivAttrs, log_target))
};

// ctc_loss: `blank` is the class of the blank. With `zero_infinity`, a target that no alignment can spell has loss 0.
struct CtcAttrs {
  std::int64_t blank = 0;
  bool zero_infinity = false;
  ATTR_FIELDS(never_size(ATTR_FIELD(CtcAttrs, blank)), ATTR_FIELD(CtcAttrs, zero_infinity))
};

}  // namespace TAPEDECK_API
