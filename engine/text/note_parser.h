// Parses `[note, note=literal, ...]`. Notes that the graph does not keep (seg=0, at=2560) are skipped.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/text/lexer.h>
#include <tapedeck/engine/text/symbols.h>

#include <vector>

namespace tapedeck {

struct ParsedNotes {
  Origin origin;
  std::vector<ValueId> after;
};

// Parses the notes of a node. REQUIRES: the current token is '['.
void parse_notes(Lexer& lexer, const Symbols& symbols, ParsedNotes* notes);

// Parses the notes of an input or a state value. Returns the role that the notes give, or `usual` if they give none.
Role parse_role(Lexer& lexer, Role usual);

}  // namespace tapedeck
