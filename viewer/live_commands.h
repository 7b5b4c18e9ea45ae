// The window that watches a running program, for the commands and the command line.
#pragma once

#include <tapedeck/viewer/drawing/picture.h>
#include <tapedeck/viewer/live/live_window.h>
#include <tapedeck/viewer/options.h>

#include <memory>
#include <string>

namespace tapedeck::viewer {

class MainWindow;

LiveWindow* live_window_of(const MainWindow& window);  // null if there is none
// Shows the window that belongs to `window`, which opens the captured steps.
LiveWindow& show_live_window(MainWindow& window);

// The folder of a program that --live means: a process, a folder of a program, or a folder in which programs write theirs
// (TAPEDECK_VIEW=FOLDER). Empty, and `base` is set, if there is more than one to choose from, or none. Throws UsageError if no
// program of this process number writes a live view.
std::string find_live_folder(const std::string& wanted, std::string* base);

// A window of its own, as --live opens it. `window` opens the captured steps, and is shown then.
std::unique_ptr<LiveWindow> make_live_window(MainWindow& window, const std::string& wanted);

// Writes the picture and the table of --live unattended, and returns an exit code; prints errors to stderr.
int take_live_shot(const Options& options);

}  // namespace tapedeck::viewer
