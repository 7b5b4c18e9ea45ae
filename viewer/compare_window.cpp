#include <tapedeck/viewer/compare_window.h>

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/commands.h>
#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/planning/document_loader.h>

#include <QtGui/QAction>
#include <QtGui/QActionGroup>
#include <QtWidgets/QMainWindow>
#include <QtWidgets/QMenu>
#include <QtWidgets/QMenuBar>

#include <memory>
#include <utility>

namespace tapedeck::viewer {

namespace {

class CompareWindow : public QMainWindow {
 public:
  CompareWindow(std::unique_ptr<ComparePicture> picture, Renderer renderer) : picture_(std::move(picture)) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(QStringLiteral("Compare - Tapedeck"));
    setCentralWidget(canvas_ = new Canvas(*picture_, renderer));
    make_menu();
    canvas_->setFocus();
  }
  ~CompareWindow() override { delete takeCentralWidget(); }  // the canvas must go before the picture that it draws

 private:
  // The commands have the titles and the sentences that they have in the main window.
  void make_menu() {
    QMenu* menu = menuBar()->addMenu(QStringLiteral("&View"));
    menu->setToolTipsVisible(true);
    auto* colours = new QActionGroup(this);
    auto* axes = new QActionGroup(this);
    for (const std::string& id : compare_commands()) {
      const Command& command = *find_command(id);
      if (id == "view.axis-nodes") menu->addSeparator();
      QAction* action = menu->addAction(QString::fromStdString(command.title));
      action->setObjectName(QString::fromStdString(id));
      action->setToolTip(tooltip_of(command.help));
      action->setCheckable(true);
      action->setChecked(look_after(picture_->look(), id) == picture_->look());
      (id.starts_with("view.axis") ? axes : colours)->addAction(action);
      connect(action, &QAction::triggered, this, guarded(this, [this, id] {
                picture_->set_look(look_after(picture_->look(), id));
                canvas_->refresh();
              }));
    }
    menu->addSeparator();
    QAction* close_action = menu->addAction(QStringLiteral("Close"), this, [this] { close(); });
    close_action->setShortcut(QKeySequence(QStringLiteral("Ctrl+W")));
  }

  std::unique_ptr<ComparePicture> picture_;
  Canvas* canvas_ = nullptr;
};

}  // namespace

ComparedPlan load_compared(const std::string& path, const Budget& budget) {
  LoadedFile file = load_file({path, CostSource::best, budget, true});
  return {file.document.title(), std::move(file.model), file.document.captured};
}

void show_compare_window(ComparedPlan left, ComparedPlan right, Renderer renderer, CompareLook look, int width, int height) {
  auto* window = new CompareWindow(std::make_unique<ComparePicture>(std::move(left), std::move(right), look), renderer);
  window->resize(width, height);
  window->show();
}

}  // namespace tapedeck::viewer
