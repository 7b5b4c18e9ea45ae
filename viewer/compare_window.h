// Loads two files for comparison, and shows them in a window or as a picture.
#pragma once

#include <tapedeck/viewer/model/format.h>
#include <tapedeck/viewer/panels/compare.h>

#include <string>

namespace tapedeck::viewer {

// The plan in the file; planned here if there is none, or if a budget is given. Throws what open_document and make_plan throw.
ComparedPlan load_compared(const std::string& path, const Budget& budget = {});

// A window that deletes itself when closed.
void show_compare_window(ComparedPlan left, ComparedPlan right, Renderer renderer, int width = 1600, int height = 900);

}  // namespace tapedeck::viewer
