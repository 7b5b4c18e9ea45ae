// The rules of a DimTable: their value at given sizes, and the text form of the table as notes of a graph.
//     rule      terms {10 * b}, divisor 1          at b=4: 40
//     text      h.shape.0=10*b                     "(b*s-2)/2", "single 1.0/b"
#include <tapedeck/capture/sizes/dim_table.h>

#include <tapedeck/engine/text/lexer.h>
#include <tapedeck/engine/text/literal_text.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace tapedeck {

std::string to_string(const Sizes& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, size);
  return text;
}

std::int32_t DimTable::find(std::string_view dim) const {
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i].name == dim) return static_cast<std::int32_t>(i);
  return kNone;
}

// ---- rules ----

namespace {

// Sizes are at most 2^46 and rules have few factors. A table from a file may hold anything, so a result beyond this bound is no
// size.
constexpr __int128 kMostSize = static_cast<__int128>(1) << 62;

__int128 product_of(const std::vector<std::int32_t>& dims, const std::vector<std::int64_t>& sizes) {
  __int128 product = 1;
  for (std::int32_t d : dims) {
    product *= sizes[d];
    if (product > kMostSize || product < -kMostSize) return kMostSize;
  }
  return product;
}

}  // namespace

std::int64_t size_at(const DimRule& rule, const std::vector<std::int64_t>& sizes, bool* whole) {
  __int128 sum = 0;
  for (const DimRule::Term& term : rule.terms) {
    const __int128 product = product_of(term.dims, sizes);
    if (product > (static_cast<__int128>(1) << 50) || product < 0) return *whole = false, 0;
    sum += product * term.factor;
  }
  *whole = rule.divisor > 0 && sum >= 0 && sum < kMostSize && sum % rule.divisor == 0;
  return *whole ? static_cast<std::int64_t>(sum / rule.divisor) : 0;
}

namespace {

double unrounded_scale(const DimRule& rule, const std::vector<std::int64_t>& sizes) {
  if (rule.kind == DimRule::Kind::unbiased) {
    bool whole = false;
    const auto n = static_cast<double>(size_at(rule, sizes, &whole));
    return whole ? n / std::max(n - 1, 1.0) : std::numeric_limits<double>::quiet_NaN();
  }
  const auto product = static_cast<double>(product_of(rule.dims, sizes));
  return rule.kind == DimRule::Kind::fraction ? rule.factor / product : rule.factor * product;
}

}  // namespace

double scale_at(const DimRule& rule, const std::vector<std::int64_t>& sizes) {
  const double value = unrounded_scale(rule, sizes);
  return rule.single ? static_cast<double>(static_cast<float>(value)) : value;
}

// ---- text ----

namespace {

std::string dim_names(const DimTable& table, const std::vector<std::int32_t>& dims, const char* between) {
  std::string text;
  for (std::int32_t d : dims) text += (text.empty() ? "" : between) + table.dims[d].name;
  return text;
}

std::string terms_text(const DimTable& table, const std::vector<DimRule::Term>& terms) {
  std::string text;
  for (const DimRule::Term& t : terms) {
    if (!text.empty() && t.factor >= 0) text += '+';
    if (t.dims.empty())
      text += std::to_string(t.factor);
    else if (t.factor == -1)
      text += "-" + dim_names(table, t.dims, "*");
    else if (t.factor == 1)
      text += dim_names(table, t.dims, "*");
    else
      text += fmt::format("{}*{}", t.factor, dim_names(table, t.dims, "*"));
  }
  return text.empty() ? "0" : text;
}

std::string size_text(const DimTable& table, const DimRule& rule) {
  const std::string terms = terms_text(table, rule.terms);
  return rule.divisor == 1 ? terms : fmt::format("({})/{}", terms, rule.divisor);
}

std::string axis_text(const DimTable& table, const DimTable::Axis& a) {
  return fmt::format("{}@{}={}", a.input, a.axis, table.dims[a.dim].name);
}

std::string range_text(const DimRange& d) {
  return d.bounded() ? fmt::format("{}={}..{}", d.name, d.min, d.max) : fmt::format("{}={}..", d.name, d.min);
}

std::string entry_text(const DimTable& table, const DimTable::Entry& e) {
  const std::string element = e.element >= 0 ? fmt::format(".{}", e.element) : "";
  return fmt::format("{}.{}{}={}", e.node, e.field, element, rule_text(table, e.rule));
}

void add_statement(std::string& text, const std::string& statement) {
  if (!text.empty()) text += ", ";
  text += statement;
}

}  // namespace

std::string rule_text(const DimTable& table, const DimRule& rule) {
  if (rule.kind == DimRule::Kind::size) return size_text(table, rule);
  std::string text = rule.single ? "single " : "real ";
  if (rule.kind == DimRule::Kind::unbiased) return text + "unbiased " + size_text(table, rule);
  append_real(text, rule.factor);
  return text + (rule.kind == DimRule::Kind::fraction ? "/" : "*") +
         dim_names(table, rule.dims, rule.kind == DimRule::Kind::fraction ? "/" : "*");
}

std::string dims_text(const DimTable& table) {
  std::string text;
  for (const DimRange& d : table.dims) add_statement(text, range_text(d));
  for (const DimTable::Axis& a : table.axes) add_statement(text, axis_text(table, a));
  for (const DimTable::Entry& e : table.entries) add_statement(text, entry_text(table, e));
  return text;
}

std::string print_with_dims(const Graph& graph, const DimTable& table) {
  if (table.empty()) return print(graph);
  PrintOptions options;
  options.input_notes = [&](ValueId v) {
    std::string text;
    if (v == 0)  // the ranges stand once, with the first input
      for (const DimRange& d : table.dims) add_statement(text, range_text(d));
    for (const DimTable::Axis& a : table.axes)
      if (a.input == graph.value_name(v)) add_statement(text, axis_text(table, a));
    return text.empty() ? text : "dims=" + quoted(text);
  };
  std::map<std::string, std::string> by_node;  // nodes in regions are written with the node around them
  for (const DimTable::Entry& e : table.entries)
    add_statement(by_node[e.node.substr(0, e.node.find('/'))], entry_text(table, e));
  options.extra_notes = [&](NodeId n) -> std::string {
    const Node& node = graph.nodes[n];
    const auto it = node.n_outputs > 0 ? by_node.find(graph.value_name(node.first_output)) : by_node.end();
    return it == by_node.end() ? "" : "dims=" + quoted(it->second);
  };
  return print(graph, options);
}

// ---- reading text ----

namespace {

// Reads the statements of one note.
class Reader {
 public:
  Reader(std::string_view text, DimTable* table) : text_(text), table_(*table) {}

  // The ranges come first, because rules name dims.
  void read(bool ranges) {
    for (std::string_view rest = text_; !rest.empty();) {
      const std::size_t comma = rest.find(", ");
      const std::string_view one = rest.substr(0, comma);
      rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 2);
      const std::size_t equals = one.rfind('=');
      if (equals == one.npos || equals == 0) fail(one, "a statement reads NAME=RULE");
      const std::string_view name = one.substr(0, equals), rule = one.substr(equals + 1);
      const bool is_range = rule.find("..") != rule.npos;
      if (is_range != ranges) continue;
      if (is_range)
        read_range(one, name, rule);
      else
        read_rule(one, name, rule);
    }
  }

 private:
  [[noreturn]] void fail(std::string_view what, const std::string& why) const {
    throw ParseError(fmt::format("dims: '{}': {}", what, why));
  }

  std::int64_t integer(std::string_view one, std::string_view text) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) fail(one, fmt::format("'{}' is no whole number", text));
    return value;
  }

  void read_range(std::string_view one, std::string_view name, std::string_view rule) {
    const std::size_t dots = rule.find("..");
    DimRange range{std::string(name), integer(one, rule.substr(0, dots)), DimRange::kUnbounded};
    if (dots + 2 < rule.size()) range.max = integer(one, rule.substr(dots + 2));
    if (range.min < 0 || range.max < range.min) fail(one, "the range is empty or below zero");
    if (table_.find(name) != kNone) fail(one, "the dimension is declared twice");
    table_.dims.push_back(std::move(range));
  }

  std::int32_t dim(std::string_view one, std::string_view name) const {
    const std::int32_t d = table_.find(name);
    if (d == kNone) fail(one, fmt::format("no dimension '{}' is declared", name));
    return d;
  }

  void read_rule(std::string_view one, std::string_view name, std::string_view rule) {
    if (const std::size_t at = name.rfind('@'); at != name.npos) {
      const std::int64_t axis = integer(one, name.substr(at + 1));
      if (axis < 0 || axis >= kMaxRank) fail(one, "there is no such axis");
      table_.axes.push_back({std::string(name.substr(0, at)), static_cast<std::int32_t>(axis), dim(one, rule)});
      return;
    }
    const std::size_t dot = name.rfind('.');
    if (dot == name.npos) fail(one, "it names neither an axis (x@0) nor an attribute (h.shape.0)");
    const std::string_view last = name.substr(dot + 1), before = name.substr(0, dot);
    const bool number = is_number_name(last);
    DimTable::Entry entry;
    std::string_view field = last, node = before;
    if (number) {
      entry.element = static_cast<std::int32_t>(integer(one, last));
      const std::size_t inner = before.rfind('.');
      if (inner == before.npos) fail(one, "the attribute is missing");
      field = before.substr(inner + 1);
      node = before.substr(0, inner);
    }
    entry.node = std::string(node);
    entry.field = std::string(field);
    entry.rule = parse_rule(one, rule);
    table_.entries.push_back(std::move(entry));
  }

  std::vector<std::int32_t> dims(std::string_view one, std::string_view text, char between) const {
    std::vector<std::int32_t> found;
    for (;;) {
      const std::size_t at = text.find(between);
      found.push_back(dim(one, text.substr(0, at)));
      if (at == text.npos) return found;
      text = text.substr(at + 1);
    }
  }

  DimRule parse_rule(std::string_view one, std::string_view text) const {
    DimRule rule;
    for (std::string_view word : {std::string_view("single "), std::string_view("real ")}) {
      if (!text.starts_with(word)) continue;
      text = text.substr(word.size());
      if (constexpr std::string_view unbiased = "unbiased "; text.starts_with(unbiased)) {
        rule = parse_size(one, text.substr(unbiased.size()));
        rule.kind = DimRule::Kind::unbiased;
        rule.single = word[0] == 's';
        return rule;
      }
      const std::size_t at = text.find_first_of("*/");
      if (at == text.npos) fail(one, "a number, then '*' or '/', then dimensions");
      rule.single = word[0] == 's';
      rule.kind = text[at] == '/' ? DimRule::Kind::fraction : DimRule::Kind::multiple;
      if (const char* wrong = parse_real(text.substr(0, at), &rule.factor)) fail(one, wrong);
      rule.dims = dims(one, text.substr(at + 1), text[at]);
      return rule;
    }
    return parse_size(one, text);
  }

  DimRule parse_size(std::string_view one, std::string_view text) const {
    DimRule rule;
    if (text.starts_with('(')) {
      const std::size_t close = text.rfind(")/");
      if (close == text.npos) fail(one, "')/' is missing");
      rule.divisor = integer(one, text.substr(close + 2));
      if (rule.divisor <= 0) fail(one, "the divisor is not positive");
      text = text.substr(1, close - 1);
    }
    while (!text.empty()) {
      const std::size_t end = text.find_first_of("+-", 1);
      rule.terms.push_back(term(one, text.substr(0, end)));
      text = end == text.npos ? std::string_view() : text.substr(text[end] == '+' ? end + 1 : end);
    }
    return rule;
  }

  DimRule::Term term(std::string_view one, std::string_view text) const {
    DimRule::Term t;
    if (text.starts_with('-') && text.size() > 1 && (text[1] < '0' || text[1] > '9')) {
      t.factor = -1;
      text = text.substr(1);
    }
    const std::size_t star = text.find('*');
    const std::string_view first = text.substr(0, star);
    const bool is_number = !first.empty() && (first[0] == '-' || (first[0] >= '0' && first[0] <= '9'));
    if (is_number) {
      t.factor = integer(one, first);
      if (star == text.npos) return t;
      text = text.substr(star + 1);
    }
    t.dims = dims(one, text, '*');
    return t;
  }

  std::string_view text_;
  DimTable& table_;
};

}  // namespace

DimTable dims_from_text(std::string_view text) {
  DimTable table;
  Reader reader(text, &table);
  reader.read(true);
  reader.read(false);
  return table;
}

DimTable parse_dims(std::string_view text, const std::string& file) {
  std::string statements;
  Lexer lexer(text, file);
  while (lexer.peek().kind != TokenKind::end) {
    const Token token = lexer.take();
    if (token.is_word(kDimsKey) && lexer.take_if('=') && lexer.peek().kind == TokenKind::string)
      add_statement(statements, lexer.decode(lexer.take()));
  }
  return dims_from_text(statements);
}

}  // namespace tapedeck
