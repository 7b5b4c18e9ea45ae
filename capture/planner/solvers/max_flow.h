// Maximum flow and minimum cut by Dinic's algorithm, on whole numbers, without recursion.
//
//     source --5--> a --3--> sink          the flow is 3; the edge a -> sink is the minimum cut
#pragma once

#include <tapedeck/capture/planner/solvers/cancel_and_progress.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace tapedeck {

class MaxFlow {
 public:
  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max() / 4;
  static constexpr std::int64_t kGivenUp = -1;

  explicit MaxFlow(std::int32_t vertices) : edges_of_(static_cast<std::size_t>(vertices)) {}
  void add_edge(std::int32_t from, std::int32_t to, std::int64_t capacity);

  // Returns the flow, or kGivenUp after `most_work` edges looked at. REQUIRES: the cut is less than kUnbounded.
  std::int64_t find(std::int32_t source, std::int32_t sink, std::int64_t most_work, const Watch& watch);

  // By vertex, after find(): it lies on the side of the sink in the minimum cut that is closest to the sink.
  std::vector<char> side_of_sink(std::int32_t sink) const;

 private:
  struct Edge {
    std::int32_t to = 0;
    std::int64_t room = 0;  // what may still flow; edge i ^ 1 is the way back
  };

  bool find_levels(std::int32_t source, std::int32_t sink);
  std::int64_t push_all(std::int32_t source, std::int32_t sink);
  std::int64_t push_path();
  bool step_forward();

  std::vector<Edge> edges_;
  std::vector<std::vector<std::int32_t>> edges_of_;
  std::vector<std::int32_t> level_;
  std::vector<std::size_t> next_;   // by vertex: the edge to try next in this phase
  std::vector<std::int32_t> path_;  // edges from the source
  std::int32_t at_ = 0;             // the vertex where the path ends
  std::int64_t work_ = 0, most_work_ = 0;
};

}  // namespace tapedeck
