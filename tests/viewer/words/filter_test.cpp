// Tests the filter of tables and the tables themselves, without a window.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/words/filter.h>
#include <tapedeck/viewer/words/glossary.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <set>
#include <sstream>

namespace tapedeck::viewer {
namespace {

std::shared_ptr<const PlanModel> made_model(unsigned seed, NodeId nodes) {
  const MadePlan made = make_random_plan(seed, nodes);
  return std::make_shared<const PlanModel>(std::make_shared<const Plan>(made.plan), made.curve);
}

std::shared_ptr<const PlanModel> planned_model(double percent) {
  PlanOptions options;
  options.budget_percent = percent;
  return PlanModel::of(make_plan(parse(training_graph(8)), options));
}

std::vector<std::int32_t> passing(const PlanModel& model, TableId id, const std::string& text) {
  const Table& table = model.table(id);
  return Filter(text, table.layout()).kept(table, table.all_rows());
}

// The answer of a loop over the nodes.
template <class Test>
std::vector<std::int32_t> counted(const PlanModel& model, Test&& test) {
  std::vector<std::int32_t> rows;
  for (NodeId n = 0; n < model.nodes(); ++n)
    if (test(model.graph().nodes[n])) rows.push_back(n);
  return rows;
}

TEST(Filter, TermsAllHold) {
  const auto model = made_model(4, 100);
  const auto rows = [&](const std::string& text) { return passing(*model, TableId::nodes, text); };
  EXPECT_EQ(rows("").size(), 100u);
  EXPECT_EQ(rows("made").size(), 100u);
  EXPECT_EQ(rows("MADE").size(), 100u);
  EXPECT_EQ(rows("op:conv").size(), 0u);
  EXPECT_EQ(rows("-op:conv").size(), 100u);
  EXPECT_EQ(rows("op=mad").size(), 0u);
  EXPECT_EQ(rows("op=made").size(), 100u);
  EXPECT_EQ(rows("phase:forward"), counted(*model, [](const Node& n) { return n.origin.phase == Phase::forward; }));
  EXPECT_EQ(rows("phase:forward phase:backward").size(), 0u);
  EXPECT_EQ(rows("is:clone"), counted(*model, [](const Node& n) { return n.origin.clone; }));
  EXPECT_EQ(rows("is:clone").size() + rows("-is:clone").size(), 100u);
  EXPECT_GT(rows("role:saved").size(), 0u);
  EXPECT_EQ(rows("%v1"), rows("name:%v1"));
  EXPECT_EQ(rows("\"no such words\"").size(), 0u);
}

TEST(Filter, SizesAndTimesAreReadAsPeopleWriteThem) {
  const auto model = made_model(4, 100);
  const auto bytes_of = [&](const Node& n) { return model->graph().values[n.first_output].type.bytes(); };
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"3000", 3000},     {"3000B", 3000},   {"3k", 3072},         {"3K", 3072},       {"3Ki", 3072},   {"3KiB", 3072},
      {"3kib", 3072},     {"3kB", 3000},     {"3KB", 3000},        {"2.5k", 2560},     {"3,000", 3000}, {"0.001M", 1048},
      {"0.002MiB", 2097}, {"0.002MB", 2000}, {"0.000002GB", 2000}, {"0.000002g", 2147}};
  for (const auto& size : sizes) {
    const std::string text = size.first;
    const std::int64_t limit = size.second;  // a lambda of clang 14 cannot hold a part of a pair
    const auto more = counted(*model, [&](const Node& n) { return bytes_of(n) > limit; });
    ASSERT_GT(more.size(), 0u);
    EXPECT_EQ(passing(*model, TableId::nodes, "bytes>" + text), more) << text;
    EXPECT_EQ(passing(*model, TableId::nodes, "bytes<=" + text).size(), 100 - more.size()) << text;
  }
  const auto planned = planned_model(-1);
  // Each layer has a node forward and two backward of 100 us; updates take 5 us, and the loss takes 20.
  const auto slow = counted(*planned, [&](const Node& n) {
    const std::string name = planned->graph().value_name(n.first_output);
    return n.origin.phase != Phase::update && name != "d8";
  });
  ASSERT_GT(slow.size(), 0u);
  for (const char* text : {"us>50", "us>0.05ms", "us>50us", "us>50000ns", "us>0.00005s", "us>=100 us<0.2ms"})
    EXPECT_EQ(passing(*planned, TableId::nodes, text).size(), slow.size()) << text;
  EXPECT_EQ(passing(*planned, TableId::nodes, "us=20").size(), 1u);
}

FilterProblem only_problem(const std::string& text, TableId id = TableId::nodes) {
  const Filter filter(text, layout_of(id));
  EXPECT_EQ(filter.problems().size(), 1u) << text;
  return filter.problems().empty() ? FilterProblem{} : filter.problems()[0];
}

// The characters that a problem is about.
std::string marked(const std::string& text) {
  const FilterProblem problem = only_problem(text);
  EXPECT_FALSE(problem.unfinished) << text;
  return text.substr(problem.begin, problem.length);
}

TEST(Filter, AMistakeHasItsPlaceAndASentence) {
  EXPECT_EQ(marked("conv foo:x"), "foo");
  EXPECT_EQ(only_problem("conv foo:x").text.substr(0, 42), "column 6: this table has no column 'foo'; ");
  EXPECT_EQ(marked("byts>3k"), "byts");
  EXPECT_NE(only_problem("byts>3k").text.find("did you mean 'bytes'?"), std::string::npos) << only_problem("byts>3k").text;
  EXPECT_EQ(marked("bytes>16q"), "16q");
  EXPECT_NE(only_problem("bytes>16q").text.find("a size such as"), std::string::npos);
  EXPECT_EQ(marked("us>lots conv"), "lots");
  EXPECT_NE(only_problem("us>lots").text.find("a time such as"), std::string::npos);
  EXPECT_EQ(marked("op: conv"), "op:");  // nothing follows the colon
  EXPECT_EQ(marked("- conv"), "-");
  EXPECT_EQ(marked("is:klone"), "klone");
  EXPECT_NE(only_problem("is:klone").text.find("'clone'"), std::string::npos);
  EXPECT_EQ(marked("op>3"), "op>3");
  EXPECT_EQ(marked("bytes:3k"), "bytes:3k");
  EXPECT_EQ(marked("us>5m conv"), "5m");  // not the last term, so nothing more will come
  // Columns count characters, not bytes.
  EXPECT_EQ(only_problem("µµ foo:x").text.substr(0, 9), "column 4:");
  EXPECT_EQ(Filter("foo:a bar:b", layout_of(TableId::nodes)).problems().size(), 2u);
}

TEST(Filter, TheLastTermMayBeHalfTyped) {
  for (const char* text : {"op:", "conv bytes>", "us>5m", "is:", "is:clo", "-", "conv -is:"}) {
    const FilterProblem problem = only_problem(text);
    EXPECT_TRUE(problem.unfinished) << text;
    EXPECT_NE(problem.text.find("not finished"), std::string::npos);
  }
  const auto model = made_model(4, 100);
  EXPECT_EQ(passing(*model, TableId::nodes, "op:").size(), 100u);  // it is left out
  EXPECT_EQ(passing(*model, TableId::nodes, "foo:x made").size(), 100u);
  EXPECT_EQ(Filter("%a:b \"c:d\" f32[64,10] a/b::c", layout_of(TableId::nodes)).problems().size(), 0u);  // names, not columns
}

TEST(Filter, TypingAnythingIsHarmless) {
  std::mt19937 random(17);
  const auto model = made_model(4, 30);
  const std::string letters = "abiskmopu:<>=-\"., 0159é%";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (unsigned n = random() % 12; n > 0; --n) text += letters[random() % letters.size()];
    const Filter filter(text, layout_of(TableId::nodes));
    for (const FilterProblem& problem : filter.problems()) ASSERT_LE(problem.begin + problem.length, text.size()) << text;
    ASSERT_EQ(filter.matches(model->table(TableId::nodes)).size(), 30u);
  }
}

// A chain of nodes, each of which reads the one before.
std::shared_ptr<const PlanModel> chain_model(NodeId nodes) {
  Plan plan;
  Graph& g = plan.graph;
  g.add_input("x", bytes_type(64));
  for (NodeId n = 0; n < nodes; ++n) {
    const std::vector<ValueId> inputs{n};
    const std::vector<Type> outputs{bytes_type(64 * (1 + n % 1000))};
    g.add_node(made_op(), inputs, nullptr, outputs, {});
    g.values.back().name = "block" + std::to_string(n / 100) + ".value" + std::to_string(n);
  }
  plan.values.resize(g.values.size());
  plan.workspace.resize(g.nodes.size());
  for (ValueId v = 0; v < g.value_count(); ++v) {
    Placement& p = plan.values[v];
    p.where = v == 0 ? Where::input : Where::arena;
    p.reason = v == 0 ? Reason::input : Reason::temporary;
    p.offset = v % 2 == 0 ? 0 : 64000;
    p.birth = v - 1;
    p.death = p.reader = std::min(v, nodes - 1);
  }
  plan.arena_bytes = 128000;
  return PlanModel::of(std::move(plan));
}

// The times are for a person to read: a filter of 100,000 nodes should take less than 20 ms.
TEST(Filter, AHundredThousandNodes) {
  const auto model = chain_model(100000);
  const Table& table = model->table(TableId::nodes);
  ASSERT_EQ(table.rows(), 100000);
  const std::vector<std::int32_t> all = table.all_rows();
  for (const char* text : {"value1", "name:block12 bytes>16k", "made -phase:update bytes>1k is:kept"}) {
    const auto start = std::chrono::steady_clock::now();
    const std::size_t rows = Filter(text, table.layout()).kept(table, all).size();
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    std::printf("  filter '%s': %.1f ms, %zu of %d rows\n", text, ms, rows, table.rows());
    EXPECT_GT(rows, 0u);
  }
}

// ---- tables ----

TEST(Tables, NodesSumToTheCostOfThePlan) {
  for (const double percent : {-1.0, 60.0}) {
    const auto model = planned_model(percent);
    const Table& table = model->table(TableId::nodes);
    const Totals totals = table.totals(table.all_rows());
    EXPECT_NEAR(totals.sums[table.layout().column("us")], model->plan().cost_us, 1e-6 * model->plan().cost_us);
    std::int64_t bytes = 0;
    for (const Node& node : model->graph().nodes)
      for (const Value& value : model->graph().output_values(node)) bytes += value.type.bytes();
    EXPECT_EQ(totals.sums[table.layout().column("bytes")], static_cast<double>(bytes));
    EXPECT_EQ(totals.rows, model->nodes());
  }
}

TEST(Tables, ValuesAreTheValueLog) {
  const auto model = planned_model(60);
  const Table& table = model->table(TableId::values);
  const std::vector<ValueEntry>& log = model->values().log();
  ASSERT_EQ(table.rows(), static_cast<std::int32_t>(log.size()));
  int runs = 0;
  for (std::int32_t i = 0; i < table.rows(); ++i) {
    EXPECT_EQ(table.shown(0, i), "%" + log[i].name);
    EXPECT_EQ(table.shown(table.layout().column("rule"), i), log[i].rule);
    EXPECT_EQ(table.number(table.layout().column("readers"), i), static_cast<double>(log[i].readers.size()));
    runs += static_cast<int>(table.number(table.layout().column("runs"), i));
  }
  EXPECT_EQ(runs, model->nodes());  // every node has one result here
  const auto again = passing(*model, TableId::values, "is:recomputed");
  EXPECT_EQ(again, passing(*model, TableId::values, "runs>1"));
  EXPECT_GT(again.size(), 0u);
  EXPECT_EQ(passing(*model, TableId::values, "choice:recomputed"), again);
}

TEST(Tables, ParametersAreAllThatLiesOutside) {
  const auto model = planned_model(-1);
  const Table& table = model->table(TableId::parameters);
  EXPECT_EQ(table.rows(), 8 + 1 + 1);  // weights, the input, the output
  EXPECT_EQ(passing(*model, TableId::parameters, "is:updated").size(), 8u);
  EXPECT_EQ(passing(*model, TableId::parameters, "updated:yes role:parameter").size(), 8u);
  EXPECT_EQ(passing(*model, TableId::parameters, "role:output").size(), 1u);
  EXPECT_EQ(table.totals(table.all_rows()).sums[table.layout().column("bytes")], static_cast<double>(model->external_bytes()));
}

TEST(Tables, DecisionsPointToTheirValues) {
  const auto model = planned_model(60);
  const Table& table = model->table(TableId::decisions);
  ASSERT_EQ(static_cast<std::size_t>(table.rows()), model->plan().decisions.size());
  ASSERT_GT(table.rows(), 0);
  for (std::int32_t i = 0; i < table.rows(); ++i)
    EXPECT_EQ("%" + model->plan().decisions[i].value, model->name_of(table.ids(i).value));
}

// The oracle: neighbours in the order, by the cells as programs read them.
TEST(Tables, SortingKeepsEqualRowsInOrder) {
  const auto model = made_model(9, 200);
  const Table& table = model->table(TableId::values);
  for (int c = 0; c < static_cast<int>(table.layout().columns.size()); ++c)
    for (const bool descending : {false, true}) {
      const std::vector<std::int32_t> order = table.sorted(c, descending);
      ASSERT_EQ(std::set<std::int32_t>(order.begin(), order.end()).size(), static_cast<std::size_t>(table.rows()));
      for (std::size_t i = 1; i < order.size(); ++i) {
        const std::int32_t a = order[i - 1], b = order[i];
        const bool equal = table.exact(c, a) == table.exact(c, b);
        if (equal) {
          ASSERT_LT(a, b) << table.layout().columns[c].key;
        } else if (!is_number(table.layout().columns[c].kind)) {
          const std::string x = in_small_letters(table.exact(c, a)), y = in_small_letters(table.exact(c, b));
          ASSERT_FALSE(descending ? natural_less(x, y) : natural_less(y, x)) << x << " " << y;
        } else if (!table.exact(c, b).empty()) {  // rows without a number come last
          ASSERT_EQ(table.number(c, a) > table.number(c, b), descending) << table.layout().columns[c].key;
        }
      }
    }
  EXPECT_TRUE(natural_less("v9", "v10"));
  EXPECT_TRUE(natural_less("a2b", "a2c"));
  EXPECT_FALSE(natural_less("a02", "a2"));
  EXPECT_FALSE(natural_less("a2", "a02"));
  EXPECT_TRUE(natural_less("a", "a1"));
}

// The thread that makes a plan makes the orders in which tables were shown last.
TEST(Tables, AnOrderIsMadeOnceAndTheLastOnesAreNoted) {
  const auto model = made_model(9, 200);
  const Table& table = model->table(TableId::values);
  const RowOrder by_bytes{table.layout().column("bytes"), true};
  EXPECT_EQ(*table.order(by_bytes), table.sorted(by_bytes.column, true));
  EXPECT_EQ(*table.order({}), table.all_rows());
  EXPECT_EQ(table.order(by_bytes), table.order(by_bytes));
  EXPECT_EQ(table.totals_of_all().sums, table.totals(table.all_rows()).sums);
  for (const int column : {0, 1, 2, 3, 1}) note_order(TableId::parameters, {column, false});
  std::vector<int> noted;
  for (const RowOrder& by : noted_orders(TableId::parameters)) noted.push_back(by.column);
  EXPECT_EQ(noted, (std::vector<int>{1, 3, 2}));
}

TEST(Tables, CsvHasAllColumnsAndExactNumbers) {
  TableLayout layout{"rows", "row", "rows", "", {{"name", "n", ColumnKind::name, 1}, {"bytes", "b", ColumnKind::bytes, 1}}, {}};
  Table table(layout, 2);
  table.set_text(0, 0, "a,\"b\"\n");
  table.set_text(0, 1, "plain");
  table.set_number(1, 1, 123456789012);
  table.finish();
  std::ostringstream out;
  const std::vector<std::int32_t> order{1, 0};
  table.write_csv(out, order);
  EXPECT_EQ(out.str(), "name,bytes\nplain,123456789012\n\"a,\"\"b\"\"\n\",\n");
}

// ---- names and words ----

TEST(Names, ACopyHasTheNameOfTheFirstAndItsRun) {
  const auto model = planned_model(60);
  int clones = 0;
  for (const ValueEntry& e : model->values().log())
    for (std::size_t run = 0; run < e.copies.size(); ++run) {
      const std::string name = model->name_of(e.copies[run]);
      EXPECT_EQ(name, run == 0 ? "%" + e.name
                               : "%" + e.name + ", run " + std::to_string(run + 1) + " of " + std::to_string(e.copies.size()));
      clones += run > 0 ? 1 : 0;
    }
  EXPECT_EQ(clones, model->plan().recomputed_nodes);
  EXPECT_GT(clones, 0);
}

TEST(Names, TheSelectionHasAllCopies) {
  Session session;
  session.open({});
  const auto model = planned_model(60);
  session.show(model);
  for (const ValueEntry& e : model->values().log()) {
    session.select_value(e.copies.back());
    EXPECT_EQ(session.selection().copies, e.copies);
  }
  session.clear_selection();
  EXPECT_TRUE(session.selection().copies.empty());
  // Another plan of the same graph: the same run of the same value, if it has a name.
  const auto again = planned_model(60);
  for (const ValueEntry& e : model->values().log()) {
    session.show(model);
    session.select_value(e.copies.back());
    session.show(again);
    if (model->graph().values[e.copies.front()].name.empty()) continue;
    ASSERT_NE(session.selection().value, kNone) << e.name;
    EXPECT_EQ(again->name_of(session.selection().value), model->name_of(e.copies.back()));
  }
}

TEST(Words, EveryValueSaysWhereItLiesAndWhatWasDecided) {
  const auto model = planned_model(60);
  for (ValueId v = 0; v < model->graph().value_count(); ++v) {
    const ValueFacts facts = explain_value(*model, v);
    const ValueEntry& e = model->values().entry(v);
    EXPECT_FALSE(facts.reason.empty());
    ASSERT_GT(facts.decision.size(), 2u);
    EXPECT_EQ(facts.decision.substr(1, e.rule.size() - 1), e.rule.substr(1));
    std::vector<NodeId> readers;
    for (NodeId n = 0; n < model->nodes(); ++n) {
      const auto inputs = model->graph().inputs(model->graph().nodes[n]);
      if (std::find(inputs.begin(), inputs.end(), v) != inputs.end()) readers.push_back(n);
    }
    EXPECT_EQ(facts.readers, readers);
  }
}

TEST(Words, ALineOfTheGraphNamesTheRuns) {
  const auto model = planned_model(60);
  int runs = 0;
  for (NodeId n = 0; n < model->nodes(); ++n) {
    const Node& node = model->graph().nodes[n];
    const std::string line = node_line(*model, n);
    const std::string name = model->name_of(node.first_output);
    const std::size_t comma = name.find(", run ");
    if (comma == std::string::npos) {
      EXPECT_EQ(line.substr(0, name.size() + 1), name + ":");
    } else {
      const std::string shown = name.substr(0, comma) + " (" + name.substr(comma + 2) + "):";
      EXPECT_EQ(line.substr(0, shown.size()), shown);
      ++runs;
    }
  }
  EXPECT_EQ(runs, model->plan().recomputed_nodes);
}

TEST(Words, EveryColumnIsExplained) {
  for (int id = 0; id < kTableCount; ++id)
    for (const Column& column : layout_of(static_cast<TableId>(id)).columns)
      EXPECT_FALSE(explain_term(column.key).empty()) << column.key;
  std::set<std::string_view> terms;
  for (const Explanation& e : glossary()) {
    EXPECT_TRUE(terms.insert(e.term).second) << e.term << " is explained twice";
    EXPECT_EQ(e.sentence.back(), '.') << e.term;
  }
}

}  // namespace
}  // namespace tapedeck::viewer
