// The main window: docks, menus, the budget, the status bar. It owns the session and the worker; panels hear through the
// session.
#pragma once

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/model/budget.h>
#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/options.h>
#include <tapedeck/viewer/panels/compare.h>
#include <tapedeck/viewer/panels/curve.h>
#include <tapedeck/viewer/panels/decisions.h>
#include <tapedeck/viewer/panels/details.h>
#include <tapedeck/viewer/panels/memory.h>
#include <tapedeck/viewer/panels/nodes.h>
#include <tapedeck/viewer/worker.h>

#include <QtCore/QTimer>
#include <QtWidgets/QMainWindow>

#include <memory>
#include <string>
#include <utility>
#include <vector>

class QDockWidget;
class QDoubleSpinBox;
class QLabel;
class QMenu;
class QProgressBar;
class QSlider;
class QToolButton;

namespace tapedeck::viewer {

class MainWindow : public QMainWindow, public Observer {
 public:
  struct Setup {
    Renderer renderer = Renderer::soft;      // not automatic
    std::string renderer_text = "software";  // for the status bar
    bool remember = true;                    // layout and recent files, in the user's settings
  };

  explicit MainWindow(const Setup& setup);
  ~MainWindow() override;

  // Throws what open_document throws; what was open stays open then.
  void open(const std::string& path, const Budget& budget = {});
  // The same for menus and drops: an error becomes a message box. False: it failed.
  bool try_open(const std::string& path);
  void set_budget(const Budget& budget);  // plans again, in the background
  void wait_for_plan();                   // blocks: unattended rendering, and a second file dropped with the first
  bool export_png(const std::string& path);

  Session& session() { return session_; }
  const std::string& error() const { return error_; }  // of the last request to plan; empty if none
  MemoryPanel& memory() { return memory_; }
  CurvePanel& curve() { return curve_; }
  NodesPanel& nodes() { return *nodes_; }
  DetailsPanel& details() { return *details_; }
  DecisionsPanel& decisions() { return *decisions_; }
  Canvas& memory_canvas() { return *memory_canvas_; }
  Canvas& curve_canvas() { return *curve_canvas_; }
  QSlider& slider() { return *slider_; }

  void opened() override;
  void closed() override;
  void selection_changed() override {}
  void plan_changed() override;

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void closeEvent(QCloseEvent* event) override;

 private:
  void make_docks();
  void make_menus();
  void make_budget_bar();
  void make_status_bar();
  void poll();  // what has the worker got?
  void take(std::optional<PlanWorker::Result> result);
  void request();
  void ask_for(std::int64_t bytes);  // a control moved
  void show_budget();                // the controls follow the plan
  void show_numbers();
  void restore_layout();
  void remember_recent(const std::string& path);
  void fill_recent();
  ComparedPlan shown() const;  // REQUIRES a plan
  void ask_open();
  void ask_compare();
  void ask_export();
  void show_keys();

  Setup setup_;
  Session session_;
  MemoryPanel memory_{session_};
  CurvePanel curve_{session_};
  Canvas* memory_canvas_ = nullptr;
  Canvas* curve_canvas_ = nullptr;
  NodesPanel* nodes_ = nullptr;
  DetailsPanel* details_ = nullptr;
  DecisionsPanel* decisions_ = nullptr;
  std::vector<QDockWidget*> docks_;
  QByteArray first_layout_;
  QMenu* recent_menu_ = nullptr;
  QSlider* slider_ = nullptr;
  QDoubleSpinBox* percent_box_ = nullptr;
  QDoubleSpinBox* size_box_ = nullptr;
  QToolButton* no_budget_ = nullptr;
  QProgressBar* progress_ = nullptr;
  QLabel* message_ = nullptr;
  std::vector<std::pair<std::string, QLabel*>> numbers_;
  QTimer coalesce_;  // a dragged slider asks at most so often
  BudgetScale scale_;
  Budget budget_;
  std::string error_;
  std::unique_ptr<PlanWorker> worker_;  // last: joined before anything it wakes is gone
};

}  // namespace tapedeck::viewer
