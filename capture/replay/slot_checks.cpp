#include <tapedeck/capture/replay/slot_checks.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <algorithm>

namespace tapedeck::replay {

std::string listed(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::int32_t slot_named(const std::vector<std::string>& names, const char* kind, const std::string& name) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) throw UsageError(fmt::format("no {} named '{}' ({}: {})", kind, name, kind, listed(names)));
  return static_cast<std::int32_t>(it - names.begin());
}

void check_type(const char* kind, const std::string& name, const Type& wanted, const Tensor& value) {
  if (!value.defined())
    throw TypeError(fmt::format("{} '{}' wants {}, an undefined tensor was given", kind, name, to_string(wanted)));
  if (value.type() != wanted)
    throw TypeError(fmt::format("{} '{}' is {}, the graph wants {}", kind, name, to_string(value.type()), to_string(wanted)));
  if (value.abstract()) throw TypeError(fmt::format("{} '{}' is an abstract tensor: it has no data", kind, name));
}

}  // namespace tapedeck::replay
