// Tests the tables of the window with real events: sorting, filters, totals, columns, copies, files, and the selection in both
// directions.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/options.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/screenshot.h>
#include <tapedeck/viewer/window.h>
#include <tapedeck/viewer/words/glossary.h>

#include <gtest/gtest.h>
#include <QtCore/QElapsedTimer>
#include <QtGui/QAccessible>
#include <QtGui/QAction>
#include <QtGui/QClipboard>
#include <QtGui/QMouseEvent>
#include <QtGui/QTextBlock>
#include <QtGui/QTextCursor>
#include <QtGui/QTextTable>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenu>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QStatusBar>

#include <fstream>
#include <functional>
#include <sstream>

namespace tapedeck::viewer {
namespace {

class TablesInTheWindow : public ::testing::Test {
 protected:
  void SetUp() override {
    window.resize(1280, 720);
    window.open(folder.write("step.graph", training_graph(layers())), {-1, 60});
    window.wait_for_plan();
    window.show();
    QCoreApplication::processEvents();
  }
  virtual int layers() const { return 10; }
  std::string file(const std::string& name) const { return folder.file(name); }
  const PlanModel& model() { return *window.session().model(); }
  TablePanel& panel(const std::string& name) {
    window.panel(name).dock->raise();
    QCoreApplication::processEvents();
    return window.table(name);
  }
  static RowsView& view(TablePanel& panel) { return *panel.table(); }
  static QString cell(TablePanel& panel, int place, const char* key) {
    for (int id = 0; id < kTableCount; ++id) {
      const TableLayout& layout = layout_of(static_cast<TableId>(id));
      if (panel.table()->accessibleName() == QLatin1String(layout.name))
        return panel.table()->model()->index(place, layout.column(key)).data().toString();
    }
    return {};
  }
  static void send(QWidget* to, QEvent::Type type, const QPoint& at, Qt::KeyboardModifiers modifiers = {}) {
    const Qt::MouseButtons held = type == QEvent::MouseButtonRelease ? Qt::NoButton : Qt::LeftButton;
    QMouseEvent event(type, at, to->mapToGlobal(QPointF(at)), Qt::LeftButton, held, modifiers);
    QApplication::sendEvent(to, &event);
  }
  static void click(QWidget* to, const QPoint& at, Qt::KeyboardModifiers modifiers = {}) {
    send(to, QEvent::MouseButtonPress, at, modifiers);
    send(to, QEvent::MouseButtonRelease, at, modifiers);
    QCoreApplication::processEvents();
  }
  static void click_row(TablePanel& panel, int place, Qt::KeyboardModifiers modifiers = {}) {
    const QModelIndex index = panel.table()->model()->index(place, 0);
    panel.table()->scrollTo(index);
    click(panel.table()->viewport(), panel.table()->visualRect(index).center(), modifiers);
  }
  static void click_header(TablePanel& panel, const char* title) {
    QHeaderView* header = panel.table()->header();
    for (int c = 0; c < header->count(); ++c)
      if (panel.table()->model()->headerData(c, Qt::Horizontal).toString() == QLatin1String(title))
        return click(header->viewport(), {header->sectionViewportPosition(c) + 8, header->height() / 2});
    FAIL() << "no column " << title;
  }
  static void type(QWidget* to, const std::string& text) {
    for (const char c : text) {
      QKeyEvent press(QEvent::KeyPress, 0, Qt::NoModifier, QString(QLatin1Char(c)));
      QApplication::sendEvent(to, &press);
    }
  }
  static void press(QWidget* to, int key, Qt::KeyboardModifiers modifiers) {
    QKeyEvent event(QEvent::KeyPress, key, modifiers);
    QApplication::sendEvent(to, &event);
  }

  Folder folder;
  MainWindow window{{Renderer::soft, "software", false, false}};
};

const char* const kNames[] = {"nodes", "values", "parameters", "decisions"};

// The tables of a large plan come after its pictures; until then nothing can be selected.
TEST_F(TablesInTheWindow, FollowThePictures) {
  Session& session = window.session();
  const std::shared_ptr<const PlanModel> pictures = PlanModel::pictures_of(model().plan());
  session.clear_selection();
  session.show(pictures);
  session.select_node(3);
  EXPECT_EQ(session.selection().node, kNone);
  EXPECT_EQ(window.nodes().table()->model()->rowCount(), 0);
  session.note_complete();
  EXPECT_EQ(window.nodes().table()->model()->rowCount(), 0);
  pictures->complete();
  session.note_complete();
  EXPECT_EQ(window.nodes().table()->model()->rowCount(), pictures->nodes());
  session.select_node(3);
  EXPECT_EQ(window.nodes().node_at(window.nodes().table()->currentIndex().row()), 3);
}

TEST_F(TablesInTheWindow, AClickOnAColumnSortsByIt) {
  for (const char* name : kNames) {
    TablePanel& table = panel(name);
    const int rows = view(table).model()->rowCount();
    ASSERT_GT(rows, 2) << name;
    const QString first = cell(table, 0, "name");
    std::vector<std::vector<QString>> orders;
    for (int clicks = 0; clicks < 3; ++clicks) {
      click_header(table, "bytes");
      orders.emplace_back();
      for (int i = 0; i < rows; ++i) orders.back().push_back(cell(table, i, "name"));
      const Table& cells = model().table(static_cast<TableId>(std::find(kNames, kNames + 4, std::string_view(name)) - kNames));
      const std::vector<std::int32_t> expected =
          clicks == 2 ? cells.all_rows() : cells.sorted(cells.layout().column("bytes"), clicks == 1);
      for (int i = 0; i < rows; ++i)
        ASSERT_EQ(orders.back()[i].toStdString(), cells.shown(cells.layout().column("name"), expected[i])) << name;
    }
    EXPECT_EQ(cell(table, 0, "name"), first);  // the third click gives the order of the table back
  }
}

TEST_F(TablesInTheWindow, ARowSelectsAndASelectionMarksItsRowInEveryOrder) {
  for (const char* name : kNames) {
    TablePanel& table = panel(name);
    click_header(table, "bytes");
    for (const int place : {2, 0, 1}) {
      click_row(table, place);
      const RowIds ids = table.ids_at(place);
      if (ids.value == kNone) continue;
      EXPECT_EQ(window.session().selection().value, ids.value) << name;
      EXPECT_EQ(view(table).currentIndex().row(), place) << name;
      EXPECT_TRUE(window.details().toPlainText().startsWith(QString::fromStdString(model().name_of(ids.value)))) << name;
    }
    // From elsewhere: every table shows the value, if it has it and the filter lets it pass.
    window.session().clear_selection();
    EXPECT_FALSE(view(table).currentIndex().isValid());
    window.session().select_value(table.ids_at(view(table).model()->rowCount() - 1).value);
    const std::int32_t entry = model().values().entry_of(window.session().selection().value);
    ASSERT_TRUE(view(table).currentIndex().isValid()) << name;
    EXPECT_EQ(table.ids_at(view(table).currentIndex().row()).entry, entry) << name;
  }
}

TEST_F(TablesInTheWindow, ADecisionMarksAllRunsOfItsValue) {
  TablePanel& decisions = panel("decisions");
  click_row(decisions, 0);
  const Selection& selection = window.session().selection();
  const ValueEntry& e = model().values().entry(selection.value);
  EXPECT_EQ("%" + model().plan().decisions[0].value, "%" + e.name);
  EXPECT_GT(selection.copies.size(), 1u);
  EXPECT_EQ(selection.copies, e.copies);
  // A later run is the same value: the tables of values and decisions stay where they are.
  window.session().select_value(e.copies.back());
  EXPECT_EQ(view(decisions).currentIndex().row(), 0);
  TablePanel& values = panel("values");
  EXPECT_EQ(cell(values, view(values).currentIndex().row(), "name").toStdString(), "%" + e.name);
  EXPECT_TRUE(window.details().toPlainText().contains(QStringLiteral("run 2 of")));
}

TEST_F(TablesInTheWindow, AllCopiesAreOutlinedInTheMemoryPlan) {
  const ValueEntry* e = nullptr;
  for (const ValueEntry& each : model().values().log())
    if (each.copies.size() > 1) e = &each;
  ASSERT_NE(e, nullptr);
  // White pixels in a strip through the middle of the last copy: its outline crosses the strip.
  const auto white = [&] {
    const QImage image = render_picture(window.memory(), 1000, 600);
    const int middle = static_cast<int>(window.memory().place_of(e->copies.back())->x);
    int n = 0;
    for (int y = 60; y < 560; ++y)
      for (int x = middle - 1; x <= middle + 1; ++x) n += (image.pixel(x, y) & 0xffffff) == 0xffffff ? 1 : 0;
    return n;
  };
  const int before = white();
  window.session().select_value(e->copies.front());
  EXPECT_GT(white(), before);
}

TEST_F(TablesInTheWindow, AFilterNarrowsAndItsTotalsAreThoseOfWhatPasses) {
  TablePanel& nodes = panel("nodes");
  nodes.filter()->setFocus();
  type(nodes.filter(), "phase:backward -is:clone bytes>16k");
  EXPECT_TRUE(nodes.filter_message().isEmpty()) << nodes.filter_message().toStdString();
  int expected = 0;
  std::int64_t bytes = 0;
  for (const Node& node : model().graph().nodes) {
    const std::int64_t size = model().graph().values[node.first_output].type.bytes();
    if (node.origin.phase != Phase::backward || node.origin.clone || size <= 16384) continue;
    ++expected;
    bytes += size;
  }
  EXPECT_EQ(view(nodes).model()->rowCount(), expected);
  EXPECT_TRUE(nodes.totals().startsWith(QString::number(expected) + QStringLiteral(" nodes · ") +
                                        QString::fromStdString(unit_of(model().plan()).text(bytes))))
      << nodes.totals().toStdString();
  EXPECT_TRUE(nodes.totals().contains(QStringLiteral(", of ") + QString::number(model().nodes())));
}

// The cells of bytes, the totals and the status bar are in the unit of the plan; a size of which it shows no digit is in its
// own.
TEST_F(TablesInTheWindow, AllBytesAreInOneUnit) {
  const ByteUnit unit = ByteUnit::of(model().plan().keep_all_peak_bytes);
  ASSERT_STREQ(unit.name, "MiB");
  int cells = 0;
  for (const char* name : {"nodes", "values", "parameters"}) {
    const QAbstractItemModel& rows = *view(panel(name)).model();
    for (int c = 0; c < rows.columnCount(); ++c) {
      if (layout_of(panel(name).id()).columns[c].kind != ColumnKind::bytes) continue;
      for (int r = 0; r < rows.rowCount(); ++r) {
        const QString text = rows.index(r, c).data().toString();
        if (text.isEmpty()) continue;
        ++cells;
        EXPECT_TRUE(text.endsWith(QStringLiteral(" MiB")) || text.endsWith(QStringLiteral(" B"))) << text.toStdString();
      }
    }
  }
  EXPECT_GT(cells, 50);
  EXPECT_TRUE(panel("values").totals().contains(QStringLiteral(" MiB"))) << panel("values").totals().toStdString();
  EXPECT_EQ(ByteUnit::of(std::int64_t{1} << 30).readable_text(256), "256 B");
  EXPECT_EQ(ByteUnit::of(std::int64_t{1} << 30).readable_text(std::int64_t{1} << 20), "0.001 GiB");
  EXPECT_EQ(ByteUnit::of(std::int64_t{1} << 30).readable_text(0), "0.00 GiB");
}

TEST_F(TablesInTheWindow, TheSelectedRowsHaveTheirOwnTotals) {
  TablePanel& values = panel("values");
  click_row(values, 1);
  click_row(values, 3, Qt::ShiftModifier);
  const Table& table = model().table(TableId::values);
  const std::vector<std::int32_t> rows{1, 2, 3};
  const QString expected = QStringLiteral("\nselected: ") + QString::fromStdString(table.totals_text(table.totals(rows)));
  EXPECT_TRUE(values.totals().endsWith(expected)) << values.totals().toStdString();
  EXPECT_TRUE(expected.contains(QStringLiteral("3 values")));
}

TEST_F(TablesInTheWindow, KeysGoThroughTheRows) {
  TablePanel& values = panel("values");
  RowsView& rows = view(values);
  const int last = rows.model()->rowCount() - 1;
  click_row(values, 3);
  press(&rows, Qt::Key_End, Qt::NoModifier);
  EXPECT_EQ(rows.currentIndex().row(), last);
  EXPECT_TRUE(rows.viewport()->rect().intersects(rows.visualRect(rows.currentIndex())));
  EXPECT_EQ(window.session().selection().value, values.ids_at(last).value);
  press(&rows, Qt::Key_Home, Qt::NoModifier);
  EXPECT_EQ(rows.currentIndex().row(), 0);
  press(&rows, Qt::Key_Down, Qt::NoModifier);
  EXPECT_EQ(rows.currentIndex().row(), 1);
  press(&rows, Qt::Key_PageDown, Qt::NoModifier);
  const int page = rows.viewport()->height() / rows.rowHeight(0);
  EXPECT_NEAR(rows.currentIndex().row(), std::min(last, 1 + page), 2);
  press(&rows, Qt::Key_PageUp, Qt::NoModifier);
  EXPECT_LE(rows.currentIndex().row(), 2);
  // The arrows move the columns, and the row stays.
  rows.header()->resizeSection(0, 2000);
  QCoreApplication::processEvents();
  press(&rows, Qt::Key_Right, Qt::NoModifier);
  EXPECT_GT(rows.horizontalScrollBar()->value(), 0);
  press(&rows, Qt::Key_Left, Qt::NoModifier);
  EXPECT_EQ(rows.horizontalScrollBar()->value(), 0);
}

TEST_F(TablesInTheWindow, LettersFindTheNextRowWhoseNameBeginsSo) {
  TablePanel& values = panel("values");
  RowsView& rows = view(values);
  click_row(values, 0);
  for (const char* letter : {"H", "7"}) rows.keyboardSearch(QString::fromLatin1(letter));  // H as a key shows the whole plan
  EXPECT_EQ(cell(values, rows.currentIndex().row(), "name"), QStringLiteral("%h7"));
  // The slow way finds the same, from any row on and behind the last one.
  const auto slow = [&](int from, const QString& word) {
    for (int i = 0; i < rows.model()->rowCount(); ++i) {
      const int place = (from + i) % rows.model()->rowCount();
      if (cell(values, place, "name").mid(1).startsWith(word, Qt::CaseInsensitive)) return place;
    }
    return -1;
  };
  for (const char* word : {"h", "g", "w1", "no such name"})
    for (int from = 0; from < rows.model()->rowCount(); from += 7) {
      const QModelIndexList found =
          rows.model()->match(rows.model()->index(from, 0), Qt::DisplayRole, QString::fromLatin1(word), 1, Qt::MatchStartsWith);
      EXPECT_EQ(found.isEmpty() ? -1 : found.front().row(), slow(from, QString::fromLatin1(word))) << word << " " << from;
    }
}

TEST_F(TablesInTheWindow, AllRowsCanBeSelected) {
  TablePanel& nodes = panel("nodes");
  press(&view(nodes), Qt::Key_A, Qt::ControlModifier);
  const Table& table = model().table(TableId::nodes);
  EXPECT_TRUE(
      nodes.totals().endsWith(QStringLiteral("selected: ") + QString::fromStdString(table.totals_text(table.totals_of_all()))))
      << nodes.totals().toStdString();
  const std::string text = nodes.selected_text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), model().nodes());
}

TEST_F(TablesInTheWindow, ProgramsForBlindPeopleReadEveryRow) {
  TablePanel& nodes = panel("nodes");
  QAccessibleInterface* interface = QAccessible::queryAccessibleInterface(&view(nodes));
  ASSERT_NE(interface, nullptr);
  QAccessibleTableInterface* table = interface->tableInterface();
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->rowCount(), model().nodes());
  const int op = layout_of(TableId::nodes).column("op");
  for (const int row : {0, model().nodes() - 1})
    EXPECT_EQ(table->cellAt(row, op)->text(QAccessible::Name).toStdString(), model().graph().nodes[row].op->name);
}

// A million rows, which count how often they are asked for anything.
class CountedRows : public QAbstractTableModel {
 public:
  int rowCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : 1'000'000; }
  int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : 3; }
  QVariant data(const QModelIndex& index, int role) const override {
    ++asked;
    return role == Qt::DisplayRole ? QVariant(index.row()) : QVariant();
  }
  Qt::ItemFlags flags(const QModelIndex& index) const override {
    ++asked;
    return QAbstractTableModel::flags(index);
  }
  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override {
    ++asked;
    return QAbstractTableModel::index(row, column, parent);
  }
  void reset() {
    beginResetModel();
    endResetModel();
  }
  mutable int asked = 0;
};

TEST(RowsOfATable, AreNotVisitedWhereNobodySeesThem) {
  CountedRows rows;
  RowsView view([] {}, [] {});
  view.setModel(&rows);
  view.resize(400, 300);
  view.show();
  QCoreApplication::processEvents();
  rows.reset();
  QCoreApplication::processEvents();
  view.setCurrentIndex(rows.index(999'999, 0));
  QCoreApplication::processEvents();
  EXPECT_TRUE(view.viewport()->rect().contains(view.visualRect(rows.index(999'999, 0)).center()));
  EXPECT_EQ(view.indexAt(view.visualRect(rows.index(999'998, 1)).center()), rows.index(999'998, 1));
  EXPECT_GT(rows.asked, 100);
  EXPECT_LT(rows.asked, 20'000);
}

TEST_F(TablesInTheWindow, AWrongTermIsMarkedAndSaid) {
  TablePanel& nodes = panel("nodes");
  const auto red = [&] {
    const QImage image = nodes.filter()->grab().toImage();
    int n = 0;
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) {
        const QColor c = image.pixelColor(x, y);
        n += c.red() > 200 && c.green() < 130 && c.blue() < 130 ? 1 : 0;
      }
    return n;
  };
  type(nodes.filter(), "opaque");
  EXPECT_EQ(red(), 0);
  EXPECT_TRUE(nodes.filter_message().isEmpty());
  const int rows = view(nodes).model()->rowCount();
  EXPECT_LT(rows, model().nodes());
  type(nodes.filter(), " foo:x");
  EXPECT_TRUE(nodes.filter_message().startsWith(QStringLiteral("column 8: this table has no column 'foo'")));
  EXPECT_GT(red(), 0);
  EXPECT_EQ(view(nodes).model()->rowCount(), rows);  // the wrong term is left out
  nodes.filter()->clear();
  EXPECT_EQ(red(), 0);
  type(nodes.filter(), "op:");
  EXPECT_TRUE(nodes.filter_message().contains(QStringLiteral("not finished")));
  EXPECT_EQ(red(), 0);  // a half-typed term is no mistake
  type(nodes.filter(), "zzz");
  EXPECT_TRUE(nodes.filter_message().isEmpty());
  EXPECT_EQ(view(nodes).model()->rowCount(), 0);
}

TEST_F(TablesInTheWindow, RowsAreCopiedAsText) {
  TablePanel& parameters = panel("parameters");
  click_row(parameters, 0);
  click_row(parameters, 2, Qt::ControlModifier);
  press(&view(parameters), Qt::Key_C, Qt::ControlModifier);
  std::string expected;
  for (const int place : {0, 2})
    expected += cell(parameters, place, "name").toStdString() + "\tparameter\tf32[64,64]\t0.016 MiB\tyes\t" +
                cell(parameters, place, "readers").toStdString() + "\n";
  EXPECT_EQ(QGuiApplication::clipboard()->text().toStdString(), expected);
}

TEST_F(TablesInTheWindow, ColumnsCanBeHiddenAndShown) {
  TablePanel& nodes = panel("nodes");
  QHeaderView* header = view(nodes).header();
  const int module = layout_of(TableId::nodes).column("module"), type = layout_of(TableId::nodes).column("type");
  EXPECT_TRUE(view(nodes).isColumnHidden(module));
  Q_EMIT header->customContextMenuRequested({10, 5});
  QMenu* menu = nodes.findChild<QMenu*>();
  ASSERT_NE(menu, nullptr);
  menu->actions()[module]->trigger();
  menu->actions()[type]->trigger();
  EXPECT_FALSE(view(nodes).isColumnHidden(module));
  EXPECT_TRUE(view(nodes).isColumnHidden(type));
  menu->close();
  click_row(nodes, 0);
  EXPECT_NE(nodes.selected_text().find("layer0"), std::string::npos);
  EXPECT_EQ(nodes.selected_text().find("f32"), std::string::npos);
}

TEST_F(TablesInTheWindow, EveryTableIsWrittenAsCsv) {
  for (int id = 0; id < kTableCount; ++id) {
    const TableLayout& layout = layout_of(static_cast<TableId>(id));
    const std::string path = file(std::string(layout.name) + ".csv");
    window.table(layout.name).write_csv(path);
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), static_cast<std::ptrdiff_t>(layout.columns.size()) - 1);
    int rows = 0;
    while (std::getline(in, line)) ++rows;
    EXPECT_EQ(rows, model().table(static_cast<TableId>(id)).rows()) << layout.name;
  }
  EXPECT_THROW(window.nodes().write_csv(file("no/such/folder.csv")), FileError);
}

// The table of the panel Recompute begins with the value whose further runs cost most.
TEST_F(TablesInTheWindow, TheDearestValuesAreWrittenAsCsv) {
  Options of_recompute, options;
  std::string error;
  ASSERT_TRUE(parse_options({"a.tape", "--panel", "recompute", "--export", "b.csv"}, &of_recompute, &error)) << error;
  ASSERT_TRUE(parse_options({"a.tape", "--panel", "live", "--export", "b.csv"}, &options, &error)) << error;
  EXPECT_EQ(options.panel, "curve");  // the panel Live bytes by the first word of its title
  window.write_csv("recompute", file("again.csv"));
  std::ifstream in(file("again.csv"));
  std::string head, first;
  std::getline(in, head);
  std::getline(in, first);
  const ValueEntry* dearest = nullptr;
  for (const ValueEntry& e : model().values().log())
    if (dearest == nullptr || e.again_us() > dearest->again_us()) dearest = &e;
  EXPECT_TRUE(first.starts_with("%" + dearest->name + ",")) << first;
}

TEST_F(TablesInTheWindow, TheTooltipHasTheWholeName) {
  TablePanel& values = panel("values");
  const QString tip = view(values).model()->index(0, 0).data(Qt::ToolTipRole).toString();
  EXPECT_TRUE(tip.contains(cell(values, 0, "name").toHtmlEscaped()));
}

TEST_F(TablesInTheWindow, EveryHeaderAndNumberExplainsItself) {
  for (const char* name : kNames) {
    const QAbstractItemModel& rows = *window.table(name).table()->model();
    for (int c = 0; c < rows.columnCount(); ++c)
      EXPECT_GT(rows.headerData(c, Qt::Horizontal, Qt::ToolTipRole).toString().size(), 30) << name << " " << c;
  }
  int numbers = 0;
  for (QLabel* label : window.statusBar()->findChildren<QLabel*>()) {
    if (!label->text().contains(QStringLiteral("<span"))) continue;
    ++numbers;
    EXPECT_FALSE(label->toolTip().isEmpty()) << label->text().toStdString();
  }
  EXPECT_EQ(numbers, 6);
  // The details: the first cell of each row, for the plan and for each kind of selection.
  int keys = 0;
  const auto check = [&] {
    for (QTextFrame* frame : window.details().document()->rootFrame()->childFrames()) {
      auto* table = qobject_cast<QTextTable*>(frame);
      for (int row = 0; table != nullptr && row < table->rows(); ++row) {
        QTextCursor at = table->cellAt(row, 0).firstCursorPosition();
        at.movePosition(QTextCursor::NextCharacter);
        ++keys;
        EXPECT_FALSE(at.charFormat().toolTip().isEmpty()) << at.block().text().toStdString();
      }
    }
  };
  window.session().clear_selection();
  check();
  for (NodeId n = 0; n < model().nodes(); ++n) {
    window.session().select_node(n);
    check();
  }
  EXPECT_GT(keys, 15 * model().nodes());
}

class TheListOfWhatIsAlive : public TablesInTheWindow {
 protected:
  int layers() const override { return 70; }  // so long a list is written in parts
};

TEST_F(TheListOfWhatIsAlive, IsWholeAndSumsToTheCurve) {
  window.session().clear_selection();
  const NodeId peak = model().peak_node();
  QElapsedTimer clock;
  clock.start();
  QString text;
  const std::string last = [&] {  // the smallest that has a name
    std::string name;
    for (const PlanRect& rect : model().alive(peak))
      if (rect.value != kNone) name = model().name_of(rect.value);
    return name;
  }();
  while (!text.contains(QString::fromStdString(last)) && clock.elapsed() < 20000) {
    // More of the list is written when a person reads on to its end.
    QScrollBar& bar = *window.details().verticalScrollBar();
    bar.setValue(bar.maximum());
    QCoreApplication::processEvents();
    text = window.details().toPlainText();
  }
  std::int64_t sum = 0;
  for (const PlanRect& rect : model().alive(peak)) {
    sum += rect.bytes;
    if (rect.value != kNone) {
      EXPECT_TRUE(text.contains(QString::fromStdString(model().name_of(rect.value))));
    }
  }
  EXPECT_EQ(sum, model().curve()[peak]);
  EXPECT_GT(model().alive(peak).size(), 100u);
  EXPECT_TRUE(text.contains(QString::number(model().alive(peak).size()) + QStringLiteral(" in all, ") +
                            QString::fromStdString(unit_of(model().plan()).exact_text(sum))));
}

TEST_F(TablesInTheWindow, TheHoverLeavesWithTheMouse) {
  Canvas& canvas = window.memory_canvas();
  const auto settle = [&] {
    QElapsedTimer clock;
    clock.start();
    while (!canvas.settled() && clock.elapsed() < 20000) QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
  };
  settle();
  ValueId v = kNone;
  for (ValueId each = 0; each < model().graph().value_count() && v == kNone; ++each)
    if (model().graph().value_name(each) == "h5") v = each;
  const ImVec2 at = *window.memory().place_of(v);
  const QPointF p(static_cast<double>(at.x), static_cast<double>(at.y));
  QMouseEvent move(QEvent::MouseMove, p, canvas.mapToGlobal(p), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
  QApplication::sendEvent(&canvas, &move);
  settle();
  EXPECT_EQ(window.session().selection().hovered, v);
  QEvent leave(QEvent::Leave);
  QApplication::sendEvent(&canvas, &leave);
  settle();
  EXPECT_EQ(window.session().selection().hovered, kNone);
}

#ifdef TAPEDECK_TOOL
TEST_F(TablesInTheWindow, SizesAreThoseThatTheToolPrints) {
  const std::string command = "'" TAPEDECK_TOOL "' plan --costs estimate --budget 60% '" + file("step.graph") + "' > '" +
                              file("tool.txt") + "' 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream in(file("tool.txt"));
  const std::string tool{std::istreambuf_iterator<char>(in), {}};
  window.session().clear_selection();
  const std::string details = window.details().toPlainText().toStdString();
  const Plan& plan = model().plan();
  for (const std::int64_t bytes : {plan.peak_bytes, plan.arena_bytes, plan.lower_bound_bytes, plan.floor_bytes,
                                   plan.keep_all_peak_bytes, plan.budget_bytes, plan.external_bytes}) {
    // The window has one unit for all sizes of a plan, and the tool has one for each size; both say the count.
    const std::string told = unit_of(plan).exact_text(bytes), count = grouped(bytes) + " bytes)";
    EXPECT_NE(tool.find(count), std::string::npos) << count << " in\n" << tool;
    EXPECT_NE(details.find(told), std::string::npos) << told << " in\n" << details;
  }
}
#endif

TEST_F(TablesInTheWindow, TheMouseOverARowOutlinesItsValue) {
  TablePanel& values = panel("values");
  const QModelIndex index = view(values).model()->index(3, 0);
  const QPoint at = view(values).visualRect(index).center();
  QMouseEvent move(QEvent::MouseMove, at, view(values).viewport()->mapToGlobal(QPointF(at)), Qt::NoButton, Qt::NoButton, {});
  QApplication::sendEvent(view(values).viewport(), &move);
  EXPECT_EQ(window.session().selection().hovered, values.ids_at(3).value);
  QEvent leave(QEvent::Leave);
  QApplication::sendEvent(view(values).viewport(), &leave);
  EXPECT_EQ(window.session().selection().hovered, kNone);
}

TEST_F(TablesInTheWindow, ATableWithoutDecisionsSaysSo) {
  window.set_budget({});
  window.wait_for_plan();
  EXPECT_TRUE(panel("decisions").totals().startsWith(QStringLiteral("Nothing is recomputed")));
}

}  // namespace
}  // namespace tapedeck::viewer
