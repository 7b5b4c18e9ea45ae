// Inference of random ops, and the functions for authors, which add two things to a call: the random state of the thread and
// the path of the draw.
//
//       uniform({2,3})    ->    uniform(%rng) {shape=[2,3], path="fc.drop#0"}
//
// So a draw depends only on seed, step and path, not on the order of calls in other modules.
#include <tapedeck/engine/eager/call_scope.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/operands.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/kernels/alpha_dropout.h>

#include <fmt/format.h>

#include <cmath>

namespace tapedeck {
namespace {

void require_state(const Infer& f, const Type& rng) {
  if (rng != Type{DType::i64, {2}}) f.fail(fmt::format("the random state must be i64[2], not {}", to_string(rng)));
}

void infer_rng_next(Infer& f) {
  require_state(f, f.inputs[0]);
  infer_same(f);
}

void infer_fold_in(Infer& f) {
  require_state(f, f.inputs[0]);
  if (f.inputs[1] != Type{DType::i64, {}}) f.fail(fmt::format("the pass must be i64[], not {}", to_string(f.inputs[1])));
  infer_same(f);
}

// Sets output 0 to this dtype and these sizes.
void infer_drawn(Infer& f, DType dtype, std::span<const std::int64_t> sizes) {
  require_state(f, f.inputs[0]);
  if (checked_bytes(dtype, sizes) < 0) f.fail("bad shape");
  f.outputs.assign(1, Type{dtype, Shape(sizes)});
}
std::span<const std::int64_t> span_of(const Ints& sizes) { return {sizes.items, static_cast<std::size_t>(sizes.size)}; }

void require_floating_draw(const Infer& f, DType dtype) {
  if (!is_floating(dtype)) f.fail(fmt::format("draws floating types, not {}", dtype_name(dtype)));
}

void infer_random(Infer& f) {
  const auto& a = f.attributes<RandomAttrs>();
  require_floating_draw(f, a.dtype);
  infer_drawn(f, a.dtype, span_of(a.shape));
}

void infer_trunc_normal(Infer& f) {
  const auto& a = f.attributes<TruncNormalAttrs>();
  require_floating_draw(f, a.dtype);
  if (!(a.deviation > 0)) f.fail("the deviation must be above 0");
  if (!(a.low < a.high)) f.fail("low must be below high");
  if (std::isnan(a.mean) || std::isinf(a.mean) || std::isinf(a.deviation)) f.fail("mean and deviation must be finite");
  infer_drawn(f, a.dtype, span_of(a.shape));
}

void infer_randint(Infer& f) {
  const auto& a = f.attributes<RandintAttrs>();
  constexpr std::int64_t k32 = std::int64_t{1} << 31;
  if (a.low >= a.high) f.fail(fmt::format("no integers in [{}, {})", a.low, a.high));
  const bool fits = a.dtype == DType::i64 || (a.dtype == DType::i32 && a.low >= -k32 && a.high <= k32) ||
                    (a.dtype == DType::u8 && a.low >= 0 && a.high <= 256);
  if (!fits) f.fail(fmt::format("{} does not hold the integers in [{}, {})", dtype_name(a.dtype), a.low, a.high));
  infer_drawn(f, a.dtype, span_of(a.shape));
}

void infer_randperm(Infer& f) {
  const auto& a = f.attributes<RandpermAttrs>();
  if (a.n < 0) f.fail("n must not be negative");
  if (a.dtype != DType::i64 && (a.dtype != DType::i32 || a.n > std::int64_t{1} << 31))
    f.fail(fmt::format("{} does not hold the integers in [0, {})", dtype_name(a.dtype), a.n));
  infer_drawn(f, a.dtype, {&a.n, 1});
}

void infer_multinomial(Infer& f) {
  const auto& a = f.attributes<MultinomialAttrs>();
  const Type& p = f.inputs[0];
  infer_require_float(f, p);
  require_state(f, f.inputs[1]);
  if (p.shape.rank != 1 && p.shape.rank != 2) f.fail(fmt::format("probabilities must be [c] or [n,c], got {}", to_string(p)));
  const std::int64_t classes = p.shape[p.shape.rank - 1];
  if (classes < 1) f.fail(fmt::format("no classes in {}", to_string(p)));
  if (a.samples < 0) f.fail("samples must not be negative");
  if (!a.replacement && a.samples > classes)
    f.fail(fmt::format("cannot take {} samples of {} classes without replacement", a.samples, classes));
  Type out{DType::i64, p.shape};
  out.shape.sizes[p.shape.rank - 1] = a.samples;
  const std::int64_t wide[3] = {2, p.shape.rank == 2 ? p.shape[0] : 1, classes};  // workspace: 16 bytes for each class
  if (checked_bytes(out.dtype, {out.shape.sizes, static_cast<std::size_t>(out.shape.rank)}) < 0 ||
      checked_bytes(DType::f64, wide) < 0)
    f.fail("too many samples");
  f.outputs.assign(1, out);
}

void infer_dropout(Infer& f) {
  infer_require_float(f, f.inputs[0]);
  require_state(f, f.inputs[1]);
  const double p = f.attributes<DropoutAttrs>().p;
  if (!(p >= 0 && p < 1)) f.fail("p must be at least 0 and below 1");
  f.outputs.assign(1, f.inputs[0]);
}

Ints ints_of(const Shape& shape) {
  Ints sizes;
  for (std::int64_t s : shape) sizes.push_back(s);
  return sizes;
}

Tensor draw(const Op& op, const Shape& shape, double low, double high, DType dtype, Site site) {
  RandomAttrs attrs;
  attrs.shape = ints_of(shape);
  attrs.dtype = dtype;
  attrs.low = low;
  attrs.high = high;
  const DrawPath path;
  attrs.path = path.name();
  return apply(op, {&rng_state()}, &attrs, site);
}

}  // namespace

Tensor uniform(const Shape& shape, double low, double high, DType dtype, Site site) {
  return draw(ops::uniform, shape, low, high, dtype, site);
}

Tensor normal(const Shape& shape, double mean, double deviation, DType dtype, Site site) {
  return draw(ops::normal, shape, mean, deviation, dtype, site);
}

Tensor trunc_normal(const Shape& shape, double mean, double deviation, double low, double high, DType dtype, Site site) {
  const DrawPath path;
  const TruncNormalAttrs attrs{ints_of(shape), dtype, mean, deviation, low, high, path.name()};
  return apply(ops::trunc_normal, {&rng_state()}, &attrs, site);
}

namespace {
// In half precision a draw near 1 would be rounded up to 1, and the logarithm of 1 - draw would be infinite. So draws are
// made in f32 at least.
DType at_least_f32(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype; }
}  // namespace

Tensor exponential(const Shape& shape, double rate, DType dtype, Site site) {
  const CallScope scope(site);
  if (!(rate > 0)) throw TypeError(error_text("exponential", "the rate must be above 0", site));
  return cast(mul(log(sub(1, uniform(shape, 0, 1, at_least_f32(dtype), site))), -1 / rate), dtype);
}

Tensor gumbel(const Shape& shape, DType dtype, Site site) {
  const CallScope scope(site);
  constexpr double kSmallest = 0x1p-54;  // the logarithm of 0 would be -inf
  return cast(neg(log(neg(log(uniform(shape, kSmallest, 1, at_least_f32(dtype), site))))), dtype);
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype, Site site) {
  const DrawPath path;
  const RandintAttrs attrs{ints_of(shape), dtype, low, high, path.name()};
  return apply(ops::randint, {&rng_state()}, &attrs, site);
}

Tensor randperm(std::int64_t n, DType dtype, Site site) {
  const DrawPath path;
  const RandpermAttrs attrs{n, dtype, path.name()};
  return apply(ops::randperm, {&rng_state()}, &attrs, site);
}

Tensor rand_like(const Arg& x) {
  require_defined("rand_like", x);
  return uniform(x.tensor().shape(), 0, 1, x.tensor().dtype(), x.site());
}

Tensor randn_like(const Arg& x) {
  require_defined("randn_like", x);
  return normal(x.tensor().shape(), 0, 1, x.tensor().dtype(), x.site());
}

Tensor bernoulli(const Arg& p) {
  const DrawPath path;
  const BernoulliAttrs attrs{path.name()};
  return apply(ops::bernoulli, {&p.tensor(), &rng_state()}, &attrs, p.site());
}

Tensor bernoulli(const Shape& shape, double p, DType dtype, Site site) {
  const CallScope scope(site);
  const Tensor chances = full(shape, p, dtype, site);
  return bernoulli(Arg(chances, site.file, site.line));
}

Tensor multinomial(const Arg& p, std::int64_t samples, bool replacement) {
  const DrawPath path;
  const MultinomialAttrs attrs{samples, path.name(), replacement};
  return apply(ops::multinomial, {&p.tensor(), &rng_state()}, &attrs, p.site());
}

Tensor dropout2d(const Arg& x, double p) {
  const CallScope scope(x.site());
  require_defined("dropout2d", x);
  const Type type = x.tensor().type();
  if (type.shape.rank < 2)
    throw TypeError(error_text("dropout2d", fmt::format("needs at least two dimensions, got {}", to_string(type)), x.site()));
  Shape channels = type.shape;
  for (int d = 2; d < channels.rank; ++d) channels.sizes[d] = 1;
  const Tensor all = ones(channels, type.dtype, x.site());
  return mul(x, dropout(Arg(all, x.site().file, x.site().line), p));
}

Tensor alpha_dropout(const Arg& x, double p) {
  const DrawPath path;
  const DropoutAttrs attrs{p, path.name()};
  return apply(ops::alpha_dropout, {&x.tensor(), &rng_state()}, &attrs, x.site());
}

Tensor dropout(const Arg& x, double p) {
  const DrawPath path;
  const DropoutAttrs attrs{p, path.name()};
  return apply(ops::dropout, {&x.tensor(), &rng_state()}, &attrs, x.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/random.h>
