#include <tapedeck/viewer/settings.h>

#include <QtCore/QDir>
#include <QtCore/QFileInfo>

namespace tapedeck::viewer {

namespace {

constexpr int kMostRecent = 9;

}  // namespace

QSettings user_settings() { return QSettings(QStringLiteral("tapedeck"), QStringLiteral("viewer")); }

void remember_recent_file(const std::string& path) {
  const QString added = QDir::cleanPath(QFileInfo(QString::fromStdString(path)).absoluteFilePath());
  QStringList recent = recent_files();
  recent.removeAll(added);
  recent.prepend(added);
  while (recent.size() > kMostRecent) recent.removeLast();
  user_settings().setValue(QStringLiteral("recent"), recent);
}

void forget_recent_file(const std::string& path) {
  QStringList recent = recent_files();
  recent.removeAll(QString::fromStdString(path));
  user_settings().setValue(QStringLiteral("recent"), recent);
}

QStringList recent_files() {
  QStringList recent;
  // A path that is not absolute comes from an older version; its folder is not known.
  for (const QString& path : user_settings().value(QStringLiteral("recent")).toStringList())
    if (QFileInfo(path).isAbsolute()) recent << path;
  return recent;
}

void remember_look(const Look& look) {
  QSettings stored = user_settings();
  stored.setValue(QStringLiteral("theme"), QString::fromLatin1(theme_name(look.theme)));
  stored.setValue(QStringLiteral("scale"), look.scale);
}

Look remembered_look() {
  const QSettings stored = user_settings();
  Look look;
  find_theme(stored.value(QStringLiteral("theme")).toString().toStdString(), &look.theme);
  const double scale = stored.value(QStringLiteral("scale"), 1).toDouble();
  if (scale >= kLeastScale && scale <= kMostScale) look.scale = scale;
  return look;
}

void remember_pictures(ColourBy by, TimeUnit unit) {
  QSettings stored = user_settings();
  stored.setValue(QStringLiteral("colour-by"), QString::fromLatin1(colour_by_name(by)));
  stored.setValue(QStringLiteral("axis"), unit == TimeUnit::us ? QStringLiteral("time") : QStringLiteral("nodes"));
}

ColourBy remembered_colour_by() {
  ColourBy by = ColourBy::role;
  find_colour_by(user_settings().value(QStringLiteral("colour-by")).toString().toStdString(), &by);
  return by;
}

TimeUnit remembered_time_unit() {
  return user_settings().value(QStringLiteral("axis")).toString() == QStringLiteral("time") ? TimeUnit::us : TimeUnit::nodes;
}

void remember_columns(const std::string& text) {
  user_settings().setValue(QStringLiteral("columns"), QString::fromStdString(text));
}

std::string remembered_columns() { return user_settings().value(QStringLiteral("columns")).toString().toStdString(); }

std::string own_session_folder() {
  return QFileInfo(user_settings().fileName()).absoluteDir().filePath(QStringLiteral("viewer-sessions")).toStdString();
}

void remember_minimap(bool on) { user_settings().setValue(QStringLiteral("minimap"), on); }

bool remembered_minimap() { return user_settings().value(QStringLiteral("minimap"), true).toBool(); }

}  // namespace tapedeck::viewer
