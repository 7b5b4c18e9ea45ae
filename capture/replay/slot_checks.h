// Inputs, state and results have names and types. A wrong name is an error that lists the right ones.
#pragma once

#include <tapedeck/engine/eager/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::replay {

std::string listed(const std::vector<std::string>& names);  // "a, b", or "none"

// The place of the name in the list. Throws UsageError, with all names, if the name is not there. `kind`: "input", "state" or
// "output".
std::int32_t slot_named(const std::vector<std::string>& names, const char* kind, const std::string& name);

// Throws TypeError if the tensor is undefined, abstract, or of another type.
void check_type(const char* kind, const std::string& name, const Type& wanted, const Tensor& value);

}  // namespace tapedeck::replay
