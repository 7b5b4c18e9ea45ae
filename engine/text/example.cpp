// Parses the examples of op blocks. An example looks like a node without results, with types in place of operands:
//
//       log(f32[3,5] in (0.1,4))      ->   one operand f32[3,5] with elements in [0.1,4)
//       sum(f32[2,3]) {axes=[1]}      ->   one operand with the usual range, and attributes
#include <tapedeck/engine/text/example.h>

#include <tapedeck/engine/text/attr_parser.h>
#include <tapedeck/engine/text/lexer.h>
#include <tapedeck/engine/text/literal_text.h>

#include <fmt/format.h>

#include <utility>

namespace tapedeck {
namespace {

class ExampleParser {
 public:
  ExampleParser(const Op& op, std::string_view text) : op_(op), text_(text), file_(op.name), lex_(text, file_) {}

  ParsedExample parse() {
    ParsedExample example;
    example.op = &op_;
    example.text = text_;
    take_word("an op's name");
    lex_.expect('(', "after the op's name");
    if (!lex_.peek().is(')')) do
        example.operands.push_back(operand());
      while (lex_.take_if(','));
    lex_.expect(')', "after the operands");
    ParsedAttrs parsed;
    parse_attributes(lex_, op_, 0, {}, {}, &parsed);
    example.attributes = std::move(parsed.bytes);
    if (lex_.peek().kind != TokenKind::end) lex_.fail_expected("the end of the example");
    return example;
  }

 private:
  Token take_word(const char* what) {
    if (lex_.peek().kind != TokenKind::word) lex_.fail_expected(what);
    return lex_.take();
  }

  template <class T>
  T number(const char* what, const char* (*read)(std::string_view, T*)) {
    const Token token = take_word(what);
    T value{};
    if (const char* wrong = read(token.text, &value)) lex_.fail(token.at, fmt::format("{}: {}", wrong, token.text));
    return value;
  }

  ExampleOperand operand() {
    ExampleOperand o;
    o.type = type();
    if (o.type.dtype == DType::boolean)
      o.low = 0, o.high = 2;
    else if (!is_floating(o.type.dtype))
      o.low = 0, o.high = 4;
    if (lex_.peek().is_word("in")) {
      lex_.take();
      lex_.expect('(', "before a range");
      o.low = number<double>("a number", parse_real);
      lex_.expect(',', "between the ends of a range");
      o.high = number<double>("a number", parse_real);
      lex_.expect(')', "after a range");
    }
    return o;
  }

  Type type() {
    Type t;
    const Token name = take_word("a type");
    if (!parse_dtype(name.text, &t.dtype)) lex_.fail(name.at, fmt::format("unknown dtype '{}'", name.text));
    lex_.expect('[', "after a dtype");
    if (!lex_.peek().is(']')) do
        add_size(t.shape);
      while (lex_.take_if(','));
    lex_.expect(']', "after the sizes");
    if (checked_bytes(t.dtype, {t.shape.begin(), t.shape.end()}) < 0)
      lex_.fail(name.at, "a size is negative or the type too large");
    return t;
  }

  void add_size(Shape& shape) {
    const std::size_t at = lex_.peek().at;
    const auto size = number<std::int64_t>("a size", parse_integer);
    if (shape.rank == kMaxRank) lex_.fail(at, fmt::format("more than {} dimensions", kMaxRank));
    shape.sizes[shape.rank++] = size;
  }

  const Op& op_;
  const std::string_view text_;
  const std::string file_;
  Lexer lex_;
};

}  // namespace

std::vector<Type> ParsedExample::types() const {
  std::vector<Type> all;
  for (const ExampleOperand& o : operands) all.push_back(o.type);
  return all;
}

ParsedExample parse_example(const Op& op, std::string_view text) { return ExampleParser(op, text).parse(); }

}  // namespace tapedeck
