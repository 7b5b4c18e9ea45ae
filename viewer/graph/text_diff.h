// The changes that a pass made in the text of a graph. Lines are matched by the values that they define, so a pass that renames
// or moves much is compared as fast as one that changes nothing: O(lines * log lines).
//
//     before                    after                     difference
//     %a = exp(%x)              %a = exp(%x)                %a = exp(%x)
//     %b = mul(%a, %one)        %c = relu(%a)             - %b = mul(%a, %one)
//     %c = relu(%b)                                       < %c = relu(%b)
//                                                         > %c = relu(%a)
#pragma once

#include <tapedeck/viewer/graph/graph_text.h>

#include <cstdint>
#include <vector>

namespace tapedeck::viewer {

// A changed line stands twice, as it was and as it is; so does a moved one, at its old place and at its new one.
enum class LineKind : std::uint8_t { same, removed, added, was, is, moved_from, moved_to };

// A line of a difference, by its numbers in the two texts; -1 where it is not.
struct DiffLine {
  LineKind kind = LineKind::same;
  std::int32_t before = -1, after = -1;
};

struct TextDiff {
  std::vector<DiffLine> lines;  // without `same`, those of the two texts in order
  std::int32_t removed = 0, added = 0, changed = 0, moved = 0;
  bool empty() const { return removed + added + changed + moved == 0; }
};

// The names of values without a name, which are numbers: after most passes another value has the number; the first step of
// the planner makes %v12 of %12.
enum class Numbers : std::uint8_t { shift, become_names };

// The lines that stay in place are the most that can: the longest chain of matched lines in the order of both texts.
TextDiff diff_texts(const GraphText& before, const GraphText& after, Numbers numbers = Numbers::shift);

}  // namespace tapedeck::viewer
