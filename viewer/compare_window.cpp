#include <tapedeck/viewer/compare_window.h>

#include <tapedeck/capture/planner.h>
#include <tapedeck/viewer/canvas.h>

#include <QtWidgets/QMainWindow>

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
  ~CompareWindow() override { delete takeCentralWidget(); }   // before the picture it draws

 private:
  std::unique_ptr<ComparePicture> picture_;
};

}  // namespace

ComparedPlan load_compared(const std::string& path) {
  Document document = open_document(path);
  const std::string title = document.title();
  return {title, PlanModel::of(document.plan ? std::move(*document.plan) : make_plan(*document.captured))};
}

std::unique_ptr<ComparePicture> load_comparison(const std::string& left, const std::string& right) {
  return std::make_unique<ComparePicture>(load_compared(left), load_compared(right));
}

void show_compare_window(const std::string& left, const std::string& right, Renderer renderer, int width, int height) {
  auto* window = new CompareWindow(load_comparison(left, right), renderer);
  window->resize(width, height);
  window->show();
}

}  // namespace tapedeck::viewer
