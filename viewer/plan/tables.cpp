// The layouts and the contents of the tables:
//
//     nodes        a row for each node of the plan
//     values       a row for each entry of the value log: a value with all its runs
//     parameters   a row for each parameter, state, input, constant and output
//     decisions    a row for each decision of the strategy, in order
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/words/index.h>

#include <tapedeck/viewer/plan/plan_unit.h>

#include <algorithm>
#include <unordered_map>

namespace tapedeck::viewer {

namespace {

using K = ColumnKind;

const std::vector<const char*> kMarks = {"clone", "kept", "recomputed", "elsewhere"};

const TableLayout kNodes = {"nodes",
                            "node",
                            "nodes",
                            "There are no nodes.",
                            {
                                {"node", "#", K::count, 38},
                                {"op", "op", K::text, 84, true, true},
                                {"name", "value", K::name, 130, true, true},
                                {"type", "type", K::text, 76, true, true},
                                {"bytes", "bytes", K::bytes, 74, true, false, true},
                                {"us", "time", K::us, 76, true, false, true},
                                {"measured", "measured", K::us, 84, false, false, true},
                                {"role", "role", K::text, 118},
                                {"phase", "phase", K::text, 70},
                                {"live", "live", K::bytes, 80},
                                {"runs", "runs", K::count, 52, false},
                                {"choice", "choice", K::text, 86, false},
                                {"reason", "reason", K::text, 86, false},
                                {"module", "module", K::name, 120, false, true},
                            },
                            kMarks};

const TableLayout kValues = {"values",
                             "value",
                             "values",
                             "There are no values.",
                             {
                                 {"name", "value", K::name, 170, true, true},
                                 {"op", "op", K::text, 90, true, true},
                                 {"type", "type", K::text, 96, true, true},
                                 {"bytes", "bytes", K::bytes, 80, true, false, true},
                                 {"us", "time", K::us, 76, true, false, true},
                                 {"choice", "choice", K::text, 86},
                                 {"runs", "runs", K::count, 52},
                                 {"readers", "readers", K::count, 72},
                                 {"reason", "reason", K::text, 80},
                                 {"rule", "rule", K::text, 360},
                                 {"again", "time again", K::us, 100, false, false, true},
                                 {"role", "role", K::text, 100, false},
                                 {"made", "made at", K::count, 74, false},
                                 {"last", "read to", K::count, 74, false},
                                 {"module", "module", K::name, 120, false, true},
                             },
                             kMarks};

const TableLayout kParameters = {"parameters",
                                 "row",
                                 "rows",
                                 "The step has neither parameters nor inputs nor outputs.",
                                 {
                                     {"name", "name", K::name, 190, true, true},
                                     {"role", "role", K::text, 90, true, true},
                                     {"type", "type", K::text, 130, true, true},
                                     {"bytes", "bytes", K::bytes, 90, true, false, true},
                                     {"updated", "updated", K::text, 80},
                                     {"readers", "readers", K::count, 72},
                                 },
                                 {"updated"}};

const TableLayout kDecisions = {"decisions",
                                "decision",
                                "decisions",
                                "Nothing is recomputed: every value is kept until its last reader.",
                                {
                                    {"step", "#", K::count, 36},
                                    {"name", "value", K::name, 130, true, true},
                                    {"bytes", "bytes", K::bytes, 80, true, false, true},
                                    {"span", "span", K::count, 54},
                                    {"us", "time", K::us, 76, true, false, true},
                                    {"clones", "clones", K::count, 66, true, false, true},
                                    {"most", "most live", K::bytes, 84},
                                    {"reason", "reason", K::text, 400, true, true},
                                },
                                {"recomputed"}};

// Sets cells by the keys of columns.
class Row {
 public:
  Row(Table* table, std::int32_t row) : table_(table), row_(row) {}
  void text(const char* key, const std::string& text) const { table_->set_text(column(key), row_, text); }
  void number(const char* key, double number) const { table_->set_number(column(key), row_, number); }
  void flag(const char* word) const {
    if (const int f = table_->layout().flag(word); f >= 0) table_->set_flag(f, row_);
  }

 private:
  // Mostly the very text of the layout, so pointers tell; a hundred thousand rows are filled so.
  int column(const char* key) const {
    const std::vector<Column>& columns = table_->layout().columns;
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (columns[c].key == key) return static_cast<int>(c);
    return table_->layout().column(key);
  }
  Table* table_;
  std::int32_t row_;
};

void fill_choice(const Row& row, const ValueEntry& e, Reason reason, bool clone) {
  row.text("choice", value_choice_name(e.choice));
  row.text("reason", reason_name(reason));
  row.flag(value_choice_name(e.choice));
  if (clone) row.flag("clone");
}

void fill_node(const Row& row, const PlanModel& model, NodeId n) {
  const Node& node = model.graph().nodes[at(n)];
  std::string names, types;
  std::int64_t bytes = 0;
  for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
    const Type& type = model.graph().values[at(v)].type;
    names += (names.empty() ? "" : ", ") + model.name_of(v);
    types += (types.empty() ? "" : ", ") + to_string(type);
    bytes += type.bytes();
  }
  row.number("node", n);
  row.text("op", node.op->name);
  row.text("name", names);
  row.text("type", types);
  if (node.n_outputs > 0) row.number("bytes", static_cast<double>(bytes));
  row.number("us", model.values().node_us(n));
  row.text("role", node.n_outputs > 0 ? role_class_name(role_of(model.plan(), node.first_output)) : "");
  row.text("phase", phase_name(node.origin.phase));
  row.number("live", static_cast<double>(model.curve()[at(n)]));
  row.text("module", node.origin.path.str());
  if (node.n_outputs == 0) {
    row.text("choice", "");
    return row.text("reason", "");
  }
  const ValueEntry& e = model.values().entry(node.first_output);
  row.number("runs", static_cast<double>(e.runs.size()));
  fill_choice(row, e, model.plan().values[at(node.first_output)].reason, node.origin.clone);
}

Table nodes_table(const PlanModel& model) {
  Table table(kNodes, model.nodes());
  for (NodeId n = 0; n < model.nodes(); ++n) {
    const Node& node = model.graph().nodes[at(n)];
    const ValueId first = node.n_outputs > 0 ? node.first_output : kNone;
    table.set_ids(n, {n, first, first == kNone ? kNone : model.values().entry_of(first)});
    fill_node(Row(&table, n), model, n);
  }
  return table;
}

void fill_value(const Row& row, const PlanModel& model, const ValueEntry& e) {
  const Value& value = model.graph().values[at(e.copies.front())];
  const Node* maker = value.node == kNone ? nullptr : &model.graph().nodes[at(value.node)];
  row.text("name", "%" + e.name);
  row.text("op", maker == nullptr ? role_name(value.role) : maker->op->name);
  row.text("type", e.type);
  row.number("bytes", static_cast<double>(e.bytes));
  // The microseconds of a node are those of its first result.
  if (maker != nullptr && e.result == 0) row.number("us", e.us);
  if (maker != nullptr && e.result == 0 && e.runs.size() > 1) row.number("again", e.again_us());
  row.number("runs", static_cast<double>(e.runs.size()));
  row.number("readers", static_cast<double>(e.readers.size()));
  row.text("rule", e.rule);
  row.text("role", role_class_name(role_of(model.plan(), e.copies.front())));
  if (e.first_maker() != kNone) row.number("made", e.first_maker());
  if (e.last_reader() != kNone) row.number("last", e.last_reader());
  row.text("module", maker == nullptr ? "" : maker->origin.path.str());
  fill_choice(row, e, e.reason, e.copies.size() > 1);
}

Table values_table(const PlanModel& model) {
  const std::vector<ValueEntry>& log = model.values().log();
  Table table(kValues, static_cast<std::int32_t>(log.size()));
  for (std::int32_t i = 0; i < table.rows(); ++i) {
    table.set_ids(i, {kNone, log[at(i)].copies.front(), i});
    fill_value(Row(&table, i), model, log[at(i)]);
  }
  return table;
}

struct External {
  ValueId value;
  std::string role;
};

// State in its order, then inputs, constants and outputs. A value that is returned twice is one row.
std::vector<External> externals_of(const PlanModel& model) {
  const Graph& g = model.graph();
  std::vector<External> found;
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v) found.push_back({v, role_name(g.values[at(v)].role)});
  for (ValueId v = 0; v < g.n_inputs; ++v) found.push_back({v, "input"});
  for (ValueId v = 0; v < g.value_count(); ++v)
    if (model.plan().values[at(v)].where == Where::constant && model.plan().values[at(v)].reason == Reason::constant)
      found.push_back({v, "constant"});
  std::vector<ValueId> outputs = g.outputs;
  std::sort(outputs.begin(), outputs.end());
  outputs.erase(std::unique(outputs.begin(), outputs.end()), outputs.end());
  for (const ValueId v : outputs) found.push_back({v, "output"});
  return found;
}

Table parameters_table(const PlanModel& model) {
  const std::vector<External> externals = externals_of(model);
  std::vector<bool> updated(model.graph().values.size());
  for (const Update& update : model.graph().updates) updated[at(update.state)] = true;
  Table table(kParameters, static_cast<std::int32_t>(externals.size()));
  for (std::int32_t i = 0; i < table.rows(); ++i) {
    const ValueId v = externals[at(i)].value;
    const Row row(&table, i);
    table.set_ids(i, {kNone, v, model.values().entry_of(v)});
    row.text("name", model.name_of(v));
    row.text("role", externals[at(i)].role);
    row.text("type", to_string(model.graph().values[at(v)].type));
    row.number("bytes", static_cast<double>(model.graph().values[at(v)].type.bytes()));
    row.text("updated", !model.graph().is_state(v) ? "" : updated[at(v)] ? "yes" : "no");
    row.number("readers", static_cast<double>(model.values().entry(v).readers.size()));
    if (updated[at(v)]) row.flag("updated");
  }
  return table;
}

Table decisions_table(const PlanModel& model) {
  std::unordered_map<std::string_view, std::int32_t> entry_of;
  const std::vector<ValueEntry>& log = model.values().log();
  const std::vector<Decision>& decisions = model.plan().decisions;
  for (std::size_t e = 0; e < log.size() && !decisions.empty(); ++e)
    entry_of.emplace(log[e].name, static_cast<std::int32_t>(e));
  Table table(kDecisions, static_cast<std::int32_t>(decisions.size()));
  for (std::int32_t i = 0; i < table.rows(); ++i) {
    const Decision& d = decisions[at(i)];
    const Row row(&table, i);
    const auto entry = entry_of.find(d.value);
    if (entry != entry_of.end()) {
      table.set_ids(i, {kNone, log[at(entry->second)].copies.front(), entry->second});
      if (log[at(entry->second)].choice == ValueChoice::recomputed) row.flag("recomputed");
    }
    row.number("step", i + 1);
    row.text("name", "%" + d.value);
    row.number("bytes", static_cast<double>(d.bytes));
    row.number("span", d.span);
    row.number("us", d.cost_us);
    row.number("clones", d.clones);
    row.number("most", static_cast<double>(d.live_peak_bytes));
    row.text("reason", d.reason);
  }
  return table;
}

}  // namespace

const TableLayout& layout_of(TableId id) {
  static const TableLayout* const layouts[kTableCount] = {&kNodes, &kValues, &kParameters, &kDecisions};
  return *layouts[static_cast<int>(id)];
}

Table with_measured(const Table& nodes, const std::vector<double>& us) {
  Table table = nodes;
  const int column = nodes.layout().column("measured");
  for (std::int32_t row = 0; row < table.rows(); ++row) table.set_number(column, row, us[at(table.ids(row).node)]);
  table.renew_orders();
  return table;
}

Table make_table(TableId id, const PlanModel& model) {
  static constexpr Table (*makers[kTableCount])(const PlanModel&) = {nodes_table, values_table, parameters_table,
                                                                     decisions_table};
  Table table = makers[static_cast<int>(id)](model);
  table.use_unit(unit_of(model.plan()));
  table.finish();
  return table;
}

}  // namespace tapedeck::viewer
