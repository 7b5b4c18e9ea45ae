// The sheet of keys: what the mouse does, and every command with its keys and its sentence.
#pragma once

namespace tapedeck::viewer {

class MainWindow;

// Opens the sheet beside the work: it does not block the window.
void show_key_sheet(MainWindow& window);

}  // namespace tapedeck::viewer
