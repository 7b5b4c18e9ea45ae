// The main window: docks, menus, the controls of the budget, the status bar. The window owns the session and the worker. Panels
// learn of changes through the session.
#pragma once

#include <tapedeck/viewer/budget_bar.h>
#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/commands.h>
#include <tapedeck/viewer/compare/compare_picture.h>
#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/model/wish_history.h>
#include <tapedeck/viewer/options.h>
#include <tapedeck/viewer/panels/curve.h>
#include <tapedeck/viewer/panels/details.h>
#include <tapedeck/viewer/panels/memory.h>
#include <tapedeck/viewer/panels/panels.h>
#include <tapedeck/viewer/panels/recompute.h>
#include <tapedeck/viewer/panels/schedule.h>
#include <tapedeck/viewer/panels/table.h>
#include <tapedeck/viewer/panels/text.h>
#include <tapedeck/viewer/panels/tradeoff.h>
#include <tapedeck/viewer/planning/document_loader.h>
#include <tapedeck/viewer/planning/plan_worker.h>
#include <tapedeck/viewer/planning/replay_task.h>

#include <QtCore/QTimer>
#include <QtWidgets/QMainWindow>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

class QDockWidget;
class QLabel;
class QMenu;
class QProgressBar;

namespace tapedeck::viewer {

class GraphPanel;
class InspectorPanel;
class SessionKeeper;
class StartPage;
class Tour;

// The window. Only the UI thread may use it.
class MainWindow : public QMainWindow, public Observer {
 public:
  struct Setup {
    Renderer renderer = Renderer::soft;      // must not be automatic
    std::string renderer_text = "software";  // the renderer's name in the status bar
    bool remember = true;                    // keep the layout and the recent files in the user's settings
    bool prepares = true;                    // prepare all budgets of a file whose plan is shown; false: for one picture
    CostSource costs = CostSource::best;     // of all plans but those that stand in files
    std::string profile = {};                // a file whose profile is taken as a measurement of the first document
    Sessions sessions = Sessions::off;       // read and written beside the files
    bool starts = false;                     // show the start page while no file is open
  };

  // A panel of the table as it is in this window.
  struct OpenPanel {
    const Panel* panel;
    std::unique_ptr<PicturePanel> picture;  // null: a table
    Canvas* canvas = nullptr;               // of the picture
    QWidget* widget = nullptr;              // the canvas or the table
    QDockWidget* dock = nullptr;            // null: in the centre
  };

  explicit MainWindow(const Setup& setup);
  ~MainWindow() override;

  // Opens a file in this thread: for unattended rendering. Throws the errors of open_document; the open document then stays
  // open.
  void open(const std::string& path, const Budget& budget = {});
  // Opens a file in the background. The open document stays open until the new one is there, or if that cannot be opened:
  // `failed` gets the error; without one, a message box shows it.
  using Failed = std::function<void(const std::string& error)>;
  void start_opening(const std::string& path, const Budget& budget = {}, Failed failed = {});
  bool opening() const { return opening_.has_value(); }  // a file, or the second file of a comparison
  bool cancel_opening();                                 // false if nothing is being opened
  void set_budget(const Budget& budget);                 // makes a new plan in the background
  void wait_for_plan();  // blocks until the file that is being opened and its plan are there; for unattended rendering
  // Blocks until the plan that keeps everything is there, whose outline the pictures draw; for unattended rendering.
  void outline_keep_all();
  void finish(const std::string& panel);  // waits for work of the panel in the background; for unattended pictures
  // Writes the numbers of a panel. REQUIRES a name from the table. Throws FileError; UsageError if there are none yet.
  void write_csv(const std::string& panel, const std::string& path);
  // Runs the commands in order, each after the plan that the one before asked for is there.
  void run(const std::vector<const Command*>& commands);

  // Measurements, in the background. Each replaces the one under way, and waits for the plan that is being made.
  void measure();        // replays the shown plan
  void measure_curve();  // plans under several budgets in turn, and the one that keeps everything
  void take_profile(const std::string& path);
  void ask_profile();
  bool cancel_measuring();  // false if nothing is being measured
  void forget_measurements();
  void wait_for_measuring();                                               // blocks; for unattended pictures
  const std::string& measuring_error() const { return measuring_error_; }  // of the last measurement; empty if there was none
  ReplayTask& replays() { return *replays_; }
  Renderer renderer() const { return setup_.renderer; }  // of its canvases

  // The functions that commands call.
  void ask_open();
  void show_start_page(bool on);  // over the panels
  bool start_page_is_shown() const;
  bool cancel_recording();  // of the start page; false if it makes no file
  StartPage& start_page();  // is made when it is first wanted: most windows open a file at once
  void begin_tour();        // of the open file; without one, the sample is recorded first
  Tour& tour() { return *tour_; }
  void ask_compare();          // with the open file; without one, asks for both files
  void compare_with_before();  // the shown plan with the final plan that was shown before it
  void ask_export();
  void ask_export_panel();  // the one with the focus; without one, the memory plan
  void reset_layout();
  void show_panel(const std::string& name);    // opens its dock, before the docks in the same place
  void toggle_panel(const std::string& name);  // hides it if it can be seen; the panel in the centre gets the focus
  bool panel_is_open(const std::string& name) const;
  bool panel_has_keys(const std::string& name) const;  // it has the focus of this window, even while a dialog is open
  void step_panel(int by);        // gives the focus to a panel further in the table, of those that can be seen
  void move_view(ViewMove move);  // of the picture that has the focus and a view of its own, else of the session
  void set_look(const Look& look);
  void set_colour_by(ColourBy by);
  void set_time_unit(TimeUnit unit);
  bool place_panels(const QByteArray& layout);  // as saveState() gave it; false, and nothing moves, if it is none
  void toggle_minimap();
  bool minimap_is_on() const { return as<MemoryPanel>("memory").minimap().is_on(); }

  Session& session() { return session_; }
  const Session& session() const { return session_; }
  // Says a sentence in the status bar for a few seconds: why a command had nothing to do.
  void say(const std::string& sentence);
  const std::string& error() const { return error_; }     // the error of the last request for a plan; empty if there was none
  const OpenPanel& panel(const std::string& name) const;  // REQUIRES a name from the table
  MemoryPanel& memory() { return as<MemoryPanel>("memory"); }
  CurvePanel& curve() { return as<CurvePanel>("curve"); }
  TablePanel& table(const std::string& name) { return as<TablePanel>(name); }  // REQUIRES the name of a table
  TablePanel& nodes() { return table("nodes"); }
  DetailsPanel& details() { return as<DetailsPanel>("details"); }
  TablePanel& decisions() { return table("decisions"); }
  GraphPanel& graph() const;
  InspectorPanel& inspector() const;
  TradeoffPanel& tradeoff() { return as<TradeoffPanel>("tradeoff"); }
  SchedulePanel& schedule() { return as<SchedulePanel>("schedule"); }
  const SchedulePanel& schedule() const { return as<SchedulePanel>("schedule"); }
  TextPanel& text() { return as<TextPanel>("text"); }
  const TextPanel& text() const { return as<TextPanel>("text"); }
  RecomputePanel& recompute() { return as<RecomputePanel>("recompute"); }
  Canvas& memory_canvas() { return *panel("memory").canvas; }
  Canvas& curve_canvas() { return *panel("curve").canvas; }
  QSlider& slider() { return bar_->slider(); }
  const BudgetScale& budget_scale() const { return bar_->scale(); }
  const PlanWorker& worker() const { return *worker_; }
  const Budget& budget() const { return budget_; }    // that was asked for last
  SessionKeeper& keeper() const { return *keeper_; }  // the session of the file, and its bookmarks

  void set_wishes(const std::vector<Wish>& wishes);  // plans again in the background; can be undone
  bool undo();                                       // of wishes; false if there is nothing to undo
  bool redo();
  std::string tool_line() const;  // the line of the tool that gives the shown plan; empty without a document

  void opened() override;
  void closed() override;
  void selection_changed() override {}
  void plan_changed() override;

 protected:
  bool event(QEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void closeEvent(QCloseEvent* event) override;

 private:
  // A file that is being loaded.
  struct Opening {
    LoadRequest request;
    bool compares = false;  // with the shown plan
    Failed failed = {};
    bool tours = false;  // the tour begins once the file is open
  };

  void make_panels();
  void make_docks();
  void place_around();
  void place_as_tabs();
  void scale_tables(double factor);
  void mend_tabs();
  template <class P>
  P& as(const std::string& name) const {
    const OpenPanel& open = panel(name);
    if constexpr (std::is_base_of_v<PicturePanel, P>)
      return static_cast<P&>(*open.picture);
    else
      return static_cast<P&>(*open.widget);
  }
  void make_budget_bar();
  void make_status_bar();
  void make_opening_bar();
  void make_start_page();
  void place_start_page();
  void poll();  // takes the worker's result, if there is one
  void take(std::optional<PlanWorker::Result> result);
  void request();
  void pose_problem();  // tells the worker of the document and the wishes
  void show_numbers();
  void restore_layout();
  void fill_recent(QMenu& menu);
  ComparedPlan shown() const;  // REQUIRES a plan
  void note_final_plan();
  void make_measuring_bar();
  void when_planned(std::function<void()> start);
  void start_next_measurement();
  void poll_replays();
  void take_measured(std::optional<ReplayTask::Result> result);
  void end_measuring();
  void start_comparing(const std::string& path);  // loads the other file in the background, then shows both
  void start_loading(Opening opening);
  void poll_loader();
  void take_loaded(std::optional<DocumentLoader::Result> result);
  void end_opening();
  void show_document(LoadedFile file);

  Setup setup_;
  Session session_;
  std::vector<OpenPanel> panels_;
  bool placed_ = false;  // true when the panels stand where a person put them, or where they fit the shown window
  BudgetBar* bar_ = nullptr;
  QLabel* message_ = nullptr;
  StartPage* start_ = nullptr;  // null until it is first wanted
  Tour* tour_ = nullptr;
  QWidget* opening_bar_ = nullptr;  // the busy sign and the button that cancels
  std::optional<Opening> opening_;
  QWidget* measuring_bar_ = nullptr;  // how far a measurement is, and the button that cancels
  QProgressBar* measuring_share_ = nullptr;
  std::function<void()> next_measurement_;  // waits for a plan
  std::string measuring_error_;
  std::shared_ptr<const PlanModel> final_plan_, plan_before_;  // the final plans that were shown last
  std::string compares_next_;                                  // a file that was dropped with the one before it
  std::vector<std::pair<std::string, QLabel*>> numbers_;
  QTimer dim_;  // runs while nothing was shown for a request yet
  Budget budget_;
  WishHistory wishes_;
  std::shared_ptr<const PlanProblem> problem_;
  std::vector<std::shared_ptr<const PlanProblem>> problems_;  // of the document, by wishes
  std::string error_;
  std::unique_ptr<SessionKeeper> keeper_;
  // The last members: their destructors join the threads before the members that the threads wake are destroyed.
  std::unique_ptr<PlanWorker> worker_;
  std::unique_ptr<DocumentLoader> loader_;
  std::unique_ptr<ReplayTask> replays_;
};

}  // namespace tapedeck::viewer
