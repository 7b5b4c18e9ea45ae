// A plan as a picture in a file: .svg is written here, .png by the viewer.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <string>

namespace tapedeck::tool {

// Throws UsageError if the name ends in neither .svg nor .png, and DeviceError if it ends in .png and there is no viewer. Call
// it before anything is planned.
void check_picture(const std::string& path);
// A plan that does not fit its budget is drawn as .svg only. For a .png a line goes to stderr, and nothing is written.
void write_picture(const std::string& path, const Graph& captured, const Plan& plan);

// The path of the viewer beside this program. Throws DeviceError if there is none.
std::string viewer_program();

}  // namespace tapedeck::tool
