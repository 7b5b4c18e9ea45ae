// The environment variables by which a user chooses between a vendor's library and our own kernels.
#pragma once

#include <cstdlib>
#include <string_view>

namespace tapedeck::kernels::cuda {

inline bool is_set_to(const char* variable, std::string_view value) {
  const char* text = std::getenv(variable);
  return text && value == text;
}

}  // namespace tapedeck::kernels::cuda
