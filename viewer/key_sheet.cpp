#include <tapedeck/viewer/key_sheet.h>

#include <tapedeck/viewer/commands.h>
#include <tapedeck/viewer/window.h>

#include <QtWidgets/QDialog>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QVBoxLayout>

#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr std::pair<const char*, const char*> kMouse[] = {
    {"Wheel", "Zoom time at the cursor (with Ctrl: finely)."},
    {"Shift+wheel", "Move in time."},
    {"Alt+wheel", "Zoom addresses at the cursor."},
    {"Drag", "Move the picture. In the curve of live bytes: mark nodes, and sum up their bytes."},
    {"Drag with the right or middle button", "Move the picture."},
    {"Click, double click", "Select the value or node; show the whole plan."},
    {"Drop a file, two files", "Open it; compare the two."},
};

QString row(const QString& keys, const QString& title, const QString& help) {
  return QStringLiteral(
             "<tr><td style='padding-right:14px'><b>%1</b></td><td style='padding-right:14px'>%2</td><td>%3</td></tr>")
      .arg(keys.toHtmlEscaped(), title.toHtmlEscaped(), help.toHtmlEscaped());
}

QString shown_keys(const Command& command) {
  QStringList keys;
  for (const std::string& key : keys_of(command))
    keys << QKeySequence(QString::fromStdString(key)).toString(QKeySequence::NativeText);
  return keys.join(QStringLiteral("   "));
}

QString sheet() {
  QString html = QStringLiteral("<h3>Mouse</h3><table>");
  for (const auto& [keys, help] : kMouse) html += row(QString::fromLatin1(keys), {}, QString::fromLatin1(help));
  html += QStringLiteral("</table><h3>Commands</h3><table>");
  for (const Command& command : all_commands())
    html += row(shown_keys(command), QString::fromStdString(command.title), QString::fromStdString(command.help));
  return html + QStringLiteral("</table>");
}

}  // namespace

void show_key_sheet(MainWindow& window) {
  auto* dialog = new QDialog(&window);
  dialog->setObjectName(QStringLiteral("keys"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(QStringLiteral("Keys"));
  dialog->resize(760, 640);
  auto* text = new QTextBrowser;
  text->setHtml(sheet());
  (new QVBoxLayout(dialog))->addWidget(text);
  dialog->show();
}

}  // namespace tapedeck::viewer
