// The commands of bookmarks: they add the place in view, go from one bookmark to another, and rename or remove one.
#include <tapedeck/viewer/session_keeper.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/saved/saved_place.h>
#include <tapedeck/viewer/window.h>

#include <QtGui/QAction>
#include <QtWidgets/QInputDialog>
#include <QtWidgets/QMenu>

namespace tapedeck::viewer {

void SessionKeeper::add_bookmark() {
  const Session& session = window_.session();
  if (session.model() == nullptr) return;
  const SavedPlace place = place_of(session);
  const Bookmark* added = bookmarks_.add(name_of_place(session, place), place);
  say(added != nullptr ? "bookmark: " + added->name : "there are too many bookmarks");
}

void SessionKeeper::show_bookmark() {
  Session& session = window_.session();
  const Bookmark* bookmark = bookmarks_.current();
  if (session.model() == nullptr || bookmark == nullptr) return say("there is no bookmark");
  const bool found = show_place(bookmark->place, &session);
  say(found ? "bookmark: " + bookmark->name : "bookmark: " + bookmark->name + "; this plan has no %" + bookmark->place.value);
}

void SessionKeeper::step_bookmark(int by) {
  bookmarks_.step(by);
  show_bookmark();
}

void SessionKeeper::go_to_bookmark(std::size_t at) {
  bookmarks_.go_to(at);
  show_bookmark();
}

void SessionKeeper::remove_bookmark() {
  const Bookmark* bookmark = bookmarks_.current();
  say(bookmark != nullptr ? "the bookmark is removed: " + bookmark->name : "go to a bookmark first, to remove it");
  bookmarks_.remove();
}

void SessionKeeper::ask_bookmark_name() {
  const Bookmark* bookmark = bookmarks_.current();
  if (bookmark == nullptr) return say("go to a bookmark first, to rename it");
  auto* dialog = new QInputDialog(&window_);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(QStringLiteral("Rename bookmark"));
  dialog->setLabelText(QStringLiteral("Name:"));
  dialog->setTextValue(QString::fromStdString(bookmark->name));
  QObject::connect(dialog, &QInputDialog::textValueSelected, &window_,
                   guarded(&window_, [this](const QString& name) { bookmarks_.rename(name.toStdString()); }));
  dialog->open();
}

void SessionKeeper::fill_bookmarks(QMenu& menu) {
  menu.clear();
  for (std::size_t at = 0; at < bookmarks_.all().size(); ++at) {
    QString title = QString::fromStdString(bookmarks_.all()[at].name);
    QAction* action = menu.addAction(title.replace(QLatin1Char('&'), QStringLiteral("&&")));
    QObject::connect(action, &QAction::triggered, &window_, guarded(&window_, [this, at] { go_to_bookmark(at); }));
  }
  if (menu.isEmpty()) menu.addAction(QStringLiteral("(none)"))->setEnabled(false);
}

}  // namespace tapedeck::viewer
