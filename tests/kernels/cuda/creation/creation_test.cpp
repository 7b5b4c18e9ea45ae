// Tensors from a rule and random draws for the device, in the emulator, against the CPU kernels, bit for bit.
#include <tapedeck/kernels/cuda/creation/list.h>
#include <tapedeck/tests/kernels/cuda/cases.h>
#include <tapedeck/kernels/cuda/creation/choose.inl>
#include <tapedeck/kernels/cuda/creation/create.inl>
#include <tapedeck/kernels/cuda/creation/random.inl>

namespace tapedeck::kernels::cpu {
TAPEDECK_CUDA_CREATION(TAPEDECK_DECLARE_CPU, TAPEDECK_DECLARE_CPU)
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing::cuda {
namespace {

const Sizes kCounts = {0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 1000, 4099};

class CudaCreation : public RandomCalls {
 protected:
  void try_rule(const Case& c, const Types& types, const Sizes& sizes, const void* attrs) {
    for (const DType t : types)
      for (int round = 0; round < 3; ++round) compare(c, {{}, {draws_.dense(t, sizes)}, {}}, attrs);
  }
};

TEST_F(CudaCreation, FullEqualsCpu) {
  for (const double value : {0.0, 1.0, -2.5, 3.7, 1e5})
    for (const std::int64_t n : kCounts) {
      FullAttrs attrs;
      attrs.value = value;
      try_rule(TAPEDECK_CASE(full), kAll, {n}, &attrs);
    }
}

TEST_F(CudaCreation, RangesEqualCpu) {
  for (const std::int64_t n : kCounts) {
    ArangeAttrs arange;
    arange.start = 3, arange.step = -2, arange.stop = arange.start + static_cast<double>(n) * arange.step;
    try_rule(TAPEDECK_CASE(arange), kIntegers, {n}, &arange);
    arange.step = 0.3;
    try_rule(TAPEDECK_CASE(arange), kFloats, {n}, &arange);
    LinspaceAttrs linspace;
    linspace.start = -1, linspace.stop = 2.7, linspace.count = n;
    try_rule(TAPEDECK_CASE(linspace), kFloats, {n}, &linspace);
  }
}

TEST_F(CudaCreation, EyeEqualsCpu) {
  for (const Sizes& sizes : {Sizes{1, 1}, {3, 3}, {5, 2}, {2, 7}, {0, 3}, {3, 0}, {33, 40}}) {
    EyeAttrs attrs;
    attrs.rows = sizes[0], attrs.columns = sizes[1];
    try_rule(TAPEDECK_CASE(eye), kAll, sizes, &attrs);
  }
}

class CudaDraws : public RandomCalls {
 protected:
  Buffer rng() { return draws_.dense(DType::i64, {2}); }
  void try_draw(const Case& c, const Types& types, const void* attrs) {
    for (const DType t : types)
      for (const std::int64_t n : kCounts) compare(c, {{rng()}, {draws_.dense(t, {n})}, {}}, attrs);
  }
  // A draw over an operand; the result lies on it in half of the calls.
  void try_draw_over(const Case& c, const void* attrs, Range range, bool in_place) {
    for (const DType t : kFloats)
      for (const std::int64_t n : kCounts)
        for (int round = 0; round < (in_place ? 2 : 1); ++round) {
          Operands operands{{draws_.dense(t, {n}, range), rng()}, {draws_.dense(t, {n})}, {}};
          if (round == 1) operands.in_place.push_back({0, 0});
          compare(c, operands, attrs);
        }
  }
};

TEST_F(CudaDraws, EqualCpu) {
  RandomAttrs random;
  random.low = -1.25, random.high = 2.5, random.path = "layer/0";
  try_draw(TAPEDECK_CASE(uniform), kFloats, &random);
  try_draw(TAPEDECK_CASE(normal), kFloats, &random);
  RandintAttrs integers;
  integers.low = 3, integers.high = 200, integers.path = "layer/1";
  try_draw(TAPEDECK_CASE(randint), kIntegers, &integers);
  integers.low = -(std::int64_t{1} << 40), integers.high = std::int64_t{1} << 62;
  try_draw(TAPEDECK_CASE(randint), {DType::i64}, &integers);
}

TEST_F(CudaDraws, OfATruncatedNormalEqualCpu) {
  TruncNormalAttrs attrs;
  attrs.path = "layer/2";
  try_draw(TAPEDECK_CASE(trunc_normal), kFloats, &attrs);
  attrs.low = 1, attrs.high = 7, attrs.deviation = 0.5;
  try_draw(TAPEDECK_CASE(trunc_normal), kFloats, &attrs);
}

TEST_F(CudaDraws, OverAnOperandEqualCpu) {
  DropoutAttrs dropout;
  dropout.p = 0.3, dropout.path = "layer/3";
  try_draw_over(TAPEDECK_CASE(dropout), &dropout, {}, true);
  try_draw_over(TAPEDECK_CASE(alpha_dropout), &dropout, {}, true);
  BernoulliAttrs bernoulli;
  bernoulli.path = "layer/4";
  try_draw_over(TAPEDECK_CASE(bernoulli), &bernoulli, {0, 1, false}, false);
  try_draw_over(TAPEDECK_CASE(bernoulli), &bernoulli, {0, 1, true}, false);  // infinities and the like are no probabilities
}

TEST_F(CudaDraws, TheStateEqualsCpu) {
  FoldInAttrs attrs;
  attrs.path = "loop/1";
  for (int round = 0; round < 10; ++round) {
    Operands next{{rng()}, {draws_.dense(DType::i64, {2})}, {}};
    compare(TAPEDECK_CASE(rng_next), next);
    next.in_place.push_back({0, 0});
    compare(TAPEDECK_CASE(rng_next), next);
    compare(TAPEDECK_CASE(fold_in), {{rng(), draws_.dense(DType::i64, {})}, {draws_.dense(DType::i64, {2})}, {}}, &attrs);
  }
}

TEST_F(CudaDraws, OfPermutationsEqualCpu) {
  for (const DType t : {DType::i32, DType::i64})
    for (const std::int64_t n : {0, 1, 2, 3, 64, 65, 1000}) {
      RandpermAttrs attrs;
      attrs.n = n, attrs.dtype = t, attrs.path = "loader/0";
      compare(TAPEDECK_CASE(randperm), {{rng()}, {draws_.dense(t, {n})}, {}}, &attrs);
    }
}

// Faulty rows come too: negative and infinite probabilities, rows of zeros, and fewer classes than samples.
TEST_F(CudaDraws, OfClassesEqualCpu) {
  for (const DType t : kFloats)
    for (const bool replacement : {false, true})
      for (const std::int64_t rows : {0, 1, 3, 70})
        for (const std::int64_t classes : {1, 2, 5, 33})
          for (const bool special : {false, true}) {
            MultinomialAttrs attrs;
            attrs.samples = replacement ? 7 : 1 + draws_.below(classes), attrs.replacement = replacement, attrs.path = "p";
            Buffer p = draws_.dense(t, {rows, classes}, {0, 1, special});
            for (std::int64_t k = 0; k < p.view.numel(); ++k)
              if (draws_.chance(0.2))
                std::memset(p.view.as<char>() + k * static_cast<std::int64_t>(dtype_size(t)), 0, dtype_size(t));
            Case c = TAPEDECK_CASE(multinomial);
            c.workspace = &kernels::emulated::multinomial_workspace;
            compare(c, {{p, rng()}, {draws_.dense(DType::i64, {rows, attrs.samples})}, {}}, &attrs);
          }
}

}  // namespace
}  // namespace tapedeck::testing::cuda
