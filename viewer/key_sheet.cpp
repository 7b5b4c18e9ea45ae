#include <tapedeck/viewer/key_sheet.h>

#include <tapedeck/viewer/command_menus.h>
#include <tapedeck/viewer/commands.h>
#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/window.h>

#include <QtWidgets/QDialog>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QVBoxLayout>

#include <string>

namespace tapedeck::viewer {

namespace {

constexpr int kWidth = 980, kHeight = 680;  // in units
constexpr double kMostOfTheWindow = 0.94;   // that the sheet covers

struct MouseLine {
  const char *keys, *title, *help;
};
constexpr MouseLine kMouse[] = {
    {"Wheel", "Zoom", "Zoom time at the cursor; with Ctrl, finely."},
    {"Shift+wheel", "Move", "Move in time."},
    {"Alt+wheel", "Zoom addresses", "Zoom addresses at the cursor."},
    {"Drag", "Move or mark", "Move the picture. In the curve of live bytes: mark nodes, and sum up their bytes."},
    {"Right drag", "Move", "Move the picture, with the right or the middle button."},
    {"Click", "Select", "Select the value or the node in all panels."},
    {"Double click", "Show all", "Show the whole plan."},
    {"Drop", "Open or compare", "Open a dropped file; compare two dropped files."},
};

QString heading(const QString& text) {
  return QStringLiteral("<tr><td colspan='3'><h3>%1</h3></td></tr>").arg(text.toHtmlEscaped());
}

// Keys and titles are never broken into lines; sentences are.
QString row(const QString& keys, const QString& title, const QString& help) {
  return QStringLiteral(
             "<tr><td style='padding-right:14px; white-space:nowrap'><b>%1</b></td>"
             "<td style='padding-right:14px; white-space:nowrap'>%2</td><td>%3</td></tr>")
      .arg(keys.toHtmlEscaped(), title.toHtmlEscaped(), help.toHtmlEscaped());
}

QString shown_keys(const Command& command) {
  QStringList keys;
  for (const std::string& key : keys_of(command))
    keys << QKeySequence(QString::fromStdString(key)).toString(QKeySequence::NativeText);
  return keys.join(QStringLiteral("   "));
}

QString sheet() {
  QString html = QStringLiteral("<table cellspacing='0' cellpadding='2'>") + heading(QStringLiteral("Mouse"));
  for (const auto& [keys, title, help] : kMouse)
    html += row(QString::fromLatin1(keys), QString::fromLatin1(title), QString::fromLatin1(help));
  std::string menu;
  for (const Command& command : all_commands()) {
    if (menu_of(command) != menu) html += heading(QString::fromStdString(menu = menu_of(command)));
    html += row(shown_keys(command), QString::fromStdString(command.title), QString::fromStdString(command.help));
  }
  return html + QStringLiteral("</table>");
}

}  // namespace

void show_key_sheet(MainWindow& window) {
  auto* dialog = new QDialog(&window);
  dialog->setObjectName(QStringLiteral("keys"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(QStringLiteral("Keys"));
  const double scale = look_in_use().scale;
  const QSize wanted(qRound(kWidth * scale), qRound(kHeight * scale));
  dialog->resize(wanted.boundedTo(window.size() * kMostOfTheWindow));
  auto* text = new QTextBrowser;
  text->setHtml(sheet());
  (new QVBoxLayout(dialog))->addWidget(text);
  dialog->show();
}

}  // namespace tapedeck::viewer
