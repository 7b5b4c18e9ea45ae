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

// The commands that fit, the best first. The title counts more than the id, and the order of the table decides between equals.
std::vector<const Command*> found(const std::string& typed) {
  std::vector<std::pair<int, const Command*>> scored;
  for (const Command& command : all_commands()) {
    const int score = std::max(2 * fuzzy_score(typed, command.title), fuzzy_score(typed, command.id));
    if (score > 0) scored.emplace_back(score, &command);
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const Command*> commands;
  for (const auto& [score, command] : scored) commands.push_back(command);
  return commands;
}

QTreeWidgetItem* make_item(const Command& command) {
  auto* item = new QTreeWidgetItem;
  const std::vector<std::string> keys = keys_of(command);
  item->setText(0, QString::fromStdString(command.title));
  item->setText(1, QString::fromStdString(command.help));
  item->setText(2, keys.empty() ? QString() : QKeySequence(QString::fromStdString(keys[0])).toString(QKeySequence::NativeText));
  item->setTextAlignment(2, Qt::AlignRight | Qt::AlignVCenter);
  item->setToolTip(1, tooltip_of(command.id + ": " + command.help));
  item->setData(0, Qt::UserRole, QString::fromStdString(command.id));
  return item;
}

class Palette : public QFrame {
 public:
  explicit Palette(MainWindow& window) : QFrame(&window), window_(window), before_(window.focusWidget()) {
    setObjectName(QStringLiteral("palette"));
    setAttribute(Qt::WA_DeleteOnClose);
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    line_ = new QLineEdit;
    line_->setPlaceholderText(QStringLiteral("Type a command"));
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
    for (const Command* command : found(line_->text().toStdString())) list_->addTopLevelItem(make_item(*command));
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
    const QTreeWidgetItem* item = list_->currentItem();
    if (item == nullptr) return;
    const Command* command = find_command(item->data(0, Qt::UserRole).toString().toStdString());
    MainWindow& window = window_;
    leave();  // first, because the command may give the focus to a widget
    command->run(window);
  }

  // Gives the focus back and closes.
  void leave() {
    if (before_) before_->setFocus();
    close();
  }

  MainWindow& window_;
  QPointer<QWidget> before_;  // had the focus when the palette was opened
  QLineEdit* line_;
  QTreeWidget* list_;
};

}  // namespace

void show_palette(MainWindow& window) {
  if (open_palette(window) == nullptr) new Palette(window);
}

QWidget* open_palette(const MainWindow& window) {
  auto* palette = window.findChild<QWidget*>(QStringLiteral("palette"), Qt::FindDirectChildrenOnly);
  return palette != nullptr && !palette->isHidden() ? palette : nullptr;
}

}  // namespace tapedeck::viewer
