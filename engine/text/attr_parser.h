// Parses `{field=literal, ...}` into the attribute struct of an op.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/text/lexer.h>
#include <tapedeck/engine/text/text.h>

#include <optional>
#include <span>
#include <vector>

namespace tapedeck {

struct ParsedAttrs {
  std::vector<unsigned char> bytes;  // op.attrs->size bytes; empty if the op has no attributes
  std::optional<Literal> literal;    // the data of a constant; the caller that adds the node sets the TensorIndex in the struct
};

// Parses the braces if the next token is '{'. A field that the text does not give gets its default. `outputs` holds the
// declared types; a constant takes its type from there. `op_at` is the byte offset of the op's name. Throws ParseError at the
// position of an unknown, duplicate or missing field, or of a literal of the wrong kind.
void parse_attributes(Lexer& lexer, const Op& op, std::size_t op_at, std::span<const Type> outputs, const TensorLookup& lookup,
                      ParsedAttrs* parsed);

}  // namespace tapedeck
