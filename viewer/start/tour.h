// A tour of a window: a card with a short text, and a frame around the widget that the text is about.
#pragma once

#include <QtCore/QTimer>
#include <QtWidgets/QFrame>

#include <functional>
#include <string>
#include <vector>

class QLabel;
class QPushButton;

namespace tapedeck::viewer {

struct TourStep {
  std::string title, text;
  std::string task = {};  // what the person may do now; empty: nothing but read
  // Brings the widget to the front and returns it; empty, or null: the step is about the whole window.
  std::function<QWidget*()> show = {};
  // Has the person done the task since the step was shown? Asked several times a second. REQUIRES one where there is a task.
  std::function<bool()> done = {};
};

// The card is a child of the window and lies over its panels. It never blocks them: a person works in the window beside it.
class Tour : public QFrame {
 public:
  explicit Tour(QWidget& window);

  void begin(std::vector<TourStep> steps);  // REQUIRES one step or more
  void go(int step);                        // behind the last step, and before the first one, the tour ends
  void end();
  bool runs() const { return step_ >= 0; }
  int step() const { return step_; }  // from 0; -1 while no tour runs
  int count() const { return static_cast<int>(steps_.size()); }
  bool task_is_done() const { return done_; }
  QWidget* target() const { return target_; }  // the framed widget; null: none
  QWidget& frame() { return *frame_; }
  QPushButton& next_button() { return *next_; }
  QPushButton& back_button() { return *back_; }
  QPushButton& end_button() { return *end_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void place();
  void watch();  // marks the task once it is done
  void show_task();

  std::vector<TourStep> steps_;
  int step_ = -1;
  bool done_ = false;
  QWidget* target_ = nullptr;
  QWidget* frame_;
  QLabel *title_, *text_, *task_;
  QPushButton *back_, *next_, *end_;
  QTimer watch_;
};

}  // namespace tapedeck::viewer
