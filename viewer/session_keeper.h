// Keeps the session of the open file: restores it when the file is opened, and writes it when something was changed.
//
//     file opened ---> enter(): tables, layout, bookmarks     the window asks for the plan of the session's budget and wishes
//     plan shown  ---> plan_changed(): view, selection        again with each better plan, until a person moves something
//     left        ---> leave(): written if it is not as it was after enter()
#pragma once

#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/saved/bookmarks.h>
#include <tapedeck/viewer/saved/session_file.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

class QMenu;

namespace tapedeck::viewer {

class MainWindow;
class TablePanel;

// Belongs to a window. Only the UI thread may use it.
class SessionKeeper : public Observer {
 public:
  SessionKeeper(MainWindow& window, Sessions sessions);  // the last observer of the session: the panels have a plan before it
  ~SessionKeeper() override;

  // Where a file that is about to be opened may have a session. No places if sessions are not read.
  SessionPlaces places_to_read(const std::string& path) const;
  // The document is open, and its plan is not shown yet. `plan_mark`: of the plan in the file.
  void enter(FoundSession found, std::string plan_mark);
  void plan_is_final();  // the plan that was asked for is shown
  // The document, or the window, is about to be closed, or another file to be opened. Never throws: a session that cannot be
  // written is a message.
  void leave();

  void save();                       // writes the session, changed or not; throws FileError
  void forget();                     // removes the session, and writes none until something else is changed; throws FileError
  SavedSession now() const;          // REQUIRES a document
  std::string written_path() const;  // of the session of the open document; empty: it has none
  const std::string& message() const { return message_; }  // the last one in the status bar; empty: none for this document

  // The columns of all tables are kept in the settings too, for files without a session.
  void remember_columns() const;
  void restore_columns();

  const Bookmarks& bookmarks() const { return bookmarks_; }
  void add_bookmark();
  void step_bookmark(int by);
  void go_to_bookmark(std::size_t at);
  void ask_bookmark_name();
  void remove_bookmark();
  void fill_bookmarks(QMenu& menu);

  void opened() override {}
  void closed() override;
  void selection_changed() override;
  void plan_changed() override;

 private:
  // A place that is shown once there is a plan.
  struct Pending {
    SavedPlace place;
    NodeRange range;
  };

  SessionPlaces places(const std::string& path) const;
  void write();
  bool is_changed() const;
  void show_pending();
  void show_bookmark();
  void tell_of(const FoundSession& found);
  void say(const std::string& text);
  std::vector<SavedTable> tables() const;
  void restore_tables(const std::vector<SavedTable>& tables);
  void for_each_table(const std::function<void(const std::string& name, TablePanel& table)>& call) const;

  MainWindow& window_;
  const Sessions sessions_;
  Bookmarks bookmarks_;
  SavedSession at_first_;  // after enter(), or as it was written last
  std::string plan_mark_;
  std::string written_;         // the path of the session; empty: there is none
  bool is_unreadable_ = false;  // the file there is no session that this viewer reads, so it is replaced by command only
  std::optional<Pending> pending_;
  Pending shown_pending_;          // as the session has it after show_pending()
  std::uint64_t shown_model_ = 0;  // the serial number of the model for which it was shown
  bool is_showing_ = false;
  bool told_of_own_folder_ = false;
  std::string message_;
};

}  // namespace tapedeck::viewer
