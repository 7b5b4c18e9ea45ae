// Numbers and tensor elements as text. Both directions are exact: printed text parses to the same bits.
//
// A real prints as the shortest decimal that parses to the same bits of the element's dtype. It always has a '.', an
// exponent, `inf` or `nan`, so it never looks like an integer. `nan` and `-nan` are the quiet NaNs without payload. Any other
// NaN prints its bits in hexadecimal: nan.7fc00001.
#pragma once

#include <tapedeck/kernels/dtype.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck {

void append_real(std::string& out, double value);
void append_element(std::string& out, DType dtype, const void* element);

// These functions return null if they have parsed `word`. Otherwise they return the reason, such as "expected an integer" or
// "the number is out of range".
const char* parse_integer(std::string_view word, std::int64_t* value);
const char* parse_real(std::string_view word, double* value);  // also accepts integers
const char* parse_boolean(std::string_view word, bool* value);
const char* parse_element(std::string_view word, DType dtype, void* element);
bool parse_dtype(std::string_view word, DType* dtype);

}  // namespace tapedeck
