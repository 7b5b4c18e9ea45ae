// A text with headings, tables of facts and lists as CSV, so that a panel of text can be written as any other.
#pragma once

#include <string>

class QTextDocument;

namespace tapedeck::viewer {

// The first line of all such files. `bytes` is a count in full, where the panel knows one.
inline constexpr const char* kFactsHeader = "section,fact,text,bytes\n";
std::string fact_csv(const std::string& section, const std::string& fact, const std::string& text,
                     const std::string& bytes = "");

// A line for each row of a table, its first cell as the fact and the others as the text, and for each other line of text. The
// section is the heading above. A link of the scheme `region` is a button, and is left out.
std::string document_csv(const QTextDocument& document);

}  // namespace tapedeck::viewer
