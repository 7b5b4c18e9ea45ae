// Tests that all panels show the bytes of one plan in one unit, that of its largest number.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/plan/plan_unit.h>

#include <QtCore/QRegularExpression>
#include <QtWidgets/QTreeWidget>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace tapedeck::viewer {
namespace {

// The units of all sizes in a text.
std::set<std::string> units_in(const QString& text) {
  static const QRegularExpression size(QStringLiteral("[0-9] ((?:[KMGT]i)?B)(?![a-zA-Z])"));
  std::set<std::string> units;
  for (auto found = size.globalMatch(text); found.hasNext();) units.insert(found.next().captured(1).toStdString());
  return units;
}

const std::set<std::string> kMebibytes{"MiB"};

// Its largest number is 1.6 MiB, and each of its values has 16 or 64 KiB.
using OneUnit = Window;

TEST_F(OneUnit, TheDetailsOfThePlanOfValuesAndOfNodes) {
  ASSERT_STREQ(unit_of(window.session().model()->plan()).name, "MiB");
  window.session().clear_selection();
  EXPECT_EQ(units_in(window.details().toPlainText()), kMebibytes);
  for (const char* name : {"h5", "w5", "dw5", "d5"}) {
    window.session().select_value(value(name));
    EXPECT_EQ(units_in(window.details().toPlainText()), kMebibytes) << name;
  }
  EXPECT_TRUE(window.details().toPlainText().contains(QStringLiteral("0.062 MiB (65,536 bytes)")));
}

TEST_F(OneUnit, TheGraphAndTheStepsOfTheText) {
  window.show_panel("graph");
  window.finish("graph");
  const std::string path = folder.file("graph.svg");
  export_picture(path, window.graph(), 1000, 700, 1);
  std::ifstream in(path);
  const std::string svg{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(units_in(QString::fromStdString(svg)), kMebibytes);
  window.show_panel("text");
  window.finish("text");
  const auto* steps = window.text().findChild<QTreeWidget*>();
  ASSERT_NE(steps, nullptr);
  QString rows;
  for (int i = 0; i < steps->topLevelItemCount(); ++i)
    rows += steps->topLevelItem(i)->text(2) + QStringLiteral("\n") + steps->topLevelItem(i)->toolTip(2) + QStringLiteral("\n");
  EXPECT_EQ(units_in(rows), kMebibytes) << rows.toStdString();
}

}  // namespace
}  // namespace tapedeck::viewer
