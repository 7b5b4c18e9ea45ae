// Splits graph text into tokens, undoes escapes, and reports errors with line and column:
//
//       %h: f32[2] = relu(%x)    ->    value h | : | word f32 | [ | word 2 | ] | = | word relu | ( | value x | )
//
// A token is a view of the text and allocates nothing. Blanks and // comments between tokens are skipped.
#include <tapedeck/engine/text/lexer.h>
#include <tapedeck/engine/text/utf8.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tapedeck {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_char(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.'; }

bool is_punctuation(char c) { return c != 0 && std::strchr("()[]{},:=", c) != nullptr; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool is_plain_name(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_name_char); }
bool is_number_name(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\\')
      out.append({'\\', c});
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (c >= 0x20 && c < 0x7f)
      out += c;
    else if (const std::size_t n = utf8_length(text.substr(i)))
      out += text.substr(i, n), i += n - 1;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out += '"';
}

// ---- scanning ----

Lexer::Lexer(std::string_view text, const std::string& file) : text_(text), file_(file) {
  if (text.size() >= std::size_t{1} << 31) fail(0, "the text is larger than 2 GiB");
  token_ = scan();
}

void Lexer::skip_blanks() {
  while (next_ < text_.size()) {
    const char c = text_[next_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
      ++next_;
    else if (c == '/' && next_ + 1 < text_.size() && text_[next_ + 1] == '/')
      next_ = std::min(text_.find('\n', next_), text_.size());
    else
      return;
  }
}

Token Lexer::scan_word() {
  const std::size_t start = next_;
  if (text_[next_] == '-' || text_[next_] == '+') ++next_;
  const bool number = next_ < text_.size() && (is_digit(text_[next_]) || text_[next_] == '.');
  while (next_ < text_.size()) {
    const char c = text_[next_];
    const bool exponent_sign = number && (c == '+' || c == '-') && (text_[next_ - 1] == 'e' || text_[next_ - 1] == 'E') &&
                               next_ + 1 < text_.size() && is_digit(text_[next_ + 1]);
    if (!is_name_char(c) && !exponent_sign) break;
    ++next_;
  }
  return {TokenKind::word, false, start, text_.substr(start, next_ - start)};
}

// Returns the text between the quotes; next_ is at the opening quote. Escapes are checked here, so decode() cannot fail.
std::string_view Lexer::scan_string() {
  const std::size_t start = next_++;
  for (; next_ < text_.size() && text_[next_] != '\n'; ++next_) {
    if (text_[next_] == '"') return text_.substr(start + 1, next_++ - start - 1);
    if (text_[next_] != '\\') continue;
    const char c = next_ + 1 < text_.size() ? text_[next_ + 1] : 0;
    const bool hex =
        c == 'x' && next_ + 3 < text_.size() && hex_digit(text_[next_ + 2]) >= 0 && hex_digit(text_[next_ + 3]) >= 0;
    if (!hex && (c == 0 || !std::strchr("\"\\ntr", c))) fail(next_, "unknown escape; known are \\\" \\\\ \\n \\t \\r \\xHH");
    next_ += hex ? 3 : 1;
  }
  fail(start, "a string is not closed on its line");
}

Token Lexer::scan() {
  skip_blanks();
  const std::size_t at = next_;
  if (at == text_.size()) return {TokenKind::end, false, at, {}};
  const char c = text_[at];
  if (is_punctuation(c)) return {TokenKind::punctuation, false, at, text_.substr(next_++, 1)};
  if (c == '"') return {TokenKind::string, false, at, scan_string()};
  if (c == '%') {
    ++next_;
    if (next_ < text_.size() && text_[next_] == '"') return {TokenKind::value, true, at, scan_string()};
    const std::size_t start = next_;
    while (next_ < text_.size() && is_name_char(text_[next_])) ++next_;
    if (next_ == start) fail(at, "expected a name right after '%'");
    return {TokenKind::value, false, at, text_.substr(start, next_ - start)};
  }
  const bool sign = (c == '-' || c == '+') && at + 1 < text_.size() && is_name_char(text_[at + 1]);
  if (sign || is_name_char(c)) return scan_word();
  const std::size_t length = std::max<std::size_t>(utf8_length(text_.substr(at)), 1);
  fail(at, fmt::format("unexpected character {}", quoted(text_.substr(at, length))));
}

Token Lexer::take() {
  const Token taken = token_;
  token_ = scan();
  return taken;
}

bool Lexer::take_if(char c) {
  if (!token_.is(c)) return false;
  take();
  return true;
}

void Lexer::expect(char c, const char* where) {
  if (!take_if(c)) fail_expected(fmt::format("'{}' {}", c, where));
}

// ---- meaning and place ----

std::string Lexer::decode(const Token& token) const {
  if (token.kind != TokenKind::string && !token.quoted) return std::string(token.text);
  std::string out;
  for (std::size_t i = 0; i < token.text.size(); ++i) {
    if (token.text[i] != '\\') {
      out += token.text[i];
      continue;
    }
    const char c = token.text[++i];
    if (c == 'x') {
      out += static_cast<char>(hex_digit(token.text[i + 1]) * 16 + hex_digit(token.text[i + 2]));
      i += 2;
    } else {
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
  }
  return out;
}

Name Lexer::name(const Token& token) const {
  if (token.text.empty()) return {};
  return token.quoted || token.kind == TokenKind::string ? Name(decode(token)) : Name(token.text);
}

std::size_t Lexer::line_of(std::size_t at) const {
  return static_cast<std::size_t>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n')) + 1;
}

void Lexer::fail(std::size_t at, const std::string& message) const {
  const std::size_t line_start = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
  const std::size_t column = line_start == std::string_view::npos ? at + 1 : at - line_start;
  const std::size_t line = line_of(at);
  throw ParseError(fmt::format("{}:{}:{}: error: {}", file_, line, column, message),
                   {"", message, std::string(file_), static_cast<int>(line)});
}

void Lexer::fail_expected(const std::string& what) const {
  std::string got = "the end of the text";
  if (token_.kind == TokenKind::value)
    got = "%" + (token_.quoted ? quoted(decode(token_)) : std::string(token_.text));
  else if (token_.kind == TokenKind::string)
    got = "a string";
  else if (token_.kind != TokenKind::end)
    got = fmt::format("'{}'", token_.text.substr(0, 40));
  fail(token_.at, fmt::format("expected {}, got {}", what, got));
}

}  // namespace tapedeck
