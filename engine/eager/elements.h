// C++ numbers on their way into a tensor: numbers of any arithmetic type, and nested lists of them.
//
// No element changes silently. Floating dtypes round a fraction to the nearest number that they hold; apart from this, a number
// must be a value of the dtype, or it is a TypeError that names the number, its place and the place of the call. An integer
// that f32 does not hold exactly is no value of f32, nor is a finite number beyond its largest one, and a fraction is no value
// of an integer dtype. In bool, every number but 0 is true.
#pragma once

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/type.h>
#include <tapedeck/kernels/export.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <vector>

namespace tapedeck TAPEDECK_API {

class Tensor;

template <class T>
concept CppNumber = std::is_arithmetic_v<T> &&(std::is_floating_point_v<T> || sizeof(T) <= sizeof(std::int64_t));

namespace detail {

// A C++ number in the form in which the author gave it.
struct Number {
  enum class Kind : std::uint8_t { boolean, integer, unsigned_integer, real };
  Kind kind = Kind::integer;
  std::int64_t integer = 0;  // the same bits, of Kind::unsigned_integer: a number above the largest std::int64_t
  double real = 0;           // of Kind::real
};

template <CppNumber T>
constexpr Number number_of(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return {Number::Kind::real, 0, static_cast<double>(value)};
  else if constexpr (std::is_same_v<T, bool>)
    return {Number::Kind::boolean, value, 0};
  else if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(std::int64_t))
    return {value > static_cast<T>(INT64_MAX) ? Number::Kind::unsigned_integer : Number::Kind::integer,
            static_cast<std::int64_t>(value), 0};
  else
    return {Number::Kind::integer, static_cast<std::int64_t>(value), 0};
}

[[noreturn]] void refuse_unsigned(std::uint64_t value, Site site);

// The integer as an i64. Throws TypeError if it is larger.
template <std::integral T>
std::int64_t exact_integer(T value, Site site) {
  if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(std::int64_t))
    if (value > static_cast<T>(INT64_MAX)) refuse_unsigned(value, site);
  return static_cast<std::int64_t>(value);
}

// The dtype that from_vector() gives numbers of a C++ type; none for types that are not the elements of a dtype.
template <class T>
constexpr std::optional<DType> dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, unsigned char>) return DType::u8;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 4) return DType::i32;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8) return DType::i64;
  return {};
}

// A tensor of the numbers get(values, 0), get(values, 1), ... in row-major order. Throws TypeError if they are not as many as
// the shape has elements.
using NumberAt = Number (*)(const void* values, std::size_t i);
Tensor tensor_of_numbers(const char* op, const void* values, std::size_t count, NumberAt get, const Type& type, Site site);

}  // namespace detail

// A number, or a list of lists of numbers, as in tensor({{1, 2}, {3, 4}}). It is made implicitly from braces.
class Elements {
 public:
  template <CppNumber T>
  Elements(T value) : number_(detail::number_of(value)) {}                         // NOLINT
  Elements(std::initializer_list<Elements> list) : is_list_(true), list_(list) {}  // NOLINT

  bool is_list() const { return is_list_; }
  const std::vector<Elements>& list() const { return list_; }
  const detail::Number& number() const { return number_; }

 private:
  bool is_list_ = false;
  detail::Number number_;
  std::vector<Elements> list_;
};

}  // namespace TAPEDECK_API
