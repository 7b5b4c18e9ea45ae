// What the nodes of a graph took when it was replayed: measured microseconds by node, which planning believes more than
// estimates.
//
// A node is known by its name, that of its first result in the prepared graph (pipeline.h), which is the same in every plan of
// one captured graph; and by its op, so that a name that now means another computation is not believed. Clones count as runs of
// their original.
#pragma once

#include <tapedeck/capture/cost/timeline.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct NodeTime {
  std::string name;  // of the node
  std::string op;
  double us = 0;  // median over all runs of the node and of its clones
  bool operator==(const NodeTime&) const = default;
};

struct Profile {
  std::string machine;  // machine_name() where it was measured
  std::int32_t threads = 1;
  std::int32_t steps = 0;       // measured; warm-up not counted
  double run_us = 0;            // median of whole steps
  std::int64_t peak_bytes = 0;  // observed
  std::vector<NodeTime> nodes;  // each name once
  bool operator==(const Profile&) const = default;
};

// The name a profile knows a node by; empty for a node without results or with an unnamed one.
std::string profile_name(const Graph& graph, const Node& node);

// Gathers steps of one executor, then takes medians. `clock_ns` is what a slice holds beside the work. Not thread safe.
class ProfileBuilder {
 public:
  explicit ProfileBuilder(const Graph& planned, std::int64_t clock_ns = 0);  // `planned` must outlive the builder
  void add(const Timeline& step);
  Profile finish() const;  // nodes in the order of the graph. Throws UsageError if no step was added

 private:
  const Graph& graph_;
  std::int64_t clock_ns_;
  std::vector<std::int32_t> entry_of_;                      // by node: into names_; kNone: without a name
  std::vector<std::pair<std::string, std::string>> names_;  // and ops
  std::vector<std::vector<double>> us_;                     // by entry
  std::vector<double> run_us_;
};

// JSON text both ways, as it stands in the file (FORMAT.md). parse_profile() throws FileError for whatever a profile cannot be:
// a time that is negative or no number, a name twice.
std::string profile_to_json(const Profile& profile);
Profile parse_profile(std::string_view json);

// Of a list that is not empty: the middle, or the mean of the two in the middle.
double median(std::vector<double> numbers);

}  // namespace TAPEDECK_API
