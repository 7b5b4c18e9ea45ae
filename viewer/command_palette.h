// The command palette: a line to type in, and the commands that fit what is typed, the best first.
#pragma once

class QWidget;

namespace tapedeck::viewer {

class MainWindow;

// Opens the palette over the window. Arrows choose, Enter runs, Esc or a click elsewhere closes.
void show_palette(MainWindow& window);
// The open palette; null if it is closed.
QWidget* open_palette(const MainWindow& window);

}  // namespace tapedeck::viewer
