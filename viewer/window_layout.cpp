// Where the panels of the main window stand, and how the window looks: docks, small windows, theme and scale, and what of these
// is kept between runs.
//
//   large:  +--------------+-------+      small:  +----------------+
//           | centre       | beside|              | centre         |
//           |              +-------+              |                |
//           +--------------+ behind|              +----------------+
//           | below        |       |              | tabs: all docks|
//           +--------------+-------+              +----------------+
#include <tapedeck/viewer/window.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/panels/inspector.h>
#include <tapedeck/viewer/session_keeper.h>
#include <tapedeck/viewer/settings.h>

#include <QtCore/QFileInfo>
#include <QtGui/QAction>
#include <QtGui/QCloseEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QMenu>
#include <QtWidgets/QTabBar>

#include <algorithm>
#include <iterator>

namespace tapedeck::viewer {

namespace {

constexpr int kLargeWidth = 1100, kLargeHeight = 650;    // a smaller window has all docks as tabs
constexpr int kTabHeight = 200;                          // of the tabs in a small window
constexpr double kLeastShare = 0.34, kMostShare = 0.42;  // but at least and at most these shares of its height

int scaled(int length) { return qRound(length * look_in_use().scale); }

bool has_focus(const QWidget& panel) {
  const QWidget* focus = QApplication::focusWidget();
  return focus != nullptr && (focus == &panel || panel.isAncestorOf(focus));
}

// Hands the files that are dropped on a dock to the main window: a floating dock is a window of its own.
class FileDrops : public QObject {
 public:
  explicit FileDrops(QMainWindow& window) : QObject(&window), window_(window) {}
  bool eventFilter(QObject*, QEvent* event) override {
    const bool is_drop = event->type() == QEvent::DragEnter || event->type() == QEvent::Drop;
    return is_drop && static_cast<QObject&>(window_).event(event) && event->isAccepted();
  }

 private:
  QMainWindow& window_;
};

// The panel, or its first part that takes the keyboard.
QWidget* first_with_keys(QWidget* panel) {
  if (panel->focusPolicy() != Qt::NoFocus) return panel;
  for (QWidget* child : panel->findChildren<QWidget*>())
    if (child->focusPolicy() == Qt::StrongFocus && child->isEnabled()) return child;
  return panel;
}

}  // namespace

void MainWindow::make_docks() {
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);  // the curve stays as wide as the memory plan above it
  for (OpenPanel& open : panels_) {
    if (open.panel->place == PanelPlace::centre) {
      setCentralWidget(open.widget);
      continue;
    }
    open.dock = new QDockWidget(QString::fromLatin1(open.panel->title), this);
    open.dock->setObjectName(QString::fromLatin1(open.panel->title));
    open.dock->setWidget(open.widget);
    open.dock->setAcceptDrops(true);
    open.dock->installEventFilter(new FileDrops(*this));
  }
  scale_tables(look_in_use().scale);
  reset_layout();
}

void MainWindow::reset_layout() {
  for (const OpenPanel& open : panels_) {
    if (open.dock == nullptr) continue;
    open.dock->setFloating(false);
    removeDockWidget(open.dock);
  }
  if (width() < scaled(kLargeWidth) || height() < scaled(kLargeHeight))
    place_as_tabs();
  else
    place_around();
  for (const OpenPanel& open : panels_)
    if (open.dock != nullptr) open.dock->show();
}

void MainWindow::place_as_tabs() {
  QDockWidget* first = nullptr;
  for (const OpenPanel& open : panels_) {
    if (open.dock == nullptr) continue;
    addDockWidget(Qt::BottomDockWidgetArea, open.dock);
    if (first != nullptr) tabifyDockWidget(first, open.dock);
    if (first == nullptr) first = open.dock;
  }
  if (first == nullptr) return;
  first->show();
  first->raise();
  const int least = static_cast<int>(height() * kLeastShare), most = static_cast<int>(height() * kMostShare);
  resizeDocks({first}, {std::clamp(scaled(kTabHeight), least, most)}, Qt::Vertical);
}

void MainWindow::place_around() {
  QList<QDockWidget*> below, beside;
  QList<int> below_heights, beside_widths, beside_heights;
  QDockWidget* front = nullptr;  // of the tabs that a panel behind joins
  for (const OpenPanel& open : panels_) {
    if (open.dock == nullptr) continue;
    const Panel& panel = *open.panel;
    if (panel.place == PanelPlace::behind) {
      addDockWidget(dockWidgetArea(front), open.dock);
      tabifyDockWidget(front, open.dock);
      front->raise();
      continue;
    }
    addDockWidget(panel.place == PanelPlace::below ? Qt::BottomDockWidgetArea : Qt::RightDockWidgetArea, open.dock);
    front = open.dock;
    if (panel.place == PanelPlace::below) {
      below << open.dock;
      below_heights << scaled(panel.height);
    } else {
      beside << open.dock;
      beside_widths << std::min(scaled(panel.width), width() / 2);
      beside_heights << scaled(panel.height);
    }
  }
  resizeDocks(beside, beside_widths, Qt::Horizontal);
  resizeDocks(beside, beside_heights, Qt::Vertical);
  resizeDocks(below, below_heights, Qt::Vertical);
}

// Titles are never cut: where not all fit, arrows at the end and the wheel move them. A tab says what its panel shows. Qt makes
// the bars of tabs itself, whenever docks come together, and gives a new tab its title as the tooltip.
void MainWindow::mend_tabs() {
  for (QTabBar* bar : findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) {
    if (bar->elideMode() != Qt::ElideNone) {
      bar->setElideMode(Qt::ElideNone);
      bar->setUsesScrollButtons(true);
    }
    for (int tab = 0; tab < bar->count(); ++tab)
      for (const OpenPanel& open : panels_)
        if (bar->tabText(tab) == QLatin1String(open.panel->title) && bar->tabToolTip(tab) == bar->tabText(tab))
          bar->setTabToolTip(tab, QString::fromLatin1(open.panel->sentence));
  }
}

bool MainWindow::event(QEvent* event) {
  const bool taken = QMainWindow::event(event);
  if (event->type() == QEvent::ChildPolished || event->type() == QEvent::LayoutRequest) mend_tabs();
  return taken;
}

// The first layout fits the size that the window has when it is shown.
void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  if (!placed_) reset_layout();
  placed_ = true;
}

void MainWindow::restore_layout() {
  const QSettings stored = user_settings();
  restoreGeometry(stored.value(QStringLiteral("geometry")).toByteArray());
  place_panels(stored.value(QStringLiteral("layout")).toByteArray());
  keeper_->restore_columns();
  memory().turn_minimap(remembered_minimap());
}

bool MainWindow::place_panels(const QByteArray& layout) {
  if (layout.isEmpty() || layout == saveState() || !restoreState(layout)) return false;
  placed_ = true;
  return true;
}

void MainWindow::closeEvent(QCloseEvent* event) {
  keeper_->leave();
  if (setup_.remember) {
    keeper_->remember_columns();
    QSettings stored = user_settings();
    stored.setValue(QStringLiteral("geometry"), saveGeometry());
    stored.setValue(QStringLiteral("layout"), saveState());
  }
  QMainWindow::closeEvent(event);
}

void MainWindow::show_panel(const std::string& name) {
  QDockWidget* dock = panel(name).dock;
  if (dock == nullptr) return;
  dock->show();
  dock->raise();
}

void MainWindow::toggle_panel(const std::string& name) {
  const OpenPanel& open = panel(name);
  if (open.dock == nullptr) return open.widget->setFocus();
  if (open.dock->isVisible() && !open.widget->visibleRegion().isEmpty())
    open.dock->hide();
  else
    show_panel(name);
}

bool MainWindow::panel_is_open(const std::string& name) const {
  const OpenPanel& open = panel(name);
  return open.dock == nullptr || !open.dock->isHidden();
}

void MainWindow::step_panel(int by) {
  std::vector<QWidget*> seen;
  for (const OpenPanel& open : panels_)
    if (open.widget->isVisible() && !open.widget->visibleRegion().isEmpty()) seen.push_back(open.widget);
  if (seen.empty()) return;
  const auto at = std::find_if(seen.begin(), seen.end(), [](const QWidget* panel) { return has_focus(*panel); });
  const auto count = std::ssize(seen);
  const auto from = at != seen.end() ? at - seen.begin() : by > 0 ? count - 1 : 0;
  first_with_keys(seen[static_cast<std::size_t>((from + by + count) % count)])->setFocus(Qt::ShortcutFocusReason);
}

GraphPanel& MainWindow::graph() const { return as<GraphPanel>("graph"); }
InspectorPanel& MainWindow::inspector() const { return as<InspectorPanel>("inspector"); }

void MainWindow::move_view(ViewMove move) {
  for (const OpenPanel& open : panels_)
    if (open.picture && has_focus(*open.widget) && open.picture->move_view(move)) return;
  move_session_view(session_, move);
}

bool MainWindow::panel_has_keys(const std::string& name) const {
  const QWidget* const widget = panel(name).widget;
  const QWidget* const focus = focusWidget();
  return focus != nullptr && (focus == widget || widget->isAncestorOf(focus));
}

void MainWindow::set_look(const Look& look) {
  const double before = look_in_use().scale;
  apply_look(*qApp, look);
  scale_tables(look_in_use().scale / before);
  show_numbers();  // the texts have the colours of the theme before
  if (setup_.remember) remember_look(look_in_use());
}

void MainWindow::set_colour_by(ColourBy by) {
  session_.set_colour_by(by);
  if (setup_.remember) remember_pictures(session_.colour_by(), session_.time_unit());
}

void MainWindow::set_time_unit(TimeUnit unit) {
  session_.set_time_unit(unit);
  if (setup_.remember) remember_pictures(session_.colour_by(), session_.time_unit());
}

void MainWindow::toggle_minimap() {
  memory().turn_minimap(!minimap_is_on());
  if (setup_.remember) remember_minimap(minimap_is_on());
}

void MainWindow::scale_tables(double factor) {
  if (factor == 1) return;
  for (QHeaderView* header : findChildren<QHeaderView*>())
    for (int i = 0; i < header->count(); ++i)
      if (header->sectionResizeMode(i) == QHeaderView::Interactive)
        header->resizeSection(i, qRound(header->sectionSize(i) * factor));
}

void MainWindow::fill_recent(QMenu& menu) {
  menu.clear();
  const QStringList recent = recent_files();
  for (const QString& path : recent) {
    QAction* action = menu.addAction(path);
    action->setEnabled(QFileInfo::exists(path));
    connect(action, &QAction::triggered, this, guarded(this, [this, path] { start_opening(path.toStdString()); }));
  }
  if (recent.isEmpty()) menu.addAction(QStringLiteral("(none)"))->setEnabled(false);
}

}  // namespace tapedeck::viewer
