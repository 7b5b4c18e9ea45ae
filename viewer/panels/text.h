// The text of the graph, from the capture to the plan: a list of the steps with the nodes and live bytes that each won, and the
// text after the chosen step, or the lines that it changed.
#pragma once

#include <tapedeck/viewer/graph/pass_texts.h>
#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/panels/code_view.h>
#include <tapedeck/viewer/planning/background_task.h>

#include <QtWidgets/QWidget>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

class QCheckBox;
class QLabel;
class QLineEdit;
class QTreeWidget;

namespace tapedeck::viewer {

// The panel. The texts and differences are made on a thread of its own, while the panel can be seen.
class TextPanel : public QWidget, public Observer {
 public:
  explicit TextPanel(Session& session, QWidget* parent = nullptr);
  ~TextPanel() override;

  void opened() override {}
  void closed() override;
  void selection_changed() override;
  void plan_changed() override { refresh(); }

  CodeView& code() { return *code_; }
  QTreeWidget& steps() { return *steps_; }
  QLineEdit& find_field() { return *find_; }
  QLabel& headline() { return *headline_; }
  const StepTexts& texts() const { return *texts_; }
  int step() const;            // the chosen one; -1 until the texts are there
  void choose_step(int step);  // shows the text after it, or what it changed
  bool shows_changes() const;
  void show_changes(bool on);
  void go_to_change(int by);  // of the chosen step; turns the changes on
  void begin_find();          // gives the keyboard to the field
  void finish();              // waits for the texts; for unattended pictures
  bool settled() const;       // the texts are those of the shown plan
  // Writes the steps. Throws FileError; UsageError without a document.
  void write_csv(const std::string& path);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void make_left(QWidget* side);
  void make_bar(QWidget* side);
  void refresh();
  void ask();      // for the texts of the shown plan, in the background
  void arrived();  // takes what the background has handed over
  void fill_steps();
  void show_step();
  void click_on(const CodeView::Place& place);
  void look_for(const QString& text);
  void show_matches();
  ValueId value_of(const CodeView::Place& place) const;
  std::string word_in_text(ValueId v) const;  // how the chosen text names it; empty if it cannot
  QString explanation(const CodeView::Place& place) const;
  bool is_plan(int step) const;

  Session& session_;
  QTreeWidget* steps_ = nullptr;
  QCheckBox* changes_ = nullptr;
  QLabel *headline_ = nullptr, *matches_ = nullptr;
  QLineEdit* find_ = nullptr;
  CodeView* code_ = nullptr;
  std::shared_ptr<const StepTexts> texts_ = std::make_shared<const StepTexts>();
  std::uint64_t shown_model_ = 0, asked_model_ = 0;
  std::shared_ptr<const StepTexts> passes_;  // of the document, without the plan
  const Document* passes_of_ = nullptr;
  bool chosen_by_hand_ = false;  // else the step of the plan is shown
  bool is_clicked_ = false;
  ValueId revealed_value_ = kNone;  // the selection that the text was scrolled to
  NodeId revealed_node_ = kNone;
  std::string error_;

  struct Texts {
    std::uint64_t model = 0;
    std::shared_ptr<const StepTexts> passes, all;
    std::string error;
  };
  struct Mail {
    std::mutex mutex;
    std::optional<Texts> texts;
  };
  std::shared_ptr<Mail> mail_ = std::make_shared<Mail>();
  BackgroundTask task_;  // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
