// The functions of authors that pytorch_test.cpp calls: those that are not an op, and those that take what an op does not, such
// as negative axes. A case names one of them behind `fn.`. Its attributes are those of an op.
#pragma once

#include <tapedeck/engine/eager/tensor.h>

#include <string_view>
#include <vector>

namespace tapedeck::testing {

struct AuthorFunction {
  const char* name;
  const char* attributes_of;  // an op; null: no attributes
  std::vector<Tensor> (*call)(const std::vector<Tensor>& x, const void* attributes);
};

const AuthorFunction* find_author_function(std::string_view name);  // null if unknown

}  // namespace tapedeck::testing
