// The inspector: runs one step of the shown plan, pauses it at any node, goes back, and shows what any value holds, also a
// value whose bytes the plan has given to others.
#pragma once

#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/panels/value_picture.h>
#include <tapedeck/viewer/planning/paused_step.h>

#include <QtWidgets/QWidget>

#include <optional>
#include <string>

class QCheckBox;
class QHBoxLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QTextBrowser;

namespace tapedeck::viewer {

// The step runs on a thread of its own, so the UI never waits. It ends when another plan is shown.
class InspectorPanel : public QWidget, public Observer {
 public:
  explicit InspectorPanel(Session& session, QWidget* parent = nullptr);
  ~InspectorPanel() override;

  void opened() override {}
  void closed() override;
  void selection_changed() override;
  void plan_changed() override;

  // Begins a step if there is none. A move that comes while another one is under way follows it; only the newest does.
  void move(StepMove how);
  void play_or_pause();
  void end();            // the step and its bytes go
  void finish();         // waits for the move under way, and for the value; for unattended pictures
  bool settled() const;  // the value of the selection is shown
  // Writes where the step is and what the selected value holds, as its card says it. Throws FileError.
  void write_csv(const std::string& path) const;

  bool has_step() const { return step_.begun(); }
  bool moves() const { return step_.busy() && last_move_ != StepMove::stay; }  // nodes are running
  const PausedStep::Result& at() const { return at_; }                         // where the step is
  ValuePicture& picture() { return *picture_; }
  QLabel& headline() { return *headline_; }
  QTextBrowser& card() { return *card_; }
  QPushButton& button(StepMove how);
  QPushButton& play_button() { return *play_; }
  QCheckBox& stops_at_nan() { return *stops_at_nan_; }
  QCheckBox& follows() { return *follows_; }
  QLineEdit& stops_at() { return *stops_at_; }

 private:
  QPushButton* make_button(const char* text, const char* help);
  void make_transport(QHBoxLayout* row);
  void make_stops(QHBoxLayout* row);
  void request(StepMove how);
  void arrived();
  void take(std::optional<PausedStep::Result> result);
  void follow();
  void show_place();
  void show_value();
  void enable_buttons();
  std::string place_text() const;
  std::string value_csv() const;
  bool shows_value() const;

  Session& session_;
  QPushButton *play_ = nullptr, *back_ = nullptr, *next_ = nullptr, *to_node_ = nullptr, *end_ = nullptr;
  QCheckBox *stops_at_nan_ = nullptr, *follows_ = nullptr;
  QLineEdit* stops_at_ = nullptr;
  QLabel* headline_ = nullptr;
  ValuePicture* picture_ = nullptr;
  QTextBrowser* card_ = nullptr;
  PausedStep::Result at_;
  StepMove last_move_ = StepMove::stay;
  ValueId asked_value_ = kNone;      // of the request under way
  std::optional<StepMove> waiting_;  // that follows the request under way
  std::string ended_;                // why the last step has ended by itself; empty otherwise
  PausedStep step_;                  // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
