// The four tables of a plan. Each is a layout and one function that fills its cells.
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/words/table.h>

namespace tapedeck::viewer {

// The layouts do not depend on any plan.
const TableLayout& layout_of(TableId id);

// The table of nodes with measured microseconds, by node, in its column `measured`; NaN: none.
Table with_measured(const Table& nodes, const std::vector<double>& us);

// Fills a table. PlanModel::table() keeps it.
Table make_table(TableId id, const PlanModel& model);

}  // namespace tapedeck::viewer
