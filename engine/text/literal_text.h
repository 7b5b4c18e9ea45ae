// Numbers and tensor elements as text, exact both ways: what is printed reads back to the same bits.
//
// Reals print as the shortest decimal that reads back (of the element's own width), always with a '.', an exponent, `inf` or
// `nan`, so that they are never taken for integers. `nan` and `-nan` are the quiet NaNs with no payload; any other NaN prints
// its bits in hexadecimal: nan.7fc00001.
#pragma once

#include <tapedeck/kernels/dtype.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck {

void append_real(std::string& out, double value);
void append_element(std::string& out, DType dtype, const void* element);

// Null if `word` was read, else what is wrong with it: "expected an integer", "the number is out of range".
const char* parse_integer(std::string_view word, std::int64_t* value);
const char* parse_real(std::string_view word, double* value);  // integers too
const char* parse_boolean(std::string_view word, bool* value);
const char* parse_element(std::string_view word, DType dtype, void* element);
bool parse_dtype(std::string_view word, DType* dtype);

}  // namespace tapedeck
