// The table of the values that the graph text has defined so far.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/text/lexer.h>

#include <string_view>
#include <unordered_map>
#include <vector>

namespace tapedeck {

// Finds named values by name, and values without names by their number in the text. After printing, that number is the id of
// the value.
class Symbols {
 public:
  explicit Symbols(const Lexer& lexer) : lex_(lexer) {}

  // Enters a value. Throws ParseError if the name or number is taken. `name` is empty for a value without a name. Callers
  // define values in ascending order.
  void define(const Token& token, Name name, ValueId v);
  // Throws ParseError if the value is not defined. The message names the line of a later definition, or else the nearest
  // known name.
  ValueId find(const Token& token) const;
  // `of=%7` and `twin=%7` refer to the value that the text calls %7. This function replaces the 7 by the id of that value.
  void renumber_notes(Graph& graph) const;

 private:
  [[noreturn]] void fail_undefined(const Token& token) const;
  // The line of a definition further down in the text, or 0.
  std::size_t later_definition(const Token& token) const;

  struct Definition {
    ValueId value;
    std::size_t at;
    Name name;
  };
  const Lexer& lex_;
  std::unordered_map<const void*, Definition> named_;  // by Name::id()
  std::unordered_map<std::string_view, Definition> numbered_;
};

}  // namespace tapedeck
