// Loads two files for comparison, and shows them in a window or as a picture.
#pragma once

#include <tapedeck/viewer/compare/compare_picture.h>
#include <tapedeck/viewer/words/format.h>

#include <string>
#include <string_view>

namespace tapedeck::viewer {

// Loads the plan of a file for a comparison. Makes the plan here if the file has none, or if a budget is given. Throws the
// errors of open_document and make_plan.
ComparedPlan load_compared(const std::string& path, const Budget& budget = {});

// Shows a window of the picture, with the table of what differs below it, that deletes itself when it is closed. Its menu
// changes the look, with which it begins as given.
void show_compare_window(ComparedPlan left, ComparedPlan right, Renderer renderer, CompareLook look, int width = 1600,
                         int height = 900);

bool comparison_is_open();
// Runs one of compare_commands() in the newest window of a comparison. False: none is open.
bool run_in_comparison(std::string_view command);

}  // namespace tapedeck::viewer
