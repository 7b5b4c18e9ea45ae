// Tests tables that are arranged in the background: the rows before are shown until the new ones are there, a newer filter
// replaces the one before, and the rows, the totals and the selection are those of a table that is arranged at once.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/tables/arranged_rows.h>

#include <QtWidgets/QHeaderView>

#include <algorithm>
#include <random>

namespace tapedeck::viewer {
namespace {

// A panel for which every table is large, and one for which none is.
class LargeTable : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    window.set_budget({-1, 70});
    window.wait_for_plan();
    large().set_rows_at_once(0);
  }
  TablePanel& large() { return window.nodes(); }
  RowsView& view() { return *large().table(); }
  void settle_table() {
    ASSERT_TRUE(spin_until([&] { return large().settled(); }));
  }
  static std::vector<NodeId> nodes_of(TablePanel& panel) {
    std::vector<NodeId> nodes;
    for (int place = 0; place < panel.table()->model()->rowCount(); ++place) nodes.push_back(panel.node_at(place));
    return nodes;
  }
  std::string name_of_result(NodeId n) { return graph().value_name(graph().nodes[static_cast<std::size_t>(n)].first_output); }
  void sort_by(TablePanel& panel, const char* column, Qt::SortOrder order) {
    panel.table()->header()->setSortIndicator(layout_of(panel.id()).column(column), order);
  }
};

TEST_F(LargeTable, ShowsTheSameRowsAndTotalsAsATableThatIsArrangedAtOnce) {
  TablePanel small(TableId::nodes, window.session());
  for (const auto& [filter, column] :
       {std::pair("", "bytes"), {"dw", "bytes"}, {"-dw", "us"}, {"no such", "us"}, {"is:clone", "name"}}) {
    for (const Qt::SortOrder order : {Qt::DescendingOrder, Qt::AscendingOrder}) {
      for (TablePanel* panel : {&large(), &small}) {
        panel->filter()->setText(QString::fromLatin1(filter));
        sort_by(*panel, column, order);
      }
      EXPECT_FALSE(large().settled());
      settle_table();
      EXPECT_EQ(nodes_of(large()), nodes_of(small)) << filter;
      EXPECT_EQ(large().totals(), small.totals()) << filter;
    }
  }
}

TEST_F(LargeTable, TheRowsBeforeAreShownUntilTheNewOnesAreThereAndTheNewestFilterWins) {
  const std::vector<NodeId> all = nodes_of(large());
  const QString totals = large().totals();
  large().filter()->setText(QStringLiteral("h1"));
  large().filter()->setText(QStringLiteral("dw"));
  EXPECT_EQ(nodes_of(large()), all);
  EXPECT_NE(large().totals(), totals);
  EXPECT_TRUE(large().totals().startsWith(QStringLiteral("arranging"))) << large().totals().toStdString();
  settle_table();
  ASSERT_FALSE(nodes_of(large()).empty());
  for (const NodeId n : nodes_of(large())) EXPECT_TRUE(name_of_result(n).starts_with("dw")) << name_of_result(n);
  large().filter()->setText(QStringLiteral("h1"));
  large().filter()->setText({});  // all rows in their own order are no work
  EXPECT_TRUE(large().settled());
  EXPECT_EQ(nodes_of(large()), all);
  EXPECT_EQ(large().totals(), totals);
}

TEST_F(LargeTable, AClickOnARowOfThePlanBeforeSelectsNothing) {
  large().filter()->setText(QStringLiteral("dw"));
  settle_table();
  window.session().clear_selection();
  window.set_budget({});
  window.wait_for_plan();
  ASSERT_FALSE(large().settled());
  view().selectRow(0);
  EXPECT_EQ(window.session().selection().node, kNone);
  NodeId passes = graph().node_count() - 1;
  while (!name_of_result(passes).starts_with("dw")) --passes;
  window.session().select_node(passes);  // elsewhere
  settle_table();
  EXPECT_EQ(large().node_at(view().currentIndex().row()), passes);
}

TEST_F(LargeTable, ASelectionIsFollowedInTheNewOrder) {
  window.session().select_value(value("h5"));
  const NodeId n = window.session().selection().node;
  sort_by(large(), "bytes", Qt::DescendingOrder);
  settle_table();
  EXPECT_EQ(large().node_at(view().currentIndex().row()), n);
  EXPECT_EQ(large().row_of(n), view().currentIndex().row());
}

TEST_F(LargeTable, SumsOfManySelectedRowsComeFromTheBackground) {
  TablePanel small(TableId::nodes, window.session());
  for (TablePanel* panel : {&large(), &small}) {
    panel->table()->selectAll();
    EXPECT_TRUE(panel->settled());  // the sums of all rows are known
    EXPECT_GT(panel->totals().indexOf(QStringLiteral("selected: ")), 0);
  }
  EXPECT_EQ(large().totals(), small.totals());
  const auto select = [](TablePanel& panel, int first, int last) {
    const QAbstractItemModel& model = *panel.table()->model();
    panel.table()->selectionModel()->select({model.index(first, 0), model.index(last, 0)},
                                            QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
  };
  select(small, 3, 9);
  select(large(), 1, 2);
  select(large(), 3, 9);
  EXPECT_TRUE(large().totals().endsWith(QStringLiteral("selected: 7 nodes · …"))) << large().totals().toStdString();
  settle_table();
  EXPECT_EQ(large().totals(), small.totals());
}

TEST_F(LargeTable, IsFilledOnceItIsSeen) {
  TablePanel& values = window.table("values");
  ASSERT_TRUE(values.visibleRegion().isEmpty());
  const int rows = values.table()->model()->rowCount();
  values.set_rows_at_once(0);
  for (const bool by_export : {false, true}) {
    window.show_panel("nodes");
    window.set_budget({-1, by_export ? 80.0 : 90.0});
    window.wait_for_plan();
    EXPECT_EQ(values.table()->model()->rowCount(), 0);
    if (by_export)
      values.write_csv(folder.file("values.csv"));
    else
      window.show_panel("values");
    EXPECT_TRUE(spin_until([&] { return values.table()->model()->rowCount() > 0; }));
    EXPECT_EQ(values.table()->model()->rowCount(), rows);
    EXPECT_TRUE(values.totals().startsWith(QString::number(rows)));
  }
}

// A table that goes while it is arranged must not be told of its rows.
TEST_F(LargeTable, MayGoWhileItIsArranged) {
  for (int i = 0; i < 20; ++i) {
    TablePanel panel(TableId::values, window.session());
    panel.set_rows_at_once(0);
    panel.setAttribute(Qt::WA_DontShowOnScreen);
    panel.show();
    panel.filter()->setText(QStringLiteral("h"));
    EXPECT_FALSE(panel.settled());
    panel.table()->selectAll();
    if (i % 2 == 0) QCoreApplication::processEvents();
  }
  QCoreApplication::processEvents();
}

TEST_F(LargeTable, AnExportWaitsForTheRowsOfItsFilter) {
  large().filter()->setText(QStringLiteral("dw"));
  large().write_csv(folder.file("nodes.csv"));
  const std::string text = read(folder.file("nodes.csv"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + std::ssize(nodes_of(large())));
  EXPECT_TRUE(large().settled());
  EXPECT_FALSE(large().totals().startsWith(QStringLiteral("arranging")));
}

// The oracle sorts with a comparison of its own and searches for each place.
TEST(ArrangedRows, AreThoseOfASimpleSortAndSearch) {
  static const TableLayout layout{
      "things",
      "thing",
      "things",
      "nothing",
      {{"name", "Name", ColumnKind::name, 100, true, true}, {"bytes", "Bytes", ColumnKind::bytes, 100, true, false, true}},
      {}};
  constexpr std::int32_t kRows = 400;
  auto table = std::make_shared<Table>(layout, kRows);
  std::mt19937 random(7);
  std::vector<double> bytes;
  for (std::int32_t row = 0; row < kRows; ++row) {
    bytes.push_back(random() % 50);
    table->set_text(0, row, (row % 3 == 0 ? "a" : "b") + std::to_string(row));
    table->set_number(1, row, bytes.back());
  }
  table->finish();
  const std::atomic<bool> cancelled{false};
  const ArrangedRows rows = arranged_rows(table, Filter("name:a", layout), {1, true}, true, cancelled);
  std::vector<std::int32_t> wanted;
  for (std::int32_t row = 0; row < kRows; row += 3) wanted.push_back(row);
  std::stable_sort(wanted.begin(), wanted.end(), [&](std::int32_t a, std::int32_t b) { return bytes[a] > bytes[b]; });
  EXPECT_EQ(*rows.shown, wanted);
  double sum = 0;
  for (const std::int32_t row : wanted) sum += bytes[row];
  EXPECT_EQ(rows.totals->sums[1], sum);
  for (std::int32_t row = 0; row < kRows; ++row) {
    const auto at = std::find(wanted.begin(), wanted.end(), row);
    EXPECT_EQ(rows.place_of[row], at == wanted.end() ? -1 : at - wanted.begin());
  }
  EXPECT_EQ(rows_at(*rows.shown, {{0, 1}, {4, 4}}), (std::vector<std::int32_t>{wanted[0], wanted[1], wanted[4]}));
}

}  // namespace
}  // namespace tapedeck::viewer
