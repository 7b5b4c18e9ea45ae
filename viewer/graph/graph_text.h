// The text of a graph in lines, as print() writes it: which node each line belongs to, where a value stands, and the kind of
// every word, for colours. Nothing here keeps more than two numbers for a line, so a graph of 100,000 nodes is ready in a
// moment; words are told apart only in lines that are shown.
//
//     line 0    graph g(%x: f32[4]) {
//     line 1      %h: f32[4] = exp(%x)        [path="fc1"]       of node 0
//     line 2      return %h
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::viewer {

// The kinds of words, by the tokens of the lexer and the place in the line.
enum class WordKind : std::uint8_t { plain, keyword, value, op, type, number, string, note };
inline constexpr int kWordKindCount = 8;

// A word of a line: bytes [begin, end).
struct Word {
  std::uint32_t begin = 0, end = 0;
  WordKind kind = WordKind::plain;
};

// The words of one line in order. Blanks and punctuation belong to no word. A line that is no graph text has no words.
std::vector<Word> words_of(std::string_view line);

// The text, immutable: any thread may read it.
class GraphText {
 public:
  // `text`: as print() writes it. Other text is lines without nodes.
  explicit GraphText(std::string text);

  const std::string& text() const { return text_; }
  std::int32_t lines() const { return static_cast<std::int32_t>(starts_.size()) - 1; }
  std::string_view line(std::int32_t n) const { return part_of(text_, n); }
  std::string_view lower_line(std::int32_t n) const { return part_of(lower_, n); }              // in small letters, for search
  NodeId node_of(std::int32_t line) const { return node_of_[static_cast<std::size_t>(line)]; }  // kNone: header and end
  std::int32_t line_of(NodeId n) const { return line_of_[static_cast<std::size_t>(n)]; }        // the first line of a node
  NodeId nodes() const { return static_cast<NodeId>(line_of_.size()); }
  std::int32_t line_at(std::size_t offset) const;  // the line with this byte of the text
  // Whether the line is inside a loop or branch, where names are those of the region.
  bool is_nested(std::int32_t line) const;
  // The first line after the last node: `return` and `update`.
  std::int32_t end_of_nodes() const { return end_of_nodes_; }
  std::int32_t longest() const { return longest_; }  // the bytes of the longest line

 private:
  std::string_view part_of(const std::string& text, std::int32_t n) const {
    const std::size_t at = starts_[static_cast<std::size_t>(n)];
    return std::string_view(text).substr(at, starts_[static_cast<std::size_t>(n) + 1] - 1 - at);
  }

  std::string text_, lower_;
  std::vector<std::size_t> starts_;    // of lines, and one more
  std::vector<NodeId> node_of_;        // by line
  std::vector<std::int32_t> line_of_;  // by node
  std::int32_t end_of_nodes_ = 0, longest_ = 0;
};

// The value that a word such as "%h" names, or "%12" where the value has no name; kNone if the graph has none. O(values).
ValueId value_named(const Graph& graph, std::string_view word);
// How the text writes the value: "%h", "%12", "%\"a b\"".
std::string word_of_value(const Graph& graph, ValueId v);
// Whether the line has this word.
bool has_word(std::string_view line, std::string_view word);

}  // namespace tapedeck::viewer
