#include <tapedeck/viewer/tables/arranged_rows.h>

namespace tapedeck::viewer {

ArrangedRows arranged_rows(std::shared_ptr<const Table> table, const Filter& filter, RowOrder by, bool totals,
                           const std::atomic<bool>& cancelled) {
  ArrangedRows rows;
  rows.table = std::move(table);
  if (!rows.table) return rows;
  rows.order = rows.shown = rows.table->order(by);
  if (cancelled) return rows;
  if (!filter.empty()) rows.shown = std::make_shared<const std::vector<std::int32_t>>(filter.kept(*rows.table, *rows.order));
  if (cancelled) return rows;
  if (totals && !rows.shows_all()) rows.totals = rows.table->totals(*rows.shown);
  if (cancelled || (rows.shows_all() && by.column < 0)) return rows;
  rows.place_of.assign(static_cast<std::size_t>(rows.table->rows()), -1);
  for (std::size_t i = 0; i < rows.shown->size(); ++i)
    rows.place_of[static_cast<std::size_t>((*rows.shown)[i])] = static_cast<int>(i);
  return rows;
}

std::int64_t count_of(const PlaceRanges& ranges) {
  std::int64_t count = 0;
  for (const auto& [first, last] : ranges) count += std::int64_t{last} - first + 1;
  return count;
}

std::vector<std::int32_t> rows_at(const std::vector<std::int32_t>& shown, const PlaceRanges& ranges) {
  std::vector<std::int32_t> rows;
  rows.reserve(static_cast<std::size_t>(count_of(ranges)));
  for (const auto& [first, last] : ranges) rows.insert(rows.end(), shown.begin() + first, shown.begin() + last + 1);
  return rows;
}

}  // namespace tapedeck::viewer
