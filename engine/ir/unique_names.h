// Makes names that no two values share. If a name is taken, the new name ends in ".1", ".2", and so on.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace tapedeck {

class UniqueNames {
 public:
  UniqueNames() = default;
  explicit UniqueNames(const Graph& graph) {
    taken_.reserve(2 * graph.values.size());
    for (const Value& v : graph.values)
      if (!v.name.empty()) taken_.insert(v.name.id());
  }
  Name unique(const std::string& wanted) {
    const Name name(wanted);
    if (taken_.insert(name.id()).second) return name;
    for (int& k = next_[name.id()];;) {
      const Name numbered(fmt::format("{}.{}", wanted, ++k));
      if (taken_.insert(numbered.id()).second) return numbered;
    }
  }

 private:
  std::unordered_set<const void*> taken_;
  std::unordered_map<const void*, int> next_;  // the last number tried, by the taken name
};

}  // namespace tapedeck
