// Parses the attributes of one node. The schema of the op tells the offset and the kind of each field in its struct.
//
//       {axes=[1], keepdims=true}    ->   fields found by name; a missing field gets its default, or is an error
//       {value=[1.0,2.0]}            ->   the elements of a constant, as a Literal
//       {tensor="const.0"}           ->   the elements of a constant, from the caller's lookup
#include <tapedeck/engine/text/attr_parser.h>

#include <tapedeck/engine/ir/graph_access.h>
#include <tapedeck/engine/text/literal_text.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tapedeck {
namespace {

class AttrParser {
 public:
  AttrParser(Lexer& lexer, const Op& op, std::size_t op_at, std::span<const Type> outputs, const TensorLookup& lookup,
             ParsedAttrs* parsed)
      : lex_(lexer),
        op_(op),
        op_at_(op_at),
        outputs_(outputs),
        lookup_(lookup),
        parsed_(*parsed),
        seen_(fields_of(op).size()) {}

  void parse() {
    parsed_.literal.reset();
    parsed_.bytes.clear();
    if (op_.attrs) {
      const auto* defaults = static_cast<const unsigned char*>(op_.attrs->defaults);
      parsed_.bytes.assign(defaults, defaults + op_.attrs->size);
    }
    if (lex_.take_if('{')) {
      if (!lex_.peek().is('}')) do
          parse_field();
        while (lex_.take_if(','));
      lex_.expect('}', "after the attributes");
    }
    const auto fields = fields_of(op_);
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (fields[i].required && !seen_[i])
        lex_.fail(op_at_, fmt::format("op '{}' needs the attribute '{}'", op_.name, fields[i].name));
  }

 private:
  void parse_field() {
    if (lex_.peek().kind != TokenKind::word) lex_.fail_expected("an attribute's name");
    const Token key = lex_.take();
    const std::size_t index = find_field(key);
    const Field& field = fields_of(op_)[index];
    if (seen_[index]) lex_.fail(key.at, fmt::format("the attribute '{}' is given twice", field.name));
    seen_[index] = true;
    lex_.expect('=', "after an attribute's name");
    if (field.kind == FieldKind::tensor)
      parse_tensor(key, field);
    else
      parse_plain(field);
  }

  // Returns the index of the field with this name. A tensor field has three names: its own (for elements in the text),
  // `tensor` and `abstract`.
  std::size_t find_field(const Token& key) {
    const auto fields = fields_of(op_);
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const bool tensor = fields[i].kind == FieldKind::tensor;
      if (key.text == fields[i].name || (tensor && (key.text == "tensor" || key.text == "abstract"))) return i;
      names.push_back(fields[i].name);
      if (tensor) names.insert(names.end(), {"tensor", "abstract"});
    }
    lex_.fail(key.at, fmt::format("op '{}' has no attribute '{}'{}", op_.name, key.text, did_you_mean(key.text, names)));
  }

  template <class T>
  void set(const Field& field, const T& value) {
    std::memcpy(parsed_.bytes.data() + field.offset, &value, sizeof value);
  }

  Token take_word(const Field& field, const char* what) {
    if (lex_.peek().kind != TokenKind::word) lex_.fail_expected(fmt::format("{} for '{}'", what, field.name));
    return lex_.take();
  }

  void check(const char* wrong, const Token& token, const Field& field) {
    if (wrong) lex_.fail(token.at, fmt::format("{}: {}={}", wrong, field.name, token.text));
  }

  template <class T>
  void parse_word(const Field& field, const char* what, const char* (*read)(std::string_view, T*)) {
    const Token token = take_word(field, what);
    T value{};
    check(read(token.text, &value), token, field);
    set(field, value);
  }

  void parse_plain(const Field& field) {
    switch (field.kind) {
      case FieldKind::integer:
        return parse_word<std::int64_t>(field, "an integer", parse_integer);
      case FieldKind::real:
        return parse_word<double>(field, "a number", parse_real);
      case FieldKind::boolean:
        return parse_word<bool>(field, "true or false", parse_boolean);
      case FieldKind::dtype: {
        const Token token = take_word(field, "a dtype");
        DType dtype;
        if (!parse_dtype(token.text, &dtype)) lex_.fail(token.at, fmt::format("unknown dtype '{}'", token.text));
        return set(field, dtype);
      }
      case FieldKind::string: {
        if (lex_.peek().kind != TokenKind::string) lex_.fail_expected(fmt::format("a string for '{}'", field.name));
        return set(field, lex_.name(lex_.take()));
      }
      case FieldKind::ints:
        return parse_ints(field);
      case FieldKind::tensor:
        return;  // parse_tensor handles it
    }
  }

  void parse_ints(const Field& field) {
    const std::size_t at = lex_.peek().at;
    if (!lex_.take_if('[')) lex_.fail_expected(fmt::format("a list of integers for '{}'", field.name));
    Ints list;
    if (!lex_.peek().is(']')) {
      do {
        const Token token = take_word(field, "an integer");
        std::int64_t value = 0;
        check(parse_integer(token.text, &value), token, field);
        if (list.size == kMaxRank) lex_.fail(at, fmt::format("the list '{}' has more than {} entries", field.name, kMaxRank));
        list.push_back(value);
      } while (lex_.take_if(','));
    }
    lex_.expect(']', "after a list");
    set(field, list);
  }

  // ---- constants ----

  void parse_tensor(const Token& key, const Field& field) {
    if (outputs_.size() != 1) lex_.fail(op_at_, fmt::format("op '{}' has exactly one result", op_.name));
    parsed_.literal = Literal{outputs_[0], nullptr, {}};
    if (key.text == field.name) return parse_elements(field);
    if (key.text == "abstract") {
      const Token token = take_word(field, "true");
      if (token.text != "true") lex_.fail(token.at, "expected abstract=true");
      return;
    }
    if (lex_.peek().kind != TokenKind::string) lex_.fail_expected("a tensor's name in quotes");
    const Token token = lex_.take();
    const std::string name = lex_.decode(token);
    if (name.empty()) lex_.fail(token.at, "a tensor's name is empty");
    if (lookup_ && !lookup_(name, &*parsed_.literal))
      lex_.fail(token.at, fmt::format("there is no tensor {} here", quoted(name)));
    parsed_.literal->tensor = Name(name);
    if (parsed_.literal->type != outputs_[0])
      lex_.fail(token.at, fmt::format("the tensor {} is {}, but {} is declared", quoted(name), to_string(parsed_.literal->type),
                                      to_string(outputs_[0])));
  }

  // The buffer grows with each element that is parsed. A large declared size alone takes no memory.
  void parse_elements(const Field& field) {
    const DType dtype = outputs_[0].dtype;
    const std::int64_t count = outputs_[0].numel();
    const std::size_t step = dtype_size(dtype), at = lex_.peek().at;
    std::vector<unsigned char> bytes;
    const auto parse_one = [&] {
      const Token token = take_word(field, "an element");
      bytes.resize(bytes.size() + step);
      const char* wrong = parse_element(token.text, dtype, bytes.data() + bytes.size() - step);
      if (wrong) lex_.fail(token.at, fmt::format("{} of {}: {}", wrong, dtype_name(dtype), token.text));
    };
    if (!lex_.take_if('[')) {
      parse_one();  // value=2.0 is allowed for a single element
    } else {
      if (!lex_.peek().is(']')) do
          parse_one();
        while (lex_.take_if(','));
      lex_.expect(']', "after the elements");
    }
    if (bytes.size() / step != static_cast<std::size_t>(count))
      lex_.fail(at, fmt::format("{} elements for {}, which has {}", bytes.size() / step, to_string(outputs_[0]), count));
    parsed_.literal->data = aligned_copy(bytes);
  }

  static std::shared_ptr<const void> aligned_copy(const std::vector<unsigned char>& bytes) {
    constexpr std::size_t alignment = 64;
    void* data = std::aligned_alloc(alignment, (bytes.size() / alignment + 1) * alignment);
    if (!data) throw ExecutionError(fmt::format("no memory for a constant of {} bytes", bytes.size()));
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
    return {data, [](void* block) { std::free(block); }};
  }

  Lexer& lex_;
  const Op& op_;
  const std::size_t op_at_;
  const std::span<const Type> outputs_;
  const TensorLookup& lookup_;
  ParsedAttrs& parsed_;
  std::vector<bool> seen_;
};

}  // namespace

void parse_attributes(Lexer& lexer, const Op& op, std::size_t op_at, std::span<const Type> outputs, const TensorLookup& lookup,
                      ParsedAttrs* parsed) {
  AttrParser(lexer, op, op_at, outputs, lookup, parsed).parse();
}

}  // namespace tapedeck
