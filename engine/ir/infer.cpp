#include <tapedeck/engine/ir/infer.h>

#include <tapedeck/kernels/checked_math.h>

#include <fmt/format.h>

namespace tapedeck {

void infer_require_float(const Infer& f, const Type& t) {
  if (!is_floating(t.dtype)) f.fail(fmt::format("needs a floating type, got {}", to_string(t)));
}

bool valid_axis(std::int64_t axis, int rank) { return axis >= 0 && axis < rank; }

std::int64_t infer_sum(const Infer& f, std::int64_t a, std::int64_t b) {
  const auto sum = checked_sum(a, b);
  if (!sum || *sum > kMaxTypeBytes) f.fail("the result is too large");
  return *sum;
}

void infer_same(Infer& f) { f.outputs.assign(1, f.inputs[0]); }

void infer_float(Infer& f) {
  infer_require_float(f, f.inputs[0]);
  infer_same(f);
}

Shape infer_broadcast_shape(const Infer& f, std::size_t first) {
  Shape shape = f.inputs[first].shape;
  for (std::size_t i = first + 1; i < f.inputs.size(); ++i) {
    if (f.inputs[i].dtype != f.inputs[first].dtype)
      f.fail(fmt::format("operands differ in dtype: {} and {}", to_string(f.inputs[first]), to_string(f.inputs[i])));
    Shape next;
    if (!broadcast_shapes(shape, f.inputs[i].shape, &next))
      f.fail(fmt::format("shapes do not broadcast: {} and {}", to_string(f.inputs[first]), to_string(f.inputs[i])));
    shape = next;
  }
  return shape;
}

void infer_broadcast(Infer& f) {
  const Shape shape = infer_broadcast_shape(f);
  f.outputs.assign(1, Type{f.inputs[0].dtype, shape});
}

void infer_like_first(Infer& f) {
  for (const Type& t : f.inputs)
    if (t != f.inputs[0]) f.fail(fmt::format("operands differ in type: {} and {}", to_string(f.inputs[0]), to_string(t)));
  infer_same(f);
}

Cost cost_like_copy(std::span<const Type> inputs, std::span<const Type> outputs, const void*) {
  Cost cost;
  for (const Type& t : inputs) cost.bytes += static_cast<double>(t.bytes());
  for (const Type& t : outputs) cost.bytes += static_cast<double>(t.bytes());
  return cost;
}

}  // namespace tapedeck
