// An instance cut where no buffer lives on both sides, each part as the exact search wants it: in units of what divides all
// sizes, over the sections of time that matter.
#pragma once

#include <tapedeck/capture/planner/place/place_problem.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// A section is a step at which some buffer's life ends: all that is alive at other steps is alive together in one of these.
// Lifetimes are spans of sections, several for a buffer with holes. Sizes and offsets are multiples of `unit`.
struct PlacePart {
  std::vector<std::int32_t> buffers;  // by member: its number in the problem
  std::int64_t unit = 1;
  std::int64_t bound = 0;  // most units alive in a section, and the ends of fixed ones
  std::int32_t sections = 0;
  bool has_holes = false, has_fixed = false;

  std::vector<std::int64_t> units, alignment, fixed;  // by member; fixed is -1 where it is free
  std::vector<std::int32_t> kind;                     // by member: those that are alike in all (and free) have the same
  std::vector<Steps> spans;                           // of sections, member after member
  std::vector<std::int32_t> spans_at;                 // by member, and one more: its first span
  std::vector<std::int32_t> members, members_at;      // by section, and one more: who is alive
  std::vector<std::int32_t> neighbours,
      neighbours_at;  // by member, and one more: who is alive with it; empty if they are too many

  std::int32_t size() const { return static_cast<std::int32_t>(units.size()); }
  bool is_searchable() const { return !neighbours_at.empty(); }
};

// O(n log n + spans x sections + pairs alive together). Parts of more than `most_pairs` pairs alive together (each counts
// twice), or as many members of sections, or so many buffers that a search of them would take more than kMostWordsOfASearch,
// get no members and neighbours: they are for greedy placement and climbing alone.
inline constexpr std::int64_t kMostWordsOfASearch = std::int64_t{1}
                                                    << 21;  // of 8 bytes; a race keeps 20 searches or more (exact_race.h)
std::vector<PlacePart> split(const PlaceProblem& p, std::int64_t most_pairs = std::int64_t{1} << 23);

}  // namespace tapedeck
