// The window that watches a running program: the curve of its memory, its calls, its modules and its captured steps, as they
// come.
#pragma once

#include <tapedeck/viewer/live/live_picture.h>
#include <tapedeck/viewer/live/live_rows.h>

#include <QtCore/QTimer>
#include <QtWidgets/QMainWindow>

#include <functional>
#include <memory>
#include <string>

class QCheckBox;
class QLabel;
class QListWidget;
class QPushButton;
class QStackedWidget;
class QTableView;
class QTreeWidget;

namespace tapedeck::viewer {

// Only the UI thread may use it.
class LiveWindow : public QMainWindow {
 public:
  struct Setup {
    std::string base;  // the folder of the folders; empty: the user's own
    // Makes the widget that shows a picture, and asks it for a new frame.
    std::function<QWidget*(Picture&, QWidget* parent)> make_canvas;
    std::function<void(QWidget&)> refresh;
    std::function<void(const std::string& path)> open_file;  // shows a captured step as a document
  };

  explicit LiveWindow(Setup setup, QWidget* parent = nullptr);
  ~LiveWindow() override;

  void list_programs();                   // shows the programs that run, to choose one
  void watch(const std::string& folder);  // throws FileError
  bool watches() const { return source_ != nullptr; }
  void capture();  // asks for the next step; without steps: begins a capture, or ends it
  void follow(bool on);
  bool follows() const { return picture_ && picture_->follows(); }
  void update();  // shows what has come
  void finish();  // reads and shows all that is there now; for unattended pictures

  const LiveSource& source() const { return *source_; }  // REQUIRES: watches()
  LivePicture& picture() { return *picture_; }
  QWidget* canvas() const { return canvas_; }
  QTreeWidget* programs() const { return programs_; }
  QListWidget* captures() const { return captures_; }
  QTableView* table() const { return table_; }
  QTreeWidget* modules() const { return modules_; }
  QPushButton* capture_button() const { return capture_; }
  QCheckBox* follow_box() const { return follow_; }
  QLabel* status() const { return status_; }

 private:
  void make_list();
  void make_view();
  void update_programs();
  void watch_chosen();
  void open_chosen_capture();
  void stop_watching();
  void update_status(const LiveTape& tape, LiveState state, const std::string& damage);
  void update_modules(const std::vector<LiveModule>& modules, const ByteUnit& unit);
  void update_captures(const std::vector<LiveCapture>& captures);

  Setup setup_;
  std::unique_ptr<LiveSource> source_;
  std::unique_ptr<LivePicture> picture_;
  LiveRows* rows_ = nullptr;
  QStackedWidget* pages_ = nullptr;
  QWidget *view_ = nullptr, *canvas_ = nullptr;
  QTreeWidget *programs_ = nullptr, *modules_ = nullptr;
  QListWidget* captures_ = nullptr;
  QTableView* table_ = nullptr;
  QLabel *status_ = nullptr, *note_ = nullptr, *empty_ = nullptr;
  QPushButton* capture_ = nullptr;
  QCheckBox* follow_ = nullptr;
  QTimer timer_;
  std::uint64_t shown_changes_ = ~0ull;
  std::size_t shown_captures_ = 0;
  int ticks_ = 0;
  bool has_steps_ = false, capturing_ = false;
};

// What a program is doing, in one line: "train (process 4711) is running · 12,345 calls · ...".
std::string live_summary(const live::ProgramInfo& info, const LiveTape& tape, LiveState state);

}  // namespace tapedeck::viewer
