// Helpers that read the text of errors and the source location in it.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace tapedeck::testing {

// The text of the error of kind E that f throws. The test fails if f throws nothing or another error.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another kind of error: " << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// As message_of(), but "" if f throws nothing. An error of another kind is passed on.
template <class E, class F>
std::string message_or_none(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

// Leaves out the folders of source files: "(/a/b/c_test.cpp:12)" becomes "(c_test.cpp:12)".
inline std::string without_folders(std::string text) {
  for (std::size_t slash = text.find('/'); slash != std::string::npos; slash = text.find('/', slash)) {
    std::size_t end = slash, start = slash;
    while (start > 0 && std::string(" (").find(text[start - 1]) == std::string::npos) --start;
    for (std::size_t i = slash; i < text.size() && std::string(" ):").find(text[i]) == std::string::npos; ++i)
      if (text[i] == '/') end = i;
    text.erase(start, end + 1 - start);
    slash = start;
  }
  return text;
}

inline bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace tapedeck::testing

#define EXPECT_MENTIONS(text, part) EXPECT_PRED2(::tapedeck::testing::mentions, text, part)
