// Attributes of the random ops beyond uniform, normal and dropout. `path` names the random stream; see kernels/philox.h.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// bernoulli: each element of the result is 1 with the probability in the operand, otherwise 0.
struct BernoulliAttrs {
  Name path;
  ATTR_FIELDS(ATTR_FIELD(BernoulliAttrs, path))
};

// randint: integers in low <= x < high.
struct RandintAttrs {
  Ints shape;
  DType dtype = DType::i64;
  std::int64_t low = 0;
  std::int64_t high = 0;
  Name path;
  ATTR_FIELDS(size_list(ATTR_REQUIRED(RandintAttrs, shape)), ATTR_FIELD(RandintAttrs, dtype), ATTR_FIELD(RandintAttrs, low),
              ATTR_REQUIRED(RandintAttrs, high), ATTR_FIELD(RandintAttrs, path))
};

// randperm: a random permutation of 0 ... n-1.
struct RandpermAttrs {
  std::int64_t n = 0;
  DType dtype = DType::i64;
  Name path;
  ATTR_FIELDS(never_size(ATTR_REQUIRED(RandpermAttrs, n)), ATTR_FIELD(RandpermAttrs, dtype), ATTR_FIELD(RandpermAttrs, path))
};

// fold_in: makes a new rng from an rng and an integer, for example the iteration of a loop.
struct FoldInAttrs {
  Name path;
  ATTR_FIELDS(ATTR_FIELD(FoldInAttrs, path))
};

// trunc_normal: a normal distribution restricted to [low, high].
struct TruncNormalAttrs {
  Ints shape;
  DType dtype = DType::f32;
  double mean = 0;
  double deviation = 1;
  double low = -2;
  double high = 2;
  Name path;
  ATTR_FIELDS(size_list(ATTR_REQUIRED(TruncNormalAttrs, shape)), ATTR_FIELD(TruncNormalAttrs, dtype),
              ATTR_FIELD(TruncNormalAttrs, mean), ATTR_FIELD(TruncNormalAttrs, deviation),
              may_scale(ATTR_FIELD(TruncNormalAttrs, low)), may_scale(ATTR_FIELD(TruncNormalAttrs, high)),
              ATTR_FIELD(TruncNormalAttrs, path))
};

// multinomial: `samples` indices per row of probabilities, with or without replacement.
struct MultinomialAttrs {
  std::int64_t samples = 1;
  Name path;
  bool replacement = false;
  ATTR_FIELDS(ATTR_FIELD(MultinomialAttrs, samples), ATTR_FIELD(MultinomialAttrs, path),
              ATTR_FIELD(MultinomialAttrs, replacement))
};

}  // namespace TAPEDECK_API
