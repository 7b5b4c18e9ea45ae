// A line belongs to a node by its indent alone, because print() writes every node of the outer graph two blanks deep, and all
// that is in its regions deeper:
//
//     two blanks and a word      a node, in order; `return` and `update` end the list
//     two blanks and }           the end of a region of the node before
//     more blanks                a region of the node before, or a longer list of the header, of `return`, of `update`
#include <tapedeck/viewer/graph/graph_text.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/lexer.h>

#include <algorithm>
#include <charconv>

namespace tapedeck::viewer {

namespace {

constexpr std::size_t kIndent = 2;

bool begins_word(std::string_view line, std::string_view word) {
  return line.size() >= kIndent + word.size() && line.substr(kIndent, word.size()) == word &&
         (line.size() == kIndent + word.size() || line[kIndent + word.size()] == ' ');
}

bool begins_node(std::string_view line) {
  return line.size() > kIndent && line[0] == ' ' && line[1] == ' ' && line[2] != ' ' && line[2] != '}';
}

bool is_number(std::string_view word) {
  const std::size_t sign = !word.empty() && (word[0] == '-' || word[0] == '+');
  if (word.substr(sign) == "inf" || word.substr(sign) == "nan") return true;
  return word.size() > sign && ((word[sign] >= '0' && word[sign] <= '9') || word[sign] == '.');
}

// Sorts the tokens of a line into kinds. Notes begin with a bracket behind a blank.
class Sorter {
 public:
  explicit Sorter(std::string_view line) : line_(line), lexer_(line, name_) {}

  std::vector<Word> words() {
    while (lexer_.peek().kind != TokenKind::end) {
      const Token token = lexer_.take();
      if (token.at < behind_type_) continue;
      if (token.kind == TokenKind::punctuation)
        punctuation(token);
      else
        add(token);
    }
    return std::move(words_);
  }

 private:
  void punctuation(const Token& token) {
    const char c = token.text[0];
    if (c == '[' && (notes_ > 0 || (token.at > 0 && line_[token.at - 1] == ' '))) {
      if (notes_++ == 0) notes_from_ = token.at;
    } else if (c == ']' && notes_ > 0 && --notes_ == 0) {
      words_.push_back({static_cast<std::uint32_t>(notes_from_), static_cast<std::uint32_t>(token.at + 1), WordKind::note});
    } else if (c == '{' || c == '}') {
      braces_ += c == '{' ? 1 : -1;
    }
  }
  void add(const Token& token) {
    // The text of a string or of a value has neither quotes nor the %.
    const std::size_t marks = (token.kind == TokenKind::value) + (token.quoted || token.kind == TokenKind::string ? 2 : 0);
    std::size_t end = token.at + token.text.size() + marks;
    if (notes_ > 0 && token.kind != TokenKind::value) return;
    if (notes_ > 0 && notes_from_ < token.at) {  // a value in a note is a value too
      words_.push_back({static_cast<std::uint32_t>(notes_from_), static_cast<std::uint32_t>(token.at), WordKind::note});
      notes_from_ = end;
    }
    const WordKind kind = kind_of(token, end);
    if (kind == WordKind::type) end = behind_type_ = std::min(line_.find(']', end), line_.size() - 1) + 1;
    words_.push_back({static_cast<std::uint32_t>(token.at), static_cast<std::uint32_t>(end), kind});
  }
  WordKind kind_of(const Token& token, std::size_t end) const {
    if (token.kind == TokenKind::value) return WordKind::value;
    if (token.kind == TokenKind::string) return WordKind::string;
    const char next = end < line_.size() ? line_[end] : '\n';
    if (braces_ > 0) return is_number(token.text) ? WordKind::number : next == '=' ? WordKind::plain : WordKind::keyword;
    if (next == '[') return WordKind::type;
    if (token.text == "_") return WordKind::plain;
    if (words_.empty() || token.text == "state" || token.text == "update")
      if (token.is_word("graph") || token.is_word("state") || token.is_word("return") || token.is_word("update"))
        return WordKind::keyword;
    if (next == '(') return WordKind::op;
    return is_number(token.text) ? WordKind::number : WordKind::plain;
  }

  std::string_view line_;
  const std::string name_ = "line";
  Lexer lexer_;
  std::vector<Word> words_;
  int notes_ = 0, braces_ = 0;
  std::size_t notes_from_ = 0, behind_type_ = 0;  // a type is one word with its dimensions
};

}  // namespace

std::vector<Word> words_of(std::string_view line) {
  try {
    return Sorter(line).words();
  } catch (const ParseError&) {
    return {};
  }
}

GraphText::GraphText(std::string text) : text_(std::move(text)), lower_(text_) {
  for (char& c : lower_)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (!text_.empty() && text_.back() != '\n') text_ += '\n', lower_ += '\n';
  starts_.push_back(0);
  NodeId node = kNone;
  bool in_nodes = false, after_nodes = false;
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t end = text_.find('\n', at);
    const std::string_view line(text_.data() + at, end - at);
    const auto number = static_cast<std::int32_t>(node_of_.size());
    if (in_nodes && !after_nodes && (begins_word(line, "return") || begins_word(line, "update"))) {
      after_nodes = true;
      end_of_nodes_ = number;
      node = kNone;
    }
    if (in_nodes && !after_nodes && begins_node(line)) {
      node = static_cast<NodeId>(line_of_.size());
      line_of_.push_back(number);
    }
    if (!in_nodes && line.ends_with("{")) in_nodes = true;
    node_of_.push_back(node);
    longest_ = std::max(longest_, static_cast<std::int32_t>(line.size()));
    at = end + 1;
    starts_.push_back(at);
  }
  if (!after_nodes) end_of_nodes_ = lines();
}

std::int32_t GraphText::line_at(std::size_t offset) const {
  return static_cast<std::int32_t>(std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin()) - 1;
}

bool GraphText::is_nested(std::int32_t n) const {
  const NodeId node = node_of(n);
  return node != kNone && line_of(node) != n;
}

ValueId value_named(const Graph& graph, std::string_view word) {
  if (word.size() < 2 || word[0] != '%') return kNone;
  const std::string file = "line";
  std::string name;
  bool is_quoted = false;
  try {
    Lexer lexer(word, file);
    const Token token = lexer.take();
    is_quoted = token.quoted;
    name = lexer.decode(token);
  } catch (const ParseError&) {
    return kNone;
  }
  const bool number = !is_quoted && is_number_name(name);
  ValueId id = kNone;
  if (number && std::from_chars(name.data(), name.data() + name.size(), id).ec == std::errc() && id < graph.value_count() &&
      graph.values[static_cast<std::size_t>(id)].name.empty())
    return id;
  if (number) return kNone;
  for (ValueId v = 0; v < graph.value_count(); ++v)
    if (graph.values[static_cast<std::size_t>(v)].name.view() == name) return v;
  return kNone;
}

std::string word_of_value(const Graph& graph, ValueId v) { return "%" + graph.value_name(v); }

bool has_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const char next = end < line.size() ? line[end] : ' ';
    const bool goes_on = is_plain_name(std::string_view(&next, 1));
    if (!goes_on) return true;
  }
  return false;
}

}  // namespace tapedeck::viewer
