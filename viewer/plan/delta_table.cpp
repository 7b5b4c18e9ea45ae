#include <tapedeck/viewer/plan/delta_table.h>
#include <tapedeck/viewer/words/index.h>

#include <tapedeck/viewer/plan/plan_unit.h>

#include <string>

namespace tapedeck::viewer {

namespace {

using K = ColumnKind;

const TableLayout kDelta = {"compare",
                            "value",
                            "values",
                            "Neither plan has any values.",
                            {
                                {"name", "value", K::name, 170, true, true},
                                {"change", "change", K::text, 84, true, true},
                                {"op", "op", K::text, 90, true, true},
                                {"type", "type", K::text, 110, true, true},
                                {"bytes_left", "bytes left", K::bytes, 86, false},
                                {"bytes_right", "bytes right", K::bytes, 90, false},
                                {"bytes_more", "bytes more", K::bytes, 90, true, false, true},
                                {"choice_left", "left", K::text, 90},
                                {"choice_right", "right", K::text, 90},
                                {"runs_left", "runs left", K::count, 76},
                                {"runs_right", "runs right", K::count, 80},
                                {"us_left", "time left", K::us, 80, false},
                                {"us_right", "time right", K::us, 84, false},
                                {"us_more", "time more", K::us, 84, true, false, true},
                                {"alive_left", "alive left", K::count, 80},
                                {"alive_right", "alive right", K::count, 86},
                                {"address_left", "address left", K::bytes, 96, false},
                                {"address_right", "address right", K::bytes, 100, false},
                                {"module", "module", K::name, 120, false, true},
                            },
                            {"changed", "moved", "renamed"}};

// What the table says of a value in one plan.
struct Side {
  const ValueEntry* entry = nullptr;
  std::string op, module;
  double us = 0, alive = Table::kNoNumber, address = Table::kNoNumber;
};

// The nodes from the first run to the last reader, without those in which a recomputed value is gone.
double nodes_alive(const PlanModel& model, const ValueEntry& entry) {
  double nodes = 0;
  for (const ValueId copy : entry.copies)
    for (const PlanRect& rect : model.rects_of(copy))
      if (rect.value == copy) nodes += rect.end - rect.begin;
  return nodes;
}

Side side_of(const PlanModel& model, std::int32_t entry) {
  Side side;
  if (entry == kNone) return side;
  const ValueEntry& e = model.values().log()[at(entry)];
  const Value& value = model.graph().values[at(e.copies.front())];
  const Node* maker = value.node == kNone ? nullptr : &model.graph().nodes[at(value.node)];
  side.entry = &e;
  side.op = maker == nullptr ? role_name(value.role) : maker->op->name;
  side.module = maker == nullptr ? "" : maker->origin.path.str();
  if (maker != nullptr && e.result == 0) side.us = e.us * static_cast<double>(e.runs.size());
  side.alive = nodes_alive(model, e);
  if (const std::vector<PlanRect> rects = model.rects_of(e.copies.front()); !rects.empty())
    side.address = static_cast<double>(rects.front().address);
  return side;
}

class DeltaRow {
 public:
  DeltaRow(Table* table, std::int32_t row) : table_(table), row_(row) {}
  void text(const char* key, const std::string& text) const { table_->set_text(kDelta.column(key), row_, text); }
  void number(const char* key, double number) const { table_->set_number(kDelta.column(key), row_, number); }
  void flag(const char* word) const { table_->set_flag(kDelta.flag(word), row_); }

 private:
  Table* table_;
  std::int32_t row_;
};

void fill_side(const DeltaRow& row, const Side& side, const std::string& which) {
  row.text(("choice_" + which).c_str(), side.entry == nullptr ? "-" : value_choice_name(side.entry->choice));
  if (side.entry == nullptr) return;
  row.number(("bytes_" + which).c_str(), static_cast<double>(side.entry->bytes));
  row.number(("runs_" + which).c_str(), static_cast<double>(side.entry->runs.size()));
  row.number(("us_" + which).c_str(), side.us);
  row.number(("alive_" + which).c_str(), side.alive);
  row.number(("address_" + which).c_str(), side.address);
}

void fill(const DeltaRow& row, const MatchedValue& value, const Side& left, const Side& right) {
  const Side& shown = right.entry != nullptr ? right : left;
  const bool both = left.entry != nullptr && right.entry != nullptr;
  const std::string name = "%" + shown.entry->name;
  row.text("name", value.renamed ? "%" + left.entry->name + " → " + name : name);
  row.text("change", change_name(value.change));
  row.text("op", shown.op);
  row.text("module", shown.module);
  row.text("type",
           both && left.entry->type != right.entry->type ? left.entry->type + " → " + right.entry->type : shown.entry->type);
  fill_side(row, left, "left");
  fill_side(row, right, "right");
  const auto bytes = [](const Side& side) { return side.entry == nullptr ? 0.0 : static_cast<double>(side.entry->bytes); };
  row.number("bytes_more", bytes(right) - bytes(left));
  row.number("us_more", right.us - left.us);
  if (value.change < PlanChange::moved) row.flag("changed");
  if (value.change == PlanChange::moved) row.flag("moved");
  if (value.renamed) row.flag("renamed");
}

}  // namespace

const TableLayout& delta_layout() { return kDelta; }

Table make_delta_table(const MatchedPlans& plans) {
  Table table(kDelta, static_cast<std::int32_t>(plans.values().size()));
  for (std::int32_t i = 0; i < table.rows(); ++i) {
    const MatchedValue& value = plans.values()[at(i)];
    const Side left = side_of(*plans.side(0).model, value.entry[0]), right = side_of(*plans.side(1).model, value.entry[1]);
    const Side& shown = right.entry != nullptr ? right : left;
    table.set_ids(i, {kNone, shown.entry->copies.front(), value.entry[1]});
    fill(DeltaRow(&table, i), value, left, right);
  }
  const ByteUnit left = unit_of(plans.side(0).model->plan()), right = unit_of(plans.side(1).model->plan());
  table.use_unit(left.bytes > right.bytes ? left : right);
  table.finish();
  return table;
}

Comparison compare(const ComparedPlan& first, const ComparedPlan& second) {
  Comparison comparison;
  comparison.plans = {std::make_shared<const MatchedPlans>(first, second), std::make_shared<const MatchedPlans>(second, first)};
  for (std::size_t way : {0, 1})
    comparison.tables[way] = std::make_shared<const Table>(make_delta_table(*comparison.plans[way]));
  return comparison;
}

}  // namespace tapedeck::viewer
