// What the viewer keeps between runs: the recent files, the look, the layout of the window, whether there is a minimap.
#pragma once

#include <tapedeck/viewer/theme.h>

#include <QtCore/QSettings>
#include <QtCore/QStringList>

#include <string>

namespace tapedeck::viewer {

QSettings user_settings();

void remember_recent_file(const std::string& path);
QStringList recent_files();  // absolute paths, the last one first, at most nine

void remember_look(const Look& look);
Look remembered_look();  // the normal look if none is kept

void remember_minimap(bool on);
bool remembered_minimap();  // on if nothing is kept

}  // namespace tapedeck::viewer
