// The rows of a table as they are shown: those that pass a filter, in the order of a column. Making them takes a tenth of a
// second for a million rows, so a thread in the background makes those of a large table.
#pragma once

#include <tapedeck/viewer/words/filter.h>
#include <tapedeck/viewer/words/table.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

struct ArrangedRows {
  using Rows = std::shared_ptr<const std::vector<std::int32_t>>;

  std::shared_ptr<const Table> table;  // null: no rows
  Rows order;                          // all rows of the table
  Rows shown;                          // those that pass
  std::vector<int> place_of;           // by row of the table, -1: hidden; empty: each row is at its own place
  std::optional<Totals> totals;        // of the shown rows
  std::string error;                   // why there is nothing else

  bool shows_all() const { return shown == order; }  // no filter hides a row
};

// The same for the same arguments, on any thread. Without `totals`, these are left out. A cancelled call ends early, and what
// it returns is of no use.
ArrangedRows arranged_rows(std::shared_ptr<const Table> table, const Filter& filter, RowOrder by, bool totals,
                           const std::atomic<bool>& cancelled);

// Ranges of places, [first, last], in order and without overlaps.
using PlaceRanges = std::vector<std::pair<int, int>>;
std::int64_t count_of(const PlaceRanges& ranges);
// The rows that stand at these places, in their order. REQUIRES: the places are in `shown`.
std::vector<std::int32_t> rows_at(const std::vector<std::int32_t>& shown, const PlaceRanges& ranges);

}  // namespace tapedeck::viewer
