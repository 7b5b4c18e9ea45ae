// Parses text into a graph in one pass over the tokens. engine/README.md has the grammar and examples.
//
// Each rule is checked where its text is read, so every error names a line and a column. At the end verify() checks the whole
// graph. A function calls itself for each nested region, at most kMaxNesting deep. A large number in the text does not by
// itself cause an allocation.
#include <tapedeck/engine/text/text.h>

#include <tapedeck/engine/ir/graph_access.h>
#include <tapedeck/engine/ir/interruption.h>
#include <tapedeck/engine/text/attr_parser.h>
#include <tapedeck/engine/text/lexer.h>
#include <tapedeck/engine/text/literal_text.h>
#include <tapedeck/engine/text/note_parser.h>
#include <tapedeck/engine/text/suggest.h>
#include <tapedeck/engine/text/symbols.h>

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

namespace tapedeck {
namespace {

constexpr std::int64_t kMaxGraphBytes = std::int64_t{1} << 60;  // the limit that verify() checks

// A value that the text declares: `%name: type` or `_: type`.
struct Declaration {
  Token token;
  bool unnamed = false;  // written as `_` or as a number
  std::size_t type_at = 0;
};

// A graph or region that is being parsed, with the names that it defines.
struct Scope {
  explicit Scope(const Lexer& lexer) : symbols(lexer) {}
  Graph graph;
  Symbols symbols;
};

// The parts of a node that have been parsed so far. One object serves all nodes, so that its memory is reused.
struct NodeText {
  std::vector<Declaration> declarations;
  std::vector<Type> types;
  std::vector<ValueId> operands;
  std::vector<Region> regions;
  ParsedAttrs attrs;
  ParsedNotes notes;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file, const TensorLookup& lookup) : lex_(text, file), lookup_(lookup) {}

  Graph parse() {
    Scope scope(lex_);
    scope_ = &scope;
    parse_header();
    parse_body(true);
    if (lex_.peek().kind != TokenKind::end) lex_.fail_expected("the end of the text after the graph");
    give_back_spare_room();
    return std::move(scope.graph);
  }

 private:
  bool at_keyword(const char* keyword) const { return lex_.peek().is_word(keyword); }
  Graph& graph() { return scope_->graph; }
  Symbols& symbols() { return scope_->symbols; }

  // A graph that was read grows no more, or little.
  void give_back_spare_room() {
    graph().nodes.shrink_to_fit();
    graph().values.shrink_to_fit();
    graph().refs.shrink_to_fit();
  }

  void parse_body(bool updates) {
    lex_.expect('{', "before the nodes");
    while (!at_keyword("return")) parse_node();
    parse_return();
    if (updates && at_keyword("update")) parse_updates();
    lex_.expect('}', "at the end of the graph");
    symbols().renumber_notes(graph());
  }

  // ---- graph NAME(values) state(values) ----

  void parse_header() {
    if (!at_keyword("graph")) lex_.fail_expected("'graph'");
    lex_.take();
    if (lex_.peek().kind != TokenKind::word && lex_.peek().kind != TokenKind::string) lex_.fail_expected("the graph's name");
    graph().name = lex_.name(check_plain(lex_.take()));
    parse_boundary(Role::input);
    if (!at_keyword("state")) return;
    lex_.take();
    parse_boundary(Role::parameter);
  }

  void parse_boundary(Role usual) {
    lex_.expect('(', "before the list of values");
    if (!lex_.peek().is(')')) do
        parse_boundary_value(usual);
      while (lex_.take_if(','));
    lex_.expect(')', "after the list of values");
  }

  // Inputs and state always have names. So a number such as %0 is a name here.
  void parse_boundary_value(Role usual) {
    if (lex_.peek().kind != TokenKind::value) lex_.fail_expected("a value (%name: type)");
    const Token token = lex_.take();
    const Name name = lex_.name(token);
    if (name.empty()) lex_.fail(token.at, "an input or state value needs a name");
    lex_.expect(':', "after a value's name");
    const Type type = parse_type();
    const Role role = lex_.peek().is('[') ? parse_role(lex_, usual) : usual;
    const ValueId v = usual == Role::input ? graph().add_input(name, type) : graph().add_state(name, type, role);
    graph().values[v].role = role;
    symbols().define(token, name, v);
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
    if (!lex_.peek().is(']')) do
        parse_size(type.shape);
      while (lex_.take_if(','));
    lex_.expect(']', "after the sizes");
    count_bytes(type, word.at);
    return type;
  }

  void parse_size(Shape& shape) {
    if (lex_.peek().kind != TokenKind::word) lex_.fail_expected("a size");
    const Token token = lex_.take();
    std::int64_t size = 0;
    if (const char* wrong = parse_integer(token.text, &size))
      lex_.fail(token.at, fmt::format("{}: size {}", wrong, token.text));
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
    stop_if_interrupted();
    node_.declarations.clear();
    node_.types.clear();
    if (lex_.peek().kind == TokenKind::value || at_keyword("_")) {
      do parse_declaration();
      while (lex_.take_if(','));
      lex_.expect('=', "after the results of a node");
    }
    const Token op_token = lex_.peek();
    const Op& op = parse_op();
    parse_operands();
    parse_attributes(lex_, op, op_token.at, node_.types, lookup_, &node_.attrs);
    node_.notes = {};
    if (lex_.peek().is('[')) parse_notes(lex_, symbols(), &node_.notes);
    node_.regions.clear();
    while (lex_.peek().is('(')) parse_region();
    add_node(op, op_token);
  }

  // Parses a region. Its names are looked up in its own scope only, so it cannot read values of the graph around it.
  void parse_region() {
    if (++depth_ > kMaxNesting) lex_.fail(lex_.peek().at, fmt::format("regions are nested more than {} deep", kMaxNesting));
    Scope inner(lex_);
    inner.graph.name = Name("region");
    Scope* const outer = std::exchange(scope_, &inner);
    NodeText around = std::exchange(node_, {});
    parse_boundary(Role::input);
    parse_body(false);
    node_ = std::move(around);
    scope_ = outer;
    --depth_;
    node_.regions.push_back(std::make_shared<const Graph>(std::move(inner.graph)));
  }

  void parse_declaration() {
    if (lex_.peek().kind != TokenKind::value && !at_keyword("_")) lex_.fail_expected("a result (%name: type, or _: type)");
    Declaration d;
    d.token = lex_.take();
    d.unnamed = d.token.kind == TokenKind::word || (!d.token.quoted && is_number_name(d.token.text));
    lex_.expect(':', "after a result's name");
    d.type_at = lex_.peek().at;
    node_.types.push_back(parse_type());
    node_.declarations.push_back(d);
  }

  const Op& parse_op() {
    if (lex_.peek().kind != TokenKind::word)
      lex_.fail_expected(node_.declarations.empty() ? "a node, or 'return'" : "the name of an op");
    const Token token = lex_.take();
    if (const Op* op = find_op(token.text)) return *op;
    std::vector<std::string_view> names;
    for (const Op* op : all_ops()) names.push_back(op->name);
    lex_.fail(token.at, fmt::format("unknown op '{}'{}", token.text, did_you_mean(token.text, names)));
  }

  void parse_operands() {
    node_.operands.clear();
    lex_.expect('(', "after an op's name");
    if (!lex_.peek().is(')')) do
        node_.operands.push_back(parse_ref());
      while (lex_.take_if(','));
    lex_.expect(')', "after the operands");
  }

  ValueId parse_ref() {
    if (lex_.peek().kind != TokenKind::value) lex_.fail_expected("a value such as %x");
    return symbols().find(lex_.take());
  }

  // Checks that the stated types agree with the op's inference rule, and adds the node to the graph.
  void add_node(const Op& op, const Token& op_token) {
    input_types_.clear();
    for (ValueId v : node_.operands) input_types_.push_back(graph().values[v].type);
    inferred_.clear();
    if (op.is(kDeclaredTypes)) inferred_ = node_.types;
    try {
      infer_types(op, input_types_, op.attrs ? node_.attrs.bytes.data() : nullptr, inferred_, node_.regions);
    } catch (const TypeError& error) {
      lex_.fail(op_token.at, error.what());
    }
    if (inferred_.size() != node_.types.size())
      lex_.fail(op_token.at,
                fmt::format("[{}] gives {} result{}, but {} {} declared", op.name, inferred_.size(),
                            inferred_.size() == 1 ? "" : "s", node_.types.size(), node_.types.size() == 1 ? "is" : "are"));
    for (std::size_t i = 0; i < node_.types.size(); ++i)
      if (inferred_[i] != node_.types[i])
        lex_.fail(node_.declarations[i].type_at, fmt::format("[{}] gives {}, but {} is declared", op.name,
                                                             to_string(inferred_[i]), to_string(node_.types[i])));
    const NodeId id = graph().add_node(op, node_.operands, op.attrs ? node_.attrs.bytes.data() : nullptr, node_.types,
                                       node_.notes.origin, node_.notes.after, node_.regions);
    if (node_.attrs.literal) {
      const TensorIndex index{graph().add_constant(std::move(*node_.attrs.literal))};
      std::memcpy(GraphAccess::attributes(graph(), graph().nodes[id]) + tensor_field(op)->offset, &index, sizeof index);
    }
    define_results(id);
  }

  void define_results(NodeId id) {
    ValueId v = graph().nodes[id].first_output;
    for (const Declaration& d : node_.declarations) {
      const Name name = d.unnamed ? Name() : lex_.name(d.token);
      if (!d.unnamed && name.empty()) lex_.fail(d.token.at, "a value's name is empty");
      graph().values[v].name = name;
      if (d.token.kind == TokenKind::value) symbols().define(d.token, name, v);
      ++v;
    }
  }

  // ---- return, update ----

  // Throws ParseError if a word is used as a name and has characters that a plain name cannot have (such as signs).
  const Token& check_plain(const Token& token) {
    if (token.kind == TokenKind::word && !is_plain_name(token.text))
      lex_.fail(token.at, fmt::format("not a name: '{}'", token.text));
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
      graph().outputs.push_back(v);
      graph().output_names.push_back(name.empty() ? graph().values[v].name : name);
    } while (lex_.take_if(','));
  }

  void parse_updates() {
    lex_.take();
    std::vector<bool> updated(static_cast<std::size_t>(graph().n_state));
    do {
      const Token token = lex_.peek();
      const ValueId state = parse_ref();
      if (!graph().is_state(state)) lex_.fail(token.at, fmt::format("%{} is not a state value", graph().value_name(state)));
      if (updated[state - graph().n_inputs])
        lex_.fail(token.at, fmt::format("%{} is updated twice", graph().value_name(state)));
      updated[state - graph().n_inputs] = true;
      lex_.expect('=', "after the state value");
      const std::size_t value_at = lex_.peek().at;
      const ValueId value = parse_ref();
      if (graph().values[state].type != graph().values[value].type)
        lex_.fail(value_at, fmt::format("%{} is {}, and cannot be updated from {}", graph().value_name(state),
                                        to_string(graph().values[state].type), to_string(graph().values[value].type)));
      graph().updates.push_back({state, value});
    } while (lex_.take_if(','));
  }

  Lexer lex_;
  const TensorLookup& lookup_;
  Scope* scope_ = nullptr;
  int depth_ = 0;
  std::int64_t total_bytes_ = 0;
  NodeText node_;
  std::vector<Type> input_types_, inferred_;  // members, so that their memory is reused
};

}  // namespace

Graph parse(std::string_view text, const std::string& file, const TensorLookup& lookup) {
  Graph graph = Parser(text, file, lookup).parse();
  verify(graph);
  return graph;
}

}  // namespace tapedeck
