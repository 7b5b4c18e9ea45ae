// Turns C++ numbers and nested lists of them into tensors (elements.h).
#include <tapedeck/engine/eager/elements.h>

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace tapedeck {

using detail::Number;

namespace {

constexpr std::uint64_t as_unsigned(const Number& n) { return static_cast<std::uint64_t>(n.integer); }

std::string text_of(const Number& n) {
  switch (n.kind) {
    case Number::Kind::real:
      return fmt::format("{}", n.real);
    case Number::Kind::unsigned_integer:
      return std::to_string(as_unsigned(n));
    default:
      return std::to_string(n.integer);
  }
}

double as_double(const Number& n) {
  if (n.kind == Number::Kind::real) return n.real;
  return n.kind == Number::Kind::unsigned_integer ? static_cast<double>(as_unsigned(n)) : static_cast<double>(n.integer);
}

// Whether the dtype holds the number, where `rounded` is the nearest number of the dtype.
bool holds(double rounded, const Number& n) {
  if (n.kind == Number::Kind::real) return !std::isinf(rounded) || std::isinf(n.real);  // fractions may be rounded
  if (n.kind == Number::Kind::unsigned_integer)
    return rounded < 0x1p64 && static_cast<std::uint64_t>(rounded) == as_unsigned(n);
  return rounded >= -0x1p63 && rounded < 0x1p63 && static_cast<std::int64_t>(rounded) == n.integer;
}

// The double as a float that rounds to the same half-precision number as the double. An inexact float gets an odd last bit, so
// that it does not stand in the middle of two of those numbers by chance.
float toward_half(double value) {
  const auto nearest = static_cast<float>(value);
  if (nearest == value || !std::isfinite(nearest)) return nearest;
  std::uint32_t bits = kernels::float_bits(nearest);
  if (std::fabs(nearest) > std::fabs(value)) --bits;  // the float before it, towards zero
  return kernels::bits_float(bits | 1);
}

template <class T>
bool put(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
  return true;
}

template <class T>
bool put_integer(char* at, const Number& n) {
  std::int64_t value = n.integer;
  if (n.kind == Number::Kind::unsigned_integer) return false;
  if (n.kind == Number::Kind::real) {
    if (!(n.real >= -0x1p63 && n.real < 0x1p63) || std::trunc(n.real) != n.real) return false;
    value = static_cast<std::int64_t>(n.real);
  }
  if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) return false;
  return put(at, static_cast<T>(value));
}

// Writes the number as an element. Returns false if the dtype does not hold it.
bool put_number(char* at, const Number& n, DType dtype) {
  const double value = as_double(n);
  switch (dtype) {
    case DType::f64:
      return holds(value, n) && put(at, value);
    case DType::f32:
      return holds(value, n) && holds(static_cast<float>(value), n) && put(at, static_cast<float>(value));
    case DType::f16: {
      const kernels::F16 half = kernels::to_f16(toward_half(value));
      return holds(value, n) && holds(kernels::to_f32(half), n) && put(at, half.bits);
    }
    case DType::bf16: {
      const kernels::Bf16 half = kernels::to_bf16(toward_half(value));
      return holds(value, n) && holds(kernels::to_f32(half), n) && put(at, half.bits);
    }
    case DType::i32:
      return put_integer<std::int32_t>(at, n);
    case DType::i64:
      return put_integer<std::int64_t>(at, n);
    case DType::u8:
      return put_integer<std::uint8_t>(at, n);
    case DType::boolean:
      break;
  }
  return put(at, static_cast<std::uint8_t>(value != 0));
}

// "[1,0]": the place of the element in a tensor of this shape.
std::string place_of(std::size_t i, const Shape& shape) {
  std::string text;
  auto left = static_cast<std::int64_t>(i);
  for (int d = shape.rank - 1; d >= 0; --d) {
    text = std::to_string(left % shape[d]) + (text.empty() ? "" : ",") + text;
    left /= shape[d];
  }
  return '[' + text + ']';
}

// ---- nested lists ----

// The shape and the numbers of a nested list.
class Flat {
 public:
  Flat(const Elements& all, Site site) : site_(site) {
    for (const Elements* e = &all; e->is_list(); e = &e->list().front()) {
      if (sizes_.size() == static_cast<std::size_t>(kMaxRank))
        refuse(fmt::format("lists are nested more than {} deep", kMaxRank));
      sizes_.push_back(static_cast<std::int64_t>(e->list().size()));
      if (e->list().empty()) break;
    }
    add(all, 0);
  }

  Shape shape() const { return Shape{std::span<const std::int64_t>(sizes_)}; }
  const std::vector<Number>& numbers() const { return numbers_; }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw TypeError(error_text("tensor", why, site_)); }

  std::string place() const {
    std::string text;
    for (std::int64_t i : place_) text += (text.empty() ? "" : ",") + std::to_string(i);
    return '[' + text + ']';
  }

  // Its recursion is at most kMaxRank + 1 deep.
  void add(const Elements& e, std::size_t level) {
    const bool deepest = level == sizes_.size();
    if (e.is_list() == deepest)
      refuse(fmt::format("{} at {}, where the lists before have {}", e.is_list() ? "a list stands" : "a number stands", place(),
                         deepest ? "numbers" : "lists"));
    if (deepest) {
      numbers_.push_back(e.number());
      return;
    }
    if (static_cast<std::int64_t>(e.list().size()) != sizes_[level])
      refuse(
          fmt::format("the list at {} has {} elements, and the lists before have {}", place(), e.list().size(), sizes_[level]));
    place_.push_back(0);
    for (const Elements& part : e.list()) {
      add(part, level + 1);
      ++place_.back();
    }
    place_.pop_back();
  }

  Site site_;
  std::vector<std::int64_t> sizes_, place_;
  std::vector<Number> numbers_;
};

// Bools make a tensor of bools, and other numbers make f32.
DType usual_dtype(const std::vector<Number>& numbers) {
  for (const Number& n : numbers)
    if (n.kind != Number::Kind::boolean) return DType::f32;
  return numbers.empty() ? DType::f32 : DType::boolean;
}

}  // namespace

void detail::refuse_unsigned(std::uint64_t value, Site site) {
  throw TypeError(error_text("", fmt::format("{} is larger than the largest i64", value), site));
}

Tensor detail::tensor_of_numbers(const char* op, const void* values, std::size_t count, NumberAt get, const Type& type,
                                 Site site) {
  if (static_cast<std::int64_t>(count) != type.numel())
    throw TypeError(error_text(op, fmt::format("{} values do not fill {}", count, to_string(type.shape)), site));
  const std::size_t size = dtype_size(type.dtype);
  std::vector<char> bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const Number number = get(values, i);
    if (!put_number(bytes.data() + i * size, number, type.dtype))
      throw TypeError(error_text(op,
                                 fmt::format("{} at {} is not a value of {}; choose another dtype", text_of(number),
                                             place_of(i, type.shape), dtype_name(type.dtype)),
                                 site));
  }
  return from_bytes(type, bytes.data());
}

Tensor tensor(const Elements& elements, std::optional<DType> dtype, Site site) {
  const Flat flat(elements, site);
  const std::vector<Number>& numbers = flat.numbers();
  return detail::tensor_of_numbers(
      "tensor", &numbers, numbers.size(),
      [](const void* values, std::size_t i) { return (*static_cast<const std::vector<Number>*>(values))[i]; },
      Type{dtype.value_or(usual_dtype(numbers)), flat.shape()}, site);
}

}  // namespace tapedeck
