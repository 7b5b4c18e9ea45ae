// The text form of graphs: printing and parsing. engine/README.md has the grammar.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <functional>
#include <string>
#include <string_view>

namespace tapedeck TAPEDECK_API {

struct PrintOptions {
  bool notes = true;                                      // print origin notes
  std::function<std::string(NodeId)> extra_notes;         // appended inside [...] of the node, for example "seg=0, at=2560"
  std::int64_t max_inline_constant = kMaxInlineConstant;  // constants with more elements print as {tensor="name"}
  std::function<std::string(ValueId)> input_notes;        // appended inside [...] of the input or state value
};

// Prints the graph. The text depends on the graph and the options only. print(parse(s)) == s for every printed text s, and
// parse(print(g)) equals g for every graph g that verifies.
std::string print(const Graph& graph, const PrintOptions& options = {});

// Finds the data of a constant that the text writes as {tensor="name"}, and returns false if there is none of that name.
// Without a lookup such constants are abstract.
using TensorLookup = std::function<bool(const std::string& name, Literal* literal)>;

// Parses one graph and verifies it. Throws ParseError with the text "FILE:LINE:COLUMN: error: ...". Nesting, list lengths and
// sizes are checked before they are used. Time and memory are linear in the text.
Graph parse(std::string_view text, const std::string& file = "<text>", const TensorLookup& lookup = {});

}  // namespace TAPEDECK_API
