// The values a graph text has defined so far, by the way they are spelt.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/text/lexer.h>

#include <string_view>
#include <unordered_map>
#include <vector>

namespace tapedeck {

// Named values go by their name, unnamed ones by the number in the text (which becomes the value's id once printed).
class Symbols {
 public:
  explicit Symbols(const Lexer& lexer) : lex_(lexer) {}

  // Fails if the spelling is taken. `name` is empty for an unnamed value; values are defined in ascending order.
  void define(const Token& token, Name name, ValueId v);
  // Fails, with the nearest spelling or the later definition, if there is no such value.
  ValueId find(const Token& token) const;
  // `of=%7` and `twin=%7` mean the unnamed value that the text called %7: makes them say its id.
  void renumber_notes(Graph& graph) const;

 private:
  [[noreturn]] void fail_undefined(const Token& token) const;
  // Line of a definition that is still to come, or 0.
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
