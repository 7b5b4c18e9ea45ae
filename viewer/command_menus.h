// The menus and shortcuts of a window, made from the table of commands.
#pragma once

#include <functional>
#include <string>

class QMenu;

namespace tapedeck::viewer {

class MainWindow;
struct Command;

std::string menu_of(const Command& command);  // "File": the title of its menu

// Fills the menu bar of the window: one menu for each word before the dot of the ids. `fill_recent` fills the menu of the
// recent files each time before it opens, and `fill_bookmarks` that of the bookmarks.
void make_menus(MainWindow& window, const std::function<void(QMenu&)>& fill_recent,
                const std::function<void(QMenu&)>& fill_bookmarks);

}  // namespace tapedeck::viewer
