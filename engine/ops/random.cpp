#include <tapedeck/engine/infer.h>
#include <tapedeck/engine/ops.h>
#include <tapedeck/engine/tape.h>
#include <tapedeck/engine/thread_state.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

void require_state(const Infer& f, const Type& rng) {
  if (rng != Type{DType::i64, {2}}) f.fail(fmt::format("the random state must be i64[2], not {}", to_string(rng)));
}

void infer_rng_next(Infer& f) {
  require_state(f, f.inputs[0]);
  infer_same(f);
}

void infer_random(Infer& f) {
  const auto& a = f.attributes<RandomAttrs>();
  require_state(f, f.inputs[0]);
  if (a.dtype != DType::f32 && a.dtype != DType::f64) f.fail(fmt::format("draws f32 or f64, not {}", dtype_name(a.dtype)));
  if (checked_bytes(a.dtype, {a.shape.items, static_cast<std::size_t>(a.shape.size)}) < 0) f.fail("bad shape");
  f.outputs.assign(1, Type{a.dtype, Shape(std::span<const std::int64_t>(a.shape.items, static_cast<std::size_t>(a.shape.size)))});
}

Tensor draw(const Op& op, const Shape& shape, double low, double high, DType dtype, Site site) {
  RandomAttrs attrs;
  for (std::int64_t s : shape) attrs.shape.push_back(s);
  attrs.dtype = dtype;
  attrs.low = low;
  attrs.high = high;
  attrs.path = next_draw_path();
  return apply(op, {&rng_state()}, &attrs, site);
}

}  // namespace

Tensor uniform(const Shape& shape, double low, double high, DType dtype, Site site) {
  return draw(ops::uniform, shape, low, high, dtype, site);
}

Tensor normal(const Shape& shape, double mean, double deviation, DType dtype, Site site) {
  return draw(ops::normal, shape, mean, deviation, dtype, site);
}

Tensor dropout(const Arg& x, double p) {
  const DropoutAttrs attrs{p, next_draw_path()};
  return apply(ops::dropout, {&x.tensor(), &rng_state()}, &attrs, x.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/random.h>
