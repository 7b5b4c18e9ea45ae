#include <tapedeck/viewer/settings.h>

#include <QtCore/QFileInfo>

namespace tapedeck::viewer {

namespace {

constexpr int kMostRecent = 9;

}  // namespace

QSettings user_settings() { return QSettings(QStringLiteral("tapedeck"), QStringLiteral("viewer")); }

void remember_recent_file(const std::string& path) {
  const QString added = QFileInfo(QString::fromStdString(path)).absoluteFilePath();
  QStringList recent = recent_files();
  recent.removeAll(added);
  recent.prepend(added);
  while (recent.size() > kMostRecent) recent.removeLast();
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

void remember_minimap(bool on) { user_settings().setValue(QStringLiteral("minimap"), on); }

bool remembered_minimap() { return user_settings().value(QStringLiteral("minimap"), true).toBool(); }

}  // namespace tapedeck::viewer
