// Attributes of the optimizers' update ops, and of the loss scale.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// sgd_momentum.
struct MomentumAttrs {
  double momentum = 0.9;
  double weight_decay = 0;
  double dampening = 0;
  bool nesterov = false;
  ATTR_FIELDS(ATTR_FIELD(MomentumAttrs, momentum), ATTR_FIELD(MomentumAttrs, weight_decay),
              ATTR_FIELD(MomentumAttrs, dampening), ATTR_FIELD(MomentumAttrs, nesterov))
};

// rmsprop and its variants: `alpha` is the decay rate of the mean of squares.
struct RmspropAttrs {
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  ATTR_FIELDS(ATTR_FIELD(RmspropAttrs, alpha), ATTR_FIELD(RmspropAttrs, eps), ATTR_FIELD(RmspropAttrs, weight_decay),
              ATTR_FIELD(RmspropAttrs, momentum))
};

// adagrad: the learning rate of step t is lr / (1 + (t - 1) lr_decay).
struct AdagradAttrs {
  double lr_decay = 0;
  double eps = 1e-10;
  double weight_decay = 0;
  ATTR_FIELDS(ATTR_FIELD(AdagradAttrs, lr_decay), ATTR_FIELD(AdagradAttrs, eps), ATTR_FIELD(AdagradAttrs, weight_decay))
};

// adadelta: `rho` is the decay rate of both means of squares.
struct AdadeltaAttrs {
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  ATTR_FIELDS(ATTR_FIELD(AdadeltaAttrs, rho), ATTR_FIELD(AdadeltaAttrs, eps), ATTR_FIELD(AdadeltaAttrs, weight_decay))
};

// lion: `beta1` mixes the momentum and the gradient into the step, `beta2` is the decay rate of the momentum.
struct LionAttrs {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
  ATTR_FIELDS(ATTR_FIELD(LionAttrs, beta1), ATTR_FIELD(LionAttrs, beta2), ATTR_FIELD(LionAttrs, weight_decay))
};

// The loss scale is multiplied by `growth` after `interval` finite steps in a row, and by `backoff` after a step that is not
// finite.
struct LossScaleAttrs {
  double growth = 2;
  double backoff = 0.5;
  std::int64_t interval = 2000;
  ATTR_FIELDS(ATTR_FIELD(LossScaleAttrs, growth), ATTR_FIELD(LossScaleAttrs, backoff),
              never_size(ATTR_FIELD(LossScaleAttrs, interval)))
};

}  // namespace TAPEDECK_API
