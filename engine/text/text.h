// The graph's text form: prints, parses, round-trips. Grammar: engine/README.md.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <functional>
#include <string>
#include <string_view>

namespace tapedeck TAPEDECK_API {

struct PrintOptions {
  bool notes = true;                                      // print origin notes
  std::function<std::string(NodeId)> extra_notes;         // appended inside [...], e.g. "seg=0, at=2560"
  std::int64_t max_inline_constant = kMaxInlineConstant;  // constants with more elements print as {tensor="name"}
  std::function<std::string(ValueId)> input_notes;        // as extra_notes, of inputs
};

// Deterministic: no addresses, hashes or times. print(parse(s)) == s for printed s, and parse(print(g)) equals g.
std::string print(const Graph& graph, const PrintOptions& options = {});

// Looks up {tensor="name"} constants; returns false if there is none of that name. Without a lookup such constants are
// abstract.
using TensorLookup = std::function<bool(const std::string& name, Literal* literal)>;

// Throws ParseError "FILE:LINE:COLUMN: error: ...". The result is verified. Bounded: nesting, list lengths and sizes are
// checked before use; cost linear in the text.
Graph parse(std::string_view text, const std::string& file = "<text>", const TensorLookup& lookup = {});

}  // namespace TAPEDECK_API
