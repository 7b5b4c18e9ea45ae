// The forward part as a line of nodes, and what crosses each place of it. Strategies that cut the forward part into stretches
// look for places that little crosses.
//
//     %a = exp(%x) | %b = tanh(%a) | %c = mul(%a, %b) | %d = exp(%c)
//          crossing: %a       %a, %b             %c
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapedeck {

struct ForwardLine {
  std::vector<NodeId> nodes;              // of the forward part, ascending
  std::vector<std::size_t> last_reader;   // by root: the position of the last node of the line that reads it; 0 if none does
  std::vector<std::int64_t> bytes_until;  // by position: arena bytes made there and before
  std::vector<std::int64_t> crossing;     // by position: arena bytes made there or before and read behind it in the line
  std::vector<std::int32_t> crossing_values;  // and the number of these values that count
  std::int64_t least_counted = 1;             // smaller values (statistics, scales) do not count: a 64th of the mean value

  bool empty() const { return nodes.empty() || bytes_until.back() == 0; }
};

ForwardLine forward_line(const Facts& facts);

// The positions after which `segments` segments of about equal bytes end, but for the last one. A cut goes where the fewest
// bytes cross it, within a quarter of a segment of its even place; of equals the even place. There are fewer cuts where nodes
// are too large for that. REQUIRES: the line is not empty; segments >= 1. O(nodes + segments x log nodes).
std::vector<std::size_t> cut_evenly(const ForwardLine& line, std::int64_t segments);

}  // namespace tapedeck
