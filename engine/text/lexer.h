// Tokens of the graph text. A lexer runs once over the text, keeps one token in hand, and knows where everything stands.
#pragma once

#include <tapedeck/kernels/attrs.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck {

enum class TokenKind : std::uint8_t {
  end,
  word,         // name, keyword or number: letters, digits, '_' and '.', a sign before, an exponent's sign inside
  string,       // "...": text without the quotes, escapes undone only by decode()
  value,        // %name: text without the '%'
  punctuation,  // one of ( ) [ ] { } , : =
};

struct Token {
  TokenKind kind = TokenKind::end;
  bool quoted = false;  // a value spelt %"..."
  std::size_t at = 0;   // byte offset in the text
  std::string_view text;

  bool is(char c) const { return kind == TokenKind::punctuation && text[0] == c; }
  bool is_word(std::string_view w) const { return kind == TokenKind::word && text == w; }
};

// Names that need no quotes: one or more of A-Z a-z 0-9 _ and '.'.
bool is_plain_name(std::string_view text);
bool is_number_name(std::string_view text);  // digits only: how unnamed values are spelt

// "text" with escapes \" \\ \n \t \r \xHH, so that the result is printable and valid UTF-8.
std::string quoted(std::string_view text);

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file);

  const Token& peek() const { return token_; }
  Token take();  // the token in hand; reads the next
  bool take_if(char c);
  void expect(char c, const char* where);  // or fails: "expected ':' after a value's name, got 'x'"

  std::string decode(const Token& token) const;  // undoes the escapes of a string or quoted value; other tokens as they are
  Name name(const Token& token) const;           // decode() as a Name

  // Throws ParseError "FILE:LINE:COLUMN: error: message".
  [[noreturn]] void fail(std::size_t at, const std::string& message) const;
  [[noreturn]] void fail_expected(const std::string& what) const;  // "expected WHAT, got ..." at the token in hand
  std::size_t line_of(std::size_t at) const;                       // 1-based

 private:
  void skip_blanks();
  Token scan();
  Token scan_word();
  std::string_view scan_string();

  std::string_view text_;
  const std::string& file_;
  std::size_t next_ = 0;  // first byte not yet read
  Token token_;
};

}  // namespace tapedeck
