// Tests the CSV files of panels that are no tables: the memory plan, the details and the inspector. A reader of CSV that knows
// nothing of the viewer reads them, and their numbers are compared with the plan.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/panels/inspector.h>
#include <tapedeck/viewer/tables/document_csv.h>

#include <QtCore/QHashFunctions>
#include <QtGui/QTextDocument>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QLabel>

#include <algorithm>

namespace tapedeck::viewer {
namespace {

using CsvRow = std::vector<std::string>;

std::vector<CsvRow> read_csv(const std::string& text) {
  std::vector<CsvRow> rows{{""}};
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
      rows.back().back() += text[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && c == ',')
      rows.back().emplace_back();
    else if (!quoted && c == '\n')
      rows.push_back({""});
    else
      rows.back().back() += c;
  }
  rows.pop_back();
  return rows;
}

std::int64_t number_in(const std::string& text) { return std::stoll(text); }

class PanelCsv : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    window.set_budget({-1, 70});
    window.wait_for_plan();
    ASSERT_GT(plan().recomputed_nodes, 0);
  }
  const Plan& plan() { return window.session().model()->plan(); }
  std::vector<CsvRow> written(const std::string& panel) {
    window.finish(panel);
    window.write_csv(panel, folder.file("panel.csv"));
    return read_csv(read(folder.file("panel.csv")));
  }
  // The text of a fact; of several, the first.
  static std::string fact(const std::vector<CsvRow>& rows, const std::string& name) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const CsvRow& row) { return row[1] == name; });
    return found == rows.end() ? "no such fact" : (*found)[2];
  }
};

TEST_F(PanelCsv, TheLinesOfTheMemoryPlanSumToTheLiveBytesOfEachNode) {
  const std::vector<CsvRow> rows = written("memory");
  ASSERT_EQ(rows[0], CsvRow({"value", "role", "op", "module", "node", "birth", "death", "address", "bytes"}));
  const std::vector<std::int64_t> live = live_bytes(plan());
  // Two external values may have the same bytes: a state and its new value. They are counted once.
  std::vector<std::int64_t> sums(live.size(), plan().external_bytes);
  std::int64_t top = 0, external_top = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), 9u);
    const std::int64_t address = number_in(rows[i][7]), bytes = number_in(rows[i][8]);
    top = std::max(top, address + bytes);
    if (address < plan().external_bytes) {
      external_top = std::max(external_top, address + bytes);
      continue;
    }
    for (std::int64_t n = number_in(rows[i][5]); n < number_in(rows[i][6]); ++n) sums.at(static_cast<std::size_t>(n)) += bytes;
  }
  EXPECT_EQ(external_top, plan().external_bytes);
  EXPECT_EQ(sums, live);
  EXPECT_EQ(top, plan().peak_bytes);
}

TEST_F(PanelCsv, ALineOfTheMemoryPlanHasTheNamesAndNumbersOfItsValue) {
  const std::vector<CsvRow> rows = written("memory");
  const ValueId v = value("h5");
  const Node& node = graph().nodes[static_cast<std::size_t>(graph().values[static_cast<std::size_t>(v)].node)];
  const auto h5 =
      std::find_if(rows.begin(), rows.end(), [&](const CsvRow& row) { return row[0] == window.session().model()->name_of(v); });
  ASSERT_NE(h5, rows.end());
  EXPECT_EQ((*h5)[2], node.op->name);
  EXPECT_EQ((*h5)[4], std::to_string(graph().values[static_cast<std::size_t>(v)].node));
  EXPECT_EQ((*h5)[8], std::to_string(graph().values[static_cast<std::size_t>(v)].type.bytes()));
}

TEST_F(PanelCsv, TheDetailsOfThePlanHaveItsNumbersAndAllThatIsAliveAtItsPeak) {
  window.session().clear_selection();
  const std::vector<CsvRow> rows = written("details");
  ASSERT_EQ(rows[0], CsvRow({"section", "fact", "text", "bytes"}));
  EXPECT_EQ(fact(rows, "strategy"), plan().strategy);
  EXPECT_NE(fact(rows, "peak").find(grouped(plan().peak_bytes)), std::string::npos) << fact(rows, "peak");
  std::int64_t alive = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) alive += rows[i][3].empty() ? 0 : number_in(rows[i][3]);
  const std::vector<std::int64_t> live = live_bytes(plan());
  EXPECT_EQ(alive, *std::max_element(live.begin(), live.end()));
}

TEST_F(PanelCsv, TheDetailsOfAValueHaveItsFactsAndThoseOfItsNode) {
  window.session().select_value(value("h5"));
  const std::vector<CsvRow> rows = written("details");
  EXPECT_EQ(rows[1][0], window.session().model()->name_of(value("h5")));
  EXPECT_EQ(fact(rows, "type"), to_string(graph().values[static_cast<std::size_t>(value("h5"))].type));
  EXPECT_NE(fact(rows, "time").find("by the cost model"), std::string::npos);
  EXPECT_EQ(fact(rows, "role"), role_class_name(role_of(plan(), value("h5"))));
  for (const CsvRow& row : rows) EXPECT_NE(row[0], "Alive at the peak");
}

TEST_F(PanelCsv, TheDetailsOfThePeakSayWhatWouldLowerIt) {
  window.session().select_node(window.session().model()->peak_node());
  const std::vector<CsvRow> rows = written("details");
  const auto in_section = [&](const std::string& name) {
    return std::count_if(rows.begin(), rows.end(), [&](const CsvRow& row) { return row[0].starts_with(name); });
  };
  EXPECT_GE(in_section("What would lower the peak"), 1);
  EXPECT_GE(in_section("The lower bound"), 1);
  EXPECT_EQ(in_section("Alive at the peak"), std::ssize(window.session().model()->alive_at_peak()));
}

TEST_F(PanelCsv, TheInspectorSaysWhereTheStepIsAndWhatTheValueHolds) {
  EXPECT_EQ(written("inspector").size(), 2u);  // no step has begun
  window.session().select_value(value("h5"));
  window.inspector().move(StepMove::to_node);
  const std::vector<CsvRow> rows = written("inspector");
  EXPECT_NE(rows[1][2].find("nodes have run"), std::string::npos) << rows[1][2];
  EXPECT_EQ(fact(rows, "type"), to_string(graph().values[static_cast<std::size_t>(value("h5"))].type));
  std::int64_t elements = 0;
  for (const CsvRow& row : rows)
    if (row[0].starts_with("Histogram")) elements += number_in(row[2]);
  EXPECT_EQ(elements, graph().values[static_cast<std::size_t>(value("h5"))].type.numel());
}

TEST_F(PanelCsv, TheCommandWritesThePanelWithTheFocusInEveryFormat) {
  for (const auto& [panel, ending] : {std::pair("details", "csv"), {"memory", "csv"}, {"curve", "svg"}, {"nodes", "pdf"}}) {
    window.show_panel(panel);
    window.panel(panel).widget->setFocus();
    press(window, Qt::Key_E, Qt::ControlModifier | Qt::ShiftModifier);
    auto* dialog = window.findChild<QFileDialog*>();
    ASSERT_NE(dialog, nullptr) << panel;
    EXPECT_TRUE(dialog->windowTitle().contains(QString::fromStdString(window.panel(panel).panel->title))) << panel;
    const std::string path = folder.file(std::string("from-gui.") + ending);
    Q_EMIT dialog->fileSelected(QString::fromStdString(path));
    dialog->close();
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    window.write_csv(panel, folder.file("wanted.csv"));
    const std::string wanted = read(folder.file("wanted.csv"));
    if (path.ends_with(".csv"))
      EXPECT_EQ(read(path), wanted) << panel;
    else
      EXPECT_TRUE(read(path).starts_with(path.ends_with(".svg") ? "<svg " : "%PDF-")) << panel;
  }
}

TEST(DocumentCsv, HeadingsAreSectionsAndRowsAreFacts) {
  QTextDocument document;
  document.setHtml(
      QStringLiteral("<h3>One, two</h3><table><tr><td>key</td><td>a &quot;b&quot;<br>c&nbsp;d <a href='region:1/0'>draw "
                     "it</a></td></tr></table>"
                     "<h4>List</h4><ul><li>first</li><li>second</li></ul><p>e<br>f</p>"));
  EXPECT_EQ(document_csv(document),
            "section,fact,text,bytes\n"
            "\"One, two\",key,\"a \"\"b\"\"; c d\",\n"
            "List,,first,\nList,,second,\nList,,e,\nList,,f,\n");
}

// Two fonts in one PDF, whose order depended on the seed of the hash tables of the process.
TEST(Export, APdfHasTheSameBytesWhateverTheSeedOfHashTables) {
  const Folder folder;
  QLabel label(QStringLiteral("plain <b>bold</b>"));
  label.resize(120, 30);
  const auto bytes = [&] {
    QHashSeed::resetRandomGlobalSeed();
    export_widget(folder.file("label.pdf"), label, 120, 30);
    return read(folder.file("label.pdf"));
  };
  const std::string first = bytes();
  for (int i = 0; i < 12; ++i) ASSERT_EQ(bytes(), first) << i;
}

}  // namespace
}  // namespace tapedeck::viewer
