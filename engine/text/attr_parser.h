// Reads `{field=literal, ...}` into an op's attribute struct.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/text/lexer.h>
#include <tapedeck/engine/text/text.h>

#include <optional>
#include <span>
#include <vector>

namespace tapedeck {

struct ParsedAttrs {
  std::vector<unsigned char> bytes;  // op.attrs->size of them; empty if the op takes none
  std::optional<Literal> literal;    // of a constant; whoever adds the node sets the struct's TensorIndex
};

// Reads the braces if the lexer is at one; otherwise every field has its default. `outputs` are the declared types, which give
// a constant's type. Fails at the position of an unknown, duplicate or missing field, or a literal of the wrong kind.
void parse_attributes(Lexer& lexer, const Op& op, std::size_t op_at, std::span<const Type> outputs, const TensorLookup& lookup,
                      ParsedAttrs* parsed);

}  // namespace tapedeck
