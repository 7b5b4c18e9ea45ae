// The time of each node of a graph when it was replayed. Planning prefers these measured microseconds to estimates.
//
// A profile knows a node by its name, the name of its first result in the prepared graph (planner/prepare.h), which is the same
// in every plan of one captured graph. It also notes the op, so that a name that now belongs to another computation is not
// used. Runs of a clone count as runs of its original.
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

// The name by which a profile knows a node; empty for a node without results or with an unnamed first result.
std::string profile_name(const Graph& graph, const Node& node);

// Gathers steps of one executor, then takes medians. `clock_ns` is the part of each slice that reading the clock takes. Not
// thread safe.
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

// A profile as JSON text, as it stands in the file (FORMAT.md), and back. parse_profile() throws FileError for an impossible
// profile: a time that is negative or no number, or a name twice.
std::string profile_to_json(const Profile& profile);
Profile parse_profile(std::string_view json);

// The median of a list that is not empty: the middle number, or the mean of the two in the middle.
double median(std::vector<double> numbers);

}  // namespace TAPEDECK_API
