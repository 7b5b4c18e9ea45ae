// The files that were opened last, kept in the user's settings with their absolute paths.
#pragma once

#include <QtCore/QString>
#include <QtCore/QStringList>

#include <string>

namespace tapedeck::viewer {

void remember_recent_file(const std::string& path);
QStringList recent_files();  // the last one first, at most nine

}  // namespace tapedeck::viewer
