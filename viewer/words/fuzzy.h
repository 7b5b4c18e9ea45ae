// Fuzzy search: typed letters find a text that has them in this order. "fa" finds "Fit all".
#pragma once

#include <string_view>

namespace tapedeck::viewer {

// How well the typed letters fit the text; higher is better. 0: the text does not have all letters in this order. Letters at
// the beginning of a word and letters that follow each other count more. Case and spaces do not matter. No typed letter fits
// every text, and scores 1.
int fuzzy_score(std::string_view typed, std::string_view text);

}  // namespace tapedeck::viewer
