#include <tapedeck/viewer/recent_files.h>

#include <QtCore/QFileInfo>
#include <QtCore/QSettings>

namespace tapedeck::viewer {

namespace {

constexpr int kMost = 9;

QSettings settings() { return QSettings(QStringLiteral("tapedeck"), QStringLiteral("viewer")); }

}  // namespace

void remember_recent_file(const std::string& path) {
  const QString added = QFileInfo(QString::fromStdString(path)).absoluteFilePath();
  QStringList recent = recent_files();
  recent.removeAll(added);
  recent.prepend(added);
  while (recent.size() > kMost) recent.removeLast();
  settings().setValue(QStringLiteral("recent"), recent);
}

QStringList recent_files() {
  QStringList recent;
  // A path that is not absolute comes from an older version; its folder is not known.
  for (const QString& path : settings().value(QStringLiteral("recent")).toStringList())
    if (QFileInfo(path).isAbsolute()) recent << path;
  return recent;
}

}  // namespace tapedeck::viewer
