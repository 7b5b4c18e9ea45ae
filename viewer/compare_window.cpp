#include <tapedeck/viewer/compare_window.h>

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/commands.h>
#include <tapedeck/viewer/compare/delta_panel.h>
#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/planning/awaited_task.h>
#include <tapedeck/viewer/planning/document_loader.h>

#include <QtCore/QPointer>
#include <QtGui/QAction>
#include <QtWidgets/QLabel>
#include <QtWidgets/QMainWindow>
#include <QtWidgets/QMenu>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QSplitter>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

namespace {

// What the window waits for.
struct Compared {
  Comparison comparison;
  std::string error;
};

class CompareWindow : public QMainWindow {
 public:
  CompareWindow(ComparedPlan left, ComparedPlan right, Renderer renderer, CompareLook look)
      : renderer_(renderer),
        look_(look),
        task_([this] { QMetaObject::invokeMethod(this, guarded(this, [this] { arrive(); }), Qt::QueuedConnection); }) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(QStringLiteral("Compare - Tapedeck"));
    auto* note = new QLabel(QStringLiteral("comparing…"));
    note->setAlignment(Qt::AlignCenter);
    setCentralWidget(note);
    make_menu();
    newest_ = this;
    task_.start([left = std::move(left), right = std::move(right)](const std::atomic<bool>&) {
      return Compared{compare(left, right), {}};
    });
  }
  ~CompareWindow() override { delete takeCentralWidget(); }  // the canvas must go before the picture that it draws

  static CompareWindow* newest() { return newest_; }
  void run(const std::string& id) {
    const bool was_swapped = look_.swapped;
    look_ = look_after(look_, id);
    check_actions();
    if (!picture_) return;
    picture_->set_look(look_);
    if (look_.swapped != was_swapped) table_->refill();
    canvas_->refresh();
  }

 private:
  void arrive() {
    std::optional<Compared> done = task_.take();
    if (!done) return;
    if (!done->error.empty()) return show_error(this, "Cannot compare the plans\n\n" + done->error);
    picture_ = std::make_unique<ComparePicture>(std::move(done->comparison), look_);
    canvas_ = new Canvas(*picture_, renderer_);
    table_ = new DeltaPanel(*picture_, [this] { canvas_->refresh(); });
    canvas_->setObjectName(QStringLiteral("pictures"));
    table_->setObjectName(QStringLiteral("differences"));
    picture_->set_chosen([this] { table_->follow_selection(); });
    auto* parts = new QSplitter(Qt::Vertical);
    parts->addWidget(canvas_);
    parts->addWidget(table_);
    parts->setStretchFactor(0, 1);
    parts->setSizes({height() * 7 / 10, height() * 3 / 10});
    setCentralWidget(parts);
    canvas_->setFocus();
  }

  // The commands have the titles, the keys and the sentences that they have in the main window.
  void make_menu() {
    QMenu* menu = menuBar()->addMenu(QStringLiteral("&View"));
    menu->setToolTipsVisible(true);
    for (const std::string& id : compare_commands()) {
      const Command& command = *find_command(id);
      if (id == "view.axis-nodes" || id == "compare.overlay") menu->addSeparator();
      QAction* action = menu->addAction(QString::fromStdString(command.title));
      action->setObjectName(QString::fromStdString(id));
      action->setToolTip(tooltip_of(command.help));
      for (const std::string& key : keys_of(command)) action->setShortcut(QKeySequence(QString::fromStdString(key)));
      action->setCheckable(true);
      connect(action, &QAction::triggered, this, guarded(this, [this, id] { run(id); }));
      actions_.push_back(action);
    }
    check_actions();
    menu->addSeparator();
    QAction* whole = menu->addAction(QStringLiteral("Fit all"), this, [this] {
      if (!picture_) return;
      picture_->fit_all();
      canvas_->refresh();
    });
    whole->setShortcut(QKeySequence(QStringLiteral("H")));
    QAction* close_action = menu->addAction(QStringLiteral("Close"), this, [this] { close(); });
    close_action->setShortcut(QKeySequence(QStringLiteral("Ctrl+W")));
  }

  // A command that chooses is checked where it changes nothing, and one that switches where it is on.
  void check_actions() {
    const CompareLook& look = look_;
    for (QAction* action : actions_) {
      const std::string id = action->objectName().toStdString();
      const bool on = id == "compare.overlay" ? look.overlay
                      : id == "compare.lock"  ? look.locked
                      : id == "compare.swap"  ? look.swapped
                                              : look_after(look, id) == look;
      action->setChecked(on);
    }
  }

  static inline QPointer<CompareWindow> newest_;
  const Renderer renderer_;
  CompareLook look_;
  std::unique_ptr<ComparePicture> picture_;  // null until the plans are compared
  Canvas* canvas_ = nullptr;
  DeltaPanel* table_ = nullptr;
  std::vector<QAction*> actions_;
  AwaitedTask<Compared> task_;  // the last member: its destructor joins the thread first
};

}  // namespace

ComparedPlan load_compared(const std::string& path, const Budget& budget) {
  LoadedFile file = load_file({path, CostSource::best, budget, true});
  return {file.document.title(), std::move(file.model), file.document.captured};
}

void show_compare_window(ComparedPlan left, ComparedPlan right, Renderer renderer, CompareLook look, int width, int height) {
  auto* window = new CompareWindow(std::move(left), std::move(right), renderer, look);
  window->resize(width, height);
  window->show();
}

bool comparison_is_open() { return CompareWindow::newest() != nullptr && CompareWindow::newest()->isVisible(); }

bool run_in_comparison(std::string_view command) {
  if (!comparison_is_open()) return false;
  CompareWindow::newest()->run(std::string(command));
  return true;
}

}  // namespace tapedeck::viewer
