// The palette is a child of the window, so that it also appears in pictures of the window. The line has the focus all the time;
// its keys up, down, Enter and Esc work on the list.
#include <tapedeck/viewer/command_palette.h>

#include <tapedeck/viewer/commands.h>
#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/window.h>
#include <tapedeck/viewer/words/fuzzy.h>

#include <QtCore/QPointer>
#include <QtGui/QKeyEvent>
#include <QtWidgets/QFrame>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTreeWidget>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

namespace {

PaletteEntry entry_of(const Command& command) {
  const std::vector<std::string> keys = keys_of(command);
  return {command.id, command.title, command.help, keys.empty() ? std::string() : keys[0], command.run};
}

// The commands that fit, the best first. The title counts more than the id, and the order of the table decides between equals.
std::vector<PaletteEntry> found(const std::string& typed) {
  std::vector<std::pair<int, const Command*>> scored;
  for (const Command& command : all_commands()) {
    const int score = std::max(2 * fuzzy_score(typed, command.title), fuzzy_score(typed, command.id));
    if (score > 0) scored.emplace_back(score, &command);
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<PaletteEntry> entries;
  for (const auto& [score, command] : scored) entries.push_back(entry_of(*command));
  return entries;
}

QTreeWidgetItem* make_item(const PaletteEntry& entry) {
  auto* item = new QTreeWidgetItem;
  item->setText(0, QString::fromStdString(entry.title));
  item->setText(1, QString::fromStdString(entry.help));
  if (!entry.keys.empty())
    item->setText(2, QKeySequence(QString::fromStdString(entry.keys)).toString(QKeySequence::NativeText));
  item->setTextAlignment(2, Qt::AlignRight | Qt::AlignVCenter);
  item->setToolTip(1, tooltip_of(entry.id + ": " + entry.help));
  item->setData(0, Qt::UserRole, QString::fromStdString(entry.id));
  return item;
}

class Palette : public QFrame {
 public:
  Palette(MainWindow& window, const std::string& hint, PaletteSource source)
      : QFrame(&window), window_(window), source_(std::move(source)), before_(window.focusWidget()) {
    setObjectName(QStringLiteral("palette"));
    setAttribute(Qt::WA_DeleteOnClose);
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    line_ = new QLineEdit;
    line_->setPlaceholderText(QString::fromStdString(hint));
    line_->setAccessibleName(QStringLiteral("command"));
    line_->installEventFilter(this);
    list_ = new QTreeWidget;
    list_->setFocusPolicy(Qt::NoFocus);
    list_->setRootIsDecorated(false);
    list_->setUniformRowHeights(true);
    list_->setColumnCount(3);
    list_->setHeaderHidden(true);
    list_->header()->setStretchLastSection(false);
    list_->header()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
    list_->header()->setSectionResizeMode(1, QHeaderView::Stretch);
    list_->header()->setSectionResizeMode(2, QHeaderView::ResizeToContents);
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(line_);
    layout->addWidget(list_);
    connect(line_, &QLineEdit::textEdited, this, guarded(&window, [this] { fill(); }));
    connect(list_, &QTreeWidget::itemClicked, this, guarded(&window, [this] { run_current(); }));
    fill();
    place();
    show();
    raise();
    line_->setFocus();
  }

 protected:
  // The line asks here first. While the palette is open no key is a shortcut.
  bool eventFilter(QObject*, QEvent* event) override {
    if (event->type() == QEvent::ShortcutOverride) {
      event->accept();
      return true;
    }
    if (event->type() == QEvent::FocusOut) close();
    return event->type() == QEvent::KeyPress && handle(*static_cast<QKeyEvent*>(event));
  }

 private:
  void place() {
    const int width = std::min(720, window_.width() - 40), height = std::min(420, window_.height() - 80);
    setGeometry((window_.width() - width) / 2, 40, width, height);
  }

  void fill() {
    list_->clear();
    entries_ = source_(line_->text().toStdString());
    for (const PaletteEntry& entry : entries_) list_->addTopLevelItem(make_item(entry));
    list_->setCurrentItem(list_->topLevelItem(0));
  }

  bool handle(const QKeyEvent& key) {
    const int page = 8, count = list_->topLevelItemCount();
    int row = list_->indexOfTopLevelItem(list_->currentItem());
    switch (key.key()) {
      case Qt::Key_Escape:
        leave();
        return true;
      case Qt::Key_Return:
      case Qt::Key_Enter:
        run_current();
        return true;
      case Qt::Key_Down:
        ++row;
        break;
      case Qt::Key_Up:
        --row;
        break;
      case Qt::Key_PageDown:
        row += page;
        break;
      case Qt::Key_PageUp:
        row -= page;
        break;
      default:
        return false;
    }
    if (count > 0) list_->setCurrentItem(list_->topLevelItem(std::clamp(row, 0, count - 1)));
    return true;
  }

  void run_current() {
    const int row = list_->indexOfTopLevelItem(list_->currentItem());
    if (row < 0) return;
    const std::function<void(MainWindow&)> run = entries_[static_cast<std::size_t>(row)].run;
    MainWindow& window = window_;
    leave();  // first, because the command may give the focus to a widget
    run(window);
  }

  // Gives the focus back and closes.
  void leave() {
    if (before_) before_->setFocus();
    close();
  }

  MainWindow& window_;
  const PaletteSource source_;
  std::vector<PaletteEntry> entries_;  // of the list
  QPointer<QWidget> before_;           // had the focus when the palette was opened
  QLineEdit* line_;
  QTreeWidget* list_;
};

}  // namespace

void show_palette(MainWindow& window, const std::string& hint, PaletteSource source) {
  if (open_palette(window) == nullptr) new Palette(window, hint, std::move(source));
}

void show_command_palette(MainWindow& window) { show_palette(window, "Type a command", found); }

QWidget* open_palette(const MainWindow& window) {
  auto* palette = window.findChild<QWidget*>(QStringLiteral("palette"), Qt::FindDirectChildrenOnly);
  return palette != nullptr && !palette->isHidden() ? palette : nullptr;
}

}  // namespace tapedeck::viewer
