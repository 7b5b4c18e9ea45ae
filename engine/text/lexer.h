// Splits the graph text into tokens. A lexer goes once over the text, holds one token at a time, and knows the position of
// each token.
#pragma once

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck {

enum class TokenKind : std::uint8_t {
  end,
  word,         // a name, keyword or number: letters, digits, '_' and '.'; also a leading sign, and the sign of an exponent
  string,       // "...": the text without the quotes, with its escapes; decode() undoes the escapes
  value,        // %name: the text without the '%'
  punctuation,  // one of ( ) [ ] { } , : =
};

struct Token {
  TokenKind kind = TokenKind::end;
  bool quoted = false;  // a value written as %"..."
  std::size_t at = 0;   // byte offset in the text
  std::string_view text;

  bool is(char c) const { return kind == TokenKind::punctuation && text[0] == c; }
  bool is_word(std::string_view w) const { return kind == TokenKind::word && text == w; }
};

// Whether the text is a name that needs no quotes: one or more of A-Z a-z 0-9 _ and '.'.
TAPEDECK_API bool is_plain_name(std::string_view text);
TAPEDECK_API bool is_number_name(std::string_view text);  // only digits: the form of values without names

// The text in quotes, with the escapes \" \\ \n \t \r \xHH. The result is printable and valid UTF-8.
std::string quoted(std::string_view text);

class TAPEDECK_API Lexer {
 public:
  Lexer(std::string_view text, const std::string& file);

  const Token& peek() const { return token_; }
  Token take();  // returns the current token and reads the next one
  bool take_if(char c);
  void expect(char c, const char* where);  // throws ParseError, for example "expected ':' after a value's name, got 'x'"

  std::string decode(const Token& token) const;  // the text, with the escapes of strings and quoted values undone
  Name name(const Token& token) const;           // decode() as a Name

  // Throws ParseError "FILE:LINE:COLUMN: error: message".
  [[noreturn]] void fail(std::size_t at, const std::string& message) const;
  [[noreturn]] void fail_expected(const std::string& what) const;  // "expected WHAT, got ..." at the current token
  std::size_t line_of(std::size_t at) const;                       // counts from 1

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
