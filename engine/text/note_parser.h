// Reads `[note, note=literal, ...]`. Notes that the graph does not keep (seg=0, at=2560) are read over.
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

// The lexer is at '['.
void parse_notes(Lexer& lexer, const Symbols& symbols, ParsedNotes* notes);

// Notes of an input or state value: its role, or `usual`.
Role parse_role(Lexer& lexer, Role usual);

}  // namespace tapedeck
