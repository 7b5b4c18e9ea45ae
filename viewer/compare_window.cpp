#include <tapedeck/viewer/compare_window.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/viewer/canvas.h>

#include <QtWidgets/QMainWindow>

#include <memory>
#include <utility>

namespace tapedeck::viewer {

namespace {

class CompareWindow : public QMainWindow {
 public:
  CompareWindow(std::unique_ptr<ComparePicture> picture, Renderer renderer) : picture_(std::move(picture)) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(QStringLiteral("Compare - Tapedeck"));
    setCentralWidget(new Canvas(*picture_, renderer));
  }
  ~CompareWindow() override { delete takeCentralWidget(); }  // the canvas must go before the picture that it draws

 private:
  std::unique_ptr<ComparePicture> picture_;
};

}  // namespace

ComparedPlan load_compared(const std::string& path, const Budget& budget) {
  Document document = open_document(path);
  const std::string title = document.title();
  if (document.plan && !budget.given()) return {title, PlanModel::of(std::move(*document.plan))};
  PlanOptions options = document.options;
  options.budget = budget.bytes;
  options.budget_percent = budget.percent;
  return {title, PlanModel::of(make_plan(*document.captured, options), options.costs)};
}

void show_compare_window(ComparedPlan left, ComparedPlan right, Renderer renderer, int width, int height) {
  auto* window = new CompareWindow(std::make_unique<ComparePicture>(std::move(left), std::move(right)), renderer);
  window->resize(width, height);
  window->show();
}

}  // namespace tapedeck::viewer
