// Prints and parses integers, reals, booleans and dtypes, so that printed text parses to the same bits.
//
//       0.1f -> "0.1"     2.0 -> "2.0"     -0.0 -> "-0.0"     quiet NaN -> "nan"     other NaN -> "nan.7fc00001"
//
// f16 and bf16 have no standard conversion in C++20. Here they are rounded once from a double, with ties to even.
#include <tapedeck/engine/text/literal_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

namespace tapedeck {
namespace {

constexpr const char* kOutOfRange = "the number is out of range";

// ---- 16-bit floats: conversion to float is exact, conversion back rounds ties to even ----

float half_to_float(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t{h} >> 15 << 31, exponent = (h >> 10) & 31, fraction = h & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                        : std::ldexp(static_cast<float>(fraction + 1024), static_cast<int>(exponent) - 25);
  return sign ? -magnitude : magnitude;
}

float bfloat_to_float(std::uint16_t b) { return std::bit_cast<float>(std::uint32_t{b} << 16); }

// Rounds a finite double once to a format with `fraction_bits` bits of fraction. The exponents are unbiased ones of that
// format. Returns false if the result overflows.
bool round_to_bits(double value, int fraction_bits, int min_exponent, int max_exponent, std::uint16_t* bits) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  int exponent = min_exponent;
  if (magnitude > 0) exponent = std::max(std::ilogb(magnitude), min_exponent);
  // The magnitude in units of the last place. The default rounding mode makes nearbyint round ties to even. A carry goes
  // into the exponent.
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent)));
  const std::uint32_t packed = (static_cast<std::uint32_t>(exponent - min_exponent) << fraction_bits) + units;
  if (packed >= static_cast<std::uint32_t>(max_exponent - min_exponent + 2) << fraction_bits) return false;
  *bits = static_cast<std::uint16_t>(sign | packed);
  return true;
}

// ---- the layout of each floating format, with its bits as an integer ----

template <class Bits>
struct Format {
  int fraction_bits;
  Bits infinity;  // all exponent bits 1, all fraction bits 0
  Bits sign() const { return static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1)); }
  Bits quiet_nan() const { return static_cast<Bits>(infinity | Bits{1} << (fraction_bits - 1)); }
  bool is_nan(Bits b) const { return static_cast<Bits>(b & ~sign()) > infinity; }
};
constexpr Format<std::uint64_t> kF64{52, 0x7ff0000000000000u};
constexpr Format<std::uint32_t> kF32{23, 0x7f800000u};
constexpr Format<std::uint16_t> kF16{10, 0x7c00};
constexpr Format<std::uint16_t> kBf16{7, 0x7f80};

template <class Bits>
void append_nan(std::string& out, Format<Bits> format, Bits bits) {
  if (bits == format.quiet_nan())
    out += "nan";
  else if (bits == static_cast<Bits>(format.quiet_nan() | format.sign()))
    out += "-nan";
  else
    fmt::format_to(std::back_inserter(out), "nan.{:0{}x}", static_cast<std::uint64_t>(bits), sizeof(Bits) * 2);
}

template <class T>
void append_finite(std::string& out, T value) {
  const std::size_t start = out.size();
  fmt::format_to(std::back_inserter(out), "{}", value);
  if (out.find_first_of(".en", start) == std::string::npos) out += ".0";  // 'n' is in "inf" and "nan"
}

// Parses inf, nan and nan.HEX, each with an optional '-' where allowed. Returns false if the word is none of these.
template <class Bits>
bool parse_special(std::string_view word, Format<Bits> format, Bits* bits) {
  if (word.substr(0, 4) == "nan." && word.size() == 4 + sizeof(Bits) * 2) {
    const auto [end, error] = std::from_chars(word.data() + 4, word.data() + word.size(), *bits, 16);
    return error == std::errc() && end == word.data() + word.size() && format.is_nan(*bits);
  }
  const bool negative = !word.empty() && word[0] == '-';
  if (negative) word.remove_prefix(1);
  if (word == "inf")
    *bits = format.infinity;
  else if (word == "nan")
    *bits = format.quiet_nan();
  else
    return false;
  if (negative) *bits = static_cast<Bits>(*bits | format.sign());
  return true;
}

template <class T>
const char* parse_finite(std::string_view word, T* value) {
  if (word.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return "expected a number";
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
  if (error == std::errc::result_out_of_range) return kOutOfRange;
  return error == std::errc() && end == word.data() + word.size() ? nullptr : "expected a number";
}

template <class T, class Bits>
const char* parse_float(std::string_view word, Format<Bits> format, void* element) {
  Bits bits;
  T value;
  if (!parse_special(word, format, &bits)) {
    if (const char* wrong = parse_finite(word, &value)) return wrong;
    bits = std::bit_cast<Bits>(value);
  }
  std::memcpy(element, &bits, sizeof bits);
  return nullptr;
}

const char* parse_float16(std::string_view word, Format<std::uint16_t> format, void* element) {
  std::uint16_t bits;
  if (!parse_special(word, format, &bits)) {
    double value;
    if (const char* wrong = parse_finite(word, &value)) return wrong;
    const int max_exponent = (1 << (14 - format.fraction_bits)) - 1;
    if (!round_to_bits(value, format.fraction_bits, 1 - max_exponent, max_exponent, &bits)) return kOutOfRange;
  }
  std::memcpy(element, &bits, sizeof bits);
  return nullptr;
}

template <class T>
const char* parse_small_integer(std::string_view word, void* element) {
  std::int64_t value;
  if (const char* wrong = parse_integer(word, &value)) return wrong;
  if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) return kOutOfRange;
  const T narrow = static_cast<T>(value);
  std::memcpy(element, &narrow, sizeof narrow);
  return nullptr;
}

template <class T>
T load(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

template <class T, class Bits>
void append_float(std::string& out, Format<Bits> format, const void* element) {
  const Bits bits = load<Bits>(element);
  if (format.is_nan(bits))
    append_nan(out, format, bits);
  else
    append_finite(out, std::bit_cast<T>(bits));
}

void append_float16(std::string& out, Format<std::uint16_t> format, std::uint16_t bits, float value) {
  if (format.is_nan(bits))
    append_nan(out, format, bits);
  else
    append_finite(out, value);
}

}  // namespace

void append_real(std::string& out, double value) { append_float<double>(out, kF64, &value); }

void append_element(std::string& out, DType dtype, const void* element) {
  switch (dtype) {
    case DType::f32:
      return append_float<float>(out, kF32, element);
    case DType::f64:
      return append_float<double>(out, kF64, element);
    case DType::f16:
      return append_float16(out, kF16, load<std::uint16_t>(element), half_to_float(load<std::uint16_t>(element)));
    case DType::bf16:
      return append_float16(out, kBf16, load<std::uint16_t>(element), bfloat_to_float(load<std::uint16_t>(element)));
    case DType::i32:
      out += std::to_string(load<std::int32_t>(element));
      return;
    case DType::i64:
      out += std::to_string(load<std::int64_t>(element));
      return;
    case DType::u8:
      out += std::to_string(load<std::uint8_t>(element));
      return;
    case DType::boolean:
      out += load<std::uint8_t>(element) ? "true" : "false";
      return;
  }
}

const char* parse_integer(std::string_view word, std::int64_t* value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
  if (error == std::errc::result_out_of_range) return kOutOfRange;
  return error == std::errc() && end == word.data() + word.size() ? nullptr : "expected an integer";
}

const char* parse_real(std::string_view word, double* value) { return parse_float<double>(word, kF64, value); }

const char* parse_boolean(std::string_view word, bool* value) {
  if (word != "true" && word != "false") return "expected true or false";
  *value = word == "true";
  return nullptr;
}

const char* parse_element(std::string_view word, DType dtype, void* element) {
  switch (dtype) {
    case DType::f32:
      return parse_float<float>(word, kF32, element);
    case DType::f64:
      return parse_float<double>(word, kF64, element);
    case DType::f16:
      return parse_float16(word, kF16, element);
    case DType::bf16:
      return parse_float16(word, kBf16, element);
    case DType::i32:
      return parse_small_integer<std::int32_t>(word, element);
    case DType::i64:
      return parse_small_integer<std::int64_t>(word, element);
    case DType::u8:
      return parse_small_integer<std::uint8_t>(word, element);
    case DType::boolean: {
      bool value = false;
      if (const char* wrong = parse_boolean(word, &value)) return wrong;
      *static_cast<std::uint8_t*>(element) = value;
      return nullptr;
    }
  }
  return "expected a number";
}

bool parse_dtype(std::string_view word, DType* dtype) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (word != dtype_name(static_cast<DType>(i))) continue;
    *dtype = static_cast<DType>(i);
    return true;
  }
  return false;
}

}  // namespace tapedeck
