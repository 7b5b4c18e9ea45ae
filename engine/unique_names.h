// Names that no two values share: a taken one gets ".1", ".2", ...
#pragma once

#include <tapedeck/engine/graph.h>

#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace tapedeck {

class UniqueNames {
 public:
  UniqueNames() = default;
  explicit UniqueNames(const Graph& graph) {
    for (const Value& v : graph.values)
      if (!v.name.empty()) taken_.insert(v.name.str());
  }
  Name unique(const std::string& wanted) {
    if (taken_.insert(wanted).second) return Name(wanted);
    for (int& k = next_[wanted];;) {
      const std::string name = fmt::format("{}.{}", wanted, ++k);
      if (taken_.insert(name).second) return Name(name);
    }
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> next_;
};

}  // namespace tapedeck
