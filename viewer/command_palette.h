// A line to type in, and the entries that fit what is typed, the best first: the command palette, and the search of the graph.
#pragma once

#include <functional>
#include <string>
#include <vector>

class QWidget;

namespace tapedeck::viewer {

class MainWindow;

struct PaletteEntry {
  std::string id, title, help, keys;
  std::function<void(MainWindow&)> run;
};

// The entries that fit, the best first.
using PaletteSource = std::function<std::vector<PaletteEntry>(const std::string& typed)>;

// Opens a palette over the window; `hint` stands in the empty line. Arrows choose, Enter runs, Esc or a click elsewhere closes.
void show_palette(MainWindow& window, const std::string& hint, PaletteSource source);
void show_command_palette(MainWindow& window);
// The open palette; null if it is closed.
QWidget* open_palette(const MainWindow& window);

}  // namespace tapedeck::viewer
