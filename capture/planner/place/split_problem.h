// Splits an instance at the times that no buffer lives across. Each part has the form that the exact search needs: sizes in
// units that divide all sizes, and lifetimes as ranges of sections.
#pragma once

#include <tapedeck/capture/planner/place/place_problem.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// One part. A section is a step at which some buffer's interval ends. At every other step, the buffers alive are all alive in
// one of the sections, so sections suffice. A lifetime is one range of sections, or several if the buffer has holes. All sizes
// and offsets are multiples of `unit` bytes.
struct PlacePart {
  std::vector<std::int32_t> buffers;  // by member: its index in the problem
  std::int64_t unit = 1;              // bytes
  std::int64_t bound = 0;             // the most units alive in a section, or the end of a fixed buffer if that is higher
  std::int32_t sections = 0;
  bool has_holes = false, has_fixed = false;

  std::vector<std::int64_t> units, alignment, fixed;  // by member, in units; fixed is -1 for a free buffer
  std::vector<std::int32_t> kind;                     // by member: free members that are equal in everything have the same kind
  std::vector<Steps> spans;                           // ranges of sections, member after member
  std::vector<std::int32_t> spans_at;                 // by member, and one more: the index of its first range in `spans`
  std::vector<std::int32_t> members, members_at;      // by section, and one more: the members that are alive in it
  // By member, and one more: the members that are alive at the same time. Empty if they are too many.
  std::vector<std::int32_t> neighbours, neighbours_at;

  std::int32_t size() const { return static_cast<std::int32_t>(units.size()); }
  bool is_searchable() const { return !neighbours_at.empty(); }
};

// Splits a problem. Cost: O(n log n + spans x sections + pairs alive together). A part is too large to search if it has more
// than `most_pairs` pairs alive together (each pair counts twice), as many memberships in sections, or so many buffers that a
// search would take more than kMostWordsOfASearch words of 8 bytes; a race keeps 20 searches or more (exact_race.h). Such a
// part gets neither members nor neighbours, and only greedy placement and the ejection search use it.
inline constexpr std::int64_t kMostWordsOfASearch = std::int64_t{1} << 21;
std::vector<PlacePart> split(const PlaceProblem& p, std::int64_t most_pairs = std::int64_t{1} << 23);

}  // namespace tapedeck
