// The answer of `compare`, as JSON and as text.
#pragma once

#include <tapedeck/capture/explain/compare_graphs.h>
#include <tapedeck/capture/explain/compare_plans.h>
#include <tapedeck/capture/replay/tensor_difference.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::tool {

// The sample inputs and the state of two files.
struct NumberComparison {
  std::int64_t compared = 0;
  std::vector<std::string> only_a, only_b;                            // "state fc1.weight"
  std::vector<std::pair<std::string, TensorDifference>> differences;  // got: A, expected: B

  bool equal() const { return only_a.empty() && only_b.empty() && differences.empty(); }
};

struct FileComparison {
  std::string a, b;  // the files
  GraphComparison graph;
  bool planned_a = false, planned_b = false;
  std::optional<PlanComparison> plan;  // if both have one
  NumberComparison numbers;
  std::vector<PlanDifference> metadata;  // by key; no difference of the files

  bool equal() const { return graph.equal() && planned_a == planned_b && (!plan || plan->equal()) && numbers.equal(); }
};

std::string compare_report(const FileComparison& found);
std::string compare_text(const FileComparison& found, std::int64_t limit);  // of the entries of each list; 0: all

}  // namespace tapedeck::tool
