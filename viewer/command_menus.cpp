// Makes the menus and shortcuts, and decides which widget gets a key. A shortcut works wherever the focus is, so some keys must
// be kept from the shortcuts: those that a text field types, those that move in a table, and the arrows of a slider.
#include <tapedeck/viewer/command_menus.h>

#include <tapedeck/viewer/commands.h>
#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/window.h>

#include <QtGui/QAction>
#include <QtGui/QKeyEvent>
#include <QtWidgets/QAbstractItemView>
#include <QtWidgets/QAbstractSlider>
#include <QtWidgets/QAbstractSpinBox>
#include <QtWidgets/QApplication>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QTextEdit>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr std::pair<const char*, const char*> kMenus[] = {
    {"file", "&File"},       {"edit", "&Edit"},          {"view", "&View"}, {"panel", "&Panels"},
    {"budget", "&Budget"},   {"replay", "&Replay"},      {"go", "&Go"},     {"graph", "Gr&aph"},
    {"compare", "&Compare"}, {"bookmark", "Book&marks"}, {"live", "&Live"}, {"help", "&Help"}};

bool is_arrow(int key) { return key >= Qt::Key_Left && key <= Qt::Key_Down; }

// Keeps keys from the shortcuts, by accepting the question whether the focused widget wants the key.
class KeyKeeper : public QObject {
 public:
  explicit KeyKeeper(QObject* parent) : QObject(parent) {
    for (const Command& command : all_commands()) {
      if (!command.pictures) continue;
      for (const std::string& key : keys_of(command))
        picture_keys_.insert(QKeySequence(QString::fromStdString(key))[0].toCombined());
    }
    QApplication::instance()->installEventFilter(this);
  }

 protected:
  bool eventFilter(QObject* receiver, QEvent* event) override {
    if (event->type() != QEvent::ShortcutOverride || !keeps(receiver, static_cast<const QKeyEvent&>(*event))) return false;
    event->accept();
    return true;
  }

 private:
  bool keeps(QObject* receiver, const QKeyEvent& event) const {
    const bool types = !(event.modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier));
    const auto* text = qobject_cast<QTextEdit*>(receiver);
    if (qobject_cast<QLineEdit*>(receiver) != nullptr || qobject_cast<QAbstractSpinBox*>(receiver) != nullptr ||
        (text != nullptr && !text->isReadOnly()))
      return types && event.key() != Qt::Key_Escape && (event.key() < Qt::Key_F1 || event.key() > Qt::Key_F35);
    if (qobject_cast<QAbstractItemView*>(receiver) != nullptr)
      return picture_keys_.count(event.keyCombination().toCombined() & ~static_cast<int>(Qt::KeypadModifier)) > 0;
    return types && is_arrow(event.key()) && (text != nullptr || qobject_cast<QAbstractSlider*>(receiver) != nullptr);
  }

  std::set<int> picture_keys_;
};

QAction* make_action(MainWindow& window, const Command& command) {
  auto* action = new QAction(QString::fromStdString(command.title), &window);
  QList<QKeySequence> keys;
  for (const std::string& key : keys_of(command)) keys << QKeySequence(QString::fromStdString(key));
  action->setShortcuts(keys);
  action->setStatusTip(QString::fromStdString(command.help));
  action->setCheckable(static_cast<bool>(command.checked));
  QObject::connect(action, &QAction::triggered, &window, guarded(&window, [&window, &command] { command.run(window); }));
  return action;
}

// A menu inside another one whose entries are made each time before it opens.
void add_changing_menu(MainWindow& window, QMenu& menu, const char* title, std::function<void(QMenu&)> fill) {
  QMenu* inner = menu.addMenu(QString::fromLatin1(title));
  QObject::connect(inner, &QMenu::aboutToShow, &window, guarded(&window, [inner, fill = std::move(fill)] { fill(*inner); }));
}

std::string menu_name(const Command& command) { return command.id.substr(0, command.id.find('.')); }

}  // namespace

std::string menu_of(const Command& command) {
  const std::string name = menu_name(command);
  const auto* found = std::find_if(std::begin(kMenus), std::end(kMenus), [&](const auto& menu) { return menu.first == name; });
  std::string title = found->second;
  std::erase(title, '&');
  return title;
}

void make_menus(MainWindow& window, const std::function<void(QMenu&)>& fill_recent,
                const std::function<void(QMenu&)>& fill_bookmarks) {
  std::map<std::string, QMenu*> menus;
  for (const auto& [name, title] : kMenus) menus[name] = window.menuBar()->addMenu(QString::fromLatin1(title));
  for (const Command& command : all_commands()) {
    QMenu* menu = menus.at(menu_name(command));
    QAction* action = make_action(window, command);
    if (command.group) menu->addSeparator();
    menu->addAction(action);
    if (command.checked)
      QObject::connect(menu, &QMenu::aboutToShow, action,
                       guarded(&window, [&window, &command, action] { action->setChecked(command.checked(window)); }));
    if (command.id == "file.open") add_changing_menu(window, *menu, "Open recent", fill_recent);
    if (command.id == "bookmark.remove") add_changing_menu(window, *menu, "Bookmarks of this file", fill_bookmarks);
  }
  new KeyKeeper(&window);
}

}  // namespace tapedeck::viewer
