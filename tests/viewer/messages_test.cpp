// Tests that names from files are shown as plain text, and that exceptions in slots and event handlers become messages.
#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/window.h>

#include <gtest/gtest.h>
#include <QtCore/QAbstractItemModel>
#include <QtCore/QPointer>
#include <QtGui/QAction>
#include <QtGui/QTextDocument>
#include <QtWidgets/QLabel>
#include <QtWidgets/QMessageBox>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace tapedeck::viewer {
namespace {

// The text that a person sees in a tooltip.
QString seen(const QString& tooltip) {
  if (!Qt::mightBeRichText(tooltip)) return tooltip;
  QTextDocument document;
  document.setHtml(tooltip);
  return document.toPlainText();
}

QString close_message(QWidget& parent) {
  QString text;
  for (QMessageBox* box : parent.findChildren<QMessageBox*>()) {
    EXPECT_EQ(box->textFormat(), Qt::PlainText);
    text += box->text();
    delete box;
  }
  return text;
}

TEST(Messages, TooltipsShowTheTextAsItIs) {
  for (const char* text :
       {"plain", "a < b && c > d", "<b>bold</b>", "<img src='file:///etc/passwd'>", "&lt;", "two\nlines  apart"})
    EXPECT_EQ(seen(tooltip_of(text)), QString::fromUtf8(text));
  EXPECT_TRUE(tooltip_of("").isEmpty());
}

TEST(Messages, NamesWithHtmlAreShownAsTheyAre) {
  const std::string path = (std::filesystem::temp_directory_path() / "tapedeck_html_names.graph").string();
  std::ofstream(path) << "graph g(%x: f32[64,64]) {\n"
                         "  %\"<b>h</b>\": f32[64,64] = matmul(%x, %x)\n"
                         "  %y: f32[64,64] = exp(%\"<b>h</b>\")\n  return %y\n}\n";
  MainWindow window{{Renderer::soft, "<i>software</i>", false}};
  window.open(path);
  window.wait_for_plan();
  window.set_budget({1, -1});
  window.wait_for_plan();
  std::filesystem::remove(path);
  const QAbstractItemModel& rows = *window.nodes().table()->model();
  EXPECT_TRUE(seen(rows.data(rows.index(0, 0), Qt::ToolTipRole).toString()).contains(QStringLiteral("<b>h</b>")));
  window.session().select_value(1);
  EXPECT_TRUE(window.details().toPlainText().contains(QStringLiteral("<b>h</b>")));
  bool reason = false;
  for (const QLabel* label : window.findChildren<QLabel*>()) {
    const QString& text = label->text();
    EXPECT_FALSE(label->textFormat() != Qt::PlainText && text.contains(QStringLiteral("<b>"))) << text.toStdString();
    if (text != QString::fromStdString(grouped_numbers(window.session().model()->plan().infeasible_reason))) continue;
    reason = true;
    EXPECT_EQ(label->textFormat(), Qt::PlainText);
    EXPECT_EQ(seen(label->toolTip()), text);
  }
  EXPECT_TRUE(reason);
}

TEST(Messages, AnExceptionInASlotIsAMessage) {
  QWidget widget;
  QAction action;
  int calls = 0;
  QObject::connect(&action, &QAction::triggered, &widget, guarded(&widget, [&] {
    ++calls;
    throw std::runtime_error("<b>no</b>");
  }));
  action.trigger();
  action.trigger();  // the first message is still open, so there is no second one
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(close_message(widget), QStringLiteral("<b>no</b>"));
  bool checked = true;
  QObject::connect(&action, &QAction::toggled, &widget, guarded(&widget, [&](bool on) {
    checked = on;
    throw 7;
  }));
  action.setCheckable(true);
  action.setChecked(true);
  action.setChecked(false);
  EXPECT_FALSE(checked);
  EXPECT_EQ(close_message(widget), QStringLiteral("An error of an unknown kind."));
}

TEST(Messages, AnExceptionInAnEventHandlerIsAMessage) {
  class Thrower : public QWidget {
    void customEvent(QEvent*) override { throw std::bad_alloc(); }
  } widget;
  QEvent event(QEvent::User);
  QCoreApplication::sendEvent(&widget, &event);
  QString text;
  for (QWidget* top : QApplication::topLevelWidgets())
    if (auto* box = qobject_cast<QMessageBox*>(top)) text = box->text(), delete box;
  EXPECT_EQ(text, QStringLiteral("Out of memory."));
}

// Every slot of the viewer is wrapped.
TEST(Messages, NoSlotIsConnectedWithoutAGuard) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TAPEDECK_SOURCE_DIR "/viewer")) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (const char* call : {" connect(", "invokeMethod("})
      for (std::size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1))
        EXPECT_NE(text.substr(at, text.find(';', at) - at).find("guarded("), std::string::npos)
            << entry.path() << ": " << text.substr(at, 120);
  }
}

}  // namespace
}  // namespace tapedeck::viewer
