// A sentence for every number and every column of the viewer, which says what it means: the tooltips of the status bar, of the
// details and of the headers of tables come from this one table. Its words are those of DESIGN 7 and of the tool.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::viewer {

struct Explanation {
  std::string_view term;  // "lower bound"; of a column, its key
  std::string_view sentence;
};

const std::vector<Explanation>& glossary();

// The sentence about a term; empty if the table has none.
std::string explain_term(std::string_view term);

}  // namespace tapedeck::viewer
