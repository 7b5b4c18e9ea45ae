// The start page: recent files, a sample, a new recording of a model of the zoo, and the import of other programs' graphs. The
// window shows it while no file is open.
#pragma once

#include <tapedeck/viewer/planning/awaited_task.h>
#include <tapedeck/viewer/start/new_file.h>
#include <tapedeck/viewer/words/format.h>

#include <QtCore/QStringList>
#include <QtWidgets/QWidget>

#include <functional>
#include <map>
#include <string>

class QComboBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QProgressBar;
class QPushButton;
class QSpinBox;

namespace tapedeck::viewer {

class StartPage : public QWidget {
 public:
  // The requests of the page to its window.
  struct Requests {
    std::function<void(const std::string& path, const Budget& budget, bool tours)> open;  // and begin the tour if it `tours`
    std::function<void()> ask_open;                                                       // with a dialog
    std::function<QStringList()> recent;                                                  // absolute paths, the last one first
    std::function<void(const std::string& path)> forget;                                  // takes a path from the recent files
    std::function<void()> watch;                                                          // a running program
    std::function<std::string()> folder;  // of new files; it is made when a file is written there
    std::function<void()> tour;           // of the open file, or of the sample
  };
  explicit StartPage(Requests requests, QWidget* parent = nullptr);

  void refresh();  // reads the recent files again
  // Records and opens a small model, planned at 60 %: the memory of a training step, and what recomputing saves of it.
  void open_sample(bool tours = false);  // and begins the tour
  // Asks for a file of another program, imports and opens it.
  void ask_import();
  // A model in the ONNX format is read first; then a dialog asks for its sizes, and for the loss of a step of training.
  void import_file(const std::string& path);
  void import_onnx_file(const std::string& path, const OnnxOptions& options);
  void record();  // as the form says; does nothing while something is being made
  bool cancel();  // false if nothing is being made
  bool busy() const { return task_.busy() || facts_.busy(); }
  void wait();  // blocks until what is being made is there; for tests

  // ---- the form, for tests and for the tour ----
  QComboBox& models() { return *models_; }
  QSpinBox& size(const std::string& option) { return *sizes_.at(option); }  // REQUIRES an option of with_defaults()
  QLineEdit& file() { return *file_; }
  QListWidget& recent_list() { return *recent_; }
  QString message() const;

 private:
  QWidget* make_recent();
  QWidget* make_form();
  void model_chosen();
  void show_line();
  ModelOptions options() const;
  void open_item(int row);
  // `path` is the file that `work` writes. Its folder is made if it is the folder of new files; a folder that a person
  // typed must be there.
  void start(const std::string& what, const std::string& path, std::function<NewFile(const std::atomic<bool>&)> work,
             const Budget& budget, bool tours = false);
  void arrive();
  void facts_arrive();
  void say(const std::string& text, bool is_problem);
  void set_busy(bool busy);
  std::string free_path(const std::string& name) const;  // of a new file in the folder: "cnn.tape", "cnn-2.tape"

  Requests requests_;
  QListWidget* recent_ = nullptr;
  QComboBox *models_ = nullptr, *dtype_ = nullptr, *optimizer_ = nullptr, *contents_ = nullptr;
  QLabel *about_ = nullptr, *line_ = nullptr, *message_ = nullptr;
  std::map<std::string, QSpinBox*> sizes_;
  std::map<std::string, QLabel*> size_labels_;
  QLineEdit* file_ = nullptr;
  QPushButton *record_ = nullptr, *cancel_ = nullptr;
  QProgressBar* progress_ = nullptr;
  std::string proposed_;  // the file that the page proposed last
  Budget budget_;         // of the file that is being made
  bool tours_ = false;    // the tour begins with it
  std::string read_;      // the model whose facts are awaited
  // The last members: their destructors join their threads first.
  AwaitedTask<OnnxFacts> facts_;
  AwaitedTask<NewFile> task_;
};

}  // namespace tapedeck::viewer
