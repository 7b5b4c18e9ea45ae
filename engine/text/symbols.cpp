#include <tapedeck/engine/text/symbols.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tapedeck {
namespace {

bool is_number(const Token& token) { return !token.quoted && is_number_name(token.text); }

}  // namespace

// The text may call an input %0. Its name is then "0", and nodes may read it as %0. So it goes into both tables.
void Symbols::define(const Token& token, Name name, ValueId v) {
  const Definition definition{v, token.at, name};
  const auto taken = [&](std::size_t at) {
    lex_.fail(token.at, fmt::format("%{} is already defined, on line {}", lex_.decode(token), lex_.line_of(at)));
  };
  if (is_number(token)) {
    const auto [known, fresh] = numbered_.emplace(token.text, definition);
    if (!fresh) taken(known->second.at);
  }
  if (!name.empty()) {
    const auto [known, fresh] = named_.emplace(name.id(), definition);
    if (!fresh) taken(known->second.at);
  }
}

ValueId Symbols::find(const Token& token) const {
  if (is_number(token)) {
    const auto known = numbered_.find(token.text);
    if (known != numbered_.end()) return known->second.value;
  } else {
    const auto known = named_.find(lex_.name(token).id());
    if (known != named_.end()) return known->second.value;
  }
  fail_undefined(token);
}

std::size_t Symbols::later_definition(const Token& token) const {
  Lexer ahead = lex_;
  try {
    for (Token t = ahead.take(); t.kind != TokenKind::end; t = ahead.take())
      if (t.kind == TokenKind::value && t.text == token.text && ahead.peek().is(':')) return lex_.line_of(t.at);
  } catch (const ParseError&) {
    // The caller reports an earlier error, so an error further down in the text is ignored.
  }
  return 0;
}

void Symbols::fail_undefined(const Token& token) const {
  const std::string name = lex_.decode(token);
  if (const std::size_t line = later_definition(token))
    lex_.fail(token.at, fmt::format("%{} is read before its definition on line {}", name, line));
  constexpr std::size_t kNearby = 10000;  // how many definitions, latest first, are searched for a similar name
  std::vector<std::pair<ValueId, std::string_view>> known;
  for (const auto& [id, definition] : named_) known.emplace_back(definition.value, definition.name.view());
  std::sort(known.rbegin(), known.rend());
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < known.size() && i < kNearby; ++i) names.push_back(known[i].second);
  lex_.fail(token.at, fmt::format("undefined value %{}{}", name, did_you_mean(name, names)));
}

void Symbols::renumber_notes(Graph& graph) const {
  const auto renumber = [&](Name& note) {
    if (!is_number_name(note.view())) return;
    const auto known = numbered_.find(note.view());
    if (known == numbered_.end()) return;
    const Value& value = graph.values[known->second.value];
    note = value.name.empty() ? Name(std::to_string(known->second.value)) : value.name;
  };
  for (Node& node : graph.nodes) {
    renumber(node.origin.of);
    renumber(node.origin.twin);
  }
}

}  // namespace tapedeck
