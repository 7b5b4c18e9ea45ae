// Gives two operands one dtype. Author functions of two operands call this first.
#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/core_ops.h>

#include <fmt/format.h>

namespace tapedeck {

using detail::TensorImpl;

bool same_dtype(const Arg& a, const Arg& b) {
  const TensorImpl *x = a.tensor().impl(), *y = b.tensor().impl();
  return x && y && x->dtype == y->dtype;
}

Tensor scalar_of(const char* op, const Arg& number, DType dtype) {
  try {
    return number.is_integer() ? integer_scalar(number.integer(), dtype) : scalar(number.number(), dtype);
  } catch (const TypeError&) {
    const std::string text = number.is_integer() ? std::to_string(number.integer()) : fmt::format("{}", number.number());
    throw TypeError(error_text(op, fmt::format("{} does not fit the dtype of the other operand, {}", text, dtype_name(dtype)),
                               number.site()));
  } catch (const MemoryLimitError& error) {
    throw MemoryLimitError(error_text(op, error.message(), number.site()));
  }
}

std::pair<Tensor, Tensor> promoted(const char* op, const Arg& a, const Arg& b) {
  if (a.is_scalar() && b.is_scalar()) {
    const DType dtype = a.is_integer() && b.is_integer() ? DType::i64 : DType::f32;
    return {scalar_of(op, a, dtype), scalar_of(op, b, dtype)};
  }
  auto number = [&](const Arg& n, const Tensor& beside) {
    if (!beside.defined()) throw TypeError(error_text(op, "an operand is undefined", a.site()));
    const bool fraction = !n.is_integer() && !is_floating(beside.dtype());
    return scalar_of(op, n, fraction ? DType::f32 : beside.dtype() == DType::boolean ? DType::i64 : beside.dtype());
  };
  Tensor x = a.is_scalar() ? number(a, b.tensor()) : a.tensor();
  Tensor y = b.is_scalar() ? number(b, a.tensor()) : b.tensor();
  if (!x.defined() || !y.defined() || x.dtype() == y.dtype()) return {std::move(x), std::move(y)};
  const DType dtype = promote(x.dtype(), y.dtype());
  const CastAttrs attrs{dtype};
  if (x.dtype() != dtype) x = apply(ops::cast, {&x}, &attrs, a.site());
  if (y.dtype() != dtype) y = apply(ops::cast, {&y}, &attrs, b.site());
  return {std::move(x), std::move(y)};
}

}  // namespace tapedeck
