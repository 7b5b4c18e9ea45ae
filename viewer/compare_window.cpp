#include <tapedeck/viewer/compare_window.h>

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/planning/document_loader.h>

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
  LoadedFile file = load_file({path, CostSource::best, budget, true});
  return {file.document.title(), std::move(file.model)};
}

void show_compare_window(ComparedPlan left, ComparedPlan right, Renderer renderer, int width, int height) {
  auto* window = new CompareWindow(std::make_unique<ComparePicture>(std::move(left), std::move(right)), renderer);
  window->resize(width, height);
  window->show();
}

}  // namespace tapedeck::viewer
