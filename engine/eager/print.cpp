// Prints tensors as NumPy does (print.h). The steps:
//
//       shown places of each axis  ->  addresses of the shown elements  ->  one word for each, all of one width  ->  lines
#include <tapedeck/engine/eager/print.h>

#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <vector>

namespace tapedeck {
namespace {

using detail::TensorImpl;

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// ---- which elements are shown ----

// The places along each axis that are shown. kGap stands for "...".
constexpr std::int64_t kGap = -1;
using Places = std::vector<std::vector<std::int64_t>>;

Places shown_places(const Shape& shape, const TensorPrintOptions& options) {
  const bool shortened = shape.numel() > std::max<std::int64_t>(options.threshold, 0);
  const std::int64_t edge = std::max(options.edge_items, 1);
  Places places(static_cast<std::size_t>(shape.rank));
  for (int d = 0; d < shape.rank; ++d) {
    const bool gap = shortened && shape[d] > 2 * edge;
    for (std::int64_t i = 0; i < (gap ? edge : shape[d]); ++i) places[d].push_back(i);
    if (!gap) continue;
    places[d].push_back(kGap);
    for (std::int64_t i = shape[d] - edge; i < shape[d]; ++i) places[d].push_back(i);
  }
  return places;
}

// The addresses of the shown elements in row-major order. REQUIRES: the tensor has elements.
std::vector<const char*> shown_elements(const TensorImpl& t, const Places& places) {
  std::vector<const char*> elements = {static_cast<const char*>(t.data())};
  for (std::size_t d = 0; d < places.size(); ++d) {
    const std::int64_t step = t.strides[d] * static_cast<std::int64_t>(dtype_size(t.dtype));
    std::vector<const char*> next;
    for (const char* row : elements)
      for (std::int64_t place : places[d])
        if (place != kGap) next.push_back(row + place * step);
    elements = std::move(next);
  }
  return elements;
}

// ---- numbers as decimal digits ----

// A finite number as 0.d1d2d3... times ten to a power; zero has the one digit 0 and the exponent 0.
// In scientific notation it is d1.d2d3... e exponent.
struct Decimal {
  bool negative = false;
  std::string digits;  // without zeros at the end
  int exponent = 0;    // of the first digit
};

// Reads the text of the form "-1.25e-07".
Decimal read_scientific(const std::string& text) {
  Decimal decimal;
  const std::size_t e = text.find('e');
  for (char c : text.substr(0, e))
    if (c >= '0' && c <= '9') decimal.digits += c;
  decimal.negative = text[0] == '-';
  decimal.exponent = std::atoi(text.c_str() + e + 1);
  while (decimal.digits.size() > 1 && decimal.digits.back() == '0') decimal.digits.pop_back();
  return decimal;
}

template <class T>
std::string shortest(T value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  return std::string(text, end);
}

// The fewest digits that `narrow` turns back into the same half-precision number.
template <class Narrow>
std::string shortest_half(float value, Narrow narrow) {
  for (int digits = 0;; ++digits) {
    std::string text = fmt::format("{:.{}e}", value, digits);
    if (digits == 8 || narrow(std::strtof(text.c_str(), nullptr)).bits == narrow(value).bits) return text;
  }
}

// An element of a floating dtype.
struct Real {
  double value = 0;
  Decimal decimal;  // the fewest digits; not set for infinities and NaN
};

Real read_real(DType dtype, const char* at) {
  Real real;
  std::string text;
  if (dtype == DType::f64) {
    real.value = load<double>(at);
    text = shortest(real.value);
  } else if (dtype == DType::f32) {
    real.value = load<float>(at);
    text = shortest(load<float>(at));
  } else {
    const std::uint16_t bits = load<std::uint16_t>(at);
    const bool f16 = dtype == DType::f16;
    const float value = f16 ? kernels::to_f32(kernels::F16{bits}) : kernels::to_f32(kernels::Bf16{bits});
    real.value = value;
    if (std::isfinite(value)) text = f16 ? shortest_half(value, kernels::to_f16) : shortest_half(value, kernels::to_bf16);
  }
  if (std::isfinite(real.value)) real.decimal = read_scientific(text);
  return real;
}

// ---- the common format of floating numbers ----

// A number before and after the point, and its exponent, which is empty in a format without exponents.
struct Parts {
  std::string whole, fraction, exponent;
};

void drop_zeros(std::string& digits) {
  while (!digits.empty() && digits.back() == '0') digits.pop_back();
}

Parts positional(const Real& real, int precision) {
  const Decimal& d = real.decimal;
  const int n = static_cast<int>(d.digits.size()), before = d.exponent + 1;  // digits before the point
  if (n - before > precision) {  // too many digits after the point: round the exact value
    const std::string text = fmt::format("{:.{}f}", real.value, precision);
    const std::size_t point = std::min(text.find('.'), text.size());
    Parts parts{text.substr(0, point), point < text.size() ? text.substr(point + 1) : "", ""};
    drop_zeros(parts.fraction);
    return parts;
  }
  Parts parts;
  parts.whole = d.negative ? "-" : "";
  if (before <= 0) {
    parts.whole += '0';
    parts.fraction = std::string(static_cast<std::size_t>(-before), '0') + d.digits;
  } else if (n <= before) {
    parts.whole += d.digits + std::string(static_cast<std::size_t>(before - n), '0');
  } else {
    parts.whole += d.digits.substr(0, static_cast<std::size_t>(before));
    parts.fraction = d.digits.substr(static_cast<std::size_t>(before));
  }
  if (d.digits == "0") parts.fraction.clear();
  return parts;
}

Parts scientific(const Real& real, int precision) {
  Decimal d = real.decimal;
  if (static_cast<int>(d.digits.size()) - 1 > precision) d = read_scientific(fmt::format("{:.{}e}", real.value, precision));
  const int magnitude = std::abs(d.exponent);
  return {(d.negative ? "-" : "") + d.digits.substr(0, 1), d.digits.substr(1),
          fmt::format("{}{:02}", d.exponent < 0 ? '-' : '+', magnitude)};
}

bool needs_exponents(DType dtype, const std::vector<Real>& reals) {
  double most = 0, least = 0;
  for (const Real& real : reals) {
    const double magnitude = std::fabs(real.value);
    if (!std::isfinite(magnitude) || magnitude == 0) continue;
    most = std::max(most, magnitude);
    least = least == 0 ? magnitude : std::min(least, magnitude);
  }
  if (most == 0) return false;
  if (dtype == DType::f64) return most >= 1e8 || least < 1e-4 || most / least > 1000;
  const auto high = static_cast<float>(most), low = static_cast<float>(least);  // the bounds in the precision of the dtype
  return high >= 1e8f || low < 1e-4f || high / low > 1000;
}

std::string spaces(std::size_t wanted, std::size_t present) {
  return std::string(wanted > present ? wanted - present : 0, ' ');
}

std::string padded_left(const std::string& text, std::size_t width) { return spaces(width, text.size()) + text; }

std::string not_finite(double value) { return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf"; }

std::vector<std::string> words_of_reals(DType dtype, const std::vector<const char*>& elements, int precision) {
  std::vector<Real> reals;
  for (const char* at : elements) reals.push_back(read_real(dtype, at));
  const bool exponents = needs_exponents(dtype, reals);
  std::vector<Parts> parts;
  std::size_t whole = 0, fraction = 0, exponent = 0, other = 0;
  for (const Real& real : reals) {
    parts.push_back(!std::isfinite(real.value) ? Parts{}
                    : exponents                ? scientific(real, precision)
                                               : positional(real, precision));
    whole = std::max(whole, parts.back().whole.size());
    fraction = std::max(fraction, parts.back().fraction.size());
    exponent = std::max(exponent, parts.back().exponent.size());
    if (!std::isfinite(real.value)) other = std::max(other, not_finite(real.value).size());
  }
  const bool finite = whole > 0;
  std::size_t width = whole + fraction + finite + (exponents ? exponent + 1 : 0);
  if (other > width) whole += other - width;
  width = std::max(width, other);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < reals.size(); ++i) {
    const Parts& p = parts[i];
    if (!std::isfinite(reals[i].value))
      words.push_back(padded_left(not_finite(reals[i].value), width));
    else if (!exponents)
      words.push_back(padded_left(p.whole, whole) + '.' + p.fraction + spaces(fraction, p.fraction.size()));
    else
      words.push_back(padded_left(p.whole, whole) + '.' + p.fraction + std::string(fraction - p.fraction.size(), '0') + 'e' +
                      p.exponent.substr(0, 1) + std::string(exponent - p.exponent.size(), '0') + p.exponent.substr(1));
  }
  return words;
}

// ---- the words of other dtypes ----

std::string plain_word(DType dtype, const char* at) {
  switch (dtype) {
    case DType::i32:
      return std::to_string(load<std::int32_t>(at));
    case DType::i64:
      return std::to_string(load<std::int64_t>(at));
    case DType::boolean:
      return load<unsigned char>(at) ? "true" : "false";
    default:
      return std::to_string(load<unsigned char>(at));
  }
}

std::vector<std::string> words_of(DType dtype, const std::vector<const char*>& elements, int precision) {
  if (is_floating(dtype)) return words_of_reals(dtype, elements, precision);
  std::vector<std::string> words;
  std::size_t width = 0;
  for (const char* at : elements) {
    words.push_back(plain_word(dtype, at));
    width = std::max(width, words.back().size());
  }
  for (std::string& word : words) word = padded_left(word, width);
  return words;
}

// ---- lines ----

// Puts the words in brackets, line by line. Its recursion is as deep as the tensor has dimensions.
class Layout {
 public:
  Layout(const Places& places, const std::vector<std::string>& words, int line_width)
      : places_(places), words_(words), line_width_(line_width) {}

  std::string text() { return bracketed(0, std::string(1, ' '), line_width_); }

 private:
  // `indent` is what stands before an element of this level in a line of its own. `width` leaves room for the closing brackets.
  std::string bracketed(std::size_t level, const std::string& indent, int width) {
    if (level == places_.size()) return words_[next_++];
    const std::string inside = level + 1 == places_.size() ? row(level, indent, width) : rows(level, indent, width);
    return '[' + inside.substr(indent.size()) + ']';
  }

  std::string row(std::size_t level, const std::string& indent, int width) {
    std::string done, line = indent;
    const std::size_t room = static_cast<std::size_t>(std::max(width - 1, 0));
    for (std::size_t i = 0; i < places_[level].size(); ++i) {
      const std::string word = places_[level][i] == kGap ? "..." : words_[next_++];
      if (line.size() + word.size() > room && line.size() > indent.size()) {
        done += without_end(line) + '\n';
        line = indent;
      }
      line += word;
      if (i + 1 < places_[level].size()) line += ' ';
    }
    return done + line;
  }

  std::string rows(std::size_t level, const std::string& indent, int width) {
    const std::string line_ends(places_.size() - level - 1, '\n');
    std::string text;
    for (std::size_t i = 0; i < places_[level].size(); ++i) {
      text += indent + (places_[level][i] == kGap ? "..." : bracketed(level + 1, indent + ' ', width - 1));
      if (i + 1 < places_[level].size()) text += line_ends;
    }
    return text;
  }

  static std::string without_end(std::string line) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line;
  }

  const Places& places_;
  const std::vector<std::string>& words_;
  int line_width_;
  std::size_t next_ = 0;
};

std::string elements_text(const TensorImpl& t, const TensorPrintOptions& options) {
  if (t.shape.numel() == 0) return "[]";
  const Places places = shown_places(t.shape, options);
  return Layout(places, words_of(t.dtype, shown_elements(t, places), std::max(options.precision, 0)),
                std::max(options.line_width, 0))
      .text();
}

void refuse_in_capture(Site site) {
  const ThreadState* state = thread_state_if_any();
  if (state && state->tape->capturing)
    refuse_host_read_on(
        *state->tape,
        error_text("to_string",
                   "reads a tensor on the host inside a capture, which a replay could not repeat; print it outside", site));
}

}  // namespace

std::string to_string(const Tensor& x, const TensorPrintOptions& options, Site site) {
  if (!x.defined()) return "undefined";
  if (x.abstract()) return "abstract " + to_string(x.type());
  refuse_in_capture(site);
  return elements_text(*x.impl(), options) + ' ' + to_string(x.type());
}

std::ostream& operator<<(std::ostream& out, const PrintedTensor& x) { return out << to_string(x.tensor, {}, x.site); }

}  // namespace tapedeck
