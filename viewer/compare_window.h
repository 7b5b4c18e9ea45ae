// Loads two files for comparison, and shows them in a window or as a picture.
#pragma once

#include <tapedeck/viewer/panels/compare.h>

#include <memory>
#include <string>

namespace tapedeck::viewer {

// Plans what has no plan of its own. Throws what open_document and make_plan throw.
ComparedPlan load_compared(const std::string& path);
std::unique_ptr<ComparePicture> load_comparison(const std::string& left, const std::string& right);

// A window that deletes itself when closed.
void show_compare_window(const std::string& left, const std::string& right, Renderer renderer, int width = 1600, int height = 900);

}  // namespace tapedeck::viewer
