// Parses the notes of nodes, inputs and state values. Notes that a graph keeps go into the Origin or the `after` list; all
// others are skipped, since plans and other tools add their own:
//
//       [phase=backward, twin=%h, seg=0, at=2560]    ->    Origin{phase, twin}; seg and at are skipped
#include <tapedeck/engine/text/note_parser.h>

#include <tapedeck/engine/text/literal_text.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

namespace tapedeck {
namespace {

constexpr Role kRoles[] = {Role::none, Role::input, Role::parameter, Role::moment, Role::statistic, Role::counter, Role::rng};
constexpr Phase kPhases[] = {Phase::forward, Phase::backward, Phase::update};

Token take(Lexer& lex, TokenKind kind, const char* what) {
  if (lex.peek().kind != kind) lex.fail_expected(what);
  return lex.take();
}

// Skips the value of an unknown note: a literal, a value that may be undefined, or a nested list of these. A loop counts the
// brackets, so deep lists need no recursion.
void skip_note(Lexer& lex) {
  std::size_t depth = 0;
  do {
    const Token& t = lex.peek();
    const bool leaf = t.kind == TokenKind::word || t.kind == TokenKind::string || t.kind == TokenKind::value;
    if (t.is('['))
      ++depth;
    else if (t.is(']') && depth > 0)
      --depth;
    else if (!leaf && !(t.is(',') && depth > 0))
      lex.fail_expected("a note's value");
    lex.take();
  } while (depth > 0);
}

template <class T, std::size_t N>
T parse_one_of(Lexer& lex, const T (&known)[N], const char* (*name)(T), const char* what) {
  const Token token = take(lex, TokenKind::word, what);
  const auto* found = std::find_if(std::begin(known), std::end(known), [&](T t) { return token.text == name(t); });
  if (found != std::end(known)) return *found;
  std::string all;
  for (T t : known) all.append(all.empty() ? "" : " ").append(name(t));
  lex.fail(token.at, fmt::format("unknown {} '{}'; known are: {}", what, token.text, all));
}

// Calls `read(key, has_value)` for every note up to the closing bracket. The '=' after the key is already consumed. If read()
// returns false, the value of the note is skipped.
template <class Read>
void for_each_note(Lexer& lex, Read read) {
  lex.expect('[', "before notes");
  std::vector<std::string_view> seen;  // only the notes that are kept: a handful
  if (!lex.peek().is(']')) {
    do {
      const Token key = take(lex, TokenKind::word, "a note's name");
      if (std::find(seen.begin(), seen.end(), key.text) != seen.end())
        lex.fail(key.at, fmt::format("the note '{}' is given twice", key.text));
      const bool has_value = lex.take_if('=');
      if (read(key, has_value))
        seen.push_back(key.text);
      else if (has_value)
        skip_note(lex);
    } while (lex.take_if(','));
  }
  lex.expect(']', "after the notes");
}

void parse_after(Lexer& lex, const Symbols& symbols, std::vector<ValueId>* after) {
  const bool list = lex.take_if('[');
  if (!list || !lex.peek().is(']')) {
    do after->push_back(symbols.find(take(lex, TokenKind::value, "a value such as %x")));
    while (list && lex.take_if(','));
  }
  if (list) lex.expect(']', "after the list of values");
}

Name parse_name_of_value(Lexer& lex) {
  const Token token = take(lex, TokenKind::value, "a value such as %x");
  const Name name = lex.name(token);
  if (name.empty()) lex.fail(token.at, "a value's name is empty");
  return name;
}

std::int32_t parse_region_number(Lexer& lex) {
  const Token token = take(lex, TokenKind::word, "a region's number");
  std::int64_t number = 0;
  const char* wrong = parse_integer(token.text, &number);
  if (!wrong && (number < 0 || number > std::numeric_limits<std::int32_t>::max())) wrong = "the number is out of range";
  if (wrong) lex.fail(token.at, fmt::format("{}: region={}", wrong, token.text));
  return static_cast<std::int32_t>(number);
}

bool parse_flag(Lexer& lex) {
  const Token token = take(lex, TokenKind::word, "true or false");
  bool value = false;
  if (const char* wrong = parse_boolean(token.text, &value)) lex.fail(token.at, fmt::format("{}, got '{}'", wrong, token.text));
  return value;
}

// `keep` and `recompute` are words without a value. A word that is nearly one of them is a slip, and no note of another tool.
bool parse_wish(Lexer& lex, const Token& key, bool has_value, NodeWish* wish) {
  const bool keep = key.text == "keep";
  if (!keep && key.text != "recompute") {
    const std::string near = has_value ? "" : did_you_mean(key.text, {"keep", "recompute"});
    if (!near.empty()) lex.fail(key.at, fmt::format("unknown note '{}'{}", key.text, near));
    return false;
  }
  if (has_value) lex.fail(key.at, fmt::format("the note '{}' has no value", key.text));
  if (*wish != NodeWish::none) lex.fail(key.at, "a node is marked either 'keep' or 'recompute', not both");
  *wish = keep ? NodeWish::keep : NodeWish::recompute;
  return true;
}

}  // namespace

void parse_notes(Lexer& lexer, const Symbols& symbols, ParsedNotes* notes) {
  Origin& origin = notes->origin;
  bool clone_said = false;
  for_each_note(lexer, [&](const Token& key, bool has_value) {
    if (key.text == "phase")
      origin.phase = parse_one_of(lexer, kPhases, phase_name, "phase");
    else if (key.text == "of")
      origin.of = parse_name_of_value(lexer);
    else if (key.text == "twin")
      origin.twin = parse_name_of_value(lexer);
    else if (key.text == "region")
      origin.region = parse_region_number(lexer);
    else if (key.text == "path")
      origin.path = lexer.name(take(lexer, TokenKind::string, "a string for 'path'"));
    else if (key.text == "site")
      origin.site = lexer.name(take(lexer, TokenKind::string, "a string for 'site'"));
    else if (key.text == "after")
      parse_after(lexer, symbols, &notes->after);
    else if (key.text == "clone")
      origin.clone = parse_flag(lexer), clone_said = true;
    else
      return parse_wish(lexer, key, has_value, &origin.wish);
    return true;
  });
  if (!clone_said) origin.clone = !origin.of.empty();
}

Role parse_role(Lexer& lexer, Role usual) {
  Role role = usual;
  for_each_note(lexer, [&](const Token& key, bool) {
    if (key.text != "role") return false;
    role = parse_one_of(lexer, kRoles, role_name, "role");
    return true;
  });
  return role;
}

}  // namespace tapedeck
