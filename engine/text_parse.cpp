// Text -> graph, in one pass over the tokens. Grammar and examples: engine/README.md.
//
// Everything is checked where it is read, so that an error names its line and column; verify() at the end then proves the result.
// There is no recursion, and nothing is allocated for a number that the text merely states.
#include <tapedeck/engine/text.h>

#include <tapedeck/engine/attr_parser.h>
#include <tapedeck/engine/graph_access.h>
#include <tapedeck/engine/lexer.h>
#include <tapedeck/engine/literal_text.h>
#include <tapedeck/engine/note_parser.h>
#include <tapedeck/engine/suggest.h>
#include <tapedeck/engine/symbols.h>

#include <fmt/format.h>

#include <cstring>
#include <vector>

namespace tapedeck {
namespace {

constexpr std::int64_t kMaxGraphBytes = std::int64_t{1} << 60;  // as verify() demands

// A declared value: `%name: type`, or `_: type`.
struct Declaration {
  Token token;
  bool unnamed = false;   // `_`, or a number
  std::size_t type_at = 0;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file, const TensorLookup& lookup)
      : lex_(text, file), lookup_(lookup), symbols_(lex_) {}

  Graph parse() {
    parse_header();
    lex_.expect('{', "before the nodes");
    while (!at_keyword("return")) parse_node();
    parse_return();
    if (at_keyword("update")) parse_updates();
    lex_.expect('}', "at the end of the graph");
    if (lex_.peek().kind != TokenKind::end) lex_.fail_expected("the end of the text after the graph");
    symbols_.renumber_notes(graph_);
    return std::move(graph_);
  }

 private:
  bool at_keyword(const char* keyword) const { return lex_.peek().is_word(keyword); }

  // ---- graph NAME(values) state(values) ----

  void parse_header() {
    if (!at_keyword("graph")) lex_.fail_expected("'graph'");
    lex_.take();
    if (lex_.peek().kind != TokenKind::word && lex_.peek().kind != TokenKind::string) lex_.fail_expected("the graph's name");
    graph_.name = lex_.name(check_plain(lex_.take()));
    parse_boundary(Role::input);
    if (!at_keyword("state")) return;
    lex_.take();
    parse_boundary(Role::parameter);
  }

  void parse_boundary(Role usual) {
    lex_.expect('(', "before the list of values");
    if (!lex_.peek().is(')')) do parse_boundary_value(usual); while (lex_.take_if(','));
    lex_.expect(')', "after the list of values");
  }

  // Inputs and state have names: here even a number is one.
  void parse_boundary_value(Role usual) {
    if (lex_.peek().kind != TokenKind::value) lex_.fail_expected("a value (%name: type)");
    const Token token = lex_.take();
    const Name name = lex_.name(token);
    if (name.empty()) lex_.fail(token.at, "an input or state value needs a name");
    lex_.expect(':', "after a value's name");
    const Type type = parse_type();
    const Role role = lex_.peek().is('[') ? parse_role(lex_, usual) : usual;
    const ValueId v = usual == Role::input ? graph_.add_input(name, type) : graph_.add_state(name, type, role);
    graph_.values[v].role = role;
    symbols_.define(token, name, v);
  }

  // ---- types ----

  Type parse_type() {
    const Token word = lex_.peek();
    if (word.kind != TokenKind::word) lex_.fail_expected("a type such as f32[64,10]");
    Type type;
    if (!parse_dtype(word.text, &type.dtype)) {
      std::vector<std::string_view> dtypes;
      for (int i = 0; i < kDTypeCount; ++i) dtypes.push_back(dtype_name(static_cast<DType>(i)));
      lex_.fail(word.at, fmt::format("unknown dtype '{}'{}", word.text, did_you_mean(word.text, dtypes)));
    }
    lex_.take();
    lex_.expect('[', "after a dtype");
    if (!lex_.peek().is(']')) do parse_size(type.shape); while (lex_.take_if(','));
    lex_.expect(']', "after the sizes");
    count_bytes(type, word.at);
    return type;
  }

  void parse_size(Shape& shape) {
    if (lex_.peek().kind != TokenKind::word) lex_.fail_expected("a size");
    const Token token = lex_.take();
    std::int64_t size = 0;
    if (const char* wrong = parse_integer(token.text, &size)) lex_.fail(token.at, fmt::format("{}: size {}", wrong, token.text));
    if (size < 0) lex_.fail(token.at, fmt::format("a size cannot be negative: {}", size));
    if (shape.rank == kMaxRank) lex_.fail(token.at, fmt::format("a type has at most {} dimensions", kMaxRank));
    shape[shape.rank++] = size;
  }

  void count_bytes(const Type& type, std::size_t at) {
    const std::int64_t bytes = checked_bytes(type.dtype, {type.shape.sizes, static_cast<std::size_t>(type.shape.rank)});
    if (bytes < 0) lex_.fail(at, fmt::format("the type {} is too large (more than 2^46 bytes)", to_string(type)));
    total_bytes_ += bytes;
    if (total_bytes_ > kMaxGraphBytes) lex_.fail(at, "the values up to here together hold more than 2^60 bytes");
  }

  // ---- nodes ----

  void parse_node() {
    declarations_.clear();
    types_.clear();
    if (lex_.peek().kind == TokenKind::value || at_keyword("_")) {
      do parse_declaration(); while (lex_.take_if(','));
      lex_.expect('=', "after the results of a node");
    }
    const Token op_token = lex_.peek();
    const Op& op = parse_op();
    parse_operands();
    parse_attributes(lex_, op, op_token.at, types_, lookup_, &attrs_);
    notes_ = {};
    if (lex_.peek().is('[')) parse_notes(lex_, symbols_, &notes_);
    if (lex_.peek().is('(')) lex_.fail(lex_.peek().at, "control flow is not supported by this version: a node has no regions");
    add_node(op, op_token);
  }

  void parse_declaration() {
    if (lex_.peek().kind != TokenKind::value && !at_keyword("_")) lex_.fail_expected("a result (%name: type, or _: type)");
    Declaration d;
    d.token = lex_.take();
    d.unnamed = d.token.kind == TokenKind::word || (!d.token.quoted && is_number_name(d.token.text));
    lex_.expect(':', "after a result's name");
    d.type_at = lex_.peek().at;
    types_.push_back(parse_type());
    declarations_.push_back(d);
  }

  const Op& parse_op() {
    if (lex_.peek().kind != TokenKind::word)
      lex_.fail_expected(declarations_.empty() ? "a node, or 'return'" : "the name of an op");
    const Token token = lex_.take();
    if (const Op* op = find_op(token.text)) return *op;
    if (token.text == "while" || token.text == "cond" || token.text == "scan")
      lex_.fail(token.at, fmt::format("control flow is not supported by this version: '{}'", token.text));
    std::vector<std::string_view> names;
    for (const Op* op : all_ops()) names.push_back(op->name);
    lex_.fail(token.at, fmt::format("unknown op '{}'{}", token.text, did_you_mean(token.text, names)));
  }

  void parse_operands() {
    operands_.clear();
    lex_.expect('(', "after an op's name");
    if (!lex_.peek().is(')')) do operands_.push_back(parse_ref()); while (lex_.take_if(','));
    lex_.expect(')', "after the operands");
  }

  ValueId parse_ref() {
    if (lex_.peek().kind != TokenKind::value) lex_.fail_expected("a value such as %x");
    return symbols_.find(lex_.take());
  }

  // Types agree with the op's rule, and the node goes into the graph.
  void add_node(const Op& op, const Token& op_token) {
    input_types_.clear();
    for (ValueId v : operands_) input_types_.push_back(graph_.values[v].type);
    inferred_.clear();
    if (op.is(kDeclaredTypes)) inferred_ = types_;
    try {
      infer_types(op, input_types_, op.attrs ? attrs_.bytes.data() : nullptr, inferred_);
    } catch (const TypeError& error) {
      lex_.fail(op_token.at, error.what());
    }
    if (inferred_.size() != types_.size())
      lex_.fail(op_token.at, fmt::format("[{}] gives {} result{}, but {} {} declared", op.name, inferred_.size(),
                                         inferred_.size() == 1 ? "" : "s", types_.size(), types_.size() == 1 ? "is" : "are"));
    for (std::size_t i = 0; i < types_.size(); ++i)
      if (inferred_[i] != types_[i])
        lex_.fail(declarations_[i].type_at, fmt::format("[{}] gives {}, but {} is declared", op.name, to_string(inferred_[i]),
                                                        to_string(types_[i])));
    const NodeId id = graph_.add_node(op, operands_, op.attrs ? attrs_.bytes.data() : nullptr, types_, notes_.origin, notes_.after);
    if (attrs_.literal) {
      const TensorIndex index{graph_.add_constant(std::move(*attrs_.literal))};
      std::memcpy(GraphAccess::attributes(graph_, graph_.nodes[id]) + tensor_field(op)->offset, &index, sizeof index);
    }
    define_results(id);
  }

  void define_results(NodeId id) {
    ValueId v = graph_.nodes[id].first_output;
    for (const Declaration& d : declarations_) {
      const Name name = d.unnamed ? Name() : lex_.name(d.token);
      if (!d.unnamed && name.empty()) lex_.fail(d.token.at, "a value's name is empty");
      graph_.values[v].name = name;
      if (d.token.kind == TokenKind::value) symbols_.define(d.token, name, v);
      ++v;
    }
  }

  // ---- return, update ----

  // A word as a name: only the characters of names, not the signs of numbers.
  const Token& check_plain(const Token& token) {
    if (token.kind == TokenKind::word && !is_plain_name(token.text)) lex_.fail(token.at, fmt::format("not a name: '{}'", token.text));
    return token;
  }

  void parse_return() {
    lex_.take();
    const auto at_output = [&] {
      const Token& t = lex_.peek();
      return t.kind == TokenKind::value || t.kind == TokenKind::string || (t.kind == TokenKind::word && t.text != "update");
    };
    if (!at_output()) return;
    do {
      if (!at_output()) lex_.fail_expected("a returned value (%x, or name=%x)");
      Name name;
      if (lex_.peek().kind != TokenKind::value) {
        name = lex_.name(check_plain(lex_.take()));
        lex_.expect('=', "after an output's name");
      }
      const ValueId v = parse_ref();
      graph_.outputs.push_back(v);
      graph_.output_names.push_back(name.empty() ? graph_.values[v].name : name);
    } while (lex_.take_if(','));
  }

  void parse_updates() {
    lex_.take();
    std::vector<bool> updated(static_cast<std::size_t>(graph_.n_state));
    do {
      const Token token = lex_.peek();
      const ValueId state = parse_ref();
      if (!graph_.is_state(state)) lex_.fail(token.at, fmt::format("%{} is not a state value", graph_.value_name(state)));
      if (updated[state - graph_.n_inputs]) lex_.fail(token.at, fmt::format("%{} is updated twice", graph_.value_name(state)));
      updated[state - graph_.n_inputs] = true;
      lex_.expect('=', "after the state value");
      const std::size_t value_at = lex_.peek().at;
      const ValueId value = parse_ref();
      if (graph_.values[state].type != graph_.values[value].type)
        lex_.fail(value_at, fmt::format("%{} is {}, and cannot be updated from {}", graph_.value_name(state),
                                        to_string(graph_.values[state].type), to_string(graph_.values[value].type)));
      graph_.updates.push_back({state, value});
    } while (lex_.take_if(','));
  }

  Lexer lex_;
  const TensorLookup& lookup_;
  Graph graph_;
  Symbols symbols_;
  std::int64_t total_bytes_ = 0;

  // Of the node being read; kept from node to node for their memory.
  std::vector<Declaration> declarations_;
  std::vector<Type> types_, input_types_, inferred_;
  std::vector<ValueId> operands_;
  ParsedAttrs attrs_;
  ParsedNotes notes_;
};

}  // namespace

Graph parse(std::string_view text, const std::string& file, const TensorLookup& lookup) {
  Graph graph = Parser(text, file, lookup).parse();
  verify(graph);
  return graph;
}

}  // namespace tapedeck
