// Restores and writes the session of the open file; see session_keeper.h. bookmark_commands.cpp has its bookmarks.
#include <tapedeck/viewer/session_keeper.h>

#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/panels/table_state.h>
#include <tapedeck/viewer/saved/fit_session.h>
#include <tapedeck/viewer/saved/saved_place.h>
#include <tapedeck/viewer/settings.h>
#include <tapedeck/viewer/signed_layout.h>
#include <tapedeck/viewer/window.h>

#include <tapedeck/capture/formats/json.h>
#include <tapedeck/engine/ir/error.h>

#include <QtCore/QFileInfo>
#include <QtWidgets/QStatusBar>

#include <cstdio>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr int kMessageMs = 20000;

std::string absolute(const std::string& path) {
  return QFileInfo(QString::fromStdString(path)).absoluteFilePath().toStdString();
}

// The layout of the panels and the widths of columns change with the size of the window, and the settings keep them too. So
// they alone are no reason to write a session.
SavedSession without_layout(SavedSession session) {
  session.layout.clear();
  for (SavedTable& table : session.tables)
    for (SavedColumn& column : table.columns) column.width = 0;
  return session;
}

}  // namespace

SessionKeeper::SessionKeeper(MainWindow& window, Sessions sessions) : window_(window), sessions_(sessions) {
  window_.session().attach(this);
}

SessionKeeper::~SessionKeeper() { window_.session().detach(this); }

// ---- places and files ----

SessionPlaces SessionKeeper::places(const std::string& path) const {
  return session_places(path, own_session_folder(), absolute(path));
}

SessionPlaces SessionKeeper::places_to_read(const std::string& path) const {
  return sessions_ == Sessions::off ? SessionPlaces() : places(path);
}

std::string SessionKeeper::written_path() const { return written_; }

void SessionKeeper::write() {
  const Document& document = *window_.session().document();
  const SavedSession as_it_is = now();
  SavedSession session = as_it_is;
  session.graph = graph_mark(*document.captured);
  session.plan = plan_mark_;
  session.layout = sign_layout(window_.saveState());
  const SessionPlaces where = places(document.path);
  written_ = write_session(where, session_text(session));
  at_first_ = as_it_is;
  is_unreadable_ = false;
  if (written_ != where.own || std::exchange(told_of_own_folder_, true)) return;
  say("the folder of the file cannot be written, so its session is " + written_);
}

bool SessionKeeper::is_changed() const {
  if (written_.empty()) return without_layout(now()) != without_layout(at_first_);
  return now() != at_first_;
}

void SessionKeeper::leave() {
  if (sessions_ != Sessions::read_and_write || window_.session().document() == nullptr || is_unreadable_) return;
  try {
    if (is_changed()) write();
  } catch (const Error& error) {
    say("the session is not saved: " + std::string(error.what()));
    std::fprintf(stderr, "tapedeck-viewer: %s\n", message_.c_str());
  }
}

void SessionKeeper::save() {
  if (window_.session().document() == nullptr) return;
  say("");
  write();
  if (message_.empty()) say("the session is saved: " + written_);
}

void SessionKeeper::forget() {
  const Document* document = window_.session().document();
  if (document == nullptr) return;
  const bool removed = remove_session(places(document->path));
  written_.clear();
  is_unreadable_ = false;
  at_first_ = now();
  say(removed ? "the session is removed; another one is written only after a change" : "this file has no session");
}

// ---- the session as it is now ----

SavedSession SessionKeeper::now() const {
  const Session& session = window_.session();
  const PlanOptions& options = session.document()->options;
  SavedSession saved;
  saved.budget = window_.budget();
  saved.costs = session.document()->costs;
  saved.strategy = strategy_name(options.strategy);
  saved.recorded_order = options.ordering == Ordering::recorded;
  saved.wishes = session.wishes();
  saved.place = pending_ ? pending_->place : place_of(session);
  saved.memory_region = window_.memory().regions().saved();
  saved.graph_region = window_.graph().saved_region();
  saved.range = pending_ ? pending_->range : session.range();
  saved.bookmarks = bookmarks_.all();
  saved.tables = tables();
  if (const OpenModules& open = window_.graph().open_modules()) saved.open_modules.emplace(open->begin(), open->end());
  saved.layout = window_.saveState().toBase64().toStdString();
  return saved;
}

void SessionKeeper::enter(FoundSession found, std::string plan_mark) {
  plan_mark_ = std::move(plan_mark);
  written_ = found.path;
  is_unreadable_ = !found.path.empty() && !found.saved;
  bookmarks_ = Bookmarks(found.saved ? found.saved->bookmarks : std::vector<Bookmark>());
  if (found.saved) {
    restore_tables(found.saved->tables);
    if (const auto& open = found.saved->open_modules)
      window_.graph().set_open_modules(std::set<std::string>(open->begin(), open->end()));
    window_.memory().restore_region(found.saved->memory_region);
    window_.graph().restore_region(found.saved->graph_region);
    window_.place_panels(layout_if_signed(found.saved->layout));
    pending_ = Pending{found.saved->place, found.saved->range};
  }
  at_first_ = now();
  tell_of(found);
}

void SessionKeeper::tell_of(const FoundSession& found) {
  std::string text;
  for (const std::string& note : found.notes) text += (text.empty() ? "" : "; ") + note;
  if (is_unreadable_) text += "; it stays as it is, and \"Save session\" replaces it";
  const bool is_own = !written_.empty() && written_ == places(window_.session().document()->path).own;
  if (text.empty() && is_own && !std::exchange(told_of_own_folder_, true))
    text = "the session of this file is " + written_ + ", because the folder of the file could not be written";
  say(text);
}

void SessionKeeper::say(const std::string& text) {
  message_ = text;
  if (text.empty())
    window_.statusBar()->clearMessage();
  else
    window_.statusBar()->showMessage(QString::fromStdString(text), kMessageMs);
}

// ---- the view and the selection, which need a plan ----

void SessionKeeper::closed() {
  pending_.reset();
  shown_model_ = 0;
}

void SessionKeeper::plan_changed() {
  const PlanModel* model = window_.session().model();
  if (!pending_ || is_showing_ || model == nullptr || model->serial() == shown_model_) return;
  shown_model_ = model->serial();
  show_pending();
}

void SessionKeeper::show_pending() {
  Session& session = window_.session();
  is_showing_ = true;
  show_place(pending_->place, &session);
  session.select_range(pending_->range);
  is_showing_ = false;
  shown_pending_ = {place_of(session), session.range()};
}

// A person who moves or selects something before the final plan is there keeps that.
void SessionKeeper::selection_changed() {
  const Session& session = window_.session();
  if (!pending_ || is_showing_ || session.model() == nullptr || session.model()->serial() != shown_model_) return;
  if (place_of(session) != shown_pending_.place || session.range() != shown_pending_.range) pending_.reset();
}

void SessionKeeper::plan_is_final() {
  if (!pending_ || window_.session().model() == nullptr) return;
  pending_.reset();
}

// ---- tables ----

void SessionKeeper::for_each_table(const std::function<void(const std::string& name, TablePanel& table)>& call) const {
  for (const Panel& panel : all_panels())
    if (auto* table = dynamic_cast<TablePanel*>(window_.panel(panel.name).widget)) call(panel.name, *table);
  call("recompute", window_.recompute().table());
}

std::vector<SavedTable> SessionKeeper::tables() const {
  std::vector<SavedTable> all;
  for_each_table(
      [&](const std::string& name, TablePanel& table) { all.push_back(table_state(name, look_in_use().scale, table)); });
  return all;
}

void SessionKeeper::restore_tables(const std::vector<SavedTable>& tables) {
  for_each_table([&](const std::string& name, TablePanel& table) {
    for (const SavedTable& saved : tables)
      if (saved.name == name) restore_table(saved, look_in_use().scale, table);
  });
}

void SessionKeeper::remember_columns() const {
  std::vector<SavedTable> columns = tables();
  for (SavedTable& table : columns) table.filter.clear();
  viewer::remember_columns(tables_text(columns));
}

void SessionKeeper::restore_columns() {
  try {
    if (const std::string text = remembered_columns(); !text.empty()) restore_tables(read_tables(text));
  } catch (const JsonError&) {
    return;  // the settings are of another version, or damaged: the tables have their first columns
  }
}

}  // namespace tapedeck::viewer
