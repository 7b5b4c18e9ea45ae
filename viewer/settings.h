// The settings that the viewer keeps between runs: the recent files, the look, the colours and the axis of the pictures, the
// columns of the tables, the layout of the window, whether there is a minimap.
#pragma once

#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/plan/time_axis.h>
#include <tapedeck/viewer/plan/value_groups.h>

#include <QtCore/QSettings>
#include <QtCore/QStringList>

#include <string>

namespace tapedeck::viewer {

QSettings user_settings();

void remember_recent_file(const std::string& path);
void forget_recent_file(const std::string& path);
QStringList recent_files();  // absolute paths, the last one first, at most nine; the files may be gone

void remember_look(const Look& look);
Look remembered_look();  // the normal look if none is kept

// The rule for the colours of the pictures, and the unit of their axis of time.
void remember_pictures(ColourBy by, TimeUnit unit);
ColourBy remembered_colour_by();  // by role if nothing is kept
TimeUnit remembered_time_unit();  // nodes if nothing is kept

// The columns of all tables, as tables_text() writes them (model/saved_session.h).
void remember_columns(const std::string& text);
std::string remembered_columns();  // empty if none are kept

// The folder of sessions of files whose own folder cannot be written. It may not exist.
std::string own_session_folder();

void remember_minimap(bool on);
bool remembered_minimap();  // on if nothing is kept

}  // namespace tapedeck::viewer
