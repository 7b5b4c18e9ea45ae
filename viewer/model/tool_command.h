// The line of the command-line tool that gives the same plan.
#pragma once

#include <tapedeck/viewer/model/document.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// A word that a shell reads as it is, or in quotes.
std::string shell_word(const std::string& word);

// The words of `tapedeck plan FILE --again ...` for the options of the document, these wishes and a budget in bytes (-1: none).
std::vector<std::string> tool_words(const Document& document, const std::vector<Wish>& wishes, std::int64_t budget);

// The same as one line for a shell.
std::string tool_line(const Document& document, const std::vector<Wish>& wishes, std::int64_t budget);

// The wishes as an initializer of PlanOptions::wishes in C++.
std::string wishes_as_cpp(const std::vector<Wish>& wishes);

}  // namespace tapedeck::viewer
